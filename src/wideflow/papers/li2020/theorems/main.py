r"""The main results. Constants are never given and $Q < 1/100$, so $O(1/d^{1+Q})$ cannot be tested
literally ($d^{-Q}$ is 0.95 at $d = 100$). What is checked: the loss falls far below the degree-two
floor $(1-3/\pi)\sum a^2$, where kernels stay.
"""

import math
from typing import Any, ClassVar

from ....theorems.base import AbstractTheorem, Citation, Verdict
from ..truncated_descent import TruncatedDescent
from ._common import condition, degree_two_floor, judged
from .problem import AbstractLearnerTheorem, Problem, beyond_condition, too_few_samples


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


class FiniteConvergence(AbstractLearnerTheorem):
    r"""Theorem 1.1: with $N = \mathrm{poly}_\kappa(d)$ samples,
    $\eta < \min(\lambda_0^2, 1/\mathrm{poly}_\kappa(d))$ and
    $m \ge \mathrm{poly}(d)/\mathrm{poly}(\lambda_1)$, Algorithm 1 ends with
    $L(\hat W) \le O(1/d^{1+Q})$ with probability $1 - 1/\mathrm{poly}(d)$.

    Corrected: the stated $\eta$ is the mean-field one ($\eta_{literal} = m\eta$). Checked: $L \le$
    `share` $\cdot$ floor for the population loss of the trained network. A run must be one of
    `TruncatedDescent` in both stages, with a cap that lets a lone neuron carry a direction
    ($\|w\|^2 = ma_k$), $N \ge \max(11d^2, 3md)$ samples and $\tau \ge 1.7d^2/\ln d + 6d\ln d$ (twice
    that for `relu1`, four times on samples), which suffices for $\kappa \le 2$.

    Args:
        loss: $L(\hat W)$.
        coefficients: $a$ of the target, which set the floor.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Theorem 1.1")

    def unmet(self, problem: Problem) -> str:
        run, d, m = problem.run, problem.features, problem.width
        if not isinstance(run.dynamics, TruncatedDescent) or run.dynamics.switch is None:
            return "it is about truncated descent in two stages (Algorithm 1)"
        if not bool(run.state.second):
            return "stage 2 of Algorithm 1 has not begun"
        mass = 2.0 if (run.start.activation.name, run.start.factor) == ("relu", 1.0) else 1.0
        cap, needed = float(run.dynamics.cap(True)), mass * m * problem.coefficients.max()
        if cap < needed:
            return f"the cap {cap:.4g} of stage 2 keeps a lone neuron from its size {needed:.4g}"
        if m < d:
            return f"it requires at least as many neurons as directions, got {m} < {d}"
        budget = problem.stretch * (1.7 * d**2 / math.log(d) + 6 * d * math.log(d))
        if problem.times[-1] < budget:
            return f"it is about times after {budget:.4g}, the run ends at {problem.times[-1]:.4g}"
        return too_few_samples(problem) or beyond_condition(problem)

    def read(self, problem: Problem) -> dict[str, Any]:
        return {"loss": problem.loss, "coefficients": problem.coefficients}

    def evaluate(self, loss: float | int, coefficients, share: float | int = 0.05) -> Verdict:
        return _below_floor(loss, coefficients, share, "finite network")
