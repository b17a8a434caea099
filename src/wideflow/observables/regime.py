r"""The line from lazy to rich, and where a change of parameters lies on it.

Two numbers place it. The kernel's change relative to its size,
$R = \lVert\Theta_1-\Theta_0\rVert_F/\lVert\Theta_0\rVert_F$, and how much of the outputs' change
the linearisation at the start misses,
$G = \lVert f_1 - f_0 - J_0(\theta_1-\theta_0)\rVert/\lVert f_1-f_0\rVert$. Both are 0 in the lazy
limit; neither is bounded. Their maximum is the richness, one number that grows from lazy to rich.
The laziness index is $1/(1+\max(R, G))$: 1 is lazy, and at 1/2 the kernel has changed by as much as
it was, or the linearisation misses all that happened.
"""

from typing import NamedTuple

__all__ = ["Regime"]

LAZY, RICH = 0.1, 0.5  # below: first-order theory is good to 10 %; above: it misses half


class Regime(NamedTuple):
    """Relative kernel change $R$ and linearisation gap $G$, with the verdict they give.

    Attributes:
        kernel_change: $R$.
        linearisation_gap: $G$.
    """

    kernel_change: float
    linearisation_gap: float

    @property
    def index(self) -> float:
        """The laziness index: 1 is lazy, towards 0 is rich."""
        return 1.0 / (1.0 + self.richness)

    @property
    def richness(self) -> float:
        """The larger of the two numbers: near 0 is lazy, the larger the richer; `LAZY` and `RICH`
        are its borders.
        """
        return max(self.kernel_change, self.linearisation_gap)

    @property
    def verdict(self) -> str:
        """'lazy', 'between' or 'rich'; 'unknown' where a number is NaN."""
        return verdict_of(self.richness)

    @property
    def worst(self) -> float:
        """The old name of `richness`."""
        return self.richness


def verdict_of(change: float) -> str:
    """The verdict by one of the numbers alone: 'lazy', 'between', 'rich', or 'unknown' for NaN."""
    if not change >= 0:
        return "unknown"
    if change < LAZY:
        return "lazy"
    return "rich" if change > RICH else "between"
