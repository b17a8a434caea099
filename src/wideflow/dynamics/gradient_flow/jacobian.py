r"""The Jacobian $J = \partial u/\partial\theta$ at the training points, as maps and as the Gram
matrix $\Theta = J c J^\top$.

$c$ are the neuron factors, so that the flow of a loss with output gradient $g$ is
$\dot\theta = -cJ^\top g$. What is called `jacobian` below is all that has to be stored to apply $J$
again: the slopes $\sigma'(Z)$ for a shallow network, the parameters themselves for any other model.
"""

import abc
import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..._core.activations import Activation
from ..._core.memory import tile_rows
from ..._core.node_products import cut_blocks, spread, symmetric_product
from ..._core.trees import Parameters, parameters, with_parameters
from ...models import deep_gram
from ...models.base import AbstractModel
from ...models.deep import Deep
from ...models.shallow import BLOCK, Shallow, block_count

Outputs = Float[Array, " sample *output"]


class AbstractJacobian(eqx.Module):
    """The Jacobian of one model at fixed training points, as an operator; `linearise` evaluates
    it.
    """

    @abc.abstractmethod
    def linearise(self, theta: Parameters) -> tuple[Outputs, PyTree]:
        """Outputs, and what `vjp`, `jvp` and `gram` need to apply $J$ there."""

    @abc.abstractmethod
    def vjp(self, jacobian: PyTree, cotangent: Outputs) -> Parameters:
        r"""$cJ^\top v$."""

    @abc.abstractmethod
    def jvp(self, jacobian: PyTree, tangent: Parameters) -> Outputs:
        r"""$J\dot\theta$."""

    @abc.abstractmethod
    def gram(self, jacobian: PyTree) -> Float[Array, "entry entry"]:
        r"""$\Theta$ over all (sample, output) entries, in the order of `outputs.ravel()`."""

    def free_gram(self, jacobian: PyTree) -> Float[Array, "entry entry"]:
        r"""$\Theta$ at what `linearise` gave, where nothing is constrained."""
        return self.gram(jacobian)

    def gram_map(self, jacobian: PyTree) -> Callable[[Outputs], Outputs]:
        r"""$v \mapsto \Theta v$ without the matrix."""
        return lambda v: self.jvp(jacobian, self.vjp(jacobian, v))


class ShallowJacobian(AbstractJacobian):
    r"""$cJ^\top v = c\,\Phi^\top(S \odot v(s \odot A))$ and
    $\Theta^{kl} = c\,\Phi\Phi^\top \odot (S\,\mathrm{diag}(s^2 A_k A_l)\,S^\top)$.
    """

    features: Float[Array, "sample embedded"]
    inner: Float[Array, "sample sample"]
    mixed: Float[Array, "*output width"]
    activation: Activation = eqx.field(static=True)
    factor: float = eqx.field(static=True)

    def __init__(self, model: Shallow, features):
        self.features = features
        # c Phi Phi^T never changes: once for all steps
        self.inner = model.rate_factor * (features @ features.T)
        self.mixed = model.scales * model.output
        self.activation, self.factor = model.activation, model.rate_factor

    def preactivations(self, theta):
        return self.features @ theta["weights"]

    def respond(self, z) -> Outputs:
        return self.activation.value(z) @ self.mixed.T

    def spread(self, cotangent) -> Float[Array, "sample width"]:
        r"""$v\,(s \odot A)$: the cotangent of each neuron's activation."""
        return spread(cotangent, self.mixed)

    def linearise(self, theta):
        z = self.preactivations(theta)
        return self.respond(z), self.activation.slope(z)

    def vjp(self, jacobian, cotangent):
        # sums over outputs come first (`spread`): one product with the features, however many
        # outputs
        return {"weights": self.factor * (self.features.T @ (jacobian * self.spread(cotangent)))}

    def jvp(self, jacobian, tangent):
        return (jacobian * (self.features @ tangent["weights"])) @ self.mixed.T

    def gram_map(self, jacobian):
        return gram_map_in_blocks(self, lambda own: own, jacobian) or super().gram_map(jacobian)

    def gram(self, jacobian):
        if self.mixed.ndim == 1:
            return self.inner * symmetric_product(jacobian * self.mixed)
        outputs, samples = self.mixed.shape[0], jacobian.shape[0]
        # row (i, k) is sigma'(z_i) s A_k, so entry ((i, k), (j, l)) of the product is block (k, l)
        # at (i, j)
        rows = (jacobian[:, None, :] * self.mixed).reshape(samples * outputs, -1)
        blocks = symmetric_product(rows).reshape(samples, outputs, samples, outputs)
        whole = self.inner[:, None, :, None] * blocks
        return whole.reshape(samples * outputs, samples * outputs)


def gram_map_in_blocks(
    t: ShallowJacobian, around: Callable[[ShallowJacobian], AbstractJacobian], jacobian: PyTree
) -> Callable[[Outputs], Outputs] | None:
    r"""$v \mapsto \Theta v$ of `around(t)`, neuron block by neuron block; None where that is not
    faster.

    All arrays of `jacobian` have neurons last. They are cut once, however often the map is applied.
    """
    arrays, tree = jax.tree.flatten(jacobian)
    count = block_count(t.features, t.mixed, BLOCK)
    if count == 1:
        return None
    blocks = cut_blocks(count, t.mixed, *arrays)

    def apply(v: Outputs) -> Outputs:
        def share(block):
            mixed, *parts = block
            own = around(eqx.tree_at(lambda t: t.mixed, t, mixed))
            part = jax.tree.unflatten(tree, parts)
            return own.jvp(part, own.vjp(part, v))

        return jnp.sum(jax.lax.map(share, blocks), axis=0)

    return apply


class AutodiffJacobian(AbstractJacobian):
    """The same for any model, through its `pullback` and a forward derivative of `respond`; `Deep`
    has a structured Gram matrix.
    """

    model: AbstractModel
    features: Float[Array, "sample embedded"]

    def linearise(self, theta):
        return with_parameters(self.model, theta).respond(self.features), theta

    def vjp(self, jacobian, cotangent):
        factors = self.model.rate_factors()
        _, pull = with_parameters(self.model, jacobian).pullback(self.features)
        return {name: factors[name] * g for name, g in pull(cotangent).items()}

    def jvp(self, jacobian, tangent):
        def along(theta):
            return with_parameters(self.model, theta).respond(self.features)

        return jax.jvp(along, (jacobian,), (tangent,))[1]

    def gram(self, jacobian):
        # products of layer Gram matrices in place of a column an entry
        if isinstance(self.model, Deep):
            return deep_gram.gram(with_parameters(self.model, jacobian), self.features, output=None)
        shape = jax.eval_shape(lambda t: self.linearise(t)[0], jacobian)
        size = shape.size
        numbers = sum(leaf.size for leaf in jax.tree.leaves(parameters(self.model)))
        # four arrays of the parameters' size a column: the cotangent's image, scaled, and what jvp
        # carries
        rows = tile_rows(size, 4 * shape.dtype.itemsize * numbers)

        def column(basis):
            return self.jvp(jacobian, self.vjp(jacobian, basis.reshape(shape.shape))).ravel()

        # columns come out as rows, which is the same for a symmetric matrix
        return jax.lax.map(column, jnp.eye(size, dtype=shape.dtype), batch_size=rows)


def jacobian_of(model: AbstractModel, features) -> AbstractJacobian:
    """Structured where the model has structure, by autodiff elsewhere."""
    if isinstance(model, Shallow):
        return ShallowJacobian(model, features)
    return AutodiffJacobian(model, features)


def reduced(model, objective):
    r"""The same problem in the fewest coordinates, and the map of its model back to all of them.

    With fewer samples than features, a shallow network's dynamics close on an $n$-dimensional
    subspace, exactly: with $\Phi^\top = QR$ ($Q$ orthonormal, $D \times n$) the outputs at the
    training points depend on $V = Q^\top W$ alone and every gradient lies in the span of $Q$, so a
    flow of $V$ on the features $R^\top$ is the flow of $W = Q V + (I - QQ^\top)W_0$ on $\Phi$.
    """
    features = objective.features
    if not isinstance(model, Shallow) or features.shape[0] >= features.shape[1]:
        return model, objective, lambda moved: moved
    # Phi = R^T Q^T, so Phi W = R^T (Q^T W): the new features are R^T
    q, r = jnp.linalg.qr(features.T)
    small = eqx.tree_at(lambda m: m.weights, model, q.T @ model.weights)
    fewer = dataclasses.replace(objective, features=r.T)

    def whole(moved):
        # the change of V, not V, is carried back: what stands still keeps its bits
        weights = model.weights + q @ (moved.weights - small.weights)
        return eqx.tree_at(lambda m: m.weights, model, weights)

    return small, fewer, whole
