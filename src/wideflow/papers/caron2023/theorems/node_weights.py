"""Identities and limits of the node weights: Proposition A.2."""

import math
from typing import ClassVar

import numpy as np

from ...._core.errors import check_count
from ...._core.precision import double
from ....limits.random_gram import limit_nodes, zipf_sum
from ....theorems.base import AbstractTheorem, Citation, Verdict
from .problem import conclude


class PropositionA2(AbstractTheorem):
    r"""Node weights $\lambda_{m,j} = \gamma/m+(1-\gamma)\tilde\lambda_j/\sum_{k\le m}\tilde\lambda_k$:
    $\sum_j\lambda_{m,j} = 1$, $\sqrt{\gamma m}\le\sum_j\sqrt{\lambda_{m,j}}\le\sqrt m$,
    $\lambda_{m,j}\to(1-\gamma)\tilde\lambda_j$, and for $r>1$
    $$\sum_j(\lambda^{(2)}_{m,j})^r\le\sum_j\lambda_{m,j}^r\le\Big((\gamma^rm^{1-r})^{1/r}+\Big(\sum_j(\lambda^{(2)}_{m,j})^r\Big)^{1/r}\Big)^r$$
    (Minkowski), which tends to $(1-\gamma)^r\sum_j\tilde\lambda_j^r$. At $\gamma = 1$ the sum is
    $m^{1-r}$.
    """

    citation: ClassVar = Citation("caron2023", "Proposition A.2")

    @double
    def __call__(self, scaling, width: int, power: float = 2.0) -> Verdict:
        """Judges `scaling` (`NTK`, `Zipf` or `Weights`) at `width`.

        Args:
            power: $r > 1$.
        """
        check_count("width", width)
        if not power > 1:
            raise ValueError(f"`power` must exceed 1, got {power}.")
        limit = limit_nodes(scaling, width)
        weights = np.asarray(scaling.node_scales(width), dtype=np.float64) ** 2
        symmetric = np.full(width, limit.gamma / width)
        rest = np.maximum(weights - symmetric, 0.0)
        total, roots = math.fsum(weights), float(np.sum(np.sqrt(weights)))
        lower_sum, middle = float(np.sum(rest**power)), float(np.sum(weights**power))
        upper_sum = (limit.gamma * width ** (1 / power - 1) + lower_sum ** (1 / power)) ** power
        within = 1.0 + 1e-12
        ratios = {
            "sum": 1.0 if abs(total - 1.0) <= 1e-14 * max(width, 100) else math.inf,
            "roots_above": roots / math.sqrt(width) / within,
            # the released sequence gives a single node no weight at all
            "roots_below": math.sqrt(limit.gamma * width) / max(roots, 1e-300) / within,
            "order": 1.0 if np.all(np.diff(weights) <= 1e-16) else math.inf,
            # at gamma = 0 nodes may have weight 0, as in (1, 0, 0, ...): nothing is required of the
            # least one
            "least": limit.gamma / width / float(weights.min()) / within if limit.gamma else 0.0,
            "power_below": lower_sum / max(middle, 1e-300) / within,
            "power_above": middle / max(upper_sum, 1e-300) / within,
        }
        numbers = {
            "sum": total,
            "roots": roots,
            "power_sum": middle,
            "power_low": lower_sum,
            "power_high": upper_sum,
        }
        if getattr(scaling, "alpha", None) is not None and limit.gamma < 1:
            numbers["power_limit"] = (1 - limit.gamma) ** power * zipf_sum(scaling.alpha, power)
        return conclude(ratios, numbers, f"identities at width {width}")
