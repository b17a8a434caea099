r"""Integrals of $J_\nu^2$: a table up to $X$, an asymptotic series beyond it, both to about 1e-13.

With $x = \kappa a$ the three partial moments of the Bessel law are $M_0 = d \int_0^x J^2/t$,
$M_1 = (d/\kappa) \int_0^x J^2$, $M_2 = (d/\kappa^2) \int_0^x t J^2$, so one table per dimension
serves every scale.

*Inside* ($x \le X = \max(8\nu, 60)$): prefix sums of 4-point Gauss-Legendre on cells of length
0.05, interpolated by the quintic that matches value, slope and curvature at both ends of the cell.

*Outside*: $J = M \cos\theta$ with modulus $M^2 = \frac{2}{\pi t} m(y)$, $y = (X/t)^2$,
$m_k = m_{k-1} \frac{2k-1}{2k} \frac{4\nu^2 - (2k-1)^2}{(2X)^2}$, and phase $\theta' = 1/m$
(Abramowitz and Stegun 9.2.28 to 9.2.31). As $J^2 = \frac12 M^2 (1 + \cos 2\theta)$, every integral
is a smooth series plus $\mathrm{Re} \int g e^{2i\theta}$, which repeated integration by parts,
$\int_x^\infty g e^{2i\theta} = -G e^{2i\theta}|_x - \int_x^\infty G' e^{2i\theta}$ with
$G = g m / 2i$, turns into a polynomial in $X/x$ times $e^{2i\theta(x)}$. The oscillation is kept at
every radius.
"""

import functools
import math
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, jv

CELL = 0.05  # a quintic errs by CELL^6/46080 = 3.4e-13 times the sixth derivative at most
_TERMS = 22  # of the series at infinity; `_trim` drops those that change nothing (chosen)
_PARTS = 12  # integrations by parts: each brings a factor of about k / (2 X), X >= 60 (chosen)


class BesselTable(NamedTuple):
    """Arrays from which `bessel.BesselLaw` evaluates its moments; all depend on the order alone.

    `cells[c]` holds the six ascending coefficients of the three prefix integrals on cell `c`;
    `nodes[c]` the first of them at the cell's left end (and the last right end).
    """

    end: float
    nodes: np.ndarray  # (cells + 1,)
    cells: np.ndarray  # (cells, 3, 6)
    modulus: np.ndarray  # m_k
    phase: np.ndarray  # theta = t sum_k phase_k y^k - (nu/2 + 1/4) pi
    wave_tail: np.ndarray  # (2, powers): real and imaginary part of the amplitude for g = m / t^2
    wave_first: np.ndarray  # the same for g = m / t
    constant: float  # int_0^x J^2 = (constant + ln x + ...) / pi


@functools.lru_cache(maxsize=16)
def bessel_table(order: float) -> BesselTable:
    """The table of order $\\nu$ = `order`, built once per process."""
    cells = math.ceil(max(8 * order, 60.0) / CELL)
    end = cells * CELL
    nodes, coefficients = _inside(order, cells)
    modulus = np.ones(_TERMS)
    for k in range(1, _TERMS):
        odd = 2 * k - 1
        modulus[k] = modulus[k - 1] * odd / (2 * k) * (4 * order**2 - odd**2) / (2 * end) ** 2
    slope = _reciprocal(modulus)
    phase = -slope / (2 * np.arange(_TERMS) - 1)  # the term k = 0 is t itself
    return BesselTable(
        end=end,
        nodes=nodes,
        cells=coefficients,
        modulus=_trim(modulus),
        phase=_trim(phase),
        wave_tail=_wave(modulus, end, power=2),
        wave_first=_wave(modulus, end, power=1),
        constant=math.log(2) - float(digamma(order + 0.5)),
    )


def _inside(order: float, cells: int) -> tuple[np.ndarray, np.ndarray]:
    left = CELL * np.arange(cells + 1)
    points, weights = np.polynomial.legendre.leggauss(4)
    t = left[:-1, None] + 0.5 * CELL * (points + 1)
    square = jv(order, t) ** 2 * (0.5 * CELL * weights)
    d = 2 * order
    pieces = np.stack([d * square / t, square, t * square], axis=1).sum(axis=2)
    values = np.concatenate([np.zeros((1, 3)), np.cumsum(pieces, axis=0)])

    j = jv(order, left)
    safe = np.where(left > 0, left, 1.0)
    dj = np.where(left > 0, order / safe * j - jv(order + 1, left), 0.5 if order == 1 else 0.0)
    square, product = j**2, 2 * j * dj
    # at t = 0, d J^2 / t vanishes for nu >= 1; its slope is d / 4 for nu = 1 and 0 beyond
    curvature = np.where(
        left > 0, d * (product / safe - square / safe**2), 0.5 if order == 1 else 0.0
    )
    slopes = np.stack([d * square / safe, square, left * square], axis=1)
    curvatures = np.stack([curvature, product, square + left * product], axis=1)
    return values[:, 0].copy(), _quintic(values, CELL * slopes, CELL**2 * curvatures)


def _quintic(value: np.ndarray, slope: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """Ascending coefficients on each cell, in the cell's own coordinate from 0 to 1."""
    rise = value[1:] - value[:-1] - slope[:-1] - 0.5 * curvature[:-1]
    turn = slope[1:] - slope[:-1] - curvature[:-1]
    bend = curvature[1:] - curvature[:-1]
    return np.stack(
        [
            value[:-1],
            slope[:-1],
            0.5 * curvature[:-1],
            10 * rise - 4 * turn + 0.5 * bend,
            -15 * rise + 7 * turn - bend,
            6 * rise - 3 * turn + 0.5 * bend,
        ],
        axis=-1,
    )


def _reciprocal(series: np.ndarray) -> np.ndarray:
    inverse = np.zeros_like(series)
    inverse[0] = 1 / series[0]
    for k in range(1, len(series)):
        inverse[k] = -np.dot(series[1 : k + 1], inverse[k - 1 :: -1][:k]) / series[0]
    return inverse


def _wave(modulus: np.ndarray, end: float, power: int) -> np.ndarray:
    r"""Amplitude $A$ with $\int_x^\infty m t^{-p} e^{2i\theta} dt = -A(X/x) e^{2i\theta(x)}$.

    In $u = X/t$: $g = u^p m(u^2) / X^p$ and $d/dt = -(u^2/X)\, d/du$.
    """
    size = 2 * _TERMS
    m = np.zeros(size)
    m[::2] = modulus
    g = np.zeros(size, complex)
    g[power:] = m[: size - power] / end**power
    amplitude, sign = np.zeros(size, complex), 1.0
    for _ in range(_PARTS):
        primitive = np.convolve(g, m)[:size] / 2j
        amplitude += sign * primitive
        g = np.zeros(size, complex)
        g[1:] = (
            -np.arange(size - 1) * primitive[:-1] / end
        )  # -(u^2/X) d/du of u^k is -k u^(k+1) / X
        sign = -sign
    return _trim(np.stack([np.real(amplitude), np.imag(amplitude)]))


def _trim(series: np.ndarray) -> np.ndarray:
    """Without the last terms that change nothing, as the argument is at most 1."""
    sizes = np.abs(np.atleast_2d(series)).max(axis=0)
    return series[..., : int(np.max(np.nonzero(sizes > 1e-19 * sizes.max())[0])) + 1]
