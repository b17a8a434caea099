"""Mini-batch stochastic gradient descent."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._core.arrays import real_array
from .._core.errors import check_count, check_flag, check_positive
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
        order: explicit sample indices, shape (steps, batch), used instead of random draws.
    """

    rate: Float[Array, ""]
    batch: int = eqx.field(static=True)
    replace: bool = eqx.field(static=True)
    order: Int[Array, "step batch"] | None

    @double
    def __init__(self, rate: float, batch: int = 64, replace: bool = False, order=None):
        check_positive("rate", rate)
        check_count("batch", batch)
        check_flag("replace", replace)
        self.rate, self.batch, self.replace = jnp.asarray(float(rate)), batch, replace
        self.order = None if order is None else _rows(order, batch)

    @property
    def replayed(self) -> tuple[str, np.ndarray] | None:
        """The explicit indices and what they are called, for `train` to check against its steps and samples."""
        return None if self.order is None else ("order", np.asarray(self.order))

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


def _rows(order, batch: int) -> Int[Array, "step batch"]:
    indices = real_array("order", order, f"(step, {batch})")
    if not jnp.issubdtype(indices.dtype, jnp.integer):
        raise ValueError(
            f"`order` must hold whole numbers, the samples of each step, got {indices.dtype}."
        )
    return indices.astype(int)
