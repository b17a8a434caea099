r"""Closed forms over the uniform directions of the sphere.

For unit vectors $a, b$ at angle $\theta$: $E\,\mathrm{ReLU}(a\cdot\bar x)\mathrm{ReLU}(b\cdot\bar
x) = k(\theta) = (\sin\theta + (\pi - \theta)\cos\theta)/(2\pi d)$ and $E\,\mathrm{ReLU}(a\cdot\bar
x) 1\{b\cdot\bar x > 0\} \bar x = ((\pi - \theta) a + \sin\theta\, b)/(2\pi d)$.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.polar import polar
from ..laws.base import c_gamma


@jax.custom_jvp
def _arc(cosine):
    r"""$\sin\theta + (\pi - \theta)\cos\theta$, with derivative $\pi - \theta$ in $\cos\theta$,
    also at $\theta = 0$.
    """
    angle = _angle(cosine)
    return jnp.sin(angle) + (math.pi - angle) * cosine


@_arc.defjvp
def _(primals, tangents):
    return _arc(primals[0]), (math.pi - _angle(primals[0])) * tangents[0]


def _angle(cosine):
    """Stable near 0, where the arc cosine is not."""
    return jnp.arctan2(jnp.sqrt((1 - cosine) * (1 + cosine)), cosine)


def direction_kernel(cosine, d: int):
    r"""$k(\theta)$ from $\cos\theta$."""
    return _arc(cosine) / (2 * math.pi * d)


def cosines(unit: Float[Array, "width feature"]) -> Float[Array, "width width"]:
    """Cosines between the rows; the diagonal is exactly 1."""
    cosine = jnp.clip(unit @ unit.T, -1, 1)
    return jnp.where(jnp.eye(unit.shape[0], dtype=bool), 1.0, cosine)


def alpha_of(first) -> Float[Array, ""]:
    r"""$\alpha = (C_\Gamma/\sqrt d)\, \mathrm{mean}_i \lVert w_i \rVert^2$, equation (5)."""
    d = first.shape[1]
    return c_gamma(d) / math.sqrt(d) * jnp.mean(jnp.sum(first**2, axis=1))


@jax.jit
def direction_error(first) -> Float[Array, ""]:
    r"""$e_2^2 = E_{\bar x}(F(\bar x)/\alpha - 1)^2 = \frac{1}{(\alpha m_1)^2} \sum_{ij} \lVert w_i
    \rVert^2 \lVert w_j \rVert^2 k(\theta_{ij}) - 1$.
    """
    length, unit = polar(first)
    squares = length**2 / first.shape[0]
    kernel = direction_kernel(cosines(unit), first.shape[1])
    return jnp.maximum(squares @ kernel @ squares / alpha_of(first) ** 2 - 1, 0.0)


def direction_pull(first) -> Float[Array, "width feature"]:
    r"""$E_{\bar x}[F(\bar x)(\bar v\,\mathrm{ReLU}(v\cdot\bar x) + \lVert v \rVert 1\{v\cdot\bar
    x > 0\}\bar x)]$ for every neuron $v$.

    It is $\lVert v \rVert\, \mathrm{mean}_w \lVert w \rVert^2 [k(\theta) \bar v + ((\pi - \theta)
    \bar w + \sin\theta\, \bar v)/(2\pi d)]$.
    """
    d = first.shape[1]
    length, unit = polar(first)
    cosine = cosines(unit)
    theta = _angle(cosine)
    mass = length**2 / first.shape[0]
    along = (direction_kernel(cosine, d) + jnp.sin(theta) / (2 * math.pi * d)) @ mass
    across = (math.pi - theta) / (2 * math.pi * d) @ (mass[:, None] * unit)
    return length[:, None] * (along[:, None] * unit + across)
