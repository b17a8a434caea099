r"""Keeps the best iterate of another dynamics (allenzhu2018, Lemma G.4 speaks of some $t \le T$,
not of the last).
"""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..._core.errors import check_count, check_kind
from ..._core.trees import Parameters, parameters, with_parameters
from ...dynamics.base import AbstractDynamics


class BestState(eqx.Module):
    """The wrapped dynamics' state, and the trained arrays of the best iterate with their loss."""

    inner: PyTree
    count: Array
    best: Parameters
    loss: Float[Array, ""]


@runtime_checkable
class Rated(Protocol):
    """A dynamics of one learning rate."""

    @property
    def rate(self) -> Array: ...


class BestIterate(AbstractDynamics):
    """`dynamics`, watched: every `every` steps the full training loss is taken and the least one's
    parameters are kept.

    The run itself is unchanged; after `run = train(...)` the best model is `BestIterate.best(run)`.

    Args:
        dynamics: a dynamics in steps.
        every: steps between two looks at the loss.
    """

    dynamics: AbstractDynamics
    every: int = eqx.field(static=True)

    def __init__(self, dynamics: AbstractDynamics, every: int = 100):
        check_count("every", every)
        check_kind(
            "dynamics",
            dynamics,
            AbstractDynamics,
            "a dynamics in steps, such as `GradientDescent(0.1)`",
            "A gradient flow's loss never rises, so its last iterate is its best.",
        )
        self.dynamics, self.every = dynamics, every

    @property
    def rate(self):
        """The wrapped dynamics' rate."""
        if not isinstance(self.dynamics, Rated):
            raise AttributeError(f"{type(self.dynamics).__name__} has no `rate`")
        return self.dynamics.rate

    @property
    def replayed(self):
        """The wrapped dynamics' explicit indices."""
        return getattr(self.dynamics, "replayed", None)

    def init(self, model, objective, key):
        inner = self.dynamics.init(model, objective, key)
        return BestState(inner, jnp.zeros((), int), parameters(model), objective.value(model))

    def step(self, model, state, objective):
        model, inner = self.dynamics.step(model, state.inner, objective)
        count = state.count + 1

        def look(_):
            loss = objective.value(model)
            better = loss < state.loss
            best = jax.tree.map(
                lambda new, old: jnp.where(better, new, old), parameters(model), state.best
            )
            return best, jnp.where(better, loss, state.loss)

        best, loss = jax.lax.cond(
            count % self.every == 0, look, lambda _: (state.best, state.loss), None
        )
        return model, BestState(inner, count, best, loss)

    def duration(self, state, model):
        return self.dynamics.duration(state.inner, model)

    @staticmethod
    def best(run):
        """The model with the least training loss among the iterates looked at (a tuple for runs of
        several models).
        """
        if isinstance(run.model, tuple):
            return tuple(
                with_parameters(m, s.best) for m, s in zip(run.model, run.state, strict=True)
            )
        return with_parameters(run.model, run.state.best)
