"""Mini-batches: which samples a step sees. Shared by all dynamics that draw them."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._core.arrays import real_array
from .._core.errors import check_count, check_flag
from .._core.randomness import named_key
from .._core.types import Key


class BatchState(eqx.Module):
    """Where the passes are: the count of steps, the order of the samples, and the last batch's loss
    before its update.
    """

    count: Int[Array, ""]
    order: Int[Array, " sample"]
    key: Key
    loss: Float[Array, ""]


class Batches(eqx.Module):
    """How batches are drawn.

    Args:
        batch: samples a step; the last batch of a pass is smaller, unless `batch` divides the
            number of samples.
        replace: draw each batch afresh with replacement instead of passing over shuffled samples.
        order: explicit sample indices, shape (steps, batch), used instead of random draws.
    """

    batch: int = eqx.field(static=True)
    replace: bool = eqx.field(static=True)
    order: Int[Array, "step batch"] | None

    def __init__(self, batch: int, replace: bool = False, order=None):
        check_count("batch", batch)
        check_flag("replace", replace)
        if replace and order is not None:
            raise ValueError(
                "`replace` asks for random batches, but `order` gives them. Leave one of them out."
            )
        self.batch, self.replace = batch, replace
        self.order = None if order is None else _rows(order, batch)

    @property
    def replayed(self) -> tuple[str, np.ndarray] | None:
        """The explicit indices and what they are called, for `train` to check against its steps and
        samples.
        """
        return None if self.order is None else ("order", np.asarray(self.order))

    def init(self, dynamics: str, model, objective, key) -> BatchState:
        if not hasattr(objective, "batch"):
            raise ValueError(
                f"`{dynamics}` needs a dataset to draw batches from; on an exact population use "
                "`GradientDescent`."
            )
        if self.batch > objective.samples:
            raise ValueError(
                f"`batch` must not exceed the {objective.samples} samples, got {self.batch}."
            )
        key = named_key(key, "batches")
        order = jax.random.permutation(named_key(key, 0), objective.samples)
        # of the loss itself, for the state of a loop must not change its type at the first step
        dtype = jax.eval_shape(lambda: objective.value(model)).dtype
        return BatchState(jnp.zeros((), int), order, key, jnp.full((), jnp.nan, dtype))

    def step(
        self, state: BatchState, objective, update: Callable[[Any, Any], tuple[Any, Array]], moved
    ) -> tuple[Any, BatchState]:
        """`update(moved, batch objective)` on the next batch gives what has moved and the batch's
        loss.
        """
        samples = objective.samples
        if self.order is not None:
            moved, loss = update(moved, objective.batch(self.order[state.count]))
            return moved, BatchState(state.count + 1, state.order, state.key, loss)
        if self.replace:
            draw = jax.random.fold_in(named_key(state.key, "replace"), state.count)
            indices = jax.random.randint(draw, (self.batch,), 0, samples)
            moved, loss = update(moved, objective.batch(indices))
            return moved, BatchState(state.count + 1, state.order, state.key, loss)
        full, rest = divmod(samples, self.batch)
        per_pass = full + (rest > 0)
        position = state.count % per_pass
        arrays, static = eqx.partition(moved, eqx.is_array)

        def on(indices, arrays):
            moved, loss = update(eqx.combine(arrays, static), objective.batch(indices))
            return eqx.filter(moved, eqx.is_array), loss

        def whole(arrays):
            # a batch that fits begins at a multiple of `batch` and ends within the samples, so
            # nothing is clamped
            first = (position * self.batch,)
            return on(jax.lax.dynamic_slice(state.order, first, (self.batch,)), arrays)

        def remainder(arrays):
            return on(state.order[samples - rest :], arrays)

        # shapes are fixed inside a program: whole batches and the last one are two branches of it
        if rest:
            arrays, loss = jax.lax.cond(position < full, whole, remainder, arrays)
        else:
            arrays, loss = whole(arrays)
        # pass 0 was drawn by `init` from the same key folded with 0: each pass has a number of its
        # own
        passes = (state.count + 1) // per_pass
        order = jax.lax.cond(
            position == per_pass - 1,
            lambda: jax.random.permutation(jax.random.fold_in(state.key, passes), samples),
            lambda: state.order,
        )
        moved = eqx.combine(arrays, static)
        return moved, BatchState(state.count + 1, order, state.key, loss)


def _rows(order, batch: int) -> Int[Array, "step batch"]:
    indices = real_array("order", order, f"(step, {batch})")
    if not jnp.issubdtype(indices.dtype, jnp.integer):
        raise ValueError(
            f"`order` must hold whole numbers, the samples of each step, got {indices.dtype}."
        )
    return indices.astype(int)
