"""Stage 1: the low moments settle, coordinates rescale, and a few neurons win the lottery."""

import math
from typing import Any, ClassVar

import numpy as np

from ....observables.stages import first_time
from ....theorems.base import AbstractTheorem, Citation, Verdict
from ..limits.stage_rates import B0, B2
from ..observables.lottery import basis_like, direction_persistence, lottery_scores, ranking_quality
from ._common import condition, judged, not_applicable
from .problem import AbstractLearnerTheorem, Problem, not_yet, too_small


class MomentDecay(AbstractTheorem):
    r"""Lemma A.2 with Propositions A.8, A.9: after $T_1 = O(d\log d)$,
    $\max(|\Delta|, \delta_\pm) \le c/d^2$ until $T_2$; before, $|\Delta| \le \max\delta_\pm$ or
    $\le c/d^2$.

    $\Delta = b_0(\mathbb E\|w\|^2 - \sum a)$,
    $\delta_\pm = b_2\max_i[\pm(\mathbb Ew_i^2 - a_i)]^+$; the paper's
    $c_t\,\mathrm{poly}(\kappa_1)$ is the number `constant` here (5 fits $\kappa \le 2$). Corrected:
    (A.19), (A.20) drop the factor $b_2$; $\delta$ decays at the rate $2b_2\mathbb Ew_i^2$.

    Args:
        times, second, zeroth: records of $q_i = \mathbb Ew_i^2 - a_i$, shape (time, direction), and
            of $z$.
        until: $T_2$, where the statement ends.
        span: allowed $T_1$ in units of $d\ln d$.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Lemma A.2, Propositions A.8 and A.9")

    def __call__(
        self,
        times,
        second,
        zeroth,
        until: float | int = math.inf,
        constant: float | int = 5.0,
        span: float | int = 2.0,
    ) -> Verdict:
        t, q, z = (np.asarray(x, dtype=float) for x in (times, second, zeroth))
        if q.ndim != 2:
            raise ValueError(f"`second` must have shape (time, direction), got {q.shape}.")
        d = q.shape[1]
        level = constant / d**2
        delta, shift = B2 * np.abs(q).max(axis=1), B0 * np.abs(z)
        inside = t <= until
        settled = first_time(t, (np.maximum(delta, shift) <= level) & inside)
        if math.isnan(settled):
            return judged(
                -1.0,
                "the moments never settle",
                {"level": level, "last_delta": delta[-1], "last_Delta": shift[-1]},
            )
        after, before = inside & (t >= settled), t < settled
        worst = float(np.maximum(delta, shift)[after].max())
        early = np.maximum(delta, level)[before] - shift[before]
        margins = (
            1 - worst / level,
            1 - settled / (span * d * math.log(d)),
            early.min() * d**2 if early.size else 1.0,
        )
        numbers = {
            "T1": settled,
            "worst_after": worst * d**2,
            "early_margin": margins[2],
            "constant": constant,
        }
        return judged(
            min(margins), f"settled at {settled:.4g}, then within {worst * d**2:.2f}/d^2", numbers
        )

    @staticmethod
    def decay_rate(times, second, start: float | int, stop: float | int) -> float:
        r"""The measured exponential rate of $\max_i|q_i|$ between two times; predicted
        $2b_2\mathbb Ew_i^2 = 2.55/d$ at $a = 1/d$.
        """
        t, q = np.asarray(times, dtype=float), np.abs(np.asarray(second, dtype=float)).max(axis=1)
        keep = (t >= start) & (t <= stop)
        return float(-np.polyfit(t[keep], np.log(q[keep]), 1)[0])


class SecondMomentRange(AbstractTheorem):
    r"""Claim A.1: for $t \le T_2$, $\mathbb Ew_i^2 \in [1/(\kappa_1d), 2\kappa/d]$; $\kappa_1$ =
    `slack` $\cdot\kappa$ here (the paper's is $e^{\mathrm{poly}\kappa}$).

    Args:
        second_moments: $\mathbb Ew_i^2$, at one time or at many.
        coefficients: $a_i$, which set $\kappa$.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Claim A.1")

    def __call__(self, second_moments, coefficients, slack: float | int = 3.0) -> Verdict:
        values, d, kappa = (
            np.asarray(second_moments, dtype=float),
            len(coefficients),
            condition(coefficients),
        )
        low, high = 1 / (slack * kappa * d), 2 * kappa / d
        margin = min(values.min() / low - 1, 1 - values.max() / high)
        numbers = {"least": values.min() * d, "most": values.max() * d, "kappa": kappa}
        return judged(
            margin, f"d E w_i^2 stays in [{values.min() * d:.3f}, {values.max() * d:.3f}]", numbers
        )


class CoordinateScaling(AbstractTheorem):
    r"""Claim A.2 (corrected): $v_i^{(T_1)} = \sqrt{a_id}\,v_i^{(0)}$ up to
    $\mathrm{polylog}/d^{3/2}$.

    The printed $(a_id)v_i^{(0)}$ contradicts (A.27), from which it is drawn. Checked on the median
    over particles and over coordinates of equal $a_i$; "printed_error" is the same for the printed
    statement.

    Args:
        initial, final: $v$ at time 0 and at $T_1$, shape (particle, d).
        coefficients: $a_i$.
        tolerance: relative.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Claim A.2, eq. (A.27)")

    def __call__(self, initial, final, coefficients, tolerance: float | int = 0.1) -> Verdict:
        ratio = np.asarray(final, dtype=float) / np.asarray(initial, dtype=float)
        a = np.asarray(coefficients, dtype=float)
        errors, printed, numbers = [], [], {}
        for value in np.unique(a):
            median = float(np.median(ratio[:, a == value]))
            mass = value * a.size / a.sum()
            errors.append(abs(median / math.sqrt(mass) - 1))
            printed.append(abs(median / mass - 1))
            numbers[f"median_at_{mass:.3g}"] = median
        numbers |= {"error": max(errors), "printed_error": max(printed)}
        return judged(
            tolerance - max(errors), f"medians match sqrt(a_i d) to {max(errors):.1%}", numbers
        )


class Lottery(AbstractLearnerTheorem):
    r"""Lemma A.3: at $T_2$ the neurons of $S_{good}$ are large and basis-like on their own
    direction, the others are not.

    Corrected: the last item must read $\mu(S_{bad}) \le \mu(S_{good})d^{-\Omega}$, and the winner's
    direction is the largest $|v_j^{(0)}|$. At finite $d$ the sharp sets blur; what is checked is
    that the initial $\max_i\bar v_i^2$ ranks the basis-like neurons (AUC at least `quality`) and
    that they keep their initial direction (`persistence`). A run must have $d \ge 16$, $m \ge d^2$
    and end after $T_2$ (loss at half the floor); later joiners are less predictable.

    Args:
        initial, final: weights at time 0 and at the end, shape (width, feature).
        directions: orthonormal rows; the basis if None.
        threshold: from which share on a neuron is basis-like.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Lemma A.3")

    def unmet(self, problem: Problem) -> str:
        return too_small(problem) or not_yet(problem, 0.5, 0.0, "stage 1")

    def read(self, problem: Problem) -> dict[str, Any]:
        return {"initial": problem.initial, "final": problem.final}

    def evaluate(
        self,
        initial,
        final,
        directions=None,
        quality: float | int = 0.85,
        persistence: float | int = 0.93,
        threshold: float | int = 0.9,
    ) -> Verdict:
        winners, _ = basis_like(final, directions, threshold)
        if winners.all() or not winners.any():
            return not_applicable("all or none of the neurons are basis-like", basis=winners.sum())
        auc = ranking_quality(lottery_scores(initial, directions), winners)
        raw = ranking_quality(lottery_scores(initial, directions, normalised=False), winners)
        share = direction_persistence(initial, final, directions, threshold)
        numbers = {"auc": auc, "auc_raw": raw, "persistence": share, "basis": winners.sum()}
        return judged(
            min(auc - quality, share - persistence),
            f"AUC {auc:.3f}, direction kept {share:.1%}",
            numbers,
        )
