r"""The two-layer learner of allenzhu2018: biased ReLU neurons, only the hidden weights' increment
is trained.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.arrays import real_array
from ...._core.errors import check_count, check_positive
from ...._core.memory import check_fits
from ...._core.precision import double
from ...._core.randomness import named_key, normal
from ...._core.types import Key
from ....models.base import AbstractModel, Pullback
from .closed_relu import active, closed_relu


class BiasedTwoLayer(AbstractModel):
    r"""(5): $f_r(x) = \sum_{i\le m} a_{r,i}\,\sigma(\langle w^{(0)}_i + w_i, x\rangle + b_i)$ with
    $\sigma'(0) = 1$.

    The initial weights $W^{(0)}$ = `hidden` and the increment $W$ = `increment` are kept apart;
    only the increment is trained.

    Args:
        hidden: $W^{(0)}$, (width, feature).
        bias: $b$, (width,).
        output: $a$, (width,) for one output without its axis, or (outputs, width).
        increment: $W$, (width, feature); zero by default.

    >>> net = BiasedTwoLayer([[1.0, 0.0], [0.0, -1.0]], [0.0, 2.0], [1.0, 0.5])
    >>> net([3.0, 1.0])  # 1 * 3 + 0.5 * (2 - 1)
    Array(3.5, dtype=float64)
    """

    trained: ClassVar[tuple[str, ...]] = ("increment",)

    hidden: Float[Array, "width feature"]
    bias: Float[Array, " width"]
    output: Float[Array, "*output width"]
    increment: Float[Array, "width feature"]

    @double
    def __init__(self, hidden, bias, output, increment=None):
        hidden = real_array("hidden", hidden, "(width, feature)")
        dtype = jnp.float32 if hidden.dtype == jnp.float32 else jnp.result_type(hidden, float)
        self.hidden = hidden.astype(dtype)
        width = self.hidden.shape[0]
        self.bias = vector("bias", bias, width, dtype)
        self.output = readout("output", output, width, dtype)
        self.increment = (
            jnp.zeros_like(self.hidden)
            if increment is None
            else real_array("increment", increment).astype(dtype)
        )
        if self.increment.shape != self.hidden.shape:
            raise ValueError(
                f"`increment` must have the shape of `hidden`, {self.hidden.shape}, got "
                f"{self.increment.shape}."
            )

    @classmethod
    @double
    def init(
        cls,
        key: int | Key,
        *,
        features: int,
        width: int,
        output_std: float | int,
        outputs: int | None = None,
    ) -> "BiasedTwoLayer":
        r"""The paper's start: $w_{ij} \sim \mathcal N(0, 1/m)$; $b_i = 0$ with probability 1/2,
        else $\mathcal N(0, 2/m)$; $a_{r,i} \sim \mathcal N(0, \varepsilon_a^2)$.

        The bias variance 2 makes $\mathbb E\lVert\sigma(W^{(0)}x+b)\rVert^2 = 1$ on unit inputs.
        `output_std` is $\varepsilon_a$.

        Args:
            features: the dimension of the inputs.
            width: $m$.
            output_std: $\varepsilon_a$.
            outputs: None for one output without an axis, else the number of outputs.
        """
        check_count("features", features)
        check_count("width", width)
        check_fits(width=width, features=features)
        check_positive("output_std", output_std)
        if outputs is not None:
            check_count("outputs", outputs)
        hidden = normal(named_key(key, "hidden"), (width, features)) / width**0.5
        shape = (width,) if outputs is None else (outputs, width)
        output = output_std * normal(named_key(key, "output"), shape)
        return cls(hidden, half_zero_bias(named_key(key, "bias"), width), output)

    @property
    def width(self) -> int:
        return self.hidden.shape[0]

    @property
    def weights(self) -> Float[Array, "width feature"]:
        r"""$W^{(0)} + W$."""
        return self.hidden + self.increment

    def embed(self, inputs):
        return real_array(
            "inputs", inputs, f"(sample, {self.hidden.shape[1]})", finite=False, empty=True
        )

    def preactivations(self, features) -> Float[Array, "sample width"]:
        r"""$\langle w_i, x\rangle + b_i$ on a batch."""
        return features @ self.weights.T + self.bias

    def respond(self, features):
        return closed_relu(self.preactivations(features)) @ self.output.T

    def rate_factors(self) -> dict[str, float]:
        return {"increment": 1.0}

    def pullback(self, features) -> tuple[Array, Pullback]:
        r"""Row $i$ of the gradient is
        $\sum_s(\sum_rg_{s,r}a_{r,i})\mathbf 1[z_{s,i}\ge0]\,x_s^\top$.
        """
        z = self.preactivations(features)
        on = active(z)

        def pull(cotangent):
            back = (
                cotangent[:, None] * self.output
                if self.output.ndim == 1
                else cotangent @ self.output
            )
            return {"increment": (back * on).T @ features}

        return jnp.maximum(z, 0) @ self.output.T, pull


def half_zero_bias(key: Key, width: int) -> Float[Array, " width"]:
    r"""$b_i = 0$ with probability 1/2, else $\mathcal N(0, 2/m)$. The zeros are exact: they are the
    atoms that the constructions read.
    """
    drawn = normal(named_key(key, "values"), (width,)) * (2 / width) ** 0.5
    return jnp.where(jax.random.bernoulli(named_key(key, "zero"), 0.5, (width,)), 0.0, drawn)


def vector(name: str, value, length: int, dtype) -> Float[Array, " width"]:
    array = real_array(name, value).astype(dtype)
    if array.shape != (length,):
        raise ValueError(
            f"`{name}` must have shape ({length},), one entry per neuron, got {array.shape}."
        )
    return array


def readout(name: str, value, width: int, dtype) -> Float[Array, "*output width"]:
    array = real_array(name, value).astype(dtype)
    if array.ndim not in (1, 2) or array.shape[-1] != width:
        raise ValueError(
            f"`{name}` must have shape ({width},) or (outputs, {width}), got {array.shape}."
        )
    return array
