"""Mini-batch stochastic gradient descent."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._core.errors import check_positive
from .._core.precision import double
from .base import AbstractDynamics
from .batches import Batches
from .descent import descend


class SGD(AbstractDynamics):
    r"""$\theta_{k+1} = \theta_k - \eta\, c\, \nabla L_{B_k}(\theta_k)$ with the loss of a
    mini-batch $B_k$.

    Args:
        rate: $\eta$ for the loss of one batch. A step takes time $\eta$.
        batch: samples a step; the last batch of a pass is smaller, as in the papers' runs, unless
            `batch` divides the number of samples.
        replace: draw each batch afresh with replacement instead of passing over shuffled samples.
        order: explicit sample indices, shape (steps, batch), used instead of random draws.
    """

    rate: Float[Array, ""]
    batches: Batches

    @double
    def __init__(self, rate: float, batch: int = 64, replace: bool = False, order=None):
        check_positive("rate", rate)
        self.rate, self.batches = jnp.asarray(float(rate)), Batches(batch, replace, order)

    @property
    def batch(self) -> int:
        return self.batches.batch

    @property
    def replayed(self) -> tuple[str, np.ndarray] | None:
        """The explicit indices and what they are called, for `train` to check against its steps and
        samples.
        """
        return self.batches.replayed

    def init(self, model, objective, key):
        return self.batches.init("SGD", model, objective, key)

    def step(self, model, state, objective):
        return self.batches.step(state, objective, self._descend, model)

    def _descend(self, model, objective):
        loss, gradient = objective.gradient(model)
        return descend(model, gradient, self.rate), loss

    def duration(self, state, model):
        return self.rate
