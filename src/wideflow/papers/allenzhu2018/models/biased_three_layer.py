r"""The three-layer learner of allenzhu2018: two biased ReLU layers, both increments trained, a
shrinking scale in front.
"""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.arrays import real_array
from ...._core.errors import check_count, check_positive
from ...._core.memory import check_fits
from ...._core.precision import double
from ...._core.randomness import named_key, normal
from ...._core.types import Key
from ....models.base import AbstractModel, Pullback
from .biased_two_layer import half_zero_bias, readout, vector
from .closed_relu import active, closed_relu


class BiasedThreeLayer(AbstractModel):
    r"""(10)-(12): $u = \sigma((W^{(0)}+W)x + b_1)$,
    $\;f_r(x) = \lambda\sum_{i\le m_2}a_{r,i}\,\sigma(\langle v^{(0)}_i+v_i, u\rangle + b_{2,i})$,
    $\sigma'(0) = 1$.

    Initial weights and increments are kept apart (variant 2 of Algorithm 2 flips signs of the
    increments only). $\lambda$ = `scale` is 1 but for `SmoothedSGD`, whose predictor is
    $\lambda_TF$; it is not trained by gradients.

    Args:
        first, first_bias: $W^{(0)}$ (first, feature), $b_1$ (first,).
        second, second_bias: $V^{(0)}$ (second, first), $b_2$ (second,).
        output: $a$, (second,) for one output without its axis, or (outputs, second).
        first_increment, second_increment: $W$, $V$; zero by default.
    """

    trained: ClassVar[tuple[str, ...]] = ("first_increment", "second_increment")

    first: Float[Array, "first feature"]
    first_bias: Float[Array, " first"]
    second: Float[Array, "second first"]
    second_bias: Float[Array, " second"]
    output: Float[Array, "*output second"]
    first_increment: Float[Array, "first feature"]
    second_increment: Float[Array, "second first"]
    scale: Float[Array, ""]

    @double
    def __init__(
        self,
        first,
        first_bias,
        second,
        second_bias,
        output,
        first_increment=None,
        second_increment=None,
        scale=1.0,
    ):
        first = real_array("first", first, "(first, feature)")
        dtype = jnp.float32 if first.dtype == jnp.float32 else jnp.result_type(first, float)
        self.first, self.second = first.astype(dtype), real_array("second", second).astype(dtype)
        m1 = self.first.shape[0]
        if self.second.ndim != 2 or self.second.shape[1] != m1:
            raise ValueError(
                f"`second` must have shape (second, {m1}) to follow `first`, got "
                f"{self.second.shape}."
            )
        m2 = self.second.shape[0]
        self.first_bias = vector("first_bias", first_bias, m1, dtype)
        self.second_bias = vector("second_bias", second_bias, m2, dtype)
        self.output = readout("output", output, m2, dtype)
        self.first_increment = _like("first_increment", first_increment, self.first)
        self.second_increment = _like("second_increment", second_increment, self.second)
        self.scale = real_array("scale", scale, "()").astype(dtype)

    @classmethod
    @double
    def init(
        cls,
        key: int | Key,
        *,
        features: int,
        width: int,
        output_std: float | int,
        second_width: int | None = None,
        outputs: int | None = None,
    ) -> "BiasedThreeLayer":
        r"""The paper's start: $W_{ij} \sim \mathcal N(0, 1/m_1)$,
        $V_{ij} \sim \mathcal N(0, 1/m_2)$, each bias 0 with probability 1/2, else
        $\mathcal N(0, 2/m_1)$ resp. $\mathcal N(0, 2/m_2)$, $a \sim \mathcal N(0, \varepsilon_a^2)$
        with $\varepsilon_a$ = `output_std`.

        `width` is $m_1$, `second_width` is $m_2$ (default $m_1$).

        Args:
            features: $d$, the dimension of the inputs.
            width: $m_1$.
            output_std: $\varepsilon_a$.
            second_width: $m_2$.
            outputs: None for one output without an axis, else the number of outputs.
        """
        check_count("features", features)
        check_count("width", width)
        check_fits(width=width, features=features)
        check_positive("output_std", output_std)
        if outputs is not None:
            check_count("outputs", outputs)
        m1, m2 = width, width if second_width is None else second_width
        check_count("second_width", m2)
        check_fits(width=m1, second_width=m2)
        shape = (m2,) if outputs is None else (outputs, m2)
        return cls(
            normal(named_key(key, "hidden"), (m1, features)) / m1**0.5,
            half_zero_bias(named_key(key, "bias"), m1),
            normal(named_key(key, "second"), (m2, m1)) / m2**0.5,
            half_zero_bias(named_key(key, "second bias"), m2),
            output_std * normal(named_key(key, "output"), shape),
        )

    @property
    def widths(self) -> tuple[int, int]:
        """$(m_1, m_2)$."""
        return self.second.shape[1], self.second.shape[0]

    def embed(self, inputs):
        return real_array(
            "inputs", inputs, f"(sample, {self.first.shape[1]})", finite=False, empty=True
        )

    def preactivations(
        self, features
    ) -> tuple[Float[Array, "sample first"], Float[Array, "sample second"]]:
        """Before the ReLU of the first and of the second hidden layer."""
        z = features @ (self.first + self.first_increment).T + self.first_bias
        q = closed_relu(z) @ (self.second + self.second_increment).T + self.second_bias
        return z, q

    def respond(self, features):
        return self.scale * (closed_relu(self.preactivations(features)[1]) @ self.output.T)

    def rate_factors(self) -> dict[str, float]:
        return {"first_increment": 1.0, "second_increment": 1.0}

    def pullback(self, features) -> tuple[Array, Pullback]:
        r"""$g_q = (a^\top\lambda g)\,\mathbf 1[q\ge0]$, $G_V = g_qu^\top$,
        $G_W = ((V^\top g_q)\,\mathbf 1[z\ge0])x^\top$, summed over samples.
        """
        second = self.second + self.second_increment
        z = features @ (self.first + self.first_increment).T + self.first_bias
        u = jnp.maximum(z, 0)
        q = u @ second.T + self.second_bias

        def pull(cotangent):
            g = self.scale * cotangent
            back = g[:, None] * self.output if self.output.ndim == 1 else g @ self.output
            gq = back * active(q)
            return {
                "first_increment": ((gq @ second) * active(z)).T @ features,
                "second_increment": gq.T @ u,
            }

        return self.scale * (jnp.maximum(q, 0) @ self.output.T), pull


def _like(name: str, value, reference: Array) -> Array:
    if value is None:
        return jnp.zeros_like(reference)
    array = real_array(name, value).astype(reference.dtype)
    if array.shape != reference.shape:
        raise ValueError(
            f"`{name}` must have the shape of the initial weights, {reference.shape}, got "
            f"{array.shape}."
        )
    return array
