"""Claim 2.1: a finite network drawn from a law has nearly its loss and gradient."""

from typing import ClassVar

import numpy as np

from ....theorems.base import AbstractTheorem, Citation, Verdict
from ..limits.gaussian_cloud import gaussian_cloud_field, gaussian_cloud_loss, width_excess
from ._common import judged, log_slope, not_applicable


class FiniteWidthLoss(AbstractTheorem):
    r"""Claim 2.1 (loss): for $w_i$ i.i.d. from $P$, $\|w\|^2 \le 1/\lambda$, w.h.p.
    $|L(W) - L_\infty(P)| \le \mathrm{poly}(1/\lambda)\log(1/\delta)/\sqrt m$.

    For $P = \mathcal N(0, I/d)$ and the `abs` learner both sides are known:
    $\mathbb E_WL(W) - L_\infty = (1 + 2/d - d\mu_d^2)/m$. Checked on losses of networks drawn at
    several widths: the mean excess within `errors` standard errors of that, and the root mean
    square of $L - L_\infty$ falling with $m$ at a log-log slope in [-1.2, -0.4].

    Args:
        widths: $m$.
        losses: $L(W)$, shape (width, seed).
        coefficients: $a$ of the target; there are $d$ of them.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Claim 2.1")

    def __call__(self, widths, losses, coefficients, errors: float | int = 4.0) -> Verdict:
        m, table = np.asarray(widths, dtype=float), np.asarray(losses, dtype=float)
        if table.ndim != 2 or len(m) != len(table) or len(m) < 2 or table.shape[1] < 2:
            return not_applicable(
                "`losses` must be (width, seed) with two or more widths and seeds"
            )
        d = len(coefficients)
        limit = float(gaussian_cloud_loss(coefficients))
        excess = table - limit
        expected = np.array([width_excess(d, int(width)) for width in m])
        deviations = np.abs(excess.mean(axis=1) - expected) / (
            excess.std(axis=1, ddof=1) / np.sqrt(table.shape[1])
        )
        slope = log_slope(m, np.sqrt(np.mean(excess**2, axis=1)))
        margin = min(errors - deviations.max(), slope + 1.2, -0.4 - slope)
        numbers = {
            "limit": limit,
            "constant": width_excess(d, 1),
            "worst_deviation": deviations.max(),
            "slope": slope,
        }
        numbers["measured_constant"] = float(np.mean(m * excess.mean(axis=1)))
        return judged(
            margin,
            f"m (L - L_inf) is {numbers['measured_constant']:.3f}, predicted "
            f"{numbers['constant']:.3f}",
            numbers,
        )


class FiniteWidthGradient(AbstractTheorem):
    r"""Claim 2.1 (gradient): $\|m\,\partial_{w_i}\hat L - \nabla_{w_i}L_\infty\| \le
    \mathrm{poly}(1/\lambda)\log(m/\delta)(1/\sqrt m + 1/\sqrt N)$.

    Corrected: the factor $m$ is missing in print. Checked for $P = \mathcal N(0, I/d)$ on
    mean-field gradients $g$ of networks (or of samples) of growing `counts` ($m$, or $N$): root
    mean square error per neuron against the exact $\nabla L_\infty$, log-log slope $-\frac12$
    within `tolerance`.

    Args:
        errors: the root mean square error at each count.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Claim 2.1")

    def __call__(self, counts, errors, tolerance: float | int = 0.15) -> Verdict:
        n, gap = np.asarray(counts, dtype=float), np.asarray(errors, dtype=float)
        if n.shape != gap.shape or n.size < 2:
            return not_applicable(
                "`counts` and `errors` must be two equally long lists of two or more numbers"
            )
        slope = log_slope(n, gap)
        constant = float(np.mean(gap * np.sqrt(n)))
        numbers = {"slope": slope, "constant": constant}
        return judged(
            tolerance - abs(slope + 0.5),
            f"error is {constant:.2f}/sqrt(count), slope {slope:.2f}",
            numbers,
        )

    @staticmethod
    def width_error(weights, gradient, coefficients) -> float:
        r"""Root mean square over neurons of $\|g_i - \nabla_{w_i}L_\infty\|$ for weights drawn from
        $\mathcal N(0, I/d)$.
        """
        gap = np.asarray(gradient) - np.asarray(gaussian_cloud_field(weights, coefficients))
        return float(np.sqrt(np.mean(np.sum(gap**2, axis=1))))
