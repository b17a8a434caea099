r"""The sharpness: the largest eigenvalue of the loss' Hessian, which gradient descent at rate
$\eta$ holds near $2/\eta$ (cohen2021).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from .._core.errors import check_count, check_kind
from .._core.lanczos import largest_eigenvalues
from .._core.precision import double
from .._core.trees import parameters, with_parameters
from ..dynamics.losses import AbstractLoss, HalfSumSquares
from ..models.base import AbstractModel
from .base import AbstractObservable

__all__ = ["Sharpness", "hessian_eigenvalues"]

DEPTH = 40  # Lanczos steps; the top eigenvalues stand apart, and their error falls geometrically


class Sharpness(AbstractObservable):
    r"""The `count` largest eigenvalues of $c^{1/2} \nabla^2 L\, c^{1/2}$, largest first; one number
    if `count` is 1.

    $c$ are the model's rate factors, so that in every parametrisation descent at rate $\eta$ is
    stable in a quadratic model of the loss where this is below $2/\eta$. By Lanczos with `depth`
    Hessian-vector products; no Hessian is formed.

    Args:
        count: how many eigenvalues.
        depth: Lanczos steps, at least `count`.
    """

    count: int = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    name: str = eqx.field(static=True)
    label: str = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, count: int = 1, depth: int = DEPTH):
        check_count("count", count)
        check_count("depth", depth, least=count)
        self.count, self.depth, self.name = count, depth, "sharpness"
        self.label = "largest eigenvalue of the Hessian"
        self.axes = () if count == 1 else ("eigenvalue",)

    def __call__(self, snapshot):
        values = _eigenvalues(snapshot.model, snapshot.objective, self.count, self.depth)
        return values[0] if self.count == 1 else values


@double
def hessian_eigenvalues(model, data, count: int = 1, *, loss=None, depth: int = DEPTH):
    """The `count` largest eigenvalues of the loss' Hessian (with the model's rate factors), largest
    first.

    Args:
        data: a `Dataset` or a population.
        loss: default `HalfSumSquares()`.
        depth: Lanczos steps.
        model: where the Hessian is taken, in its trained arrays.
    """
    check_count("count", count)
    check_count("depth", depth)
    check_kind("model", model, AbstractModel, "a wideflow model")
    loss = HalfSumSquares() if loss is None else loss
    check_kind("loss", loss, AbstractLoss, "one of `wf.losses`, such as `MeanSquares()`")
    if not hasattr(data, "objective"):
        raise ValueError(f"`data` must be a `Dataset` or a population, got {data!r}.")
    objective = data.objective(loss, model)
    return eqx.filter_jit(_eigenvalues)(model, objective, count, max(depth, count))


def _eigenvalues(model, objective, count: int, depth: int):
    theta = parameters(model)
    # theta = c^1/2 phi: descent of phi at rate eta is descent of theta at rate c eta
    factors = {name: jnp.sqrt(factor) for name, factor in model.rate_factors().items()}
    flat, unravel = ravel_pytree(theta)
    if count > flat.size:
        raise ValueError(
            f"`count` must not exceed the {flat.size} trained parameters, got {count}."
        )

    def gradient(moved):
        return objective.gradient(with_parameters(model, moved))[1]

    def product(vector):
        along = {name: factors[name] * part for name, part in unravel(vector).items()}
        curved = jax.jvp(gradient, (theta,), (along,))[1]
        return ravel_pytree({name: factors[name] * part for name, part in curved.items()})[0]

    # a start that has a share of every eigenvector but is the same at every record
    start = jax.random.normal(jax.random.key(0), flat.shape, flat.dtype)
    return largest_eigenvalues(product, start, depth, count)
