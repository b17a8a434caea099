"""The three main theorems: what is learned, with how many neurons and samples."""

import math
from typing import ClassVar

import numpy as np

from ....theorems.base import AbstractTheorem, Citation, Verdict
from ..limits.complexity import ThreeLayerPrediction, TwoLayerPrediction
from .judging import judge, unmet, vacuous


class Theorem41(AbstractTheorem):
    r"""Two layers. For every $\varepsilon \in (0, 1/(pk))$ with
    $\varepsilon_a = \varepsilon/\tilde\Theta(1)$ there is
    $M = \mathrm{poly}(C(\phi, \sqrt{\log(p/\varepsilon)}), 1/\varepsilon)$ such that for every
    $m \ge M$, $\eta = 1/(m\,\mathrm{poly}(M, \log m))$ and $N \ge \tilde\Omega(M)$, SGD has for
    some $T = \mathrm{poly}(M, \log m)$, with high probability,
    $\mathbb E L(F(x; W^{(0)}+W_T), y) \le \varepsilon_0 + \varepsilon$.

    Checked with the explicit width, samples and iterations of appendix G
    (`limits.complexity.two_layer_prediction`). Corrected: Lemma G.4 behind it is for the best (or
    average) iterate, so give the best iterate's loss. Sizes that are too small make it
    NOT_APPLICABLE; the comparison is reported all the same.
    """

    citation: ClassVar = Citation("allenzhu2018", "Theorem 4.1")

    def __call__(
        self,
        loss: float | int | None,
        prediction: TwoLayerPrediction,
        *,
        width: int,
        samples: int,
        iterations: int,
        error: float | int,
        floor: float | int = 0.0,
        terms: int = 1,
        outputs: int = 1,
    ) -> Verdict:
        r"""`loss` is the test loss reached (None before training), `floor` is $\varepsilon_0$,
        `error` is $\varepsilon$.

        Args:
            prediction: the sizes that are asked for.
            width, samples, iterations: $m$, $N$, $T$ of the run.
            terms, outputs: $p$, $k$.
        """
        loss = math.nan if loss is None else loss
        numbers = {
            "loss": loss,
            "bound": floor + error,
            "width": float(width),
            "width_needed": prediction.width,
            "samples": float(samples),
            "samples_needed": prediction.samples,
            "iterations": float(iterations),
            "iterations_needed": prediction.iterations,
        }
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
                f"too small for the theorem: {shortfalls}; the loss is {loss:.3g} against "
                f"{floor + error:.3g}",
                numbers,
            )
        return judge(
            {"loss": loss / (floor + error)},
            f"loss {loss:.3g} against {floor + error:.3g}",
            numbers,
        )


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


def _three_layers(
    loss, prediction, needed, *, width, samples, error, floor, gamma, terms
) -> Verdict:
    loss = math.nan if loss is None else loss  # before training there is none
    bound = (1 + gamma) * floor + error
    numbers = {
        "loss": loss,
        "bound": bound,
        "log10_width": math.log10(width),
        "log10_width_needed": prediction.log10_width,
        "log10_samples": math.log10(samples),
        "log10_samples_needed": needed,
    }
    if not 0 < error < 1 / terms:
        return unmet(
            f"the error must lie in (0, 1/(p1 p2 k)) = (0, {1 / terms:.3g}), got {error:.3g}",
            numbers,
        )
    if not (math.isfinite(prediction.log10_width) and math.isfinite(needed)):
        return vacuous("the complexity of the class exceeds every number", numbers)
    if numbers["log10_width"] < prediction.log10_width or numbers["log10_samples"] < needed:
        text = (
            f"needs width 10^{prediction.log10_width:.3g} and 10^{needed:.3g} samples; the loss is "
            f"{loss:.3g} against {bound:.3g}"
        )
        return unmet(text, numbers)
    return judge({"loss": loss / bound}, f"loss {loss:.3g} against {bound:.3g}", numbers)


class Theorem42(AbstractTheorem):
    r"""Three layers, Algorithm 2 with $L_R = L_1$. For every $\gamma > 0$,
    $\varepsilon \in (0, 1/(p_1p_2k))$ there is $M = \mathrm{poly}(C_3(\varepsilon), 1/\varepsilon)$
    ($C_3$ as in (41); the printed brackets are unbalanced) such that with $m_1 = m_2 \ge M$ and
    $N \ge \tilde\Omega(Mm_2^2)$ samples, in time $\mathrm{poly}(m_1, m_2)$,
    $\mathbb E L(\lambda_TF(x; W_{out}, V_{out}), y) \le (1+\gamma)\varepsilon_0 + \varepsilon$ with
    probability at least 99/100.
    """

    citation: ClassVar = Citation("allenzhu2018", "Theorem 4.2")

    def __call__(
        self,
        loss: float | int | None,
        prediction: ThreeLayerPrediction,
        *,
        width: int,
        samples: int,
        error: float | int,
        floor: float | int = 0.0,
        gamma: float | int = 0.25,
        terms: int = 1,
    ) -> Verdict:
        r"""`terms` is $p_1p_2k$; `prediction` comes from
        `limits.complexity.three_layer_prediction`.

        Args:
            loss: the test loss reached, None before training.
            width, samples: $m_2$, $N$ of the run.
            error: $\varepsilon$.
            floor: $\varepsilon_0$.
            gamma: $\gamma$.
        """
        return _three_layers(
            loss,
            prediction,
            prediction.log10_samples_first,
            width=width,
            samples=samples,
            error=error,
            floor=floor,
            gamma=gamma,
            terms=terms,
        )


class Theorem43(AbstractTheorem):
    r"""Three layers, Algorithm 2 with $L_R = L_2$ (random signs): as Theorem 4.2, but
    $N \ge \tilde\Omega(M)$ samples are enough, whatever $m_2$.
    """

    citation: ClassVar = Citation("allenzhu2018", "Theorem 4.3")

    def __call__(
        self,
        loss: float | int | None,
        prediction: ThreeLayerPrediction,
        *,
        width: int,
        samples: int,
        error: float | int,
        floor: float | int = 0.0,
        gamma: float | int = 0.25,
        terms: int = 1,
    ) -> Verdict:
        r"""`terms` is $p_1p_2k$; `prediction` comes from
        `limits.complexity.three_layer_prediction`.

        Args:
            loss: the test loss reached, None before training.
            width, samples: $m_2$, $N$ of the run.
            error: $\varepsilon$.
            floor: $\varepsilon_0$.
            gamma: $\gamma$.
        """
        return _three_layers(
            loss,
            prediction,
            prediction.log10_samples_second,
            width=width,
            samples=samples,
            error=error,
            floor=floor,
            gamma=gamma,
            terms=terms,
        )
