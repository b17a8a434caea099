r"""What gradient flow of a diagonal linear network converges to (woodworth2020, Theorem 1)."""

import numpy as np

from wideflow import Outcome, Verdict
from wideflow.theorems import AbstractTheorem, Citation


class ImplicitBias(AbstractTheorem):
    r"""If the flow from $u = v = \alpha 1$ ends at zero loss, then $\beta$ solves
    $\min_\beta \sum_j q(\beta_j/\alpha^2)$ subject to $X\beta = y$, with
    $q'(z) = \operatorname{arcsinh}(z/2)$.

    That is the case if and only if $X\beta = y$ and $s = \operatorname{arcsinh}(\beta/2\alpha^2)$
    lies in the row space of $X$: the objective is strictly convex and $s$ its gradient up to a
    factor. What is checked is the part of $s$ outside the row space, relative to $s$; it is zero
    along the whole flow, since $u_j = \alpha e^{-2\int g_j}$, $v_j = \alpha e^{2\int g_j}$ with
    $g = X^\top r$.
    """

    citation = Citation("woodworth2020", "Theorem 1")

    def __call__(
        self, start, data, end, *, interpolates: float = 1e-6, rtol: float = 1e-3
    ) -> Verdict:
        scale = np.asarray(start.plus)
        if np.ptp([scale, np.asarray(start.minus)]) > 0:
            return Verdict(Outcome.NOT_APPLICABLE, np.nan, "the start is not u = v = alpha 1.")
        x, y = np.asarray(data.inputs), np.asarray(data.targets)
        beta = np.asarray(end.linear)
        residual = np.linalg.norm(x @ beta - y) / np.linalg.norm(y)
        if not residual <= interpolates:
            return Verdict(
                Outcome.NOT_APPLICABLE,
                np.nan,
                f"the relative residual is still {residual:.2g}; train longer.",
            )
        s = np.arcsinh(beta / (2 * scale[0] ** 2))
        inside = np.linalg.pinv(x) @ (x @ s)
        outside = float(np.linalg.norm(s - inside) / np.linalg.norm(s))
        return Verdict(
            Outcome.HOLDS if outside <= rtol else Outcome.VIOLATED,
            rtol - outside,
            f"{outside:.1e} of the dual variable lies outside the row space",
            {"outside": outside, "residual": float(residual)},
        )
