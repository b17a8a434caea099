r"""Gaussian pair expectations by Mehler's series: one-dimensional integrals and powers of the
correlation.

With $h_q$ the orthonormal Hermite polynomials and $\hat g_q(s) = \mathbb E[g(sz)h_q(z)]$,
$z\sim\mathcal N(0,1)$, a centred Gaussian pair of deviations $s, s'$ and correlation $\rho$ has
$$\mathbb E[g(u)h(v)] = \sum_{q\ge0}\hat g_q(s)\,\hat h_q(s')\,\rho^q.$$
A matrix of $n^2$ pairs costs $n$ vectors of coefficients and $n^2Q$ multiplications, where the
two-dimensional rule costs $n^2$ grids.

Error control. (1) What follows after $Q$ terms is at most $|\rho|^Q\sqrt{\tau_g\tau_h}$,
$\tau_g = \mathbb E g(sz)^2-\sum_{q<Q}\hat g_q^2$ (Parseval and Cauchy-Schwarz); pairs where that
exceeds `TOLERANCE` times $\sqrt{\mathbb E g^2\,\mathbb E h^2}$ are left to the two-dimensional
rule. (2) The coefficients come from the trapezoid rule, which converges geometrically for analytic
functions; it is halved until nothing changes beyond `TOLERANCE`, and where that never happens (a
kink) the two-dimensional rule replaces the series altogether.

All but the functions themselves and the sum over terms is NumPy's: the numbers of nodes and terms
are found on the way, so that nearly every step has a shape of its own, for which JAX would compile
a program.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .memory import tile_rows
from .pointwise import pointwise

TOLERANCE = 1e-14  # of sqrt(E g^2 E h^2): above the rounding of the tails (`Coefficients.tails`)
REACH = 13.0  # |h_q| exp(-z^2/4) is bounded, so what lies beyond weighs exp(-13^2/4) = 4e-19
TERMS = (32, 64, 128, 256, 512)  # lengths of the series that are compared (chosen)
MOST_NODES = 40_000  # a function for which so many do not converge has a kink (chosen)
MEMORY = 256 << 20  # bytes of a tile of deviations (chosen)


class Coefficients(NamedTuple):
    r"""$\hat g_q(s)$, (deviation, term), and $\mathbb E g(sz)^2$, (deviation,)."""

    values: np.ndarray
    squares: np.ndarray

    def tails(self, terms: int) -> np.ndarray:
        r"""$\tau/\mathbb E g^2$ after `terms` terms, from the deviations' own rows; 0 for a
        function that vanishes.
        """
        # rounding leaves about 1e-16 of the mean square; two tails meet in a root, so TOLERANCE is
        # above it
        rest = self.squares - np.sum(self.values[:, :terms] ** 2, axis=1)
        return np.maximum(rest, 0.0) / np.where(self.squares > 0, self.squares, 1.0)


def coefficients(function: Callable, deviations) -> Coefficients | None:
    """Of `function` at every deviation; None where the rule does not converge on `MOST_NODES`
    nodes.
    """
    deviations = np.asarray(deviations, float)
    # frequencies: sqrt(Q) of the last Hermite function, about 8 of the Gaussian, 26 s of a function
    # analytic up to i pi/2 (tanh)
    spacing = 2 * math.pi / (math.sqrt(TERMS[-1]) + 8.0 + 26.0 * float(np.max(deviations)))
    count = math.ceil(REACH / spacing)
    coarse = _trapezoid(function, deviations, count)
    # 2 count + 1 nodes, and count doubles before the rule is used
    while 4 * count <= MOST_NODES:
        count *= 2
        fine = _trapezoid(function, deviations, count)
        # a function that vanishes has all coefficients 0, and 0/1e-150 passes
        scale = np.sqrt(np.maximum(fine.squares, 1e-300))
        change = np.max(np.abs(fine.values - coarse.values), axis=1) / scale
        spread = np.abs(fine.squares - coarse.squares) / scale**2
        if np.max(np.maximum(change, spread)) <= TOLERANCE:
            return fine
        coarse = fine
    return None


def _trapezoid(function: Callable, deviations, count: int) -> Coefficients:
    """On 2 `count` + 1 nodes, deviations in tiles."""
    t = np.arange(-count, count + 1) * (REACH / count)
    # not normalised by the sum: the error of the rule shall show in the comparison with the finer
    # one
    weights = np.exp(-(t**2) / 2) * (REACH / count / math.sqrt(2 * math.pi))
    table = hermite_table(t, TERMS[-1]) * weights
    rows = tile_rows(deviations.size, 2 * 8 * t.size, MEMORY)
    parts = [
        _tile(function, deviations[i : i + rows], t, weights, table)
        for i in range(0, deviations.size, rows)
    ]
    return Coefficients(*(np.concatenate(part) for part in zip(*parts)))


def _tile(function: Callable, deviations, t, weights, table):
    values = pointwise(function, deviations[:, None] * t)
    return values @ table.T, (values**2) @ weights


def hermite_table(t: np.ndarray, terms: int) -> np.ndarray:
    r"""$h_q(t)$, $q <$ `terms`, orthonormal: $\sqrt q\,h_q = t\,h_{q-1}-\sqrt{q-1}\,h_{q-2}$;
    (term, node).
    """
    table = np.empty((terms, t.size))
    table[0], table[1] = 1.0, t
    for q in range(2, terms):
        table[q] = (t * table[q - 1] - math.sqrt(q - 1) * table[q - 2]) / math.sqrt(q)
    return table


class Series(NamedTuple):
    """What the series gives and where it may be used: `values` and `reached`, both of the pairs'
    shape.
    """

    values: jax.Array
    reached: np.ndarray


def series(left: Callable, right: Callable, k11, k12, k22, pair_cost: float) -> Series | None:
    r"""$\mathbb E[g(u)h(v)]$ over broadcastable covariances, as many terms as pay.

    Args:
        left, right: $g$ and $h$, analytic; equal functions share their coefficients.
        k11, k12, k22: covariances.
        pair_cost: what one pair costs by the other rule, in terms of the series; more terms are
            taken while they save more than they cost.

    Returns:
        None where the coefficients do not converge.
    """
    (s1, place1), (s2, place2) = _deviations(k11), _deviations(k22)
    first = coefficients(left, s1)
    second = first if left is right and np.array_equal(s1, s2) else None
    if first is not None and second is None:
        second = coefficients(right, s2)
    if first is None or second is None:
        return None
    root = s1[place1] * s2[place2]
    rho = np.where(root > 0, np.asarray(k12) / np.where(root > 0, root, 1.0), 0.0)
    rho = np.clip(rho, -1.0, 1.0)
    sizes = np.abs(rho)
    best = min(
        ((terms, _reach(first, second, terms)) for terms in TERMS),
        # a multiplication a term for every pair, and `pair_cost` for each that is left to the other
        # rule
        key=lambda choice: sizes.size * choice[0] + pair_cost * np.sum(sizes > choice[1]),
    )
    values = _horner(
        first.values[:, : best[0]].T, place1, second.values[:, : best[0]].T, place2, rho
    )
    return Series(values, sizes <= best[1])


def _deviations(variances) -> tuple[np.ndarray, np.ndarray]:
    """The different deviations, and which one each pair has, in the shape of `variances`."""
    # inputs of equal length share one row of coefficients: on a sphere there is a single one
    values, place = np.unique(np.asarray(variances), return_inverse=True)
    return np.sqrt(np.maximum(values, 0.0)), place.reshape(np.shape(variances))


def _reach(first: Coefficients, second: Coefficients, terms: int) -> float:
    r"""The largest $|\rho|$ at which every pair meets the tolerance:
    $|\rho|^Q\sqrt{\tau_g\tau_h}\le$ `TOLERANCE`.
    """
    tail = math.sqrt(float(first.tails(terms).max()) * float(second.tails(terms).max()))
    return 1.0 if tail <= TOLERANCE else (TOLERANCE / tail) ** (1.0 / terms)


@jax.jit
def _horner(left, place1, right, place2, rho):
    """The polynomial in rho, highest term first; coefficients (term, deviation) are looked up by
    place.
    """

    def step(total, pair):
        return total * rho + pair[0][place1] * pair[1][place2], None

    start = jnp.zeros_like(rho)
    return jax.lax.scan(step, start, (left, right), reverse=True)[0]
