r"""The heavy-tailed input law of the depth separation: $P(r) = (d/r) J_{d/2}(\kappa r)^2$."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import digamma, jv

from ...._core.errors import check_between, check_count, check_positive
from ...._core.precision import double
from .base import AbstractRadialLaw, Moments, newton
from .bessel_table import CELL, BesselTable, bessel_table

_TINY = 1e-4  # below this the table loses relative accuracy and the series is summed
_BLOCK = 8192
_FEW = 1024  # so few arguments are not worth the packing


class BesselLaw(AbstractRadialLaw):
    r"""Law $\mathcal{D}$ of Ren, Zhou and Ge (Section 2, Lemma B.1), for any $d \ge 2$.

    $x = r \bar x$ with $\bar x$ uniform on the sphere and the radius of density
    $$P(r) = \frac{d}{r} J_{d/2}(\kappa r)^2, \qquad \kappa = 2 \pi R_d \sqrt d\, ab, \qquad
      R_d = \Gamma(d/2 + 1)^{1/d} / \sqrt\pi.$$
    Corrected: the print of Lemma B.1 has $\sqrt{d r}$ under the root; only $\sqrt d\, r$ integrates
    to one.

    `ab` is the product of the two universal constants $\alpha, \beta$, which neither this paper nor
    the one that it cites gives as numbers; 1 is a choice. The radius has a hard inner edge `edge`
    $= r_0 = d/(2\kappa) \to 0.329/ab$ and the tail $P[r \ge R] \approx c_t / R$ with `tail`
    $= c_t = 2 r_0/\pi$: already $E\,r$ is infinite.

    Args:
        d: dimension of the input, from 2 up.
        ab: the product of constants; the edge must stay inside the unit ball, where the target
            lives.

    Example:
        >>> law = BesselLaw(100)
        >>> round(law.edge, 6), round(law.tail, 6), round(float(law.ppf(0.5)), 6)
        (0.319547, 0.20343, 0.449698)
    """

    d: int = eqx.field(static=True)
    ab: float = eqx.field(static=True)
    table: BesselTable

    @double
    def __init__(self, d: int, ab: float = 1.0):
        check_count("d", d, least=2)
        check_positive("ab", ab)
        self.d, self.ab = d, float(ab)
        check_between(
            "ab",
            ab,
            self.edge * ab / 0.99,
            math.inf,
            open=True,
            remedy=(
                f"With it every radius exceeds {self.edge:.3g}, so the target max(1 - r, 0) is "
                "never seen; "
                "take `ab` larger."
            ),
        )
        self.table = jax.tree.map(jnp.asarray, bessel_table(d / 2))

    @property
    def order(self) -> float:
        r"""$\nu = d/2$."""
        return self.d / 2

    @property
    def scale(self) -> float:
        r"""$\kappa = 2 \pi R_d \sqrt d\, ab$."""
        return (
            2
            * math.sqrt(math.pi * self.d)
            * math.exp(math.lgamma(self.d / 2 + 1) / self.d)
            * self.ab
        )

    @property
    def edge(self) -> float:
        r"""$r_0 = \nu/\kappa$, the turning point: the mass below it is exponentially small in
        $d$.
        """
        return self.order / self.scale

    @property
    def tail(self) -> float:
        r"""$c_t = d/(\pi\kappa) = 2 r_0/\pi$."""
        return self.d / (math.pi * self.scale)

    @property
    def tail_constant(self) -> float:
        r"""$c_0$ of $E[r 1\{r \le R\}] = c_t \ln R + c_0 + o(1)$:
        $c_t (\ln 2\kappa - \psi((d+1)/2))$.
        """
        return self.tail * (math.log(2 * self.scale) - float(digamma((self.d + 1) / 2)))

    @double
    def density(self, radius) -> Float[Array, "..."]:
        r"""$(d/r) J_{d/2}(\kappa r)^2$."""
        r = np.asarray(radius, float)
        positive = np.where(r > 0, r, 1.0)
        x = self.scale * positive
        inside = np.minimum(x, float(self.table.end))
        bessel = np.where(
            x <= inside, jv(self.order, inside), np.asarray(_oscillation(self, jnp.asarray(x))[0])
        )
        return jnp.asarray(np.where(r > 0, self.d / positive * bessel**2, 0.0))

    @double
    def moments(self, radius) -> Moments:
        return _moments(self, jnp.asarray(radius, float))

    @double
    def cdf(self, radius) -> Float[Array, "..."]:
        r"""$M_0$; where it is tiny, by $J_\nu^2 + 2 \sum_{k \ge 1} J_{\nu + k}^2$ at
        $x = \kappa a$.
        """
        r = np.asarray(radius, float)
        values = np.array(self.moments(r)[0])
        tiny = (values < _TINY) & (r > 0)
        x = self.scale * r[tiny]
        orders = self.order + np.arange(1, 40 + int(np.max(x, initial=0.0)))
        values[tiny] = jv(self.order, x) ** 2 + 2 * (jv(orders, x[:, None]) ** 2).sum(1)
        return jnp.asarray(values)

    @double
    def sf(self, radius) -> Float[Array, "..."]:
        return _survival(self, jnp.asarray(radius, float))

    @double
    def quantile(self, p) -> Float[Array, "..."]:
        return _quantile(self, jnp.asarray(p, float))


def _horner(coefficients, z):
    total = jnp.zeros_like(z)
    for k in range(coefficients.shape[-1] - 1, -1, -1):
        total = total * z + coefficients[..., k]
    return total


def _polynomials(z, *coefficients):
    """The same for several polynomials at once, by a program as long as one of them."""
    most = max(len(row) for row in coefficients)
    rows = jnp.stack([jnp.pad(row, (0, most - len(row))) for row in coefficients])
    return _horner(rows.reshape(len(rows), *[1] * z.ndim, most), z)


def _cell(law: BesselLaw, x):
    """Cell number and the coordinate from 0 to 1 inside it."""
    last = law.table.cells.shape[0] - 1
    cell = jnp.clip((x / CELL).astype(jnp.int32), 0, last)
    return cell, x / CELL - cell


def _theta(law: BesselLaw, x, phase):
    r"""$\theta$ from the value of its series."""
    return x * phase - (law.order / 2 + 0.25) * math.pi


def _phase(law: BesselLaw, x):
    return _theta(law, x, _horner(law.table.phase, (law.table.end / x) ** 2))


def _oscillation(law: BesselLaw, x):
    r"""$J_\nu$ and $J_\nu'$ beyond the table, from modulus and phase."""
    t = law.table
    x = jnp.maximum(x, t.end)
    y = (t.end / x) ** 2
    m, dm, phase = _polynomials(y, t.modulus, _derivative(t.modulus), t.phase)
    return _bessel(x, y, m, dm, _theta(law, x, phase))


def _derivative(coefficients):
    return coefficients[1:] * jnp.arange(1, coefficients.shape[0])


def _bessel(x, y, m, dm, theta):
    r"""$J_\nu$ and $J_\nu'$ from $m$, $\mathrm dm/\mathrm dy$ and $\theta$."""
    modulus = jnp.sqrt(2 * m / (math.pi * x))
    growth = -0.5 / x - y * dm / (x * m)  # M'/M
    j = modulus * jnp.cos(theta)
    return j, growth * j - modulus * jnp.sin(theta) / m


def _beyond(amplitude, theta):
    r"""$\mathrm{Re} \int_x^\infty g e^{2i\theta} dt$ from the real and imaginary part of the
    amplitude.
    """
    return -(amplitude[0] * jnp.cos(2 * theta) - amplitude[1] * jnp.sin(2 * theta))


def _shares(law: BesselLaw):
    r"""Coefficients of the smooth part of $x(1 - M_0)$, less its factor $d/\pi$."""
    return law.table.modulus / (2 * jnp.arange(law.table.modulus.shape[0]) + 1)


def _tail(law: BesselLaw, x):
    r"""$1 - M_0$ for $x \ge X$."""
    t = law.table
    smooth = _horner(_shares(law), (t.end / x) ** 2) / x
    amplitude = [_horner(part, t.end / x) for part in t.wave_tail]
    return law.d / math.pi * (smooth + _beyond(amplitude, _phase(law, x)))


def _place(law: BesselLaw, radius):
    """Argument of the table, argument of the series, and which of the two counts."""
    x = law.scale * jnp.maximum(radius, 0.0)
    far = x > law.table.end
    finite = jnp.where(jnp.isfinite(x), x, 1e200)
    return jnp.where(far, 0.0, x), jnp.maximum(finite, law.table.end), far


@eqx.filter_jit
def _moments(law: BesselLaw, radius) -> Moments:
    t, d, scale = law.table, law.d, law.scale
    near, x, far = _place(law, radius)
    cell, position = _cell(law, near)
    inside = jnp.moveaxis(_horner(t.cells[cell], position[..., None]), -1, 0)

    y = (t.end / x) ** 2
    powers = jnp.arange(1, t.modulus.shape[0])
    m, dm, phase, smooth_tail, smooth_first = _polynomials(
        y, t.modulus, _derivative(t.modulus), t.phase, _shares(law), t.modulus[1:] / (2 * powers)
    )
    waves, theta = _polynomials(t.end / x, *t.wave_tail, *t.wave_first), _theta(law, x, phase)
    tail = d / math.pi * (smooth_tail / x + _beyond(waves[:2], theta))
    first = (jnp.log(x) + t.constant - y * smooth_first - _beyond(waves[2:], theta)) / math.pi
    # Lommel: int_0^x t J^2 = x^2/2 (J'^2 + (1 - nu^2/x^2) J^2), each factor of x beside one J
    j, dj = _bessel(x, y, m, dm, theta)
    root = jnp.sqrt(x)
    second = 0.5 * x * ((root * dj) ** 2 + (1 - (law.order / x) ** 2) * (root * j) ** 2)

    m0 = jnp.where(far, 1 - tail, inside[0])
    m1 = jnp.where(far, first, inside[1]) * (d / scale)
    m2 = jnp.where(far, second, inside[2]) * (d / scale**2)
    endless = jnp.isposinf(radius)
    return (
        jnp.where(endless, 1.0, m0),
        jnp.where(endless, jnp.inf, m1),
        jnp.where(endless, jnp.inf, m2),
    )


@eqx.filter_jit
def _survival(law: BesselLaw, radius):
    near, x, far = _place(law, radius)
    cell, position = _cell(law, near)
    value = jnp.where(far, _tail(law, x), 1 - _horner(law.table.cells[cell, 0], position))
    return jnp.where(jnp.isposinf(radius), 0.0, value)


@eqx.filter_jit
def _quantile(law: BesselLaw, p):
    r"""Exact inversion inside one cell of the table, or inside one wave of the tail.

    The few arguments in the tail are solved apart, packed into an array with room for ten standard
    deviations more than their expected number; should they ever be more, all are solved there.
    """
    flat = jnp.ravel(p)
    x = _blockwise(lambda q: _near_quantile(law, q), flat)
    in_tail = flat > law.table.nodes[-1]

    def everywhere(x):
        return jnp.where(in_tail, _far_quantile(law, flat), x)

    if flat.size <= _FEW:
        return jnp.where(flat > 0, everywhere(x) / law.scale, 0.0).reshape(jnp.shape(p))
    share = law.d / (math.pi * bessel_table(law.order).end)  # P[x > X] up to an oscillation
    room = int(min(flat.size, share * flat.size + 10 * math.sqrt(flat.size) + 16))

    def packed(x):
        index = jnp.nonzero(in_tail, size=room, fill_value=flat.size)[0]
        far = flat.at[index].get(mode="fill", fill_value=0.99)
        return x.at[index].set(_blockwise(lambda q: _far_quantile(law, q), far), mode="drop")

    x = jax.lax.cond(in_tail.sum() <= room, packed, everywhere, x)
    return jnp.where(flat > 0, x / law.scale, 0.0).reshape(jnp.shape(p))


def _blockwise(function, flat):
    """`function` on blocks that stay in the processor's cache through its iterations."""
    blocks = -(-flat.size // _BLOCK)
    if blocks <= 1:
        return function(flat)
    padded = jnp.pad(flat, (0, blocks * _BLOCK - flat.size), constant_values=0.5)
    return jax.lax.map(function, padded.reshape(blocks, _BLOCK)).reshape(-1)[: flat.size]


def _near_quantile(law: BesselLaw, p):
    """$x$ inside the table with $M_0 = p$ (its end, where $p$ lies beyond)."""
    t = law.table
    p = jnp.minimum(p, t.nodes[-1])
    cell = jnp.clip(jnp.searchsorted(t.nodes, p) - 1, 0, t.cells.shape[0] - 1)
    c = [t.cells[cell, 0, k] for k in range(6)]

    def value_and_slope(z):
        value = c[0] + z * (c[1] + z * (c[2] + z * (c[3] + z * (c[4] + z * c[5]))))
        return value, c[1] + z * (2 * c[2] + z * (3 * c[3] + z * (4 * c[4] + z * 5 * c[5])))

    return CELL * (cell + newton(value_and_slope, p, jnp.zeros_like(p), jnp.ones_like(p), 16))


def _far_quantile(law: BesselLaw, p):
    r"""$x$ with tail probability $1 - p$: the smooth tail's answer, then a search a wave to each
    side.
    """
    t, q = law.table, 1 - p
    leading = law.d / (math.pi * q)
    x = jnp.maximum(leading, t.end)
    shares = _shares(law)
    x = jax.lax.fori_loop(
        0, 8, lambda _, x: jnp.maximum(leading * _horner(shares, (t.end / x) ** 2), t.end), x
    )

    def value_and_slope(z):
        density = 2 / (math.pi * z**2) * _horner(t.modulus, (t.end / z) ** 2)
        return -_tail(law, z), law.d * density * jnp.cos(_phase(law, z)) ** 2

    low = jnp.maximum(x - math.pi, t.end)
    return jnp.where(q > 0, newton(value_and_slope, -q, low, x + math.pi, 20), jnp.inf)
