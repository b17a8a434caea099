"""Decay of the loss from the smallest eigenvalue: Lemma D.1, and what sticking kinks do to it."""

import math
from typing import ClassVar

import numpy as np

from ...._core.precision import double
from ....theorems.base import AbstractTheorem, Citation, Outcome, Verdict
from ....theorems.of_runs import AbstractRunTheorem
from ....theorems.recorded_run import unjudged
from ..observables.kinks import Sliding
from .problem import ROUNDING, conclude, gather, trajectory


class LemmaD1(AbstractRunTheorem):
    r"""If $\lambda_{\min}(\widehat\Theta_s)\ge\zeta/2$ on $[0,t]$ then $L_t\le e^{-\zeta t}L_0$ and
    $|w_{tj}-w_{0j}|\le\sqrt{n\lambda_j/d}\,|y-u_0|\,2/\zeta$.

    Checked with $\zeta = 2\min_s\lambda_{\min}(\widehat\Theta_s)$ measured on the run, so it needs
    no width condition. Also checked are the sharper $L_t\le L_0\exp(-2\int\lambda_{\min})$ (the
    smaller end of every recorded interval) and the movement with $\lVert X\rVert_2^2$ for $n$.
    Corrected: for ReLU the proof uses $\dot u = -\widehat\Theta(u-y)$ with a 0/1 mask, which fails
    once pre-activations stick at zero (`SlidingKinks`); a violation on a long ReLU run is that gap
    and no error of the run.
    """

    citation: ClassVar = Citation("caron2023", "Lemma D.1")

    @double
    def evaluate(self, start, data, table, *, mean=None) -> Verdict:
        """Judges a run of `start` on `data`, recorded with `RECORD`; `mean` as in `gather`."""
        problem, path = gather(start, data, mean=mean), trajectory(table, start, data)
        if path.fault:
            return unjudged(path.fault, problem.numbers())
        if start.output.ndim > 1 and len(start.output) > 1:
            text = "the recorded gap is that of one output, and the outputs move each other"
            return unjudged(text, problem.numbers())
        if not path.losses[0] > ROUNDING:
            return unjudged("the loss is rounding from the start on", problem.numbers())
        gap = float(path.gaps.min())
        numbers = {**problem.numbers(), "gap": gap, "zeta": 2 * gap}
        if not gap > 0:
            return Verdict(
                Outcome.NOT_APPLICABLE,
                math.nan,
                f"the smallest eigenvalue reached {gap:.3g}",
                numbers,
            )
        times, losses, gaps = path.times, path.losses, path.gaps
        integral = np.concatenate(
            [[0.0], np.cumsum(np.minimum(gaps[1:], gaps[:-1]) * np.diff(times))]
        )
        # |dw_j/dt| <= c s_j |a_j| sup|sigma'| |F|_2 |r| with F the embedded inputs times the factor
        # of the pre-activations (X/sqrt d for the plain network, where s_j^2 = lambda_j and c = 1),
        # and |r| falls at rate gap: the integral is |r_0|/gap
        features = np.asarray(start.embed(data.inputs), dtype=np.float64)
        nodes = np.abs(np.asarray(start.scales * start.output, dtype=np.float64))
        reach = start.rate_factor * nodes * math.sqrt(2 * losses[0]) / gap
        norm = max(float(np.max(np.linalg.norm(features, axis=1))), start.hidden_scale)  # |x| <= 1
        ratios = {
            "loss": path.decay_ratio(losses[0] * np.exp(-2 * gap * times)),
            "integral": path.decay_ratio(losses[0] * np.exp(-2 * integral)),
        }
        if math.isfinite(problem.lipschitz):  # else no bound on the slope is known
            sup = max(problem.lipschitz, 1.0)
            ratios["movement"] = path.movement_ratio(
                math.sqrt(problem.samples) * norm * sup * reach
            )
            ratios["sharp_movement"] = path.movement_ratio(
                np.linalg.norm(features, 2) * sup * reach
            )
        note = " (kinked: see `SlidingKinks` for why this may fail late)" if problem.kinked else ""
        return conclude(
            ratios, numbers, f"decay at rate {2 * gap:.3g} up to time {times[-1]:.3g}{note}"
        )


class SlidingKinks(AbstractTheorem):
    r"""The corrected decay for ReLU: $\dot L = -r^\top\widehat\Theta(\bar S)\,r$ with
    $\bar S\in[0,1]$ the Filippov selection of the mask, hence
    $-\mathrm d\log L/\mathrm dt\ge2\lambda_{\min}(\widehat\Theta(\bar S))$.

    Lemma D.1 claims the same with the hard 0/1 mask. Late in a run on noisy targets thousands of
    pre-activations stick at zero; fractional masks lower the diagonal of the Gram matrix, and the
    observed rate falls below $2\lambda_{\min}$ of the hard mask while it agrees with that of the
    averaged one.
    """

    citation: ClassVar = Citation("caron2023", "Lemma D.1, corrected for sliding kinks")

    def __call__(self, window: Sliding, *, tolerance: float = 0.02) -> Verdict:
        """Judges a window measured by `wf.observables.sliding`; the averaged mask is itself an
        estimate, good to `tolerance`.

        Args:
            window: the measured rates and masks.
        """
        numbers = {
            "observed": window.observed,
            "averaged": window.averaged,
            "hard": window.hard,
            "stuck": float(window.stuck),
            "pairs": float(window.pairs),
        }
        if not math.isfinite(window.observed):
            return unjudged(f"the observed rate is {window.observed}: the window diverged", numbers)
        if not window.averaged > 0:
            return Verdict(
                Outcome.NOT_APPLICABLE,
                math.nan,
                f"the averaged Gram matrix has eigenvalue {window.averaged / 2:.3g}",
                numbers,
            )
        margin = window.observed / window.averaged - 1.0
        hard = "also above" if window.observed >= window.hard else "below"
        text = (
            f"{window.stuck} of {window.pairs} pairs stick; observed rate {window.observed:.4g} "
            f"against {window.averaged:.4g} with the "
            f"averaged mask, {hard} the {window.hard:.4g} of the hard mask"
        )
        return Verdict(
            Outcome.HOLDS if margin >= -tolerance else Outcome.VIOLATED, margin, text, numbers
        )
