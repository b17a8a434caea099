"""The three main theorems: what is learned, with how many neurons and samples."""

import math
from typing import Any, ClassVar

import numpy as np

from ...._core.precision import double
from ....theorems.base import AbstractTheorem, Citation, Verdict
from ....training.run import Run
from ..limits.complexity import ThreeLayerPrediction, TwoLayerPrediction
from .judging import judge, unmet, vacuous
from .learners import Learnt, three_layers_learnt, two_layers_learnt


class Theorem41(AbstractTheorem):
    r"""Two layers. For every $\varepsilon \in (0, 1/(pk))$ with
    $\varepsilon_a = \varepsilon/\tilde\Theta(1)$ there is
    $M = \mathrm{poly}(C(\phi, \sqrt{\log(p/\varepsilon)}), 1/\varepsilon)$ such that for every
    $m \ge M$, $\eta = 1/(m\,\mathrm{poly}(M, \log m))$ and $N \ge \tilde\Omega(M)$, SGD has for
    some $T = \mathrm{poly}(M, \log m)$, with high probability,
    $\mathbb E L(F(x; W^{(0)}+W_T), y) \le \varepsilon_0 + \varepsilon$.

    Checked with the explicit width, samples and iterations of appendix G
    (`limits.complexity.two_layer_prediction`). Corrected: Lemma G.4 behind it is for the best (or
    average) iterate: train with `BestIterate(SGD(rate, batch=1, replace=True), ...)`. Sizes that
    are too small make it NOT_APPLICABLE; the comparison is reported all the same.
    """

    citation: ClassVar = Citation("allenzhu2018", "Theorem 4.1")

    @double
    def __call__(
        self,
        loss: Run | float | int | None,
        prediction: TwoLayerPrediction,
        *,
        width: int | None = None,
        samples: int | None = None,
        iterations: int | None = None,
        error: float | int,
        floor: float | int = 0.0,
        terms: int = 1,
        outputs: int = 1,
    ) -> Verdict:
        r"""Judges a run, or sizes and the test loss that was reached with them.

        Args:
            loss: a `Run` with `test` data, which tells its sizes and whose hypotheses are checked;
                or the test loss reached by the best iterate of the theorem's learner, None before
                training.
            prediction: the sizes that are asked for.
            width, samples, iterations: $m$, $N$, $T$, where `loss` is no run.
            error: $\varepsilon$.
            floor: $\varepsilon_0$.
            terms, outputs: $p$, $k$.
        """
        learnt = _reached(loss, two_layers_learnt, width, samples, iterations, outputs)
        outputs = learnt.outputs
        numbers = {
            "loss": learnt.loss,
            "bound": floor + error,
            "width": float(learnt.width),
            "width_needed": prediction.width,
            "samples": float(learnt.samples),
            "samples_needed": prediction.samples,
            "iterations": float(learnt.iterations),
            "iterations_needed": prediction.iterations,
        }
        if learnt.fault:
            return unmet(learnt.fault, numbers)
        if not 0 < error < 1 / (terms * outputs):
            return unmet(
                f"the error must lie in (0, 1/(pk)) = (0, {1 / (terms * outputs):.3g}), got "
                f"{error:.3g}",
                numbers,
            )
        short = [
            name
            for name in ("width", "samples", "iterations")
            if numbers[name] < numbers[f"{name}_needed"]
        ]
        if short:
            shortfalls = ", ".join(
                f"{name} {numbers[name]:.3g} < {numbers[f'{name}_needed']:.3g}" for name in short
            )
            return unmet(
                f"too small for the theorem: {shortfalls}; the loss is {learnt.loss:.3g} against "
                f"{floor + error:.3g}",
                numbers,
            )
        if learnt.rate is not None:
            slow = learnt.rate * learnt.iterations < prediction.rate * prediction.iterations
            if learnt.rate > prediction.rate * (1 + 1e-9) or slow:
                return unmet(
                    f"the rate {learnt.rate:.3g} is not the theorem's: at most "
                    f"{prediction.rate:.3g}, and so many steps that their product is at least "
                    f"{prediction.rate * prediction.iterations:.3g}",
                    numbers,
                )
        return _conclude(learnt, floor + error, numbers)


class WidthIndependence(AbstractTheorem):
    r"""What Theorem 4.1 means at fixed $N$: the sample size does not depend on $m$, so the test
    loss stays level as $m$ grows.

    Judged by max/min of the mean test loss over widths (largest allowed: `spread`), and against the
    loss of a predictor without information.
    """

    citation: ClassVar = Citation("allenzhu2018", "Theorem 4.1, remark on N")

    def __call__(
        self,
        widths,
        losses,
        *,
        baseline: float | int,
        spread: float | int = 1.35,
        least_width: int = 100,
    ) -> Verdict:
        """`losses` at `widths`, both sequences; only widths from `least_width` on are judged.

        Args:
            baseline: the loss of a predictor without information.
        """
        widths, losses = np.asarray(widths, float), np.asarray(losses, float)
        wide = losses[widths >= least_width]
        numbers = {"widths": float(wide.size), "baseline": baseline}
        if wide.size < 2:
            return unmet(f"needs two widths of at least {least_width}", numbers)
        ratio = float(wide.max() / wide.min())
        numbers |= {"max_over_min": ratio, "largest_loss": float(wide.max())}
        return judge(
            {"spread": ratio / spread, "baseline": float(wide.max()) / baseline},
            f"max/min of the loss is {ratio:.3g}",
            numbers,
        )


class _AbstractThreeLayerTheorem(AbstractTheorem):
    """Theorems 4.2 and 4.3, which differ in the objective that is descended and in the samples that
    it needs.
    """

    variant: ClassVar[int]

    @double
    def __call__(
        self,
        loss: Run | float | int | None,
        prediction: ThreeLayerPrediction,
        *,
        width: int | None = None,
        samples: int | None = None,
        error: float | int,
        floor: float | int = 0.0,
        gamma: float | int = 0.25,
        terms: int = 1,
    ) -> Verdict:
        r"""Judges a run, or sizes and the test loss that was reached with them. The theorem leaves
        powers in its parameters open, so that a run with a larger loss says nothing against it.

        Args:
            loss: a `Run` with `test` data, finished by lines 14-16 before it is judged; or the test
                loss reached, None before training.
            prediction: from `limits.complexity.three_layer_prediction`.
            width, samples: $m_2$, $N$, where `loss` is no run.
            error: $\varepsilon$.
            floor: $\varepsilon_0$.
            gamma: $\gamma$.
            terms: $p_1p_2k$.
        """
        read = lambda run: three_layers_learnt(run, self.variant)
        learnt, bound = _reached(loss, read, width, samples), (1 + gamma) * floor + error
        first = self.variant == 1
        needed = prediction.log10_samples_first if first else prediction.log10_samples_second
        numbers = {
            "loss": learnt.loss,
            "bound": bound,
            "log10_width": math.log10(learnt.width),
            "log10_width_needed": prediction.log10_width,
            "log10_samples": math.log10(learnt.samples),
            "log10_samples_needed": needed,
        }
        if learnt.fault:
            return unmet(learnt.fault, numbers)
        if not 0 < error < 1 / terms:
            return unmet(
                f"the error must lie in (0, 1/(p1 p2 k)) = (0, {1 / terms:.3g}), got {error:.3g}",
                numbers,
            )
        if not (math.isfinite(prediction.log10_width) and math.isfinite(needed)):
            return vacuous("the complexity of the class exceeds every number", numbers)
        if numbers["log10_width"] < prediction.log10_width or numbers["log10_samples"] < needed:
            text = (
                f"needs width 10^{prediction.log10_width:.3g} and 10^{needed:.3g} samples; the "
                f"loss is {learnt.loss:.3g} against {bound:.3g}"
            )
            return unmet(text, numbers)
        return _conclude(learnt, bound, numbers)


class Theorem42(_AbstractThreeLayerTheorem):
    r"""Three layers, Algorithm 2 with $L_R = L_1$. For every $\gamma > 0$,
    $\varepsilon \in (0, 1/(p_1p_2k))$ there is $M = \mathrm{poly}(C_3(\varepsilon), 1/\varepsilon)$
    ($C_3$ as in (41); the printed brackets are unbalanced) such that with $m_1 = m_2 \ge M$ and
    $N \ge \tilde\Omega(Mm_2^2)$ samples, in time $\mathrm{poly}(m_1, m_2)$,
    $\mathbb E L(\lambda_TF(x; W_{out}, V_{out}), y) \le (1+\gamma)\varepsilon_0 + \varepsilon$ with
    probability at least 99/100.
    """

    citation: ClassVar = Citation("allenzhu2018", "Theorem 4.2")
    variant: ClassVar[int] = 1


class Theorem43(_AbstractThreeLayerTheorem):
    r"""Three layers, Algorithm 2 with $L_R = L_2$ (random signs): as Theorem 4.2, but
    $N \ge \tilde\Omega(M)$ samples are enough, whatever $m_2$.
    """

    citation: ClassVar = Citation("allenzhu2018", "Theorem 4.3")
    variant: ClassVar[int] = 2


def _reached(loss, read, width, samples, iterations: Any = 1, outputs: int = 1) -> Learnt:
    """What a run reached, or what is said of one by its numbers."""
    if isinstance(loss, Run):
        return read(loss)
    for name, value in (("width", width), ("samples", samples), ("iterations", iterations)):
        if value is None:
            raise ValueError(f"`{name}` must be given where `loss` is no `Run`, got None.")
    return Learnt(math.nan if loss is None else loss, width, samples, iterations, outputs)


def _conclude(learnt: Learnt, bound: float, numbers: dict[str, float]) -> Verdict:
    text = f"loss {learnt.loss:.3g} against {bound:.3g}"
    if learnt.open and not learnt.loss <= bound:
        return unmet(f"{text}, which says nothing against the theorem: {learnt.open}", numbers)
    return judge({"loss": learnt.loss / bound}, text, numbers)
