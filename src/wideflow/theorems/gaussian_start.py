r"""Whether a start could have been drawn as the theorems assume: $w_{ij}\sim\mathcal N(0,1)$
independent, output signs fair coins.

A theorem about a random start says nothing of weights that were drawn otherwise, so the drawn
numbers are tested. Each check rejects a start drawn as assumed with probability at most `SIZE` in
all: the four parts share it equally, each by an exact law or a finite-sample inequality.
"""

import math

import numpy as np
from scipy.special import bdtr, chdtr, chdtrc, ndtr

SIZE = 1e-6
"""Probability with which a start that was drawn as assumed is turned away."""

PARTS = 4  # tests, three of the weights and one of the signs, share the size (Bonferroni)


def normal_fault(weights, what: str = "the weights") -> str:
    r"""Why `weights` are no draw of $N$ independent standard normals, or nothing.

    Three tests of size `SIZE`/4 each: $\sqrt N\,\bar w\sim\mathcal N(0,1)$; $\sum w^2\sim\chi^2_N$;
    and the distance of the empirical distribution function from the normal one,
    $\Pr(\sup|F_N-\Phi|>\epsilon)\le2e^{-2N\epsilon^2}$ (Dvoretzky, Kiefer and Wolfowitz, with
    Massart's constant).
    """
    values = np.sort(np.asarray(weights, dtype=np.float64), axis=None)
    count, allowed = values.size, SIZE / PARTS
    if not np.all(np.isfinite(values)):
        return f"{what} are not finite"
    squares = float(np.sum(values**2))
    assumption = f"where N(0, 1) is assumed (a test of size {SIZE:g} over {count} numbers)"
    # two-sided: twice the smaller tail
    if 2 * min(chdtr(count, squares), chdtrc(count, squares)) < allowed:
        return f"{what} have deviation {math.sqrt(squares / count):.4g} {assumption}"
    if 2 * ndtr(-abs(values.mean()) * math.sqrt(count)) < allowed:
        return f"{what} have mean {values.mean():.4g} {assumption}"
    normal, steps = ndtr(values), np.arange(count + 1) / count
    # F_N jumps at every value: the supremum is attained at one of the two sides of a jump
    distance = max(float(np.max(steps[1:] - normal)), float(np.max(normal - steps[:-1])))
    if 2 * math.exp(-2 * count * distance**2) < allowed:
        return (
            f"{what} are not Gaussian: their distribution function is {distance:.2g} away "
            f"{assumption}"
        )
    return ""


def signs_fault(output) -> str:
    """Why the signs of `output` are no fair coins, or nothing: the number of pluses is binomial,
    tested at size `SIZE`/4.
    """
    signs = np.sign(np.asarray(output, dtype=np.float64))
    count, plus = signs.size, int(np.sum(signs > 0))
    if 2 * min(bdtr(plus, count, 0.5), bdtr(count - plus, count, 0.5)) < SIZE / PARTS:
        return (
            f"{plus} of {count} output weights are positive where fair signs are assumed (a test "
            f"of size {SIZE:g})"
        )
    return ""


def start_fault(start) -> str:
    """What speaks against `start`, a `Shallow` network, being drawn as assumed; empty where nothing
    does.
    """
    weights = np.asarray(start.weights, dtype=np.float64)
    half = weights.shape[1] // 2
    faults = [normal_fault(weights), signs_fault(start.output)]
    if (
        half
        and weights.shape[1] == 2 * half
        and np.array_equal(weights[:, :half], weights[:, half:])
    ):
        faults.append(
            "the start is symmetric: every neuron appears twice, so the draws are not independent"
        )
    return "; ".join(fault for fault in faults if fault)
