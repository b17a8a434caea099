"""Diffrax's solvers, step by step: the same steps whatever is recorded, and their own interpolation
in between; no step may raise the loss.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from ..._core.trees import Parameters, zeros_of
from .step_base import HOPELESS, PROBATION

SOLVERS = {"tsit5": "Tsit5", "dopri8": "Dopri8", "kvaerno5": "Kvaerno5"}
"""Methods and the names that Diffrax has for them."""


class DiffraxState(eqx.Module):
    """The last step, from `begin` to `end`, with what its interpolation needs; `following` ends the
    next attempt.
    """

    begin: Float[Array, ""]
    end: Float[Array, ""]
    following: Float[Array, ""]
    theta: Parameters
    loss: Float[Array, ""]
    rounding: Float[Array, ""]
    solver: PyTree
    controller: PyTree
    jump: Array
    dense: PyTree
    steps: Int[Array, ""]
    attempts: Int[Array, ""]
    failed: Array


class DiffraxSolver(eqx.Module):
    """One of `SOLVERS` under Diffrax's PID controller."""

    name: str = eqx.field(static=True)
    tolerance: float = eqx.field(static=True)

    @property
    def _parts(self) -> tuple[Any, Any]:
        from ..._core.solvers import diffrax

        # parameters are of order one: the absolute part matters only for entries below 1e-3
        # (chosen)
        absolute = self.tolerance * 1e-3
        controller = diffrax.PIDController(rtol=self.tolerance, atol=absolute)
        if self.name != "kvaerno5":
            return getattr(diffrax, SOLVERS[self.name])(), controller
        newton = diffrax.VeryChord(rtol=self.tolerance, atol=absolute)
        return diffrax.Kvaerno5(root_finder=newton), controller

    @property
    def evaluations(self) -> int:
        """Right-hand sides an attempted step takes (Tsit5 keeps its last one); for `kvaerno5`
        without its Newton iterations.
        """
        # Tsit5's seventh stage is the first of the next step
        return {"tsit5": 6, "dopri8": 13, "kvaerno5": 7}[self.name]

    def init(self, field, loss, theta: Parameters, time) -> DiffraxState:
        """At rest at `time`, before the first step."""
        from ..._core.solvers import diffrax

        solver, terms = self._parts[0], diffrax.ODETerm(field)
        begin = self._begun(field, loss, theta, time)
        following, memory, no = begin["following"], begin["solver"], begin["failed"]
        step = (terms, begin["end"], following, theta, None, memory, no)
        zero = jnp.zeros((), int)
        return DiffraxState(
            **begin, dense=zeros_of(solver.step, *step)[2], steps=zero, attempts=zero
        )

    def restart(self, field, loss, state: DiffraxState, theta: Parameters, time) -> DiffraxState:
        """`state` back at an earlier `time`, from `theta`, with all that it has counted."""
        return dataclasses.replace(state, **self._begun(field, loss, theta, time))

    def _begun(self, field, loss, theta: Parameters, time) -> dict[str, Any]:
        """The state's entries at rest, but for counts and the path inside a last step, which nobody
        reads.
        """
        from ..._core.solvers import diffrax

        solver, controller = self._parts
        terms, time = diffrax.ODETerm(field), jnp.asarray(time, float)
        order = solver.error_order(terms)
        following, control = controller.init(
            terms, time, time, theta, None, None, solver.func, order
        )
        control = jax.tree.map(jnp.asarray, control)  # a plain `False` would become an array later
        memory, no = solver.init(terms, time, following, theta, None), jnp.zeros((), bool)
        value, rounding = loss(theta)
        return dict(
            begin=time,
            end=time,
            following=jnp.asarray(following, float),
            theta=theta,
            loss=value,
            rounding=rounding,
            solver=memory,
            controller=control,
            jump=no,
            failed=no,
        )

    def advance(
        self, field, loss, state: DiffraxState, stop, max_steps, exactly=False
    ) -> DiffraxState:
        """Steps until `stop` is reached (`exactly`) or passed, or `max_steps` were tried, or the
        solver gives up.

        `loss` maps parameters to the loss, which may not rise, and to its rounding error. A step
        that raises it is taken again at half its length.
        """
        from ..._core.solvers import diffrax

        solver, controller = self._parts
        terms = diffrax.ODETerm(field)
        order = solver.error_order(terms)

        def going(now: DiffraxState):
            return (now.end < stop) & (now.attempts < state.attempts + max_steps) & ~now.failed

        def attempt(now: DiffraxState) -> DiffraxState:
            aim = jnp.where(exactly & (now.following > stop), stop, now.following)
            theta, error, dense, memory, result = solver.step(
                terms, now.end, aim, now.theta, None, now.solver, now.jump
            )
            accepted, end, following, jump, control, verdict = controller.adapt_step_size(
                now.end, aim, now.theta, theta, None, error, order, now.controller
            )
            # Diffrax's controller sees errors, not the loss: a step that raises it is undone,
            # whatever the controller has made of it
            value, rounding = loss(theta)
            # `not (<=)`: a NaN counts as a rise
            rises = accepted & ~(value <= now.loss + now.rounding)
            accepted = accepted & ~rises
            end = jnp.where(rises, now.end, end)
            following = jnp.where(rises, now.end + (aim - now.end) / 2, following)
            control = jax.tree.map(lambda a, b: jnp.where(rises, a, b), now.controller, control)

            success = diffrax.RESULTS.successful
            # a following step of no length, or NaN, cannot go on
            failed = ((result != success) & accepted) | (verdict != success) | ~(following > end)
            slow = (following - end) * max_steps < HOPELESS * (stop - end)
            failed = failed | (slow & (now.attempts - state.attempts >= PROBATION))
            old = (now.begin, now.theta, now.loss, now.rounding, now.solver, now.dense)
            new = (now.end, theta, value, rounding, memory, dense)
            begin, theta, value, rounding, memory, dense = jax.tree.map(
                lambda a, b: jnp.where(accepted, a, b), new, old
            )
            return DiffraxState(
                begin,
                end,
                following,
                theta,
                value,
                rounding,
                memory,
                control,
                jnp.asarray(jump),
                dense,
                now.steps + accepted,
                now.attempts + 1,
                failed,
            )

        return jax.lax.while_loop(going, attempt, state)

    def interpolate(self, state: DiffraxState, time) -> Parameters:
        """The parameters at a `time` of the last step; those at its end beyond it."""
        solver, _ = self._parts
        inside = solver.interpolation_cls(t0=state.begin, t1=state.end, **state.dense)
        return jax.lax.cond(time < state.end, lambda: inside.evaluate(time), lambda: state.theta)
