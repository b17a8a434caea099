"""Adam on mini-batches, with a rate that falls along a cosine."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from .._core.errors import check_count, check_positive
from .._core.precision import double
from .._core.randomness import named_key
from .._core.trees import axpy, parameters, with_parameters
from .._core.types import Key
from ..data.objective import Sampled
from ..dynamics.base import AbstractDynamics


class AdamState(eqx.Module):
    """Where Adam is: the count of steps, the order of the samples, the moments, the last batch's
    loss before its update.
    """

    count: Int[Array, ""]
    order: Int[Array, " sample"]
    key: Key
    moments: PyTree
    loss: Float[Array, ""]


class Adam(AbstractDynamics):
    r"""$\theta_{k+1} = \theta_k - \eta_k\, \hat m_k / (\sqrt{\hat v_k} + \epsilon)$,
    $\eta_k = \frac\eta2 (1 + \cos(\pi k/K))$.

    $\hat m$ and $\hat v$ are the bias-corrected running means of the mini-batch gradients and of
    their squares (Optax's `scale_by_adam` with its defaults $\beta = (0.9, 0.999)$,
    $\epsilon = 10^{-8}$). The update does not depend on the size of the gradient, so no neuron
    factor is applied. The length $K$ is an array: runs of all lengths share one program.

    Every pass is over freshly shuffled samples; where `batch` does not divide their number, the
    rest of a pass is left out.

    Args:
        rate: $\eta$, the rate of the first step. A step counts as time $\eta_k$.
        batch: samples a step; None for all of them.
        decay: $K$, the steps over which the rate falls to zero (later steps do not move); None
            keeps it constant.
    """

    rate: Float[Array, ""]
    batch: int | None = eqx.field(static=True)
    decay: Int[Array, ""] | None

    @double
    def __init__(self, rate: float, batch: int | None = 32, decay: int | None = None):
        check_positive("rate", rate)
        if batch is not None:
            check_count("batch", batch)
        if decay is not None:
            check_count("decay", decay)
        self.rate, self.batch = jnp.asarray(float(rate)), batch
        self.decay = None if decay is None else jnp.asarray(decay, dtype=int)

    def init(self, model, objective, key):
        samples = 1
        if self.batch is not None:
            if not isinstance(objective, Sampled):
                raise ValueError(
                    "`batch` must be None on an exact population, which has no samples, got "
                    f"{self.batch}."
                )
            samples = objective.samples
            if self.batch > samples:
                raise ValueError(
                    f"`batch` must not exceed the {samples} samples, got {self.batch}."
                )
        key = named_key(key, "batches")
        order = jax.random.permutation(named_key(key, 0), samples)
        dtype = jax.eval_shape(lambda: objective.value(model)).dtype
        moments = optax.scale_by_adam().init(parameters(model))
        return AdamState(jnp.zeros((), int), order, key, moments, jnp.full((), jnp.nan, dtype))

    def step(self, model, state, objective):
        order = state.order
        if self.batch is not None:
            assert isinstance(objective, Sampled)  # `init` has refused others
            per_pass = objective.samples // self.batch
            position = state.count % per_pass
            indices = jax.lax.dynamic_slice(order, (position * self.batch,), (self.batch,))
            objective = objective.batch(indices)
            passes = (state.count + 1) // per_pass
            order = jax.lax.cond(
                position == per_pass - 1,
                lambda: jax.random.permutation(
                    jax.random.fold_in(state.key, passes), order.shape[0]
                ),
                lambda: order,
            )
        loss, gradient = objective.gradient(model)
        update, moments = optax.scale_by_adam().update(gradient, state.moments)
        theta, rate = parameters(model), self.duration(state, model)
        scale = {name: -rate.astype(value.dtype) for name, value in theta.items()}
        # the bias correction is computed in double precision; float32 weights stay float32
        update = jax.tree.map(lambda value, like: value.astype(like.dtype), update, theta)
        model = with_parameters(model, axpy(scale, update, theta))
        return model, AdamState(state.count + 1, order, state.key, moments, loss)

    def duration(self, state, model):
        if self.decay is None:
            return self.rate
        share = jnp.minimum(state.count / self.decay, 1.0)
        return self.rate * 0.5 * (1.0 + jnp.cos(jnp.pi * share))
