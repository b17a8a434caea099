r"""Smooth activations that carry their power series at zero (allenzhu2018, sections 2 and 3).

A concept class of that paper is built from functions $\phi(z) = \sum_i c_i z^i$, and how hard it is
to learn is read off the *majorant* $\sum_i |c_i| u^i$. Each row of `SERIES` therefore holds the
function, the signs and logarithms of its coefficients, the radius of convergence and the majorant
in closed form:

| name | $c_i$ | radius | $\sum_i \lvert c_i\rvert u^i$ |
|---|---|---|---|
| exp | $1/i!$ | $\infty$ | $e^u$ |
| sin, sinh | $\pm 1/i!$, odd $i$ | $\infty$ | $\sinh u$ |
| cos, cosh | $\pm 1/i!$, even $i$ | $\infty$ | $\cosh u$ |
| erf | $2(-1)^n/(\sqrt\pi\, n!\,(2n+1))$ at $i = 2n+1$ | $\infty$ | $\mathrm{erfi}(u)$ |
| gaussian, $e^{-z^2}$ | $(-1)^n/n!$ at $i = 2n$ | $\infty$ | $e^{u^2}$ |
| sigmoid | $1/2$; $(4^k-1)B_{2k}/(2k)!$ at $i = 2k-1$ | $\pi$ | $1/2 + \tan(u/2)/2$ |
| tanh | $4^k(4^k-1)B_{2k}/(2k)!$ at $i = 2k-1$ | $\pi/2$ | $\tan u$ |
| arctan | $(-1)^n/(2n+1)$ at $i = 2n+1$ | $1$ | $\mathrm{artanh}\, u$ |

A frequency $\omega$ makes $\phi(z) = f(\omega z)$: coefficients $c_i\omega^i$, radius divided by
$|\omega|$, majorant taken at $|\omega| u$. Polynomials are series with finitely many terms. The
Bernoulli numbers enter through $|B_{2k}|/(2k)! = 2\zeta(2k)/(2\pi)^{2k}$, which loses no digits at
any $k$.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
import scipy.special as sp
from jax import Array
from jax.typing import ArrayLike

from ...._core.arrays import real_array, real_values
from ...._core.errors import check_between, check_count, check_number, check_positive
from ...._core.precision import double

_TAIL_TERMS = 400  # terms beyond the truncation that are summed to bound a Taylor tail
_NEGLIGIBLE = 1e-16  # of the sum: where the last of them are below this, so is all that follows


@dataclass(frozen=True)
class Series:
    """One row of the table: a function and its power series at zero.

    `sign(i)` is in {-1, 0, 1} and `log_size(i)` is $\\log|c_i|$ where the sign is not 0; both take
    integer arrays. `log_majorant(u)` is $\\log\\sum_i|c_i|u^i$ for $0 <= u <$ `radius`.
    """

    value: Callable
    sign: Callable[[np.ndarray], np.ndarray]
    log_size: Callable[[np.ndarray], np.ndarray]
    radius: float
    log_majorant: Callable[[float], float]


def _odd(i: np.ndarray) -> np.ndarray:
    return (i % 2).astype(float)


def _even(i: np.ndarray) -> np.ndarray:
    return 1.0 - _odd(i)


def _alternate(i: np.ndarray) -> np.ndarray:
    return 1.0 - 2.0 * ((i // 2) % 2)


def _log_inverse_factorial(i: np.ndarray) -> np.ndarray:
    return -sp.gammaln(i + 1.0)


def _log_bernoulli_ratio(i: np.ndarray) -> np.ndarray:
    r"""$\log[(4^k-1)|B_{2k}|/(2k)!]$ with $2k = i+1$, that is $2(1-4^{-k})\zeta(2k)\pi^{-2k}$."""
    twice = np.maximum(i + 1.0, 2.0)
    zeta = sp.zeta(twice, 1.0)
    return np.log(2.0 * (1.0 - 2.0**-twice) * zeta) - twice * math.log(math.pi)


def _log_sinh(u: float | int) -> float:
    return u + math.log(-math.expm1(-2 * u)) - math.log(2) if u > 0 else -math.inf


def _log(value: float | int) -> float:
    return math.log(value) if value > 0 else -math.inf


SERIES: dict[str, Series] = {
    "exp": Series(
        jnp.exp, lambda i: np.ones(i.shape), _log_inverse_factorial, math.inf, lambda u: u
    ),
    "sin": Series(
        jnp.sin, lambda i: _odd(i) * _alternate(i), _log_inverse_factorial, math.inf, _log_sinh
    ),
    "sinh": Series(jnp.sinh, _odd, _log_inverse_factorial, math.inf, _log_sinh),
    "cos": Series(
        jnp.cos,
        lambda i: _even(i) * _alternate(i),
        _log_inverse_factorial,
        math.inf,
        lambda u: u + math.log1p(math.exp(-2 * u)) - math.log(2),
    ),
    "cosh": Series(
        jnp.cosh,
        _even,
        _log_inverse_factorial,
        math.inf,
        lambda u: u + math.log1p(math.exp(-2 * u)) - math.log(2),
    ),
    "erf": Series(
        jsp.erf,
        lambda i: _odd(i) * _alternate(i),
        lambda i: (
            math.log(2 / math.sqrt(math.pi)) - sp.gammaln(i // 2 + 1.0) - np.log(np.maximum(i, 1))
        ),
        math.inf,
        # erfi(u) = (2 / sqrt(pi)) e^{u^2} D(u) with Dawson's D, which does not overflow
        lambda u: u * u + _log(2 / math.sqrt(math.pi) * float(sp.dawsn(u))),
    ),
    "gaussian": Series(
        lambda z: jnp.exp(-(z**2)),
        lambda i: _even(i) * _alternate(i),
        lambda i: -sp.gammaln(i // 2 + 1.0),
        math.inf,
        lambda u: u * u,
    ),
    "sigmoid": Series(
        lambda z: 0.5 * (1 + jnp.tanh(z / 2)),
        lambda i: np.where(i == 0, 1.0, _odd(i) * _alternate(i)),
        lambda i: np.where(i == 0, math.log(0.5), _log_bernoulli_ratio(i)),
        math.pi,
        lambda u: math.log(0.5 + math.tan(u / 2) / 2),
    ),
    "tanh": Series(
        jnp.tanh,
        lambda i: _odd(i) * _alternate(i),
        lambda i: (i + 1) * math.log(2) + _log_bernoulli_ratio(i),
        math.pi / 2,
        lambda u: _log(math.tan(u)),
    ),
    "arctan": Series(
        jnp.arctan,
        lambda i: _odd(i) * _alternate(i),
        lambda i: -np.log(np.maximum(i, 1)),
        1.0,
        lambda u: _log(math.atanh(u)),
    ),
}


@dataclass(frozen=True)
class PowerSeries:
    r"""$\phi(z) = f(\omega z) = \sum_i c_i z^i$, a function together with its coefficients at zero.

    Build one with `smooth` or `polynomial`. `name` is a row of `SERIES`, or "polynomial", whose
    coefficients before the frequency are `terms`. Hashable, so it may stand in a static field.

    Args:
        name: a row of `SERIES`, or "polynomial".
        frequency: $\omega$.
        terms: the coefficients of $f$ where `name` is "polynomial", the constant first.
    """

    name: str
    frequency: float = 1.0
    terms: tuple[float, ...] = ()

    def __post_init__(self):
        known = (*SERIES, "polynomial")
        if not isinstance(self.name, str) or self.name not in known:
            raise ValueError(
                f"`name` must be one of {', '.join(known)}, got {self.name!r}. Kinked functions "
                "such as the ReLU have no "
                "power series: approximate them by a polynomial and use `polynomial(coefficients)`."
            )
        check_number("frequency", self.frequency)
        if self.name == "polynomial" and isinstance(self.terms, tuple | list) and not self.terms:
            raise ValueError(
                "`terms` must hold at least one coefficient, got (). For the zero function use "
                "(0.0,)."
            )
        terms = real_values("terms", self.terms, "(degree)", empty=True)
        object.__setattr__(self, "terms", tuple(float(term) for term in terms))

    @double
    def __call__(self, z: ArrayLike) -> Array:
        u = self.frequency * real_array("z", z, finite=False, empty=True)
        if self.name == "polynomial":
            return jnp.polyval(jnp.asarray(self.terms[::-1], dtype=u.dtype), u)
        return SERIES[self.name].value(u)

    @property
    def radius(self) -> float:
        """Radius of convergence of the series at zero."""
        if self.name == "polynomial" or self.frequency == 0:
            return math.inf
        return SERIES[self.name].radius / abs(self.frequency)

    @property
    def degree(self) -> float:
        """Degree of a polynomial, infinity for all others."""
        return float(len(self.terms) - 1) if self.name == "polynomial" else math.inf

    def log_coefficients(self, degree: int) -> tuple[np.ndarray, np.ndarray]:
        r"""Signs and $\log|c_i|$ for $i = 0, \dots,$ `degree`; `-inf` where $c_i = 0$. Never over-
        or underflows.
        """
        check_count("degree", degree, least=0)
        i = np.arange(degree + 1)
        if self.name == "polynomial":
            terms = np.zeros(degree + 1)
            leading = self.terms[: degree + 1]
            terms[: len(leading)] = leading
            signs, logs = np.sign(terms), np.log(np.abs(np.where(terms == 0, 1.0, terms)))
        else:
            signs, logs = SERIES[self.name].sign(i), SERIES[self.name].log_size(i)
        if self.frequency == 0:
            signs = np.where(i == 0, signs, 0.0)
        else:
            signs = signs * np.sign(self.frequency) ** (i % 2)
            logs = logs + i * math.log(abs(self.frequency))
        return signs, np.where(signs == 0, -np.inf, logs)

    def coefficients(self, degree: int) -> np.ndarray:
        r"""$c_0, \dots, c_D$ at `degree` $D$."""
        signs, logs = self.log_coefficients(degree)
        return signs * np.exp(logs)

    def log_majorant(self, u: float | int) -> float:
        r"""$\log\sum_i |c_i| u^i$ for $u \ge 0$; infinite at and beyond the radius of
        convergence.
        """
        check_between("u", u, 0, math.inf)
        if self.name == "polynomial":
            signs, logs = self.log_coefficients(len(self.terms) - 1)
            powers = (
                np.arange(len(self.terms)) * math.log(u)
                if u > 0
                else np.where(np.arange(len(signs)) == 0, 0.0, -np.inf)
            )
            finite = (signs != 0) & np.isfinite(powers)
            return float(sp.logsumexp((logs + powers)[finite])) if finite.any() else -math.inf
        u = abs(self.frequency) * u
        return SERIES[self.name].log_majorant(u) if u < SERIES[self.name].radius else math.inf

    def majorant(self, u: float | int) -> float:
        r"""$\sum_i |c_i| u^i$ for $u \ge 0$; `inf` where it diverges or exceeds the range of a
        double.
        """
        log = self.log_majorant(u)
        return math.exp(log) if log < 709.78 else math.inf

    def scaled(self, factor: float | int) -> "PowerSeries":
        r"""$z \mapsto \phi(\texttt{factor}\cdot z)$."""
        check_number("factor", factor)
        return PowerSeries(self.name, self.frequency * factor, self.terms)

    def truncated(self, degree: int) -> "PowerSeries":
        r"""The Taylor polynomial $\sum_{i \le D} c_i z^i$ of `degree` $D$."""
        return PowerSeries("polynomial", 1.0, tuple(float(c) for c in self.coefficients(degree)))

    def tail(self, degree: int) -> float:
        r"""$\sum_{i>D} |c_i|$, which bounds the error of `truncated(degree)` on $[-1, 1]$: summed, or
        where the series falls too slowly for that, the majorant at 1 without its first terms.
        """
        check_count("degree", degree, least=0)
        last = int(self.degree) if math.isfinite(self.degree) else degree + _TAIL_TERMS
        if last <= degree:
            return 0.0
        if self.radius <= 1:
            raise ValueError(
                f"the series of {self.name!r} with `frequency` {self.frequency} converges for "
                f"|z| < {self.radius:.4g} only, "
                "got the interval [-1, 1]. Lower `frequency`, or fit a polynomial and use "
                "`polynomial(coefficients)`."
            )
        _, logs = self.log_coefficients(last)
        sizes = np.exp(logs)
        tail = float(np.sum(sizes[degree + 1 :]))
        slow = math.isinf(self.degree) and np.sum(sizes[-2:]) > _NEGLIGIBLE * tail
        return self.majorant(1.0) - float(np.sum(sizes[: degree + 1])) if slow else tail

    def taylor_degree(self, error: float | int) -> int:
        r"""Smallest degree whose Taylor tail $\sum_{i>D}|c_i|$ on $[-1, 1]$ is at most `error`."""
        check_positive("error", error)
        if math.isfinite(self.degree):
            sizes = np.abs(self.coefficients(int(self.degree)))
        else:
            self.tail(0)  # raises when the series does not converge on [-1, 1]
            reach = 64
            while self.tail(reach) > error * 1e-3:
                reach *= 2
            sizes = np.abs(self.coefficients(reach + _TAIL_TERMS))
        tails = np.append(np.cumsum(sizes[::-1])[::-1][1:], 0.0)
        return int(np.argmax(tails <= error))


def smooth(name: str, frequency: float | int = 1.0) -> PowerSeries:
    r"""The smooth activation $\phi(z) = f(\omega z)$ by name, $\omega$ = `frequency`.

    Args:
        name: which $f$: a row of `SERIES`, for instance "sin", "cos" or "exp".
        frequency: $\omega$.

    >>> smooth("sin", frequency=2.0).coefficients(3).round(6).tolist()
    [0.0, 2.0, -0.0, -1.333333]
    """
    if isinstance(name, str) and name == "polynomial":
        raise ValueError(
            "`name` 'polynomial' needs coefficients, got none. Use `polynomial(coefficients)`."
        )
    check_number("frequency", frequency)
    return PowerSeries(name, float(frequency))


def polynomial(coefficients: tuple[float, ...] | list[float]) -> PowerSeries:
    r"""$\phi(z) = c_0 + c_1 z + c_2 z^2 + \dots$ from `coefficients` $(c_0, c_1, \dots)$.

    Args:
        coefficients: the constant first.
    """
    values = real_values("coefficients", coefficients, "(degree)")
    return PowerSeries("polynomial", 1.0, tuple(float(c) for c in values))
