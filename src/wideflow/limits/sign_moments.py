r"""$E\big[\prod_ih_i^{n_i}\prod_{a\in S}\mathrm{sign}(g_a)\big]$ for jointly centred Gaussians:
powers and signs, in closed form.

Stein's lemma takes the powers away one by one,
$E[h_iF] = \sum_b\mathrm{Cov}(h_i, b)\,E[\partial_bF]$, where the derivative of a sign,
$2\delta(g_a)$, conditions on $g_a = 0$:
$$E[h_iF\,\mathrm{sign}(g_a)] = \sum_j\mathrm{Cov}(h_i, h_j)\,E[\partial_jF\,\mathrm{sign}(g_a)] +
  \mathrm{Cov}(h_i, g_a)\,\frac2{\sqrt{2\pi\,\mathrm{Var}\,g_a}}\,E[F \mid g_a = 0].$$
What is left are signs alone: an odd number of them has the mean 0, two have $\frac2\pi\arcsin\rho$,
and four are one integral (`_four_signs`), to 1e-12.
"""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

__all__ = ["SignMoments"]

Powers = tuple[int, ...]
SINGULAR = 1e-14  # a variance left by conditioning, over what it was: rounding


class SignMoments:
    r"""The moments of $h$ and of $g = h + n$, with independent $n_i \sim N(0, \nu_i)$; every number
    may be an array, elementwise.

    Two of the signs asked for together may be one variable, three may not:
    $E[\delta(g)\,\mathrm{sign}(g)^2]$ is no number of its own. Signs of one variable cancel in
    pairs.

    Args:
        covariance: of $h$, indexed `covariance[i][j]`.
        noises: $\nu_i$.
    """

    def __init__(self, covariance: Sequence[Sequence[Array]], noises: Sequence[float]):
        self.count = len(noises)
        # variables 0, 1, ... are h, the next ones g; by the set of g that are 0
        # noise is independent: it adds to the variance of g alone, and Cov(h, g) = Cov(h, h)
        g = lambda i, j: covariance[i][j] + (noises[i] if i == j else 0.0)
        both = lambda a, b: (g if min(a, b) >= self.count else lambda i, j: covariance[i][j])(
            a % self.count, b % self.count
        )
        names = range(2 * self.count)
        self._covariances = {frozenset(): {(a, b): both(a, b) for a in names for b in names}}
        self._moment = functools.cache(self._stein)

    def __call__(self, powers: Powers, signs: frozenset[int]) -> Array | float:
        r"""$E[\prod_ih_i^{n_i}\prod_{a\in S}\mathrm{sign}(g_a)]$ with $n$ = `powers`, $S$ =
        `signs`.
        """
        return self._moment(powers, signs, frozenset())

    def _stein(self, powers: Powers, signs: frozenset[int], zeros: frozenset[int]):
        if (sum(powers) + len(signs)) % 2:
            return 0.0  # an odd function
        if not any(powers):
            return self._signs(sorted(signs), zeros)
        i = next(n for n, power in enumerate(powers) if power)
        # one factor h_i is spent; the powers left, and each sign, are what Stein's lemma
        # differentiates
        left, covariance = _lowered(powers, i), self._conditional(zeros)
        total = sum(
            power * covariance[i, j] * self._moment(_lowered(left, j), signs, zeros)
            for j, power in enumerate(left)
            if power
        )
        for a in sorted(signs):
            g = self.count + a
            density = 2 / jnp.sqrt(2 * jnp.pi) * _inverse_root(covariance[g, g])
            rest = self._moment(left, signs - {a}, zeros | {a})
            total = total + covariance[i, g] * density * rest
        return total

    def _conditional(self, zeros: frozenset[int]) -> dict[tuple[int, int], Array]:
        """Covariances where the variables g of `zeros` are 0."""
        if zeros not in self._covariances:
            last = max(zeros)
            before, g = self._conditional(zeros - {last}), self.count + last
            self._covariances[zeros] = _conditioned(before, g)
        return self._covariances[zeros]

    def _signs(self, signs: list[int], zeros: frozenset[int]):
        if not signs:
            return 1.0
        covariance = self._conditional(zeros)
        entry = lambda a, b: covariance[self.count + a, self.count + b]
        if len(signs) == 2:
            a, b = signs
            return _two_signs(entry(a, a), entry(a, b), entry(b, b))
        return _four_signs([[entry(a, b) for b in signs] for a in signs])


def _lowered(powers: Powers, i: int) -> Powers:
    return (*powers[:i], powers[i] - 1, *powers[i + 1 :])


def _inverse_root(variance):
    """Zero for a variable without variance: it sits at its kink, where a sign is 0 by
    convention.
    """
    inside = variance > 0
    return jnp.where(inside, 1 / jnp.sqrt(jnp.where(inside, variance, 1.0)), 0.0)


def _conditioned(covariance: dict, g: int) -> dict:
    """The covariances given that variable `g` is 0."""
    # 0 where g has no variance: it is 0 already, and nothing changes
    inverse = _inverse_root(covariance[g, g]) ** 2
    names = sorted({a for a, _ in covariance})
    slope = {a: covariance[a, g] * inverse for a in names}
    lost = {
        a: covariance[a, a] - slope[a] * covariance[a, g] <= SINGULAR * covariance[a, a]
        for a in names
    }
    rest = lambda a, b: covariance[a, b] - slope[a] * covariance[b, g]
    return {(a, b): jnp.where(lost[a] | lost[b], 0.0, rest(a, b)) for a in names for b in names}


def _two_signs(k11, k12, k22):
    r"""$\frac2\pi\arcsin(k_{12}/\sqrt{k_{11}k_{22}})$; 0 where one of them has no variance."""
    root = jnp.sqrt(jnp.maximum(k11 * k22 - k12**2, 0.0))
    return jnp.where(k11 * k22 > 0, 2 / jnp.pi * jnp.arctan2(k12, root), 0.0)


def _four_signs(c):
    r"""$E[\mathrm{sign}(g_0)\cdots\mathrm{sign}(g_3)]$ of covariance $c$.

    With the covariances between $(g_0, g_1)$ and $(g_2, g_3)$ times $t$, the two pairs are
    independent at $t = 0$, and (Plackett)
    $$\frac{d}{dt} =
      \sum_{i\in\{0,1\}}\sum_{j\in\{2,3\}}c_{ij}\,E[2\delta(g_i)\,2\delta(g_j)\,\mathrm{sign}(g_k)\,\mathrm{sign}(g_l)],$$
    two signs given two zeros. Where $g_i$ and $g_j$ are one variable the end $t = 1$ has a root
    singularity, which the tanh-sinh rule resolves.
    """
    start = _two_signs(c[0][0], c[0][1], c[1][1]) * _two_signs(c[2][2], c[2][3], c[3][3])

    def add(total, node):
        t, short, weight = node
        slope = sum(_two_zeros(c, t, short, i, j) for i in (0, 1) for j in (2, 3))
        return total + weight * slope, None

    nodes = tuple(map(jnp.asarray, tanh_sinh()))
    return jax.lax.scan(add, jnp.asarray(start, float), nodes)[0]


def _two_zeros(c, t, short, i: int, j: int):
    r"""$c_{ij}\,E[2\delta(g_i)\,2\delta(g_j)\,\mathrm{sign}(g_k)\,\mathrm{sign}(g_l)]$ at $t$, with
    `short` $= 1 - t$ and $k$, $l$ the others of the two pairs.
    """
    # of (0, 1) the other than i, of (2, 3) the other than j
    k, l = 1 - i, 5 - j
    inside = c[i][i] > 0
    share = lambda a: jnp.where(inside, c[i][a] / jnp.where(inside, c[i][i], 1.0), 0.0)
    to_j, to_l = share(j), share(l)
    # Covariances given g_i = 0, then given g_j = 0 as well. Where g_i and g_j are one variable,
    # those of g_j vanish at t = 1 like 1 - t^2, which stands apart so that nothing cancels.
    gap = short * (1 + t)
    square = (c[i][i] * c[j][j] - c[i][j] ** 2) + c[i][j] ** 2 * gap
    kj = t * (c[k][j] - c[k][i] * to_j)
    lj = (c[l][j] - c[l][i] * to_j) + gap * c[l][i] * to_j
    ll = (c[l][l] - c[l][i] * to_l) + gap * c[l][i] * to_l
    inverse = _inverse_root(square)
    over = c[i][i] * inverse**2  # 1 / Var(g_j | g_i = 0)
    first = (c[k][k] - c[k][i] * share(k)) - over * kj**2
    last = ll - over * lj**2
    both = t * (c[k][l] - c[k][i] * to_l) - over * kj * lj
    gone = (first <= SINGULAR * c[k][k]) | (last <= SINGULAR * c[l][l])
    signs = jnp.where(gone, 0.0, _two_signs(first, both, last))
    return c[i][j] * (2 / jnp.pi) * inverse * signs


@functools.cache
def tanh_sinh() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Double-exponential nodes $t$ on [0, 1], $1 - t$ to full precision, and weights."""
    # 1e-14 on analytic integrands with roots at the ends, (1 - t)^(-1/2) included: of that one the
    # ends leave out 2 sqrt(1 - t) = 8e-15 at the last node, where inner = 33
    step = 0.11
    s = np.arange(-34, 35) * step
    # t = (1 + tanh(inner))/2, so that 1 - t = 1/(1 + exp(2 inner)) keeps its digits where t rounds
    # to 1
    inner = np.pi / 2 * np.sinh(s)
    weights = step * np.pi / 4 * np.cosh(s) / np.cosh(inner) ** 2
    return 1 / (1 + np.exp(-2 * inner)), 1 / (1 + np.exp(2 * inner)), weights
