r"""The two-layer network of the plane $(\gamma, \gamma')$, both layers trained, in units in which
its weights start at order one.
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._core.activations import Activation, ActivationLike, activation as as_activation
from ..._core.errors import as_key, check_count, check_number
from ..._core.precision import double
from ..._core.randomness import named_key, normal
from ..._core.types import Key
from ...models.base import AbstractModel, Pullback


class TwoLayer(AbstractModel):
    r"""$f(x) = \kappa\sum_k \bar a_k\,\sigma(\bar w_k\cdot x)$ with
    $\dot{\bar w} = -\frac{\kappa'}{\kappa}\nabla L$,
    $\dot{\bar a} = -\frac{1}{\kappa\kappa'}\nabla L$.

    This is the flow of $\frac1\alpha\sum a_k\sigma(w_k\cdot x)$ in the time $t/\alpha$, with
    $\bar a = a/\beta_1$, $\bar w = w/\beta_2$, $\kappa = \beta_1\beta_2/\alpha$,
    $\kappa' = \beta_1/\beta_2$ (luo2021, section 3), for ReLU and other positively homogeneous
    $\sigma$. The exponents are numbers of the state, so that networks of one width share one
    compiled program.
    """

    trained: ClassVar[tuple[str, ...]] = ("weights", "output")

    weights: Float[Array, "feature width"]
    output: Float[Array, " width"]
    kappa: Float[Array, ""]
    ratio: Float[Array, ""]
    activation: Activation = eqx.field(static=True)

    @classmethod
    @double
    def init(
        cls,
        key: int | Key,
        *,
        features: int,
        width: int,
        gamma: float,
        gamma_prime: float,
        activation: ActivationLike = "relu",
    ) -> "TwoLayer":
        r"""$\bar a, \bar w \sim N(0, 1)$ with $\kappa = m^{-\gamma}$ and
        $\kappa' = m^{-\gamma'}$.
        """
        key = as_key(key)
        check_count("features", features)
        check_count("width", width)
        check_number("gamma", gamma)
        check_number("gamma_prime", gamma_prime)
        weights = normal(named_key(key, "hidden"), (features, width))
        output = normal(named_key(key, "output"), (width,))
        kappa, ratio = (
            jnp.asarray(float(width) ** -gamma),
            jnp.asarray(float(width) ** -gamma_prime),
        )
        return cls(weights, output, kappa, ratio, as_activation(activation))

    def embed(self, inputs) -> Float[Array, "sample embedded"]:
        return jnp.asarray(inputs).astype(self.weights.dtype)

    def respond(self, features) -> Float[Array, " sample *output"]:
        return self.kappa * (self.activation(features @ self.weights) @ self.output)

    def rate_factors(self) -> dict:
        return {"weights": self.ratio / self.kappa, "output": 1 / (self.ratio * self.kappa)}

    def pullback(self, features) -> tuple[Float[Array, " sample *output"], Pullback]:
        z = features @ self.weights
        sigma, slope = self.activation.value(z), self.activation.slope(z)

        def pull(cotangent):
            return {
                "weights": self.kappa * (features.T @ (slope * jnp.outer(cotangent, self.output))),
                "output": self.kappa * (sigma.T @ cotangent),
            }

        return self.kappa * (sigma @ self.output), pull
