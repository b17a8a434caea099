"""Diffrax's solvers, step by step: the same steps whatever is recorded, and their own interpolation in between."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from ..._core.trees import Parameters, zeros_of

SOLVERS = {"tsit5": diffrax.Tsit5, "dopri8": diffrax.Dopri8, "kvaerno5": diffrax.Kvaerno5}


class ExplicitState(eqx.Module):
    """The last step, from `begin` to `end`, with what its interpolation needs; `following` ends the next attempt."""

    begin: Float[Array, ""]
    end: Float[Array, ""]
    following: Float[Array, ""]
    theta: Parameters
    solver: PyTree
    controller: PyTree
    jump: Array
    dense: PyTree
    steps: Int[Array, ""]
    tried: Int[Array, ""]
    failed: Array


class ExplicitSolver(eqx.Module):
    """One of `SOLVERS` under Diffrax's PID controller."""

    name: str = eqx.field(static=True)
    tolerance: float = eqx.field(static=True)

    @property
    def _parts(self) -> tuple[Any, diffrax.PIDController]:
        absolute = self.tolerance * 1e-3
        controller = diffrax.PIDController(rtol=self.tolerance, atol=absolute)
        if self.name != "kvaerno5":
            return SOLVERS[self.name](), controller
        newton = diffrax.VeryChord(rtol=self.tolerance, atol=absolute)
        return diffrax.Kvaerno5(root_finder=newton), controller

    @property
    def passes(self) -> int:
        """Right-hand sides an attempted step takes (Tsit5 keeps its last one); for `kvaerno5` without its Newton iterations."""
        return {"tsit5": 6, "dopri8": 13, "kvaerno5": 7}[self.name]

    def init(self, field, theta: Parameters, time) -> ExplicitState:
        solver, controller = self._parts
        terms, time = diffrax.ODETerm(field), jnp.asarray(time, float)
        order = solver.error_order(terms)
        following, control = controller.init(
            terms, time, time, theta, None, None, solver.func, order
        )
        memory = solver.init(terms, time, following, theta, None)
        no, zero = jnp.zeros((), bool), jnp.zeros((), int)
        dense = zeros_of(solver.step, terms, time, following, theta, None, memory, no)[2]
        return ExplicitState(
            time, time, jnp.asarray(following, float), theta, memory, control, no, dense, zero, zero, no
        )  # fmt: skip

    def advance(self, field, state: ExplicitState, stop, most_steps) -> ExplicitState:
        """Steps until `stop` is reached or passed, or `most_steps` were tried, or the solver gives up."""
        solver, controller = self._parts
        terms = diffrax.ODETerm(field)
        order = solver.error_order(terms)

        def going(now: ExplicitState):
            return (now.end < stop) & (now.tried < state.tried + most_steps) & ~now.failed

        def body(now: ExplicitState) -> ExplicitState:
            theta, error, dense, memory, result = solver.step(
                terms, now.end, now.following, now.theta, None, now.solver, now.jump
            )
            keep, end, following, jump, control, verdict = controller.adapt_step_size(
                now.end, now.following, now.theta, theta, None, error, order, now.controller
            )
            failed = (result != diffrax.RESULTS.successful) & keep
            failed = failed | (verdict != diffrax.RESULTS.successful) | ~(following > end)
            old = (now.begin, now.theta, now.solver, now.dense)
            new = (now.end, theta, memory, dense)
            begin, theta, memory, dense = jax.tree.map(lambda a, b: jnp.where(keep, a, b), new, old)
            return ExplicitState(
                begin, end, following, theta, memory, control, jnp.asarray(jump), dense,
                now.steps + keep, now.tried + 1, failed,
            )  # fmt: skip

        return jax.lax.while_loop(going, body, state)

    def between(self, state: ExplicitState, time) -> Parameters:
        """The parameters at a `time` of the last step; those at its end beyond it."""
        solver, _ = self._parts
        inside = solver.interpolation_cls(t0=state.begin, t1=state.end, **state.dense)
        return jax.lax.cond(time < state.end, lambda: inside.evaluate(time), lambda: state.theta)
