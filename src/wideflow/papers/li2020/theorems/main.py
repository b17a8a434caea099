r"""The main results. Constants are never given and $Q < 1/100$, so $O(1/d^{1+Q})$ cannot be tested
literally ($d^{-Q}$ is 0.95 at $d = 100$). What is checked: the loss falls far below the degree-two
floor $(1-3/\pi)\sum a^2$, where kernels stay.
"""

from typing import ClassVar

from ....theorems.base import AbstractTheorem, Citation, Verdict
from ._common import condition, degree_two_floor, judged


def _below_floor(loss: float | int, coefficients, share: float | int, what: str) -> Verdict:
    floor = degree_two_floor(coefficients)
    ratio = float(loss) / floor
    numbers = {
        "loss": float(loss),
        "floor": floor,
        "ratio": ratio,
        "kappa": condition(coefficients),
    }
    return judged(
        1 - ratio / share, f"{what}: the loss is {ratio:.4f} of the degree-two floor", numbers
    )


class InfiniteWidthConvergence(AbstractTheorem):
    r"""Theorem 3.1: at infinite width, truncated descent reaches $L_\infty(P) \le O(1/d^{1+Q})$
    after $\Theta(d^2/\log d) + \Theta(d^{1+10Q})$ mean-field time.

    Checked: $L \le$ `share` $\cdot$ floor, for the loss of a symmetric cloud at
    $\tau = 1.7d^2/\ln d + 6d\ln d$.

    Args:
        loss: $L_\infty(P)$.
        coefficients: $a$ of the target, which set the floor.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Theorem 3.1")

    def __call__(self, loss: float | int, coefficients, share: float | int = 0.05) -> Verdict:
        return _below_floor(loss, coefficients, share, "infinite width")


class FiniteConvergence(AbstractTheorem):
    r"""Theorem 1.1: with $N = \mathrm{poly}_\kappa(d)$ samples,
    $\eta < \min(\lambda_0^2, 1/\mathrm{poly}_\kappa(d))$ and
    $m \ge \mathrm{poly}(d)/\mathrm{poly}(\lambda_1)$, Algorithm 1 ends with
    $L(\hat W) \le O(1/d^{1+Q})$ with probability $1 - 1/\mathrm{poly}(d)$.

    Corrected: the stated $\eta$ is the mean-field one ($\eta_{literal} = m\eta$). Checked: $L \le$
    `share` $\cdot$ floor for the population loss of the trained network.

    Args:
        loss: $L(\hat W)$.
        coefficients: $a$ of the target, which set the floor.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Theorem 1.1")

    def __call__(self, loss: float | int, coefficients, share: float | int = 0.05) -> Verdict:
        return _below_floor(loss, coefficients, share, "finite network")
