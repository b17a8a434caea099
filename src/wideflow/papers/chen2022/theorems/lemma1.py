"""Lemma 1, its intermediate steps, and the deterministic certificate that follows from it."""

import math
from typing import ClassVar

import numpy as np

from ...._core.errors import check_choice
from ...._core.precision import double
from ....models.shallow import Shallow
from ....theorems.base import Citation, Outcome, Verdict
from ....theorems.of_runs import AbstractRunTheorem
from ....theorems.recorded_run import unjudged
from ..observables.activity import path_integral
from .constants import VARIANTS, beta, kappa
from .problem import Problem, gather, trajectory


def problem_kappa(problem: Problem, variant: str) -> float:
    return kappa(
        problem.smallest, problem.largest, problem.most, problem.floor, problem.interval, variant
    )


class Lemma1(AbstractRunTheorem):
    r"""Gradient flow, $\lambda_{\min}(G) > 0$, $|c_i| = \hat c$, $|\sigma'| \ge K_s$ on the bounded
    interval $I$. For all $t$ (19)
    $$(\eta^t)^{3/2} \ge (\tilde\eta^0)^{3/2} - \frac{\kappa}{\hat c} (\sqrt{L^0} - \sqrt{L^t}),
      \qquad \kappa = \frac{9 \lambda_{\max}(G)}{\sqrt2\, \lambda_{\min}(G)\, K_s\, (I_r - I_l)}.$$
    Corrected: the paper prints $\kappa = 9 \lambda_{\max} (I_r - I_l) / (2 \lambda_{\min} K_s)$,
    with the length in the numerator (false for short intervals) and $9/2$ for $9/\sqrt2$.
    `variant="sharp"` has $\sqrt{G_{\max} / \lambda_{\min}(G)}$ for
    $\lambda_{\max} / \lambda_{\min}$, by the same proof.

    Vacuous where the right side is not positive at any recorded time after the first.
    """

    citation: ClassVar[Citation] = Citation("chen2022", "Lemma 1")

    @double
    def evaluate(
        self,
        start: Shallow,
        data,
        table,
        *,
        interval=None,
        variant: str = "corrected",
        tolerance: float | int | None = None,
    ) -> Verdict:
        check_choice("variant", variant, VARIANTS)
        problem = gather(start, data, interval)
        unmet = problem.unmet()
        if unmet:
            return unmet
        path = trajectory(table, start, data, problem, ("eta",))
        if path.fault:
            return unjudged(path.fault, problem.numbers())
        constant = problem_kappa(problem, variant)
        left = path.recorded["eta"] ** 1.5
        right = problem.eta_tilde**1.5 - constant / problem.magnitude * (
            math.sqrt(path.losses[0]) - np.sqrt(path.losses)
        )
        slack = left - right
        share = float(np.mean(right[1:] > 0)) if len(right) > 1 else 0.0
        numbers = {
            **problem.numbers(),
            "kappa": constant,
            "smallest_slack": float(slack.min()),
            "share_not_vacuous": share,
        }
        allowed = tolerance if tolerance is not None else (1e-9 if path.flow else 1e-3)
        if not slack.min() >= -allowed:
            return Verdict(
                Outcome.VIOLATED,
                float(slack.min()),
                f"the inequality fails by {-slack.min():.3g}",
                numbers,
            )
        if share == 0:
            return Verdict(
                Outcome.VACUOUS,
                float(slack.min()),
                "the right side is not positive after the start",
                numbers,
            )
        return Verdict(
            Outcome.HOLDS,
            float(slack.min()),
            f"it says something on {share:.0%} of the records",
            numbers,
        )


class Lemma1Steps(AbstractRunTheorem):
    r"""The steps of Lemma 1's proof along a gradient flow, each as ratios of actual to bound (all
    at most 1):

    (40) $\eta^t \ge \tilde\eta^0 - \max_a \frac1m \#\{|h^t - h^0| \ge \xi\}$;
    (43) $\frac1m \sum_i |\dot h_i(x_a)| \le \lambda_{\max} \lambda_{\min}^{-1/2} |\dot L|^{1/2}$,
         and sharper $\sqrt{G_{aa}}\, |\dot L|^{1/2}$ (corrected: line 3 of the printed proof is
         false, the conclusion stands);
    (46) displaced fraction $\le \xi^{-1} \sqrt{G_{\max}} \int_0^t |\dot L|^{1/2}$; (50)
         $\dot L \le -2 \hat c^2 \lambda_{\min} K_s^2 \eta^t L$.
    """

    citation: ClassVar[Citation] = Citation("chen2022", "Appendix D, equations 40 to 50")

    @double
    def evaluate(self, start: Shallow, data, table, *, interval=None) -> Verdict:
        problem = gather(start, data, interval)
        unmet = problem.unmet()
        if unmet:
            return unmet
        names = ("eta", "displaced", "loss_slope", "preactivation_speed")
        path = trajectory(table, start, data, problem, names)
        if path.fault:
            return unjudged(path.fault, problem.numbers())
        eta, displaced, slope, speed = (path.recorded[name] for name in names)
        root = np.sqrt(np.abs(slope))
        xi = (problem.interval[1] - problem.interval[0]) / 3
        tiny = 1e-300
        integral = path_integral(path.times, slope)
        if not path.flow:  # a step of descent moves at the speed at its beginning all along
            fastest = np.diff(path.times) * np.maximum(root[1:], root[:-1])
            integral = np.concatenate([[0.0], np.cumsum(fastest)])
        ratios = {
            "40": float(np.max((problem.eta_tilde - displaced) / np.maximum(eta, 1e-12))),
            "43": float(
                np.max(
                    speed
                    / np.maximum(
                        root[:, None] * problem.largest / math.sqrt(problem.smallest), tiny
                    )
                )
            ),
            "43_sharp": float(
                np.max(speed / np.maximum(root[:, None] * np.sqrt(problem.diagonal), tiny))
            ),
            "46": float(
                np.max(
                    displaced[1:] / np.maximum(math.sqrt(problem.most) / xi * integral[1:], tiny),
                    initial=0.0,
                )
            ),
            "50": float(
                np.max(
                    2
                    * problem.magnitude**2
                    * problem.smallest
                    * problem.floor**2
                    * eta
                    * path.losses
                    / np.maximum(-slope, tiny)
                )
            ),
        }
        worst = max(ratios.values())
        allowed = 1 + max(1e-6, 100 * path.rounding)
        outcome = Outcome.HOLDS if worst <= allowed else Outcome.VIOLATED
        listed = ", ".join(
            f"({name.replace('_', ' ')}) {value:.3g}" for name, value in ratios.items()
        )
        return Verdict(
            outcome,
            1 - worst,
            f"actual over bound: {listed}",
            {**problem.numbers(), **{f"ratio_{k}": v for k, v in ratios.items()}},
        )


class Certificate(AbstractRunTheorem):
    r"""No probability and no width: from the start alone. With
    $\beta = \kappa \sqrt{L^0} / (\hat c\, (\tilde\eta^0)^{3/2})$, if $\beta < 1$ then for all $t$
    gradient flow has
    $$\eta^t \ge \tilde\eta^0 (1 - \beta)^{2/3}, \qquad L^t \le L^0 \exp(-2 \hat c^2
      \lambda_{\min}(G) K_s^2\, \tilde\eta^0 (1 - \beta)^{2/3}\, t).$$
    At $\beta = 1/2$ these are the paper's factors $2^{-2/3}$ and $2^{1/3}$. Given the table of a
    run, both are checked along it.
    """

    citation: ClassVar[Citation] = Citation("chen2022", "Lemma 1 and the proof of Theorem 1")

    @double
    def evaluate(
        self, start: Shallow, data, table=None, *, interval=None, variant: str = "sharp"
    ) -> Verdict:
        check_choice("variant", variant, VARIANTS)
        problem = gather(start, data, interval)
        unmet = problem.unmet()
        if unmet:
            return unmet
        constant = problem_kappa(problem, variant)
        ratio = beta(constant, problem.initial_loss, problem.magnitude, problem.eta_tilde)
        numbers = {
            **problem.numbers(),
            "kappa": constant,
            "beta": ratio,
            "needed_chat": problem.magnitude * ratio,
        }
        if not ratio < 1:
            message = f"beta = {ratio:.3g} is not below 1; " + (
                f"about {ratio:.3g} times larger output weights would be needed"
                if math.isfinite(ratio)
                else "at some input no neuron starts in the middle third of the interval "
                f"{problem.interval}, which no output weights can change: take "
                "another `interval` or a "
                "wider network"
            )
            return Verdict(Outcome.NOT_APPLICABLE, 1 - ratio, message, numbers)
        eta = problem.eta_tilde * (1 - ratio) ** (2 / 3)
        rate = 2 * problem.magnitude**2 * problem.smallest * problem.floor**2 * eta
        numbers.update(certified_eta=eta, certified_rate=rate)
        message = (
            f"beta = {ratio:.3g}: at least {eta:.3g} of the neurons stay active and the loss falls "
            f"at rate {rate:.3g}"
        )
        if table is None:
            return Verdict(Outcome.HOLDS, 1 - ratio, message, numbers)
        path = trajectory(table, start, data, problem, ("eta",))
        if path.fault:
            return unjudged(path.fault, numbers)
        slack = {
            "active": float(np.min(path.recorded["eta"] - eta)),
            "loss": path.below(rate),
        }
        margin = min(slack.values())
        outcome = Outcome.HOLDS if margin >= -1e-9 else Outcome.VIOLATED
        return Verdict(
            outcome, margin, message, {**numbers, **{f"slack_{k}": v for k, v in slack.items()}}
        )
