"""Theorem 1.2: what kernels and fixed features cannot reach."""

from typing import ClassVar

import numpy as np

from ....theorems.base import AbstractTheorem, Citation, Outcome, Verdict
from ..limits.kernel_floor import degree_floor, floor_constant, kernel_floor, largest_size
from ._common import judged


class KernelLowerBound(AbstractTheorem):
    r"""Theorem 1.2, made quantitative: over a family of $H$ block targets that share no block, any
    $N$ functions fixed in advance (a feature map $\phi: \mathbb R^d \to \mathbb R^N$, or
    $K(\cdot, x_i)$ at $N$ samples) have mean best loss at least $(1 - N/H)C_r/d$.

    Paper: some target has $L = \Omega(1/d)$ with the constant $r^{-O(r)}$. Corrected: Definition
    C.1 must place blocks on the coordinates of the partition. Checked: the mean of the given losses
    (one a target of the family) against the floor; VACUOUS where $N \ge H$.

    Args:
        losses: population losses, one for each target of the family.
        functions: $N$. features: $d$. block: $r \ge 4$, a power of two.
        family: $H$; the largest possible if None.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Theorem 1.2, Appendix C")

    def __call__(
        self, losses, functions: int, features: int, block: int = 4, family: int | None = None
    ) -> Verdict:
        size = largest_size(features, block) if family is None else family
        floor = kernel_floor(features, block, functions, size)
        mean = float(np.mean(np.asarray(losses, dtype=float)))
        numbers = {
            "floor": floor,
            "mean_loss": mean,
            "family": size,
            "constant": floor_constant(block),
            "degree_two_floor": degree_floor(np.full(features, 1 / features), 2),
        }
        if functions >= size:
            return Verdict(
                Outcome.VACUOUS,
                float("nan"),
                f"{functions} functions against {size} targets: no floor",
                numbers,
            )
        return judged(
            mean / floor - 1, f"mean loss {mean:.3g} against the floor {floor:.3g}", numbers
        )
