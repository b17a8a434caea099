r"""Diagonal linear networks: $f(x) = \langle u^2 - v^2, x\rangle$ (woodworth2020)."""

import jax
import jax.numpy as jnp

from wideflow.models import AbstractModel, pullback_by_autodiff


class Diagonal(AbstractModel):
    r"""$f(x) = \sum_j(u_j^2 - v_j^2)\,x_j$ from $u = v = \alpha 1$, so that $f = 0$ at the start.

    Args:
        plus, minus: $u$ and $v$, one entry a feature.
    """

    trained = ("plus", "minus")  # the fields that dynamics move

    plus: jnp.ndarray
    minus: jnp.ndarray

    def __check_init__(self):
        if self.plus.ndim != 1 or self.plus.shape != self.minus.shape:
            raise ValueError(
                f"`plus` and `minus` must be vectors of one length, got {self.plus.shape} and "
                f"{self.minus.shape}."
            )

    @classmethod
    def init(cls, features: int, scale: float) -> "Diagonal":
        r"""$u = v = \alpha 1$ with $\alpha$ = `scale`, in float64."""
        if not scale > 0:
            raise ValueError(f"`scale` must be positive, got {scale}: at 0 no weight ever moves.")
        with jax.enable_x64(True):
            start = jnp.full(features, scale)
        return cls(start, start)

    @property
    def linear(self):
        r"""$\beta = u^2 - v^2$."""
        return self.plus**2 - self.minus**2

    def embed(self, inputs):
        """Nothing is frozen here, so there is nothing to do beforehand."""
        return jnp.asarray(inputs).astype(self.plus.dtype)

    def respond(self, features):
        return features @ self.linear

    def rate_factors(self):
        """No neuron factor: the plain gradient."""
        return {"plus": 1.0, "minus": 1.0}

    def pullback(self, features):
        return pullback_by_autodiff(self, features)
