"""One-pass stochastic gradient descent: every step sees fresh samples of a population."""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .._core.errors import check_count, check_flag, check_nonnegative, check_positive
from .._core.precision import double
from .._core.randomness import named_key
from .._core.trees import parameters, with_parameters
from .._core.types import Key
from ..models.embeddings import Identity
from .base import AbstractDynamics
from .descent import descend


@runtime_checkable
class Population(Protocol):
    """An objective of squares that gives fresh samples; `factor` is 1/2 or 1."""

    @property
    def factor(self) -> float: ...

    def draw(self, key: Key, samples: int, dtype) -> tuple[Array, Array]: ...


class OnlineState(eqx.Module):
    """Where the run is: the count of steps, the key of all draws, the loss of the last samples
    before their update.
    """

    count: Int[Array, ""]
    key: Key
    loss: Float[Array, ""]


class OnlineSGD(AbstractDynamics):
    r"""$\theta_{k+1} = \theta_k - \eta\,c\,\nabla\frac1B\sum_b\ell(f(x_b), y_b)$ with $B$ samples
    drawn afresh, $\ell$ the squares of the population's loss.

    On `populations.MultiIndex` with `HalfSumSquares()`, the default, and a network of the `NTK()`
    scaling this is the step $w_k \mathrel{-}= \frac\eta{\sqrt d}s\,a_k\sigma'(\lambda_k)(f - y)x$
    of `limits.OnlineEquations`, whose time is $\tau$ = steps$/d$.

    Args:
        rate: $\eta$. A step takes time $\eta$.
        batch: $B$.
        decay: $\gamma$ of $\theta \mathrel{-}= \frac{\eta\gamma}d\theta$ with $d$ the number of
            features.
        spherical: after each step every neuron is set back to its length.
    """

    rate: Float[Array, ""]
    decay: float = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    spherical: bool = eqx.field(static=True)

    @double
    def __init__(self, rate: float, batch: int = 1, *, decay: float = 0.0, spherical: bool = False):
        check_positive("rate", rate)
        check_count("batch", batch)
        check_nonnegative("decay", decay)
        check_flag("spherical", spherical)
        self.rate, self.decay = jnp.asarray(float(rate)), float(decay)
        self.batch, self.spherical = batch, spherical

    def init(self, model, objective, key):
        if not isinstance(objective, Population):
            raise ValueError(
                "`OnlineSGD` draws fresh samples and needs a population that gives them, such as "
                "`populations.MultiIndex`; "
                "on a dataset use `SGD`."
            )
        if set(parameters(model)) != {"weights"}:
            raise ValueError(
                "`OnlineSGD` moves the hidden weights of two-layer networks, got "
                f"{type(model).__name__}."
            )
        return OnlineState(jnp.zeros((), int), named_key(key, "samples"), jnp.full((), jnp.nan))

    def step(self, model, state, objective):
        assert isinstance(objective, Population)  # `init` has refused others
        key = jax.random.fold_in(state.key, state.count)
        before = parameters(model)["weights"]
        inputs, targets = objective.draw(key, self.batch, before.dtype)
        outputs, pull = _pullback(model, inputs)
        residual = outputs - targets
        # d/df of factor (f - y)^2, and the mean over the batch
        gradient = pull((2 * objective.factor / self.batch) * residual)
        moved = descend(model, gradient, self.rate)
        if self.spherical or self.decay:
            moved = self._shrink(model, moved, inputs.shape[1])
        loss = objective.factor * jnp.mean(residual.astype(float) ** 2)
        return moved, OnlineState(state.count + 1, state.key, loss)

    def _shrink(self, model, moved, features: int):
        before, after = parameters(model)["weights"], parameters(moved)["weights"]
        shrink = (self.rate * self.decay / features).astype(before.dtype)
        # decay acts on the weights before the step, as in the equations; both moves are of order
        # 1/d
        after = after - shrink * before
        if self.spherical:
            axis = 1 - model.neuron_axes["weights"]
            length = lambda w: jnp.sqrt(jnp.sum(w**2, axis=axis, keepdims=True))
            after = after * (length(before) / length(after))
        return with_parameters(moved, {"weights": after})

    def duration(self, state, model):
        return self.rate


def _pullback(model, inputs):
    r"""Outputs at fresh inputs, and the map of a cotangent to the gradient.

    On raw inputs the factor $p$ of $h = p\,Wx$ is given to the weights,
    $\partial_W = p\,\partial_{pW}$. Beside the targets, which need $x$ itself, scaled inputs $px$
    would be a second array of the batch's size, and XLA computes the normal quantile of every draw
    once for each of the two.
    """
    if not isinstance(getattr(model, "embedding", None), Identity):
        return model.pullback(model.embed(inputs))
    scale = model.hidden_scale
    scaled = with_parameters(model, {"weights": scale * parameters(model)["weights"]})
    outputs, pull = scaled.pullback(inputs)
    return outputs, lambda cotangent: pull(scale * cotangent)
