"""Stage 2: warm start, rate equations, and the late law."""

import math
from typing import Any, ClassVar

import numpy as np

from ....observables.stages import late_exponent
from ....theorems.base import Citation, Verdict
from ..limits import hermite
from ..limits.stage_rates import B0, C1, C2, potential
from ..observables.lottery import basis_like, posterior_masses
from ._common import degree_two_floor, judged, not_applicable
from .problem import (
    AbstractLearnerTheorem,
    Problem,
    beyond_condition,
    not_yet,
    too_few_samples,
    too_small,
)


class WarmStart(AbstractLearnerTheorem):
    r"""Lemma A.5: at $T_3 = T_2 + O(d\log d)$, $\beta_i$, $|a_i - \gamma_i|$ and $|\Delta|$ are
    $o(1/d)$.

    $o(1/d)$ is not testable; checked is its consequence $L \le$ `share` $\cdot$ floor. The numbers
    give the three quantities in units of $1/d$, by a posteriori sets. A run must go on for
    $3d\ln d$ after $T_2$ (on samples four times that).

    Args:
        weights: at $T_3$, shape (width, feature); absolute-value neurons, in the target's basis.
        coefficients: $a_i$.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Lemma A.5")

    def unmet(self, problem: Problem) -> str:
        if problem.run.start.activation.name != "abs":
            return "it is checked for absolute-value neurons"
        late = not_yet(problem, 0.5, 3 * problem.features * math.log(problem.features), "stage 1")
        return too_few_samples(problem) or beyond_condition(problem) or late

    def read(self, problem: Problem) -> dict[str, Any]:
        return {"weights": problem.final, "coefficients": problem.coefficients}

    def evaluate(self, weights, coefficients, share: float | int = 0.1) -> Verdict:
        a = np.asarray(coefficients, dtype=float)
        gamma, beta = posterior_masses(weights)
        loss = float(hermite.population_loss(weights, a))
        ratio = loss / degree_two_floor(a)
        numbers = {
            "loss_over_floor": ratio,
            "d_beta": a.size * beta.max(),
            "d_gap": a.size * np.abs(a - gamma).max(),
            "d_Delta": a.size * 2 * B0 * abs(np.sum(gamma + beta) - a.sum()),
        }
        return judged(1 - ratio / share, f"the loss is {ratio:.3f} of the floor", numbers)


class RateEquations(AbstractLearnerTheorem):
    r"""Claim A.10: a basis neuron on $e_i$ grows as $\|v\|' = \frac12\|v\|[-\Delta + C_1(a_i -
    \beta_i - \gamma_i) + C_2(a_i - \gamma_i)] \pm O(\|v\|/d^2)$.

    $C_1 = 8/\pi$, $C_2 = 8(1 - 3/\pi)$ (the paper's "fixed constants"),
    $\Delta = 2b_0(\sum(\gamma+\beta) - \sum a)$. Checked on the basis-like neurons (share at least
    `threshold` on one axis) in the exact field; `constant` is the allowed error times $d^2$. A run
    must have $d \ge 16$, $m \ge d^2$ and end after $T_2$.

    Args:
        weights: $v$ of all neurons, shape (width, feature), in the target's basis.
        coefficients: $a_i$.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Claim A.10, eq. (3.6), (A.45)")

    def unmet(self, problem: Problem) -> str:
        return too_small(problem) or not_yet(problem, 0.5, 0.0, "stage 1")

    def read(self, problem: Problem) -> dict[str, Any]:
        return {"weights": problem.final, "coefficients": problem.coefficients}

    def evaluate(
        self, weights, coefficients, constant: float | int = 1.0, threshold: float | int = 0.99
    ) -> Verdict:
        w, a = np.asarray(weights, dtype=float), np.asarray(coefficients, dtype=float)
        basis, where = basis_like(w, threshold=threshold)
        if not basis.any():
            return not_applicable("no neuron is basis-like")
        gamma, beta = posterior_masses(w, threshold=threshold)
        total = 2 * B0 * (np.sum(gamma + beta) - a.sum())
        predicted = 0.5 * (-total + C1 * (a - beta - gamma) + C2 * (a - gamma))[where[basis]]
        slope = np.asarray(hermite.population_gradient(w, a))
        measured = -np.sum(slope * w, axis=1)[basis] / np.sum(w**2, axis=1)[basis]
        error = a.size**2 * np.abs(measured - predicted).max()
        numbers = {"error_times_d2": error, "basis": basis.sum(), "C1": C1, "C2": C2}
        return judged(constant - error, f"growth rates match to {error:.3f}/d^2", numbers)


class LateDecay(AbstractLearnerTheorem):
    r"""Lemma A.6: in stage 2.2,
    $\Phi^{(t+1)} \le \Phi^{(t)}(1 - \eta\frac{\min(C_1,1)}8\Phi^{(t)})$, hence
    $L = O(d\Phi^2) = O(d/\tau^2)$.

    Checked: the slope of $\log L$ on $\log\tau$ over late times lies in `interval` (measured $-2.1$
    to $-2.5$; at $m = d$ the decay is exponential and the lemma says nothing). A run must be on the
    exact population with $m \ge 4d$ and go on to five times $T_4$; judged are its last three fifths.

    Args:
        times: $\tau$ of the records.
        losses: $L$ at each.
        start, stop: the window of late times.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Lemma A.6")

    def unmet(self, problem: Problem) -> str:
        d, m = problem.features, problem.width
        if problem.run.start.activation.name != "abs" or problem.samples:
            return "it is checked for absolute-value neurons on the exact population"
        if m < 4 * d:
            return f"it requires m >= 4 d neurons, got {m} < {4 * d}: at m = d decay is exponential"
        fourth = problem.reached(0.01)
        after = 0.0 if math.isnan(fourth) else 4 * fourth
        return beyond_condition(problem) or not_yet(problem, 0.01, after, "stage 2")

    def read(self, problem: Problem) -> dict[str, Any]:
        end = float(problem.times[-1])
        return {"times": problem.times, "losses": problem.losses, "start": 0.4 * end}

    def evaluate(
        self,
        times,
        losses,
        start: float | int,
        stop: float | int = math.inf,
        interval: tuple[float, float] = (-3.2, -1.8),
    ) -> Verdict:
        slope = late_exponent(times, losses, start, stop)
        margin = min(slope - interval[0], interval[1] - slope)
        return judged(margin, f"L goes like tau^{slope:.2f}", {"slope": slope})

    @staticmethod
    def potential(gamma, beta, coefficients) -> float:
        r"""$\Phi$ at given masses (see `limits.stage_rates.potential`)."""
        return float(potential(gamma, beta, coefficients)["Phi"])
