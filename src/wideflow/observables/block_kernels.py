r"""The tangent Gram matrix of all outputs together, and what is read off it.

With outputs $f_k$, the residuals $r_{ik}$ of all samples and outputs obey $\dot r = -\Theta\,r$
under the half sum of squares, where
$\Theta_{(i,k),(i',l)} = c\,\langle\nabla f_k(x_i),\nabla f_l(x_{i'})\rangle$. Rows and columns are
ordered like outputs of shape (sample, output), flattened. For a shallow network the block of
outputs $k$ and $l$ is $(\Phi\Phi^\top)\odot(S\,\mathrm{diag}(c\,\lambda A_kA_l)\,S^\top)$.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.arrays import real_array
from .._core.precision import double
from .._core.trees import parameters, unlabelled, with_parameters
from ..models import deep_gram
from ..models.base import AbstractModel
from ..models.deep import Deep
from ..models.rescaled import Rescaled
from ..models.shallow import Shallow
from .base import AbstractObservable, probe_features
from .kernels import spectral_norm

__all__ = ["BlockDrift", "BlockGap", "block_gram", "block_of_features"]


@double
def block_gram(model, inputs) -> Float[Array, "pair pair"]:
    """The tangent Gram matrix over all pairs (sample, output); for one output that of
    `tangent_gram`.

    Args:
        model: where the Jacobian is taken.
        inputs: shape (sample, feature).

    >>> import wideflow as wf
    >>> net = wf.Shallow([[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [1.0, -1.0]])
    >>> block_gram(net, [[1.0, 0.0]])  # one node is on: both outputs move together
    Array([[0.25, 0.25],
           [0.25, 0.25]], dtype=float64)
    """
    return block_of_features(model, model.embed(real_array("inputs", inputs)))


@functools.singledispatch
def block_of_features(model: AbstractModel, features):
    """The same from embedded inputs; by autodiff where no structured form is registered, a column
    at a time.

    Args:
        model: where the Jacobian is taken; its class chooses the form.
        features: embedded inputs (`model.embed`), shape (sample, embedded).
    """
    outputs, pull = model.pullback(features)
    factors, theta = model.rate_factors(), parameters(model)

    def column(unit):
        pulled = pull(unit.reshape(outputs.shape))
        along = {name: factors[name] * pulled[name] for name in theta}
        pushed = jax.jvp(lambda p: with_parameters(model, p).respond(features), (theta,), (along,))
        return pushed[1].reshape(-1)

    return jax.lax.map(column, jnp.eye(outputs.size, dtype=outputs.dtype))


@block_of_features.register
def _(model: Shallow, features):
    return _shallow_block(unlabelled(model), features)  # one program for every scaling


@eqx.filter_jit
def _shallow_block(model: Shallow, features):
    mixed = model.scales * jnp.atleast_2d(model.output)
    slopes = model.activation.slope(features @ model.weights)
    pairs = (slopes[:, None, :] * mixed).reshape(-1, model.width)
    # entry ((i, k), (j, l)) is <phi_i, phi_j> for all outputs k and l
    products = jnp.repeat(jnp.repeat(features @ features.T, len(mixed), 0), len(mixed), 1)
    return products * (model.rate_factor * pairs @ pairs.T)


@block_of_features.register
def _(model: Deep, features):
    return deep_gram.gram(model, features, output=None)


@block_of_features.register
def _(model: Rescaled, features):
    return block_of_features(model.model, features)  # the factors cancel


def _now(model, snapshot):
    return block_of_features(model, probe_features(snapshot, None)).astype(jnp.float64)


class BlockGap(AbstractObservable):
    r"""$\lambda_{\min}(\Theta_t)$ over all samples and outputs."""

    name: str = eqx.field(static=True, default="kernel_gap")
    label: str = eqx.field(static=True, default="smallest eigenvalue of Θ over all outputs")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot):
        return jnp.linalg.eigvalsh(_now(snapshot.model, snapshot))[0]


class BlockDrift(AbstractObservable):
    r"""$\lVert\Theta_t - \Theta_0\rVert_2$ over all samples and outputs."""

    name: str = eqx.field(static=True, default="kernel_drift")
    label: str = eqx.field(static=True, default="‖Θ(t) − Θ(0)‖₂ over all outputs")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot):
        return spectral_norm(_now(snapshot.model, snapshot) - _now(snapshot.start, snapshot))
