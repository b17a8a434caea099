"""Conditional symmetry: preserved by the update, and the gradients it leaves."""

import math
from typing import ClassVar

import numpy as np

from ....theorems.base import AbstractTheorem, Citation, Verdict
from ..limits import hermite
from ..limits.sign_averages import symmetric_order_field
from ..limits.symmetric_cloud import SymmetricCloud, evolve
from ._common import judged


class SymmetryPreserved(AbstractTheorem):
    r"""Claim 3.1: if $P^{(t)}$ is conditionally symmetric, so is $P^{(t+1)}$ under (truncated)
    descent.

    Corrected: Definition 3.1 conditions on $w_{-i}$, and the gradient is an odd function of each
    $v_j$, not a polynomial. Checked by moving the full orbit of `representatives` as independent
    neurons and comparing with the orbit of the moved representatives.

    Args:
        coefficients: $a_i$, one a feature.
        rate, steps: of the descent.
        cap: of $\|w\|^2$, above which a neuron rests.
        tolerance: absolute.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Claim 3.1")

    def __call__(
        self,
        representatives,
        coefficients,
        rate: float | int = 0.2,
        steps: int = 50,
        cap: float | int = math.inf,
        tolerance: float | int = 1e-10,
    ) -> Verdict:
        cloud = SymmetricCloud(representatives)
        orbit = np.asarray(cloud.orbit())
        for _ in range(steps):
            active = np.sum(orbit**2, axis=1, keepdims=True) <= cap
            orbit = orbit - rate * active * np.asarray(
                hermite.population_gradient(orbit, coefficients)
            )
        moved, _ = evolve(cloud, coefficients, rate, steps, every=max(1, steps), cap=cap)
        gap = float(np.abs(orbit - np.asarray(moved.orbit())).max())
        return judged(
            tolerance - gap,
            f"after {steps} steps the orbit is symmetric to {gap:.1e}",
            {"gap": gap},
        )


class SymmetricGradient(AbstractTheorem):
    r"""Claim 3.2 (corrected): for conditionally symmetric $P$,
    $[\nabla_{0,v}]_i = b_0(\mathbb E\|w\|^2 - 1)v_i$,
    $[\nabla_{2,v}]_i = b_2(\mathbb Ew_i^2 - a_i)v_i$, and $\nabla_{2j,v}$ is given by sign
    averages.

    The printed (3.3) lacks multinomial coefficients and fixes no index. Checked: the cumulant
    recursion of `limits.sign_averages` against the full orbit of `representatives`, order by order.

    Args:
        coefficients: $a_i$, one a feature.
        orders: the $2j$.
        tolerance: relative.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Claim 3.2, eq. (3.2)-(3.3)")

    def __call__(
        self, representatives, coefficients, orders=(0, 2, 4, 6, 8), tolerance: float | int = 1e-10
    ) -> Verdict:
        orbit = SymmetricCloud(representatives).orbit()
        errors = {}
        for order in orders:
            exact = np.asarray(
                hermite.order_field(representatives, orbit, coefficients, (order,))[0]
            )
            closed = np.asarray(
                symmetric_order_field(representatives, representatives, coefficients, order)
            )
            errors[f"order_{order}"] = float(
                np.abs(closed - exact).max() / max(np.abs(exact).max(), 1e-300)
            )
        worst = max(errors.values())
        return judged(tolerance - worst, f"closed form and orbit agree to {worst:.1e}", errors)
