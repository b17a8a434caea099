r"""The depth-separation learner of Ren, Zhou and Ge: norm-coupled first layer, scalar bottleneck,
biased second layer.
"""

import math
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._core.arrays import real_array
from ..._core.errors import check_count, check_number, check_positive
from ..._core.polar import polar
from ..._core.precision import double
from ..._core.randomness import named_key, normal
from ..._core.types import Key
from ...models.base import AbstractModel, Pullback
from ...models.mean_field_stack import MeanFieldStack
from .laws.base import sphere
from .separator.directions import alpha_of
from .separator.samples import forward


class DepthSeparator(AbstractModel):
    r"""$F(x) = \frac1{m_1} \sum_i \lVert w_i \rVert\, \mathrm{ReLU}(w_i \cdot x)$,
    $f(x) = \frac1{m_2} \sum_j \mathrm{ReLU}(w_{2,j} F(x) + b_{2,j})$.

    Equation (1). $F$ is 1-homogeneous and convex in $x$, 2-homogeneous in the first layer. All
    three arrays are trained with mean-field factors $m_1, m_2, m_2$.

    Args:
        first: $w_i$, shape ($m_1$, $d$).
        second_weight: $w_2$, shape ($m_2$,).
        second_bias: $b_2$, shape ($m_2$,).

    Example:
        >>> net = DepthSeparator([[3.0, 4.0]], [-1.0, 0.5], [20.0, 0.0])
        >>> float(net.layer([1.0, 0.0])), float(net([1.0, 0.0]))  # F = 5 * 3; f = (5 + 7.5) / 2
        (15.0, 6.25)
    """

    trained: ClassVar[tuple[str, ...]] = ("first", "second_weight", "second_bias")

    first: Float[Array, "width feature"]
    second_weight: Float[Array, " second"]
    second_bias: Float[Array, " second"]

    @double
    def __init__(self, first, second_weight, second_bias):
        first = real_array("first", first, "(width, feature)")
        w, b = real_array("second_weight", second_weight), real_array("second_bias", second_bias)
        if w.ndim != 1 or w.shape != b.shape:
            raise ValueError(
                "`second_weight` and `second_bias` must be two vectors of one length, got "
                f"{w.shape} and {b.shape}."
            )
        dtype = jnp.float32 if first.dtype == jnp.float32 else jnp.float64
        self.first, self.second_weight, self.second_bias = (a.astype(dtype) for a in (first, w, b))

    @classmethod
    @double
    def init(
        cls,
        key: int | Key,
        *,
        features: int,
        width: int,
        second: int,
        radius: float | None = None,
        deviation: float = 1e-3,
        bias: float = 0.3,
    ) -> "DepthSeparator":
        r"""$w_i$ uniform on the sphere of `radius` $\sigma_1$ (default $1/\sqrt d$, Lemma C.1),
        $w_2 \sim N(0, \sigma_2^2)$ with $\sigma_2$ = `deviation`, all biases equal to `bias`
        $= \sigma_r$.

        The paper's $\sigma_2 = \delta/d^7$ is asymptotic; 1e-3 or 1e-4 trains in practice.

        Args:
            features: $d$.
            width: the number of first-layer neurons $w_i$.
            second: the number of second-layer neurons.
            radius: $\sigma_1$.
            deviation: $\sigma_2$.
            bias: $\sigma_r$.
        """
        for name, value in (("features", features), ("width", width), ("second", second)):
            check_count(name, value)
        radius = 1 / math.sqrt(features) if radius is None else radius
        check_positive("radius", radius)
        check_positive("deviation", deviation)
        check_number("bias", bias)
        first = radius * sphere(named_key(key, "hidden"), width, features)
        w = deviation * normal(named_key(key, "output"), (second,))
        return cls(first, w, jnp.full((second,), float(bias)))

    @property
    def width(self) -> int:
        """$m_1$."""
        return self.first.shape[0]

    @property
    @double
    def alpha(self) -> Float[Array, ""]:
        r"""$\alpha = (C_\Gamma/\sqrt d)\, \mathrm{mean}_i \lVert w_i \rVert^2$, equation (5)."""
        return alpha_of(self.first)

    @double
    def layer(self, x) -> Float[Array, "..."]:
        """$F$ on one input (feature,) or a batch (sample, feature)."""
        d = self.first.shape[1]
        x = real_array("x", x, f"({d},)", f"(sample, {d})", finite=False).astype(self.first.dtype)
        batch = forward(self.first, self.second_weight, self.second_bias, jnp.atleast_2d(x))[0]
        return batch[0] if x.ndim == 1 else batch

    @double
    def symmetric(self, radius) -> Float[Array, "..."]:
        r"""$\tilde f(r) = \frac1{m_2} \sum_j \mathrm{ReLU}(w_{2,j} \alpha r + b_{2,j})$, the
        network with $F$ replaced by $\alpha \lVert x \rVert$.

        Corrected: equation (5) has $r_2$ for $b_2$.
        """
        r = real_array("radius", radius, finite=False).astype(self.first.dtype)[..., None]
        return jnp.maximum(self.second_weight * (self.alpha * r) + self.second_bias, 0).mean(-1)

    @double
    def as_stack(self) -> MeanFieldStack:
        r"""The same function of $(x, 1)$ as a stack of two blocks with bottleneck $(F, 1)$.

        A last neuron of the first block reads the appended 1 and carries it on, so that biases
        become weights; all outer weights of the second block are 1.
        """
        width, d = self.first.shape
        length, _ = polar(self.first)
        inner = jnp.zeros((width + 1, d + 1)).at[:width, :d].set(self.first).at[width, d].set(1.0)
        scale = (width + 1) / width
        outer = (
            jnp.zeros((2, width + 1))
            .at[0, :width]
            .set(scale * length)
            .at[1, width]
            .set(width + 1.0)
        )
        second = jnp.stack([self.second_weight, self.second_bias], axis=1)
        return MeanFieldStack([(outer, inner), (jnp.ones((1, second.shape[0])), second)])

    @double
    def embed(self, inputs) -> Float[Array, "sample embedded"]:
        inputs = real_array("inputs", inputs, "(sample, feature)", finite=False)
        if inputs.shape[1] != self.first.shape[1]:
            raise ValueError(
                f"`inputs` have {inputs.shape[1]} features, but the first layer expects "
                f"{self.first.shape[1]}."
            )
        return inputs.astype(self.first.dtype)

    def respond(self, features) -> Float[Array, " sample"]:
        return forward(self.first, self.second_weight, self.second_bias, features)[1]

    def rate_factors(self) -> dict[str, float]:
        second = float(self.second_weight.shape[0])
        return {"first": float(self.width), "second_weight": second, "second_bias": second}

    def pullback(self, features) -> tuple[Float[Array, " sample"], Pullback]:
        r"""$J^\top c$ with $\partial f/\partial F = \frac1{m_2} \sum_j 1_j w_{2,j}$ and the
        norm-coupled first layer.
        """
        width, second = self.width, self.second_weight.shape[0]
        length, unit = polar(self.first)
        h = features @ self.first.T
        active = h > 0
        p = jnp.where(active, h, 0)
        layer = p @ length / width
        z = layer[:, None] * self.second_weight + self.second_bias
        on = (z > 0).astype(z.dtype)

        def pull(cotangent):
            back = cotangent * (on @ self.second_weight) / (second * width)
            radial = (back @ p)[:, None] * unit
            tangent = length[:, None] * ((back[:, None] * active).T @ features)
            return {
                "first": radial + tangent,
                "second_weight": (cotangent * layer) @ on / second,
                "second_bias": cotangent @ on / second,
            }

        return jnp.maximum(z, 0).mean(1), pull
