r"""Whether the steps of a descent that ended above its start were too long to be stable.

A step of rate $\eta$ multiplies the residual by about $1 - \eta\,\Theta H$, with $\Theta$ the
tangent kernel and $H$ the loss's Hessian in the outputs (1 for the half sum of squares, $1/n$ for
the half mean): descent is locally stable where $\eta\,\lambda_{\max}(\Theta H) < 2$.
"""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp

from .._core.trees import parameters, unlabelled
from ..data.dataset import Dataset, DatasetObjective
from ..dynamics.descent import GradientDescent
from ..dynamics.gradient_flow.jacobian import jacobian_of
from .run import Run

STABLE = 2.0
SLACK = 1e-6  # of the loss at the start; an unstable descent leaves it by far more (chosen)
EPS = 1e-12  # of the squares of the targets: what is left of a loss is rounding below it
PRODUCTS = 60  # of the power method; those of `KernelMaxEigenvalue`


def warn_of_rise(run: Run) -> None:
    """Says of one run that finished above its start by how much its rate is too large; silent
    about anything but full-batch descent on samples.
    """
    if not (isinstance(run.dynamics, GradientDescent) and isinstance(run.data, Dataset)):
        return
    objective = run.data.objective(run.loss, run.start)
    # the table's `loss` may be an observable of the user's own
    before, after = (float(objective.value(model)) for model in (run.start, run.model))
    # a run that rests where it began rises by rounding alone
    rounding = EPS * float(jnp.sum(jnp.square(objective.targets)))
    if not after > (1 + SLACK) * before + rounding:
        return
    rate, top = float(run.dynamics.rate), float(_curvature(unlabelled(run.start), objective))
    bound = f"`rate` below {STABLE / top:.2g}" if rate * top > STABLE else "smaller `rate`"
    warnings.warn(
        f"descent finished above its start: the loss rose from {before:.3g} to {after:.3g}. "
        f"`rate` times the largest eigenvalue of the tangent kernel was {rate * top:.3g} at the "
        f"start (in units of this loss), and steps are stable below {STABLE:g}. Take a {bound}, "
        "or `GradientFlow()`, the limit of small steps.",
        stacklevel=4,  # this, `train`, its wrapper, and the caller
    )


@eqx.filter_jit
def _curvature(model, objective: DatasetObjective):
    r"""$\lambda_{\max}(\Theta H)$ at `model`, by the power method."""
    jacobian = jacobian_of(model, objective.features)
    outputs, here = jacobian.linearise(parameters(model))
    kernel = jacobian.gram_map(here)

    def gradient(u):
        return objective.loss.value_and_gradient(u, objective.targets)[1]

    def step(_, pair):
        image = kernel(jax.jvp(gradient, (outputs,), (pair[0],))[1])
        size = jnp.linalg.norm(image)
        return image / jnp.where(size > 0, size, 1.0), size

    # a start that is no eigenvector of a symmetric arrangement of points
    first = 1 + jnp.arange(outputs.size, dtype=outputs.dtype).reshape(outputs.shape) / outputs.size
    start = (first / jnp.linalg.norm(first), jnp.zeros((), outputs.dtype))
    return jax.lax.fori_loop(0, PRODUCTS, step, start)[1]
