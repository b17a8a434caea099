r"""Gradient flow $\dot\theta = -c\, \nabla L(\theta)$."""

import diffrax
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .._core.errors import check_choice, check_positive
from .._core.precision import double
from .._core.trees import parameters, with_parameters
from .base import AbstractFlow

SOLVERS = {"tsit5": diffrax.Tsit5, "dopri8": diffrax.Dopri8, "kvaerno5": diffrax.Kvaerno5}


class FlowState(eqx.Module):
    """Steps and evaluations so far, the last step size, and why it cannot or need not go on."""

    steps: Int[Array, ""]
    size: Float[Array, ""]
    failed: Array
    stationary: Array


class GradientFlow(AbstractFlow):
    """The flow itself, to `tolerance` (relative, per step), through Diffrax.

    For kinked activations the field jumps; explicit solvers then take very small steps.
    """

    tolerance: float = eqx.field(static=True)
    method: str = eqx.field(static=True)
    most_steps: int = eqx.field(static=True)

    @double
    def __init__(self, tolerance: float = 1e-8, method: str = "auto", most_steps: int = 1_000_000):
        check_positive("tolerance", tolerance)
        check_choice("method", method, ("auto", *SOLVERS))
        self.tolerance, self.method, self.most_steps = float(tolerance), method, most_steps

    def init(self, model, objective, key):
        no = jnp.zeros((), bool)
        return FlowState(jnp.zeros((), int), jnp.asarray(jnp.nan), no, no)

    def advance(self, model, state, objective, start, stop):
        factors = model.rate_factors()

        def field(_, theta, __):
            _, gradient = objective.gradient(with_parameters(model, theta))
            return {name: -factors[name] * gradient[name] for name in theta}

        solver = SOLVERS["tsit5" if self.method == "auto" else self.method]()
        controller = diffrax.PIDController(rtol=self.tolerance, atol=self.tolerance * 1e-3)
        span = stop - start
        first = jnp.where(jnp.isfinite(state.size), jnp.minimum(state.size, span), 1e-3 * span)
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field), solver, start, stop, first, parameters(model),
            stepsize_controller=controller, max_steps=self.most_steps, throw=False,
            saveat=diffrax.SaveAt(t1=True),
        )  # fmt: skip
        theta = {name: values[-1] for name, values in solution.ys.items()}
        taken = solution.stats["num_accepted_steps"]
        failed = solution.result != diffrax.RESULTS.successful
        size = span / jnp.maximum(taken, 1)
        new = FlowState(state.steps + taken, size, state.failed | failed, state.stationary)
        return with_parameters(model, theta), new
