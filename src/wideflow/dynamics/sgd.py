"""Mini-batch stochastic gradient descent."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._core.errors import check_count, check_positive
from .._core.precision import double
from .._core.randomness import named_key
from .._core.types import Key
from .base import AbstractDynamics
from .descent import descend


class BatchState(eqx.Module):
    """Where SGD is: the count of steps, the order of the samples, and the last batch's loss before its update."""

    count: Int[Array, ""]
    order: Int[Array, " sample"]
    key: Key
    loss: Float[Array, ""]


class SGD(AbstractDynamics):
    r"""$\theta_{k+1} = \theta_k - \eta\, c\, \nabla L_{B_k}(\theta_k)$ with the loss of a mini-batch $B_k$.

    Args:
        rate: $\eta$ for the loss of one batch. A step takes time $\eta$.
        batch: samples a step; the last batch of a pass is smaller, as in the papers' runs, unless
            `batch` divides the number of samples.
        replace: draw each batch afresh with replacement instead of passing over shuffled samples.
        order: explicit sample indices, shape (steps, batch), used instead of random draws; a longer run is refused.
    """

    rate: Float[Array, ""]
    batch: int = eqx.field(static=True)
    replace: bool = eqx.field(static=True)
    order: Int[Array, "step batch"] | None

    @double
    def __init__(self, rate: float, batch: int = 64, replace: bool = False, order=None):
        check_positive("rate", rate)
        check_count("batch", batch)
        self.rate, self.batch, self.replace = jnp.asarray(float(rate)), batch, replace
        self.order = None if order is None else jnp.asarray(_indices(order, batch))

    def check_replay(self, steps: int, samples: int | None) -> None:
        """Refuses a run whose batches `order` does not hold."""
        if self.order is not None:
            check_replay("order", self.order, steps, samples)

    def init(self, model, objective, key):
        if not hasattr(objective, "batch"):
            raise ValueError(
                "`SGD` needs a dataset to draw batches from; on an exact population use `GradientDescent`."
            )
        if self.batch > objective.samples:
            raise ValueError(
                f"`batch` must not exceed the {objective.samples} samples, got {self.batch}."
            )
        key = named_key(key, "batches")
        order = jax.random.permutation(named_key(key, 0), objective.samples)
        dtype = jax.eval_shape(lambda: objective.value(model)).dtype
        return BatchState(jnp.zeros((), int), order, key, jnp.full((), jnp.nan, dtype))

    def step(self, model, state, objective):
        samples = objective.samples
        if self.order is not None:
            indices = self.order[state.count]
            model, loss = self._descend(model, objective.batch(indices))
            return model, BatchState(state.count + 1, state.order, state.key, loss)
        if self.replace:
            draw = named_key(state.key, "replace")
            draw = jax.random.fold_in(draw, state.count)
            indices = jax.random.randint(draw, (self.batch,), 0, samples)
            model, loss = self._descend(model, objective.batch(indices))
            return model, BatchState(state.count + 1, state.order, state.key, loss)
        full, rest = divmod(samples, self.batch)
        per_pass = full + (rest > 0)
        position = state.count % per_pass

        def whole(model):
            indices = jax.lax.dynamic_slice(state.order, (position * self.batch,), (self.batch,))
            return self._descend(model, objective.batch(indices))

        def remainder(model):
            return self._descend(model, objective.batch(state.order[samples - rest :]))

        model, loss = (
            jax.lax.cond(position < full, whole, remainder, model) if rest else whole(model)
        )
        passes = (state.count + 1) // per_pass
        order = jax.lax.cond(
            position == per_pass - 1,
            lambda: jax.random.permutation(jax.random.fold_in(state.key, passes), samples),
            lambda: state.order,
        )
        return model, BatchState(state.count + 1, order, state.key, loss)

    def _descend(self, model, objective):
        loss, gradient = objective.gradient(model)
        return descend(model, gradient, self.rate), loss

    def duration(self, state, model):
        return self.rate


def _indices(order, batch: int) -> np.ndarray:
    """`order` as whole numbers of shape (steps, batch)."""
    rows = np.asarray(order)
    if rows.ndim != 2 or rows.shape[1] != batch:
        raise ValueError(
            f"`order` must have shape (steps, {batch}), a row of `batch` sample indices for each step, got {rows.shape}."
        )
    if not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(f"`order` must hold whole numbers, got {rows.dtype}.")
    return rows.astype(np.int64)


def check_replay(name: str, rows, steps: int, samples: int | None) -> None:
    """Refuses a run of more steps than `rows`, and indices of samples that are not there: JAX takes the nearest one without a word."""
    if steps > len(rows):
        raise ValueError(
            f"`{name}` must have a row for each of the {steps} steps, got {len(rows)} rows. Give more rows, or fewer `steps`."
        )
    if samples is None:
        return
    low, high = int(np.min(rows)), int(np.max(rows))
    if low < 0 or high >= samples:
        wrong = low if low < 0 else high
        raise ValueError(f"`{name}` must hold sample indices from 0 to {samples - 1}, got {wrong}.")
