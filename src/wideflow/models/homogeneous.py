r"""Norm-coupled neurons: the output weight of a neuron is its own norm (li2020, eq. 1.2)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._core.activations import Activation, ActivationLike, activation as as_activation
from .._core.arrays import real_array
from .._core.errors import check_count, check_positive
from .._core.memory import check_fits
from .._core.polar import polar
from .._core.precision import double
from .._core.randomness import named_key, normal
from .._core.types import Key
from .base import AbstractModel, Pullback

__all__ = ["Homogeneous"]


class Homogeneous(AbstractModel):
    r"""$f_W(x) = \frac sm\sum_{i=1}^m \|w_i\|\,\sigma(\langle w_i, x\rangle)$, positively
    2-homogeneous in $W$.

    The learners of li2020 are `Homogeneous(W, "abs")`, `Homogeneous(W, "relu")` (the printed
    network (1.2), "relu1") and `Homogeneous(W, "relu", factor=2.0)` ("relu2", the network whose
    population loss is the printed (2.1)). Gradients carry the neuron factor $m$ (mean-field), so
    that a neuron's speed does not depend on the width.

    Args:
        weights: $W$, one row a neuron, shape (width, feature); no row may be zero (its direction is
            undefined).
        activation: a positively 1-homogeneous $\sigma$: "abs", "relu", "leaky_relu" or "linear".
        factor: $s$.

    >>> net = Homogeneous([[3.0, 4.0], [0.0, -1.0]], "abs")
    >>> float(net([1.0, 1.0]))  # (5 |3 + 4| + 1 |-1|) / 2
    18.0
    """

    trained: ClassVar[tuple[str, ...]] = ("weights",)
    neuron_axes: ClassVar[Mapping[str, int]] = MappingProxyType({"weights": 0})

    weights: Float[Array, "width feature"]
    activation: Activation = eqx.field(static=True)
    factor: float | int = eqx.field(static=True)

    @double
    def __init__(self, weights, activation: ActivationLike = "abs", factor: float | int = 1.0):
        weights = real_array("weights", weights, "(width, feature)")
        if not np.all(np.any(np.asarray(weights) != 0, axis=1)):
            raise ValueError(
                "`weights` must have no zero row: a zero neuron has no direction and never moves. "
                "Draw them with `Homogeneous.init`."
            )
        check_positive("factor", factor)
        self.weights = weights.astype(
            weights.dtype if weights.dtype == jnp.float32 else jnp.float64
        )
        self.activation = as_activation(activation)
        self.factor = float(factor)
        if self.activation.degree != 1.0:
            raise ValueError(
                f"`activation` must be positively 1-homogeneous, got {self.activation.name!r}. "
                "Use 'abs', 'relu', 'leaky_relu' or 'linear'; for others take `Shallow`."
            )

    @classmethod
    @double
    def init(
        cls,
        key: int | Key,
        *,
        features: int,
        width: int,
        activation: ActivationLike = "abs",
        factor: float | int = 1.0,
        scale: float | int = 1.0,
    ) -> "Homogeneous":
        r"""$w_i \sim \mathcal N(0, \text{scale}^2 I/d)$, so that
        $\mathbb E\|w\|^2 = \text{scale}^2$ (1 in Algorithm 1).

        Args:
            features: $d$.
            width: the number of neurons.
            activation: $\sigma$, as in the class.
            factor: $s$.
            scale: the root of $\mathbb E\|w\|^2$.
        """
        check_count("features", features)
        check_count("width", width)
        check_fits(width=width, features=features)
        check_positive("scale", scale)
        draws = normal(named_key(key, "hidden"), (width, features))
        return cls(scale * draws / features**0.5, activation, factor)

    @property
    def width(self) -> int:
        return self.weights.shape[0]

    @property
    def norms(self) -> Float[Array, " width"]:
        r"""$r_i = \|w_i\|$; its derivative at a zero row is 0."""
        return polar(self.weights)[0]

    def neurons(self) -> tuple[Float[Array, " width"], Float[Array, "width feature"]]:
        r"""$(b, H)$ with $f(x) = \sum_i b_i\sigma(\langle H_i, x\rangle)$: here $b_i = s\|w_i\|/m$,
        $H = W$.
        """
        return self.factor / self.width * self.norms, self.weights

    @double
    def embed(self, inputs) -> Float[Array, "sample embedded"]:
        inputs = real_array("inputs", inputs, "(sample, feature)", finite=False)
        if inputs.shape[1] != self.weights.shape[1]:
            raise ValueError(
                f"`inputs` have {inputs.shape[1]} features, but the weights expect "
                f"{self.weights.shape[1]}."
            )
        return inputs.astype(self.weights.dtype)

    def respond(self, features) -> Float[Array, " sample"]:
        output, hidden = self.neurons()
        return self.activation(features @ hidden.T) @ output

    def rate_factors(self) -> dict[str, float]:
        return {"weights": float(self.width)}

    def pullback(self, features) -> tuple[Float[Array, " sample"], Pullback]:
        r"""$J^\top c = \frac sm\big[r\circ((\sigma'(Z)\circ c)^\top X) + U\circ(\sigma(Z)^\top
        c)\big]$.
        """
        r, unit = polar(self.weights)
        z = features @ self.weights.T
        active = self.activation.value(z)
        scale = self.factor / self.width

        def pull(cotangent):
            slopes = (self.activation.slope(z) * cotangent[:, None]).T @ features
            return {
                "weights": scale * (r[:, None] * slopes + (active.T @ cotangent)[:, None] * unit)
            }

        return scale * (active @ r), pull
