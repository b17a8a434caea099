"""Stage 1: Lemma 4.2 and the lemmas behind it."""

import math
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from ...._core.precision import double
from ....theorems.base import AbstractTheorem, Citation, Verdict
from ..laws.base import AbstractRadialLaw
from ..laws.thresholds import as_thresholds
from ..limits.field import ReducedState, reduced_field
from ..limits.stages import reduced_stages
from .judge import judge, not_applicable
from .problem import AbstractSeparatorTheorem, Problem


class LemmaC5(AbstractSeparatorTheorem):
    r"""C.5(b): while $t \le T_{1.1}$ and every second-layer neuron is active on the unit ball,
    $\max_j w_{2,j} - \min_j w_{2,j}$ does not grow.

    Of a run it asks for steps that resolve Stage 1 (`ClippedFlow(resolve=True)`) and for the record
    `SecondWeights()`.
    """

    citation: ClassVar = Citation("ren2023", "Lemma C.5(b)")

    def read(self, problem: Problem) -> dict[str, Any] | str:
        table = problem.run.table
        if not problem.run.dynamics.resolve:
            return "its steps must resolve Stage 1: `ClippedFlow(..., resolve=True)`"
        if "second_weight" not in table:
            return "it requires the record `SecondWeights()`"
        times, weights = table.time.values, table.second_weight.values
        negative = np.flatnonzero((weights <= 0).all(axis=1))
        if not negative.size:
            return "the run ends before T_1.1: some weight is still positive"
        return {"times": times, "weights": weights, "end": float(times[negative[0]])}

    @double
    def evaluate(self, times, weights, end: float, *, tolerance: float = 1e-12) -> Verdict:
        """`weights` (record, second) along a run, `end` its $T_{1.1}$.

        Args:
            times: of the records.
            tolerance: the growth that rounding may cause.
        """
        t, w = np.asarray(times, float), np.asarray(weights, float)
        if w.ndim != 2:
            raise ValueError(f"`weights` must have shape (record, second), got {w.shape}.")
        early = w[t <= end]
        if len(early) < 2:
            return not_applicable(f"fewer than two records before T_1.1 = {end:.3g}")
        spread = np.ptp(early, axis=1)
        growth = float(np.max(np.diff(spread)))
        return judge(
            tolerance - growth,
            f"largest growth {growth:.2e} over {len(early)} records",
            {"growth": growth},
        )


class LemmaC7(AbstractTheorem):
    r"""The mean bias stays in $[\frac12 E f_*, 2 E f_*]$ in Stage 1 once it is inside: with
    $w \approx 0^-$ the field points inward at both ends.

    Args:
        law: of the radius.
        alpha: $\alpha$.
        clip: the bounds of the projection, or None.
        w: the second layer's weight, just below zero.
    """

    citation: ClassVar = Citation("ren2023", "Lemma C.7")

    @double
    def __call__(self, law: AbstractRadialLaw, alpha: float, *, clip, w: float = -1e-9) -> Verdict:
        clip = as_thresholds(clip)
        mean = law.target_moments()[0]
        speeds = []
        for b in (0.5 * mean, 2 * mean):
            state = ReducedState(jnp.asarray(alpha), jnp.array([w]), jnp.array([b]))
            speeds.append(float(reduced_field(law, state, clip).b[0]))
        margin = min(speeds[0], -speeds[1])
        return judge(
            margin,
            f"b' = {speeds[0]:+.3g} and {speeds[1]:+.3g} at the ends",
            {"low_end": speeds[0], "high_end": speeds[1]},
        )


class LemmaC10(AbstractTheorem):
    r"""$T_1 = \Theta(d^{-3/2}/\log d)$: $T_1 d^{3/2} \ln d$ is constant over dimensions, here to
    `spread` relative.

    Corrected: Section 4.1 prints $O(d^{1.5})$ for Stage 1.3.

    Args:
        dimensions: the $d$.
        times: $T_1$ at each.
    """

    citation: ClassVar = Citation("ren2023", "Lemma C.10")

    @double
    def __call__(self, dimensions, times, *, spread: float = 0.02) -> Verdict:
        d, t = np.asarray(dimensions, float), np.asarray(times, float)
        if len(d) < 2 or not np.all(np.isfinite(t)):
            return not_applicable("it requires finite times in at least two dimensions")
        scaled = t * d**1.5 * np.log(d)
        ratio = float(np.ptp(scaled) / scaled.mean())
        return judge(
            spread - ratio,
            f"T_1 d^1.5 ln d = {scaled.mean():.3f} to {100 * ratio:.2g} %",
            {"constant": scaled.mean(), "spread": ratio},
        )


class LemmaC17(AbstractTheorem):
    r"""$\frac{d}{dt}\lVert v_1\rVert^2 = +\Theta(\log d/\sqrt d)\, |\bar w_2| \lVert v_1\rVert^2$
    in Stage 1: the first layer grows.

    Corrected: printed with $\bar w_2 < 0$ in place of its modulus, which would make it shrink.

    Args:
        law: of the radius.
        alpha, w, b: the state: $\alpha$, and weights and biases of the second layer.
        clip: the bounds of the projection, or None.
    """

    citation: ClassVar = Citation("ren2023", "Lemma C.17")

    @double
    def __call__(self, law: AbstractRadialLaw, alpha: float, w, b, *, clip=None) -> Verdict:
        w, b = (jnp.atleast_1d(jnp.asarray(x, float)) for x in (w, b))
        if not bool(jnp.all(w < 0)):
            return not_applicable("it requires negative second-layer weights")
        growth = float(
            reduced_field(law, ReducedState(jnp.asarray(alpha), w, b), as_thresholds(clip)).alpha
        )
        unit = math.log(law.d) / math.sqrt(law.d) * float(-w.mean()) * alpha
        return judge(
            growth / unit,
            f"growth is {growth / unit:+.3g} log d / sqrt d times |w| |v|^2",
            {"constant": growth / unit},
        )


class Lemma42(AbstractTheorem):
    r"""Stage 1 ends at a time $T_1$ with all $w_{2,j} < 0$, $-\bar w_2 = C_1/R_{v_2}$,
    $\bar b_2 = \Theta(1)$ and $\alpha = \Theta(d^{-3/2})$.

    Corrected: 4.2(c) prints $\alpha = \Theta(\sqrt d/R_{v_1})$; it is $\Theta(\sqrt d/R_{v_1}^2)$.
    Evaluated for infinite width; $\Theta(1)$ is read as $\bar b_2 \in [\frac12 E f_*, 2 E f_*]$ and
    $\alpha d^{3/2}/C_\Gamma \in [\frac12, 2]$ for a start at $\lVert v_1\rVert = 1/\sqrt d$. The
    order of the events needs a tiny $\sigma_2$; where it fails, the lemma is not applicable.

    Args:
        law: of the radius.
        alpha, w, b: the start: $\alpha$, and weights and biases of the second layer.
        clip: $R_{v_1}, R_{v_2}, R_{r_2}$.
        constant: $C_1$.
        horizon: how long the flow is followed at most.
    """

    citation: ClassVar = Citation("ren2023", "Lemma 4.2")

    @double
    def __call__(
        self,
        law: AbstractRadialLaw,
        alpha: float,
        w,
        b,
        *,
        clip,
        constant: float = 1.0,
        horizon: float = 1e3,
    ) -> Verdict:
        stages = reduced_stages(
            law,
            alpha,
            w,
            b,
            clip=clip,
            epsilon=1e-12,
            constant=constant,
            horizon=horizon,
            stage_two=False,
        )
        numbers = {
            "t11": stages.t11,
            "t12": stages.t12,
            "t1": stages.t1,
            "level_time": stages.level_time,
        }
        if stages.state_at_t1 is None:
            return not_applicable(f"T_1 was not reached before {horizon:g}", numbers)
        if not stages.order_ok:
            return not_applicable(
                "the level of T_1 was passed before T_1.2: the second layer starts too spread",
                numbers,
            )
        state, mean = stages.state_at_t1, law.target_moments()[0]
        bias = float(state.b.mean())
        size = float(state.alpha) * law.d**1.5 / (law.gain * math.sqrt(law.d))
        numbers |= {
            "bias": bias,
            "alpha": state.alpha,
            "scaled_alpha": size,
            "largest_weight": state.w.max(),
        }
        margin = min(
            bias / mean - 0.5,
            2 - bias / mean,
            size - 0.5,
            2 - size,
            -float(state.w.max()) * as_thresholds(clip).weight,
        )
        return judge(
            margin, f"T_1 = {stages.t1:.4g}, bias {bias:.3f}, alpha d^1.5 / C = {size:.3f}", numbers
        )
