"""Global convergence with feature learning: Theorem 4.1 (ReLU) and Theorem 4.2 (smooth
activations).
"""

import math
from typing import ClassVar

import numpy as np

from ...._core.precision import double
from ....theorems.base import Citation, Outcome, Verdict
from ....theorems.of_runs import AbstractRunTheorem
from ....theorems.recorded_run import unjudged
from .problem import (
    REACHABLE,
    Problem,
    Trajectory,
    conclude,
    four_ratios,
    hypotheses,
    smooth_output_bound,
    trajectory,
)


class Theorem41(AbstractRunTheorem):
    r"""Convergence of gradient flow for ReLU.

    Assume $|x_i|\le1$, no two inputs parallel, $|y_i|\le C$, $w_{0j}\sim\mathcal N(0,I_d)$, signs
    $a_j$, $\gamma>0$, and with $D_0 = \sqrt{2C^2+2/d}$
    $$m \ge
      \max\Big(\frac{8n\log(4n/\delta)}{\kappa_nd},\ \frac{2^{25}n^4D_0^2}{\kappa_n^4d^3\gamma^2\delta^5},\
      \frac{2^{35}n^6D_0^2}{\kappa_n^6d^5\gamma^2\delta^5}\Big).$$
    Then with probability at least $1-\delta$, for all $t\ge0$:
    (a) $\lambda_{\min}(\widehat\Theta_t)\ge\gamma\kappa_n/4$;
    (b) $L_t\le e^{-\gamma\kappa_nt/2}L_0$;
    (c) $|w_{tj}-w_{0j}|\le\frac{8nD_0}{\kappa_n\sqrt d\,\gamma\sqrt\delta}\sqrt{\lambda_j}$ for all
        $j$;
    (d)
        $\lVert\widehat\Theta_t-\widehat\Theta_0\rVert_2\le\frac{2^9n^2D_0}{\kappa_nd^{3/2}\gamma\delta^{5/2}}\sum_j\lambda_j^{3/2} +
        \frac{2^6n^{3/2}D_0^{1/2}}{\kappa_n^{1/2}d^{5/4}\gamma^{1/2}\delta^{5/4}}\big(\sum_j\lambda_j^{3/2}\big)^{1/2}$.

    The constants printed in the paper are used. Corrected: its own proof needs only $2^{24}$ and
    $2^{34}$ (`T2_proof`, `T3_proof`). As $\kappa_n\le1/(2d)$ and $D_0^2\ge2/d$, the last width is
    at least $2^{42}n^6/(\gamma^2\delta^5) > 4\cdot10^{12}$ for every dataset: the hypothesis can be
    met on no computer, and the verdict is VACUOUS. The conclusions are then still compared with the
    given trajectory, as numbers and not as a judgement. The proof also has a gap at sticking kinks,
    see `SlidingKinks`.
    """

    citation: ClassVar = Citation("caron2023", "Theorem 4.1")

    @staticmethod
    def thresholds(problem: Problem, delta: float) -> dict[str, float]:
        """The widths of the hypothesis, and the two that the proof really needs."""
        n, d, g, k = problem.samples, problem.features, problem.gamma, problem.kappa
        square = 2 * problem.bound**2 + 2 / d  # D_0^2
        second = n**4 * square / (k**4 * d**3 * g**2 * delta**5)
        third = n**6 * square / (k**6 * d**5 * g**2 * delta**5)
        return {
            "T1": 8 * n * math.log(4 * n / delta) / (k * d),
            "T2": 2.0**25 * second,
            "T3": 2.0**35 * third,
            "T2_proof": 2.0**24 * second,
            "T3_proof": 2.0**34 * third,
        }

    @staticmethod
    def bounds(problem: Problem, delta: float) -> dict[str, float]:
        r"""Rate of (b), factor of $\sqrt{\lambda_j}$ in (c), bound (d), and the trivial bound $n/d$
        on the drift.
        """
        n, d, g, k = problem.samples, problem.features, problem.gamma, problem.kappa
        root = math.sqrt(2 * problem.bound**2 + 2 / d)
        power = float(np.sum(problem.weights**1.5))
        return {
            "gap": g * k / 4,
            "rate": g * k / 2,
            "movement": 8 * n * root / (k * math.sqrt(d) * g * math.sqrt(delta)),
            "drift": 2.0**9 * n**2 * root * power / (k * d**1.5 * g * delta**2.5)
            + 2.0**6
            * n**1.5
            * math.sqrt(root)
            * math.sqrt(power)
            / (math.sqrt(k) * d**1.25 * math.sqrt(g) * delta**1.25),
            "trivial_drift": n / d,
        }

    @double
    def evaluate(
        self, start, data, table=None, *, failure_probability: float = 0.1, mean=None
    ) -> Verdict:
        """Judges the network `start` on `data`; `table` is a run of it recorded with `RECORD`,
        `mean` as in `gather`.
        """
        delta = failure_probability
        problem, stopped = hypotheses(start, data, mean, delta, kinked=True)
        if stopped is not None:
            return stopped
        path = None if table is None else trajectory(table, start, data)
        return judge(
            problem, self.thresholds(problem, delta), self.bounds(problem, delta), path, delta
        )


class Theorem42(AbstractRunTheorem):
    r"""Convergence of gradient flow for analytic, non-polynomial $\sigma$ with $|\sigma'|\le1$,
    $|\sigma''|\le M$.

    Assumptions as in Theorem 4.1, $C_1 = \sup_{c\le1}\mathbb E\sigma(cz/\sqrt d)^2$, $\gamma>0$ and
    $$m\ge\max\Big(\frac{8n\log(2n/\delta)}{\kappa_nd},\ \frac{2^{10}n^3M^2(C^2+C_1)}{\kappa_n^3d^3\gamma^2\delta},\
      \frac{2^{15}n^4M^2(C^2+C_1)}{\kappa_n^4d^4\gamma^2\delta}\Big).$$
    Then with probability at least $1-\delta$, for all $t$: (a), (b) as in Theorem 4.1;
    (c) $|w_{tj}-w_{0j}|\le\sqrt{\lambda_j}\,\frac
        n{\kappa_n\sqrt d}\sqrt{2^7(C^2+C_1)/(\gamma^2\delta)}$;
    (d)
        $\lVert\widehat\Theta_t-\widehat\Theta_0\rVert_2\le\frac{2^7n^3M^2(C^2+C_1)}{\kappa_n^2d^3\gamma^2\delta}\sum_j\lambda_j^2 +
        \frac{2^5n^2M(C^2+C_1)^{1/2}}{\kappa_nd^2\gamma\delta^{1/2}}\big(\sum_j\lambda_j^2\big)^{1/2}$.

    It is not vacuous for nearly linear activations: orthonormal inputs and $\tanh(bz)/b$ with
    $b = 0.1$ need $m = 1990$ at $n = 4$, $d = 100$, $|y|\le0.1$, $\delta = 1/2$, $\gamma = 1$.
    """

    citation: ClassVar = Citation("caron2023", "Theorem 4.2")

    @staticmethod
    def thresholds(problem: Problem, delta: float, c1: float) -> dict[str, float]:
        """The widths of the hypothesis; `c1` is the constant of equation 13."""
        n, d, g, k, curve = (
            problem.samples,
            problem.features,
            problem.gamma,
            problem.kappa,
            problem.curvature,
        )
        size = curve**2 * (problem.bound**2 + c1) / (g**2 * delta)
        return {
            "T1": 8 * n * math.log(2 * n / delta) / (k * d),
            "T2": 2.0**10 * n**3 * size / (k**3 * d**3),
            "T3": 2.0**15 * n**4 * size / (k**4 * d**4),
        }

    @staticmethod
    def bounds(problem: Problem, delta: float, c1: float) -> dict[str, float]:
        r"""Rate of (b), factor of $\sqrt{\lambda_j}$ in (c), bound (d), and the trivial bound $n/d$
        on the drift.
        """
        n, d, g, k, curve = (
            problem.samples,
            problem.features,
            problem.gamma,
            problem.kappa,
            problem.curvature,
        )
        size = problem.bound**2 + c1
        squares = float(np.sum(problem.weights**2))
        return {
            "gap": g * k / 4,
            "rate": g * k / 2,
            "movement": n / (k * math.sqrt(d)) * math.sqrt(2.0**7 * size / (g**2 * delta)),
            "drift": 2.0**7 * n**3 * curve**2 * size * squares / (k**2 * d**3 * g**2 * delta)
            + 2.0**5 * n**2 * curve * math.sqrt(size * squares) / (k * d**2 * g * math.sqrt(delta)),
            "trivial_drift": n / d,
        }

    @double
    def evaluate(
        self, start, data, table=None, *, failure_probability: float = 0.1, mean=None
    ) -> Verdict:
        """Judges the network `start` on `data`; `table` is a run of it recorded with `RECORD`,
        `mean` as in `gather`.
        """
        delta = failure_probability
        problem, stopped = hypotheses(start, data, mean, delta, kinked=False)
        if stopped is not None:
            return stopped
        c1 = smooth_output_bound(start)
        path = None if table is None else trajectory(table, start, data)
        verdict = judge(
            problem,
            self.thresholds(problem, delta, c1),
            self.bounds(problem, delta, c1),
            path,
            delta,
        )
        return Verdict(
            verdict.outcome,
            verdict.margin,
            verdict.message,
            {**verdict.numbers, "C1": c1, "M": problem.curvature},
        )


def judge(
    problem: Problem,
    thresholds: dict[str, float],
    bounds: dict[str, float],
    path: Trajectory | None,
    delta: float,
) -> Verdict:
    """The common end of both theorems: width hypothesis, then the four conclusions on the
    trajectory.
    """
    required = max(thresholds[name] for name in ("T1", "T2", "T3"))
    numbers = {**problem.numbers(), "delta": delta, **thresholds, "required": required}
    numbers.update({f"bound_{name}": value for name, value in bounds.items()})
    if path is not None and path.fault:
        return unjudged(path.fault, numbers)
    ratios = {}
    if path is not None:
        ratios = four_ratios(
            path,
            gap=bounds["gap"],
            rate=bounds["rate"],
            reach=bounds["movement"] * np.sqrt(problem.weights),
            drift=bounds["drift"],
        )
    numbers.update({f"ratio_{name}": value for name, value in ratios.items()})
    if not problem.width >= required:
        on_this_run = f"; on this run actual/bound {_listed(ratios)}" if ratios else ""
        if not required <= REACHABLE:
            text = (
                f"needs m >= {required:.3g}, more than any computer holds (m = "
                f"{problem.width}){on_this_run}"
            )
            return Verdict(Outcome.VACUOUS, math.nan, text, numbers)
        text = (
            f"needs m >= {math.ceil(required)}, got {problem.width}; a wider network meets the "
            f"hypothesis{on_this_run}"
        )
        return Verdict(Outcome.NOT_APPLICABLE, math.nan, text, numbers)
    if not ratios:
        text = (
            f"m = {problem.width} >= {math.ceil(required)}: converges at rate at least "
            f"{bounds['rate']:.3g} with probability {1 - delta:g}"
        )
        return Verdict(Outcome.HOLDS, problem.width / required - 1.0, text, numbers)
    return conclude(ratios, numbers, f"m = {problem.width} >= {math.ceil(required)}")


def _listed(ratios: dict[str, float]) -> str:
    return ", ".join(f"({name}) {value:.3g}" for name, value in ratios.items())
