r"""The tangent Gram matrix and what is read off it: drift, gap, trace, rank, alignment.

$\Theta(x, x') = c\,\langle \nabla_\theta f(x), \nabla_\theta f(x')\rangle$ with the neuron factor $c$, so that gradient
flow moves outputs by $\dot u = -\Theta\, \partial L/\partial u$ in every scaling. For a shallow network it is a Hadamard product,
$(\Phi\Phi'^\top) \odot (S\,\mathrm{diag}(c\,\lambda A_k^2)\,S'^\top)$, $S = \sigma'(Z)$: no Jacobian is ever formed.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.arrays import real_array
from .._core.errors import check_count, check_kind
from .._core.memory import tile_rows
from .._core.precision import double
from .._core.symmetric_product import symmetric_product
from .._core.trees import parameters, with_parameters
from ..models.base import AbstractModel
from ..models.shallow import Shallow
from .base import AbstractObservable, Snapshot, check_samples, probe_features


@double
def tangent_gram(model, inputs, other=None, output: int = 0) -> Float[Array, "left right"]:
    """The tangent Gram matrix of one output between `inputs` and `other` (default: themselves).

    >>> import wideflow as wf
    >>> net = wf.Shallow([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0])
    >>> wf.observables.tangent_gram(net, [[1.0, 0.0]])  # x.x / D times half the nodes on
    Array([[0.25]], dtype=float64)
    """
    check_kind("model", model, AbstractModel, "a wideflow model")
    left = model.embed(real_array("inputs", inputs, "(sample, feature)"))
    right = left
    if other is not None:
        right = model.embed(real_array("other", other, "(sample, feature)"))
    check_output(model, left, output)
    return gram_of_features(model, left, right, output)


def check_output(model, features, output) -> None:
    """Refuses outputs that the model does not have: indexing would clamp them to the last one."""
    check_count("output", output, least=0)
    shape = jax.eval_shape(model.respond, features).shape
    count = shape[1] if len(shape) > 1 else 1
    if output >= count:
        raise ValueError(f"`output` must lie in 0..{count - 1}, the model's outputs, got {output}.")


@functools.singledispatch
def gram_of_features(model: AbstractModel, left, right, output: int = 0):
    """The same from embedded inputs; by autodiff where no structured form is registered.

    Rows are worked off in tiles that fit the memory budget: the left Jacobian is never whole.
    """
    theta, factors = parameters(model), model.rate_factors()

    def scalar(p, feature):
        value = with_parameters(model, p).respond(feature[None])[0]
        return value if value.ndim == 0 else value[output]

    size = sum(leaf.size for leaf in theta.values())
    rows = tile_rows(left.shape[0], 2 * left.dtype.itemsize * size)

    def row_block(block):
        def against(feature):
            def along(p):
                return jax.vmap(lambda f: scalar(p, f))(block)

            tangent = jax.grad(scalar)(theta, feature)
            tangent = {name: factors[name] * tangent[name] for name in tangent}
            return jax.jvp(along, (theta,), (tangent,))[1]

        return jax.lax.map(against, right).T

    return jnp.concatenate([row_block(left[i : i + rows]) for i in range(0, len(left), rows)])


@gram_of_features.register
def _(model: Shallow, left, right, output: int = 0):
    mixed = model.scales * (model.output if model.output.ndim == 1 else model.output[output])
    scale = jnp.sqrt(model.rate_factor) * jnp.abs(mixed)
    slopes = model.activation.slope(left @ model.weights) * scale
    if right is left:
        return (left @ left.T) * symmetric_product(slopes)
    return (left @ right.T) * (slopes @ (model.activation.slope(right @ model.weights) * scale).T)


def spectral_norm(matrix: Float[Array, "sample sample"]) -> Float[Array, ""]:
    """Of a symmetric matrix, in float64."""
    return jnp.max(jnp.abs(jnp.linalg.eigvalsh(matrix.astype(jnp.float64))))


class _Watched(eqx.Module):
    """Which points and which output a kernel is watched at."""

    samples: int | None = eqx.field(static=True)
    output: int = eqx.field(static=True)

    def __check_init__(self):
        check_samples(self.samples)
        check_count("output", self.output, least=0)

    def gram(self, model, snapshot: Snapshot):
        features = probe_features(snapshot, self.samples)
        check_output(model, features, self.output)
        return gram_of_features(model, features, features, self.output).astype(jnp.float64)


class KernelDrift(AbstractObservable):
    r"""$\lVert\Theta_t - \Theta_0\rVert_2$ on the training inputs (or the first `samples`)."""

    watched: _Watched
    name: str = eqx.field(static=True, default="kernel_drift")
    label: str = eqx.field(static=True, default="‖Θ(t) − Θ(0)‖₂")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, samples: int | None = None, output: int = 0):
        self.watched = _Watched(samples, output)

    def __call__(self, snapshot):
        now, start = (self.watched.gram(m, snapshot) for m in (snapshot.model, snapshot.start))
        return spectral_norm(now - start)


class KernelGap(AbstractObservable):
    r"""$\lambda_{\min}(\Theta_t)$."""

    watched: _Watched
    name: str = eqx.field(static=True, default="kernel_gap")
    label: str = eqx.field(static=True, default="smallest eigenvalue of Θ")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, samples: int | None = None, output: int = 0):
        self.watched = _Watched(samples, output)

    def __call__(self, snapshot):
        return jnp.linalg.eigvalsh(self.watched.gram(snapshot.model, snapshot))[0]


class KernelSpectrum(AbstractObservable):
    r"""All eigenvalues of $\Theta_t$, ascending."""

    watched: _Watched
    name: str = eqx.field(static=True, default="kernel_spectrum")
    label: str = eqx.field(static=True, default="eigenvalues of Θ")
    axes: tuple[str, ...] = eqx.field(static=True, default=("eigenvalue",))

    def __init__(self, samples: int | None = None, output: int = 0):
        self.watched = _Watched(samples, output)

    def __call__(self, snapshot):
        return jnp.linalg.eigvalsh(self.watched.gram(snapshot.model, snapshot))


class KernelTrace(AbstractObservable):
    r"""$\mathrm{tr}\,\Theta_t$."""

    watched: _Watched
    name: str = eqx.field(static=True, default="kernel_trace")
    label: str = eqx.field(static=True, default="trace of Θ")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, samples: int | None = None, output: int = 0):
        self.watched = _Watched(samples, output)

    def __call__(self, snapshot):
        return jnp.trace(self.watched.gram(snapshot.model, snapshot))


class EffectiveRank(AbstractObservable):
    r"""$(\mathrm{tr}\,\Theta)^2 / \lVert\Theta\rVert_F^2$: how many directions carry the kernel."""

    watched: _Watched
    name: str = eqx.field(static=True, default="effective_rank")
    label: str = eqx.field(static=True, default="effective rank of Θ")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, samples: int | None = None, output: int = 0):
        self.watched = _Watched(samples, output)

    def __call__(self, snapshot):
        gram = self.watched.gram(snapshot.model, snapshot)
        return jnp.trace(gram) ** 2 / jnp.sum(gram**2)


class KernelAlignment(AbstractObservable):
    r"""$y^\top\Theta y / (\lVert\Theta\rVert_F \lVert y\rVert^2)$ with the targets of the watched output."""

    watched: _Watched
    name: str = eqx.field(static=True, default="kernel_alignment")
    label: str = eqx.field(static=True, default="alignment of Θ with the targets")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, samples: int | None = None, output: int = 0):
        self.watched = _Watched(samples, output)

    def __call__(self, snapshot):
        gram = self.watched.gram(snapshot.model, snapshot)
        y = snapshot.objective.targets.astype(jnp.float64)
        y = (y if y.ndim == 1 else y[:, self.watched.output])[: gram.shape[0]]
        return y @ gram @ y / (jnp.linalg.norm(gram) * jnp.vdot(y, y))
