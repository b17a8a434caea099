"""Gradient descent, full batch."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.errors import check_positive
from .._core.precision import double
from .._core.trees import axpy, parameters, with_parameters
from .base import AbstractDynamics


class GradientDescent(AbstractDynamics):
    r"""$\theta_{k+1} = \theta_k - \eta\, c\, \nabla L(\theta_k)$; a step takes time $\eta$ =
    `rate`.

    $c$ is the model's neuron factor (1 for NTK-like scalings, the width for mean-field ones).

    Args:
        rate: $\eta > 0$.
    """

    rate: Float[Array, ""]
    stateless: ClassVar[bool] = True

    @double
    def __init__(self, rate: float):
        check_positive("rate", rate, "For its limit use `GradientFlow`.")
        self.rate = jnp.asarray(float(rate))

    def init(self, model, objective, key):
        return None

    def step(self, model, state, objective):
        _, gradient = objective.gradient(model)
        return descend(model, gradient, self.rate), None

    def duration(self, state, model):
        return self.rate


def descend(model, gradient, rate):
    r"""$\theta - \eta\, c\, g$, in the dtype of $\theta$."""
    theta, factors = parameters(model), model.rate_factors()
    # multiplied in 64 bit and rounded once; the update then stays in the weights' own precision
    scale = {name: (-rate * factors[name]).astype(theta[name].dtype) for name in theta}
    return with_parameters(model, axpy(scale, gradient, theta))
