r"""What every law of a radius offers: density, distribution, quantiles, partial moments,
samples.
"""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.arrays import real_array
from ...._core.errors import as_key, check_count, check_flag, check_positive
from ...._core.gamma_ratio import gamma_ratio
from ...._core.precision import DoubleModule, double
from ...._core.randomness import named_key
from ...._core.types import Key

Moments = tuple[Float[Array, "..."], Float[Array, "..."], Float[Array, "..."]]


class AbstractRadialLaw(DoubleModule):
    r"""The law of $r = \lVert x \rVert$ for a spherically symmetric $x \in \mathbb{R}^d$.

    A learner that is piecewise linear in $r$ on every ray needs three functions of the law only,
    the partial moments $M_k(a) = E[r^k 1\{r \le a\}]$, $k = 0, 1, 2$ (`moments`): losses, vector
    fields, projections and the reduced flow are sums of them. `moments` and `quantile` are
    traceable, so they may stand inside compiled programs; an infinite radius is allowed and a
    divergent moment is `inf`.
    """

    d: eqx.AbstractVar[int]

    @abc.abstractmethod
    def density(self, radius) -> Float[Array, "..."]:
        """Density of the radius (zero for a law without one)."""

    @abc.abstractmethod
    def moments(self, radius) -> Moments:
        r"""$(M_0, M_1, M_2)$ at `radius`."""

    @abc.abstractmethod
    def sf(self, radius) -> Float[Array, "..."]:
        r"""$P[r > a]$, accurate where it is small."""

    @abc.abstractmethod
    def quantile(self, p) -> Float[Array, "..."]:
        r"""The smallest $a$ with $M_0(a) \ge p$; traceable."""

    @property
    @abc.abstractmethod
    def tail(self) -> float:
        r"""$c_t = \lim_{R \to \infty} R\, P[r \ge R]$; 0 where the second moment is finite."""

    @abc.abstractmethod
    def cdf(self, radius) -> Float[Array, "..."]:
        r"""$P[r \le a] = M_0(a)$, accurate where it is small."""

    @double
    def ppf(self, p) -> Float[Array, "..."]:
        """Quantiles, the inverse of `cdf`; outside [0, 1] nan."""
        p = real_array("p", p, finite=False, empty=True).astype(float)
        return jnp.where((p >= 0) & (p <= 1), self.quantile(jnp.clip(p, 0.0, 1.0)), jnp.nan)

    @double
    def sample(self, key: Key, n: int, *, stratified: bool = False) -> Float[Array, " sample"]:
        r"""`n` independent radii by inversion of the distribution function.

        With `stratified`, the $b$-th of `n` equal probability strata gives one radius,
        $u_b = (b + U_b)/n$, in random order: the radial noise of averages all but vanishes.
        """
        check_count("n", n)
        check_flag("stratified", stratified)
        return _radii(self, key, n, stratified)

    @double
    def inputs(
        self, key: Key, n: int, *, stratified: bool = False, antithetic: bool = False
    ) -> Float[Array, "sample feature"]:
        r"""`n` inputs $x = r \bar x$; `antithetic` takes the directions in pairs $\pm \bar x$."""
        check_count("n", n)
        check_flag("stratified", stratified)
        check_flag("antithetic", antithetic)
        return _inputs(self, key, n, stratified, antithetic)

    @double
    def target_moments(self) -> tuple[float, float]:
        r"""$E f_*$ and $E f_*^2$ for the target $f_*(x) = \max(1 - \lVert x \rVert, 0)$."""
        m0, m1, m2 = self.moments(1.0)
        return float(m0 - m1), float(m0 - 2 * m1 + m2)

    @property
    def gain(self) -> float:
        r"""$E_{\bar x}\,\mathrm{ReLU}(a \cdot \bar x) = C_\Gamma / \sqrt d$ of a unit vector
        $a$.
        """
        return c_gamma(self.d) / math.sqrt(self.d)


@eqx.filter_jit
def _radii(law: AbstractRadialLaw, key: Key, n: int, stratified: bool):
    uniform = jax.random.uniform(named_key(key, "radius"), (n,), dtype=float)
    if stratified:
        strata = jax.random.permutation(named_key(key, "strata"), n)
        uniform = (strata + uniform) / n
    return law.quantile(uniform)


@eqx.filter_jit
def _inputs(law: AbstractRadialLaw, key: Key, n: int, stratified: bool, antithetic: bool):
    directions = sphere(named_key(key, "direction"), n, law.d, antithetic=antithetic)
    return _radii(law, key, n, stratified)[:, None] * directions


def c_gamma(d: int) -> float:
    r"""$C_\Gamma = \Gamma(d/2) \sqrt d / (2 \sqrt\pi\, \Gamma((d+1)/2))$, which falls to
    $1/\sqrt{2\pi}$.

    Args:
        d: the dimension of the inputs.

    >>> round(c_gamma(2) - 2**0.5 / math.pi, 12)
    0.0
    """
    check_count("d", d)
    return gamma_ratio(d / 2) * math.sqrt(d / math.pi) / 2


@double
def sphere(key: Key, n: int, d: int, *, antithetic: bool = False) -> Float[Array, "sample feature"]:
    r"""`n` directions uniform on the unit sphere of $\mathbb{R}^d$; `antithetic`: pairs
    $\pm \bar x$.

    An odd `n` drops the last partner.
    """
    check_count("n", n)
    check_count("d", d)
    check_flag("antithetic", antithetic)
    return _sphere(as_key(key), n, d, antithetic)


@eqx.filter_jit
def _sphere(key: Key, n: int, d: int, antithetic: bool):
    draws = (n + 1) // 2 if antithetic else n
    normal = jax.random.normal(key, (draws, d), dtype=float)
    directions = normal / jnp.linalg.norm(normal, axis=1, keepdims=True)
    return jnp.concatenate([directions, -directions])[:n] if antithetic else directions


def bisect(rises_to, target, low, high, steps: int):
    """The point of [`low`, `high`] where the increasing function `rises_to` reaches `target`."""

    def halve(_, bracket):
        low, high = bracket
        middle = 0.5 * (low + high)
        below = rises_to(middle) < target
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    low, high = jax.lax.fori_loop(0, steps, halve, (low, high))
    return 0.5 * (low + high)


def newton(function, target, low, high, steps: int):
    """The same for a `function` that returns value and slope: Newton's step where it stays inside
    the bracket, halving where not. At a zero of the slope the *value* still converges, by about 0.3
    a step.
    """

    def improve(_, state):
        low, high, z = state
        value, slope = function(z)
        low = jnp.where(value < target, z, low)
        high = jnp.where(value < target, high, z)
        step = z + (target - value) / slope  # a zero slope gives inf or nan, which halving replaces
        slack = 1e-13 * jnp.abs(z)  # rounding at the root is no reason to leave it
        inside = (step >= low - slack) & (step <= high + slack)
        return low, high, jnp.where(inside, jnp.clip(step, low, high), 0.5 * (low + high))

    return jax.lax.fori_loop(0, steps, improve, (low, high, 0.5 * (low + high)))[2]


def check_law(d: int, **positive: float) -> None:
    check_count("d", d)
    for name, value in positive.items():
        check_positive(name, value)
