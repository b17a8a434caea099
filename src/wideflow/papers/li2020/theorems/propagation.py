"""Finite against infinite width: how the coupling error travels (App. B)."""

from typing import ClassVar

import numpy as np

from ....theorems.base import AbstractTheorem, Citation, Verdict
from ..limits import hermite
from ..limits.perturbation import error_forms, sixteen_terms
from ._common import judged, log_slope, not_applicable


class ErrorPropagation(AbstractTheorem):
    r"""Lemmas B.1-B.3: with $m, N$ polynomial, $\xi_w = \tilde w - w$ stays polynomially small
    through all stages.

    Testable content: at a fixed time the mean of $\|\xi\|^2$ goes like $1/m$. Checked on means over
    seeds at several widths: log-log slope $-1$ within `tolerance` (fit over a factor 16 in width or
    more; neighbouring widths scatter).

    Args:
        widths: $m$.
        mean_squares: the mean of $\|\xi\|^2$ at each.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Lemmas B.1, B.2 and B.3")

    def __call__(self, widths, mean_squares, tolerance: float | int = 0.35) -> Verdict:
        m, xi = np.asarray(widths, dtype=float), np.asarray(mean_squares, dtype=float)
        if m.size < 2 or m.max() / m.min() < 16:
            return not_applicable("the widths must span a factor of 16")
        slope = log_slope(m, xi)
        return judged(
            tolerance - abs(slope + 1), f"mean |xi|^2 goes like m^{slope:.2f}", {"slope": slope}
        )


class ErrorForms(AbstractTheorem):
    r"""Claims B.1, B.2, B.3: the leading error terms push towards zero: three kinds of quadratic
    forms are not negative.

    Corrected: Claim B.2 needs the mean over $v$. Checked on given pairs $(w, \xi_w)$; for B.2 also
    the stated square.

    Args:
        weights: $w$, shape (width, feature).
        errors: $\xi_w$, likewise.
        half: $j$ of the order $2j$.
        tolerance: how far below zero rounding may go.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Claims B.1, B.2 and B.3")

    def __call__(self, weights, errors, half: int = 2, tolerance: float | int = 1e-12) -> Verdict:
        forms = {name: float(value) for name, value in error_forms(weights, errors, half).items()}
        least = min(forms.values())
        gap = abs(forms["first"] - forms["first_square"]) / max(forms["first_square"], 1e-300)
        margin = min(least + tolerance, 1e-9 - gap)
        return judged(margin, f"the smallest form is {least:.3g}", forms | {"square_gap": gap})


class SixteenTerms(AbstractTheorem):
    r"""B.2.1: the sixteen terms $\tilde\nabla_{2j,v,p}$ are together the first-order error of
    $\nabla_{2j,v}$ (with $b+b' = 4jc_{2j}$).

    Checked by a central difference of the exact order-$2j$ field along $(\xi_v, \xi_w)$.

    Args:
        particle: $v$, shape (feature,).
        error: $\xi_v$, likewise.
        weights: $w$, shape (width, feature).
        errors: $\xi_w$, likewise.
        coefficients: $a$ of the target.
        half: $j$.
        tolerance: relative.
        step: of the central difference.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Appendix B.2.1")

    def __call__(
        self,
        particle,
        error,
        weights,
        errors,
        coefficients,
        half: int = 2,
        tolerance: float | int = 1e-8,
        step: float | int = 1e-5,
    ) -> Verdict:
        v, xi, w, xi_w = (np.asarray(x, dtype=float) for x in (particle, error, weights, errors))
        total = np.asarray(sixteen_terms(v, xi, w, xi_w, coefficients, half)).sum(axis=0)
        up, down = (
            np.asarray(
                hermite.order_field((v + s * xi)[None], w + s * xi_w, coefficients, (2 * half,))[
                    0, 0
                ]
            )
            for s in (step, -step)
        )
        difference = (up - down) / (2 * step)
        gap = float(np.abs(total - difference).max() / np.abs(difference).max())
        return judged(
            tolerance - gap,
            f"the terms sum to the differential to {gap:.1e}",
            {"relative_error": gap},
        )
