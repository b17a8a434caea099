r"""Hermite coefficients of a link function, its information exponent, and the leap of a function of
several indices.

For $z \sim N(0, I_R)$,
$g = \sum_\alpha\hat g_\alpha\prod_r\mathrm{He}_{\alpha_r}(z_r)/\sqrt{\alpha_r!}$. The **information
exponent** is the smallest $|\alpha| \ge 1$ with $\hat g_\alpha \ne 0$ (benarous2021): one-pass SGD
needs about $d$ samples at exponent 1, $d\log d$ at 2 and $d^{k-1}$ at $k \ge 3$ to find the
direction. The **leap** (abbe2023) is the largest step of the easiest order in which the
coefficients' coordinates can be learned, where a step costs the degree of a coefficient in the
coordinates that are not learned yet: $d^{\max(\mathrm{leap}-1,\,1)}$ up to logarithms.
"""

import itertools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .._core.activations import Activation, activation as as_activation
from .._core.errors import check_count, check_of_indices, check_positive
from .._core.precision import double
from .._core.ridge_pairs import hermite_nodes
from .ridge_quads import tensor_rule

__all__ = ["hermite_coefficients", "information_exponent", "leap", "recovery_samples"]

NODES = {1: 128, 2: 64, 3: 40, 4: 24}  # a dimension: polynomials to twice as many are exact


@double
def hermite_coefficients(g, indices: int = 1, degree: int = 6) -> dict[tuple[int, ...], float]:
    r"""$\hat g_\alpha = E[g(z)\prod_r\mathrm{He}_{\alpha_r}(z_r)]/\sqrt{\alpha!}$ for all
    $|\alpha| \le$ `degree`.

    Gauss-Hermite with 128, 64, 40 or 24 nodes in each of one to four dimensions: exact for
    polynomials $g$, within a power of the number of nodes where $g$ has kinks or jumps.

    Args:
        g: an activation (name or object), or a function of the vector $z$ of all indices.
        indices: $R$, at most four.

    >>> round(hermite_coefficients("square")[(2,)], 12)  # z^2 = 1 + sqrt(2) He_2/sqrt(2)
    1.414213562373
    """
    check_count("indices", indices, most=4)
    function = _function(g, indices)
    check_count("degree", degree, most=12)
    points, weights = tensor_rule(indices, *hermite_nodes(NODES[indices]))
    values = jax.vmap(function)(jnp.asarray(points))
    if values.ndim != 1 or not bool(jnp.all(jnp.isfinite(values))):
        raise ValueError("`g` must give one finite number for a vector of indices.")
    basis = np.stack(
        [
            np.polynomial.hermite_e.hermeval(points, np.eye(degree + 1)[k])
            / math.sqrt(math.factorial(k))
            for k in range(degree + 1)
        ]
    )
    weighted = np.asarray(values) * weights
    multi = [m for m in itertools.product(range(degree + 1), repeat=indices) if sum(m) <= degree]
    product = lambda m: np.prod([basis[k, :, r] for r, k in enumerate(m)], axis=0)
    return {m: float(weighted @ product(m)) for m in multi}


@double
def information_exponent(
    g, indices: int = 1, degree: int = 6, tolerance: float = 1e-6
) -> int | None:
    r"""The smallest $|\alpha| \ge 1$ with $|\hat g_\alpha| >$ `tolerance` times $g$'s largest
    coefficient; None beyond `degree`.

    Args:
        g: an activation of one index, or a function of a vector of `indices` numbers.
        indices: how many numbers $g$ takes.
        degree: the largest $|\alpha|$ that is looked at.
        tolerance: below this share a coefficient counts as zero.

    >>> from wideflow.activations import hermite
    >>> information_exponent("relu"), information_exponent("abs"), information_exponent(hermite(3))
    (1, 2, 3)
    """
    present = _present(g, indices, degree, tolerance)
    return min((sum(m) for m in present), default=None)


@double
def leap(g, indices: int = 1, degree: int = 6, tolerance: float = 1e-6) -> tuple[int, list]:
    r"""The leap complexity and the order in which coordinates are learned.

    From the coordinates learned so far, the next coefficient is the one of least degree in new
    coordinates; this greedy order is optimal, for a coefficient learned earlier never makes another
    one dearer.

    Args:
        g: an activation of one index, or a function of a vector of `indices` numbers.
        indices: how many numbers $g$ takes.
        degree: the largest degree that is looked at.
        tolerance: coefficients below this share of the largest count as zero.

    Returns:
        The leap, and the steps: (coordinates learned together, leap of the step).

    >>> leap(lambda z: z[0] + z[0] * z[1], indices=2)  # a staircase
    (1, [((0,), 1), ((1,), 1)])
    >>> leap(lambda z: z[0] * z[1], indices=2)
    (2, [((0, 1), 2)])
    """
    present = _present(g, indices, degree, tolerance)
    if not present:
        raise ValueError(
            f"`g` has no Hermite coefficient of degree 1 to {degree} above `tolerance`; "
            "it is constant, or `degree` is too small."
        )
    # coordinates that cost the same are learned together: the order among them changes no price
    learned, steps = set(), []
    cost = lambda m: sum(k for r, k in enumerate(m) if r not in learned)
    while remaining := [m for m in present if cost(m) > 0]:
        price = min(map(cost, remaining))
        new = {
            r
            for m in remaining
            if cost(m) == price
            for r, k in enumerate(m)
            if k and r not in learned
        }
        steps.append((tuple(sorted(new)), price))
        learned |= new
    return max(price for _, price in steps), steps


@double
def recovery_samples(exponent: int, features: float) -> float:
    r"""The power of $d$ at which one-pass SGD leaves its start: $d$, $d\log d$ or $d^{k-1}$ samples
    at exponent $k$, without its constant.

    Args:
        exponent: $k$, the information exponent.
        features: $d$.
    """
    check_count("exponent", exponent)
    check_positive("features", features)
    d = float(features)
    return d if exponent == 1 else d * math.log(d) if exponent == 2 else d ** (exponent - 1)


def _present(g, indices, degree, tolerance) -> list[tuple[int, ...]]:
    check_positive("tolerance", tolerance)
    table = hermite_coefficients(g, indices, degree)
    size = max(abs(c) for c in table.values())
    return [m for m, c in table.items() if sum(m) and abs(c) > tolerance * size]


def _function(g, indices: int) -> Callable:
    if isinstance(g, str | Activation):
        act = as_activation(g)
        return lambda z: jnp.sum(act.value(z))
    check_of_indices("g", g, indices)
    return g
