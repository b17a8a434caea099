r"""Langevin dynamics: gradient descent with noise of a fixed temperature."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .._core.errors import check_positive
from .._core.precision import double
from .._core.randomness import named_key
from .._core.trees import parameters, with_parameters
from .._core.types import Key
from .base import AbstractDynamics


class LangevinState(eqx.Module):
    """The count of steps and the key of the noise."""

    count: Int[Array, ""]
    key: Key


class Langevin(AbstractDynamics):
    r"""$\theta_{k+1} = \theta_k - \eta\, c\, \nabla L(\theta_k) + \sqrt{2 \eta\, c\, T}\, \xi_k$,
    $\xi_k \sim N(0, I)$ (Euler-Maruyama).

    As $\eta \to 0$ its stationary law is $\propto e^{-L/T}$, whatever the factors $c$: they only
    set how fast each layer gets there. At a finite rate a direction of curvature $\lambda$ has
    variance $T / (\lambda (1 - \eta c \lambda / 2))$. A step takes time $\eta$.

    Args:
        rate: $\eta$.
        temperature: $T \ge 0$, in units of the loss as it is given to `train` (sums are not means).
    """

    rate: Float[Array, ""]
    temperature: Float[Array, ""]

    @double
    def __init__(self, rate: float | int, temperature: float | int):
        check_positive("rate", rate)
        check_positive("temperature", temperature, "Without noise use `GradientDescent`.")
        self.rate, self.temperature = jnp.asarray(float(rate)), jnp.asarray(float(temperature))

    def init(self, model, objective, key):
        return LangevinState(jnp.zeros((), int), named_key(key, "noise"))

    def step(self, model, state, objective):
        _, gradient = objective.gradient(model)
        factors, new = model.rate_factors(), {}
        for name, old in parameters(model).items():
            draw = named_key(jax.random.fold_in(state.key, state.count), name)
            # drift eta c grad and noise sqrt(2 eta c T) share c: only so is exp(-L/T) stationary
            # for every layer
            speed = jnp.asarray(self.rate * factors[name]).astype(old.dtype)
            noise = jnp.sqrt(2 * speed * self.temperature.astype(old.dtype))
            move = noise * jax.random.normal(draw, old.shape, old.dtype)
            new[name] = old - speed * gradient[name] + move
        return with_parameters(model, new), LangevinState(state.count + 1, state.key)

    def duration(self, state, model):
        return self.rate
