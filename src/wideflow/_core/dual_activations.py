r"""Dual activations for networks of any depth: $F = E[\phi(u)\phi(v)]$ and
$\dot F = E[\phi'(u)\phi'(v)]$ together.

By a closed form where one is known (`closed_duals.py`), elsewhere by the quadrature of
`gaussian.py`, after `check_smooth` has measured its error.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import gaussian
from .activations import Activation
from .closed_duals import CLOSED, Pair

QUADRATURE_ERROR = 1e-8  # what the quadrature promises, relative to E[phi^2]


class Dual(NamedTuple):
    r"""`both(p, q, r)` gives $(F, \dot F)$; `closed` says whether by a closed form (then `jax.jit`
    takes it).
    """

    both: Callable[..., Pair]
    closed: bool


def dual(act: Activation) -> Dual:
    r"""$(F, \dot F)$ of an activation: a closed form where one is known, quadrature elsewhere."""
    builder = CLOSED.get(act.name)
    if builder is not None:
        return Dual(builder(act), True)
    return Dual(_quadrature(act), False)


def _quadrature(act: Activation):
    r"""$(F, \dot F)$ by quadrature; its derivatives are expectations too (Price):
    $\partial_q F = \dot F$, $\partial_p F = \frac12E[\phi''\phi]$.
    """
    third = jnp.vectorize(jax.grad(lambda z: act.second(z)))
    bend = act.second

    @jax.custom_jvp
    def both(p, q, r):
        return gaussian.pair(act, p, q, r), gaussian.pair_derivative(act, p, q, r)

    @both.defjvp
    def _(primals, tangents):
        p, q, r = (jnp.asarray(k, float) for k in primals)
        dp, dq, dr = tangents
        expect = lambda f, g: gaussian.expect_pair(f, g, p, q, r)
        value, slope = both(p, q, r)
        dvalue = slope * dq + 0.5 * (expect(bend, act.value) * dp + expect(act.value, bend) * dr)
        dslope = expect(bend, bend) * dq + 0.5 * (
            expect(third, act.slope) * dp + expect(act.slope, third) * dr
        )
        return (value, slope), (dvalue, dslope)

    return both


def check_smooth(act: Activation, variances) -> float:
    r"""The error of the quadrature at the given variances, relative to $E[\phi^2]$ and
    $E[\phi'^2]$; refused above 1e-8.

    It is measured on the diagonal ($u = v$), where the integrand is least smooth, against the same
    rule with an eighth of the spacing.
    """
    deviations = np.sqrt(np.asarray(variances, float).ravel())
    if not deviations.size:
        return 0.0
    # the smallest, the largest and seven between: the rule's error changes slowly with the
    # deviation
    some = np.quantile(deviations, np.linspace(0, 1, 9))
    worst = 0.0
    for function in (act.value, act.slope):
        coarse, fine = (
            np.asarray(gaussian.expect(function, some, power=2, finer=finer))
            for finer in (1.0, 8.0)
        )
        with np.errstate(invalid="ignore"):  # an error that is not a number counts as infinite
            # 1e-300: where the function vanishes altogether the difference does too, and 0/1e-300
            # is right
            error = np.max(np.abs(coarse - fine)) / max(np.max(np.abs(fine)), 1e-300)
        worst = max(worst, float(error)) if np.isfinite(error) else math.inf
    if not worst <= QUADRATURE_ERROR:
        raise ValueError(
            f"`activation` {act!r} is not smooth enough for quadrature: the error is {worst:.1g} "
            "at deviations up to "
            f"{float(some[-1]):.3g}, where {QUADRATURE_ERROR:g} is required. Use an activation "
            "with a closed form "
            "('relu', `two_slopes`, `rectified_power`, ...) or a smooth one, or scale the inputs "
            "down."
        )
    return worst
