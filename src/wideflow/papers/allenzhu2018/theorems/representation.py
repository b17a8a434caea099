"""What random weights can represent: Lemmas 5.1, 5.2, 5.6 and G.1 judged on given weights."""

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ...._core.precision import double
from ....theorems.base import AbstractTheorem, Citation, Verdict
from ..limits.complexity import complexity
from ..limits.constructions.hermite_functions import HermiteFunction
from ..limits.constructions.single_neuron import SplitNeuron
from ..limits.constructions.three_layer import ThreeLayerWeights, three_layer_representation
from ..limits.constructions.two_layer import two_layer_representation
from ..models.biased_three_layer import BiasedThreeLayer
from ..models.biased_two_layer import BiasedTwoLayer
from ..observables.pseudo import pseudo_outputs, signs
from .hypotheses import inputs_fault
from .judging import judge, unmet


class Lemma51(AbstractTheorem):
    r"""Indicator to function: there is $h$ with
    $|\mathbb E[\mathbf 1[g+b_0\ge0]h(\alpha_1,b_0)] - \phi(x_1)| \le 2\varepsilon$ on $[-1,1]$ (20)
    and $|h| \le C(\phi, \sqrt{\log(1/\varepsilon)})$.

    Judged for the $h$ that is given: VIOLATED says that this one is no witness.
    Corrected: windows and Hermite indices as in `limits.constructions.hermite_functions`; (164) has
    $2\varepsilon$; the bound on $|h|$ needs $2|c_0|$ for the constant term and is judged only where
    the constant $C_c$ is given.
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma 5.1")

    def __call__(
        self, function: HermiteFunction, error: float | int, *, constant: float | int | None = None
    ) -> Verdict:
        r"""`error` is $\varepsilon$; `constant` is $C_c$ of the complexity, None to judge the
        approximation alone.

        Args:
            function: $h$, from `limits.constructions.hermite_function`.
        """
        if not 0 < error < 1:
            return unmet(f"the error must lie in (0, 1), got {error:.3g}", {"error": error})
        worst, sup = function.error(), function.sup()
        numbers = {
            "worst": worst,
            "sup": sup,
            "degree": float(function.degree),
            "std": function.std(),
        }
        ratios = {"approximation": worst / (2 * error)}
        if constant is not None:
            bound = complexity(function.phi, math.sqrt(math.log(1 / error)), constant) + abs(
                float(function.taylor[0])
            )
            numbers["sup_bound"] = bound
            ratios["sup"] = sup / bound
        return judge(
            ratios, f"error {worst:.3g} against {2 * error:.3g}, sup |h| = {sup:.3g}", numbers
        )


class Lemma52(AbstractTheorem):
    r"""Information out of randomness: $n_1(x) = \rho\,\phi_\varepsilon(x) + B(x) + R(x)$ with
    $\rho \sim \mathcal N(0, \tau/(C^2m_2))$ independent of $B(x)$ and
    $|R| = \tilde O(1/\sqrt{m_1m_2})$.

    Judged over independent draws: rms of $R\sqrt{m_1m_2}$ at most `constant`, variance of $\rho$
    and its correlation with $B$ within three standard errors. Corrected: needs $w^\star_d = 0$;
    otherwise $S \ne S'$ and $R\sqrt{m_1m_2}$ grows with $m_1$, and the verdict is NOT_APPLICABLE.
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma 5.2")

    def __call__(
        self,
        splits: Sequence[SplitNeuron],
        x,
        *,
        second_width: int,
        tau: float | int,
        constant: float | int = 0.5,
    ) -> Verdict:
        """`splits` from `limits.constructions.split_neuron` on independent draws; `x` one input
        (feature,).

        Args:
            second_width: $m_2$.
            tau: the mass with which the splits were made.
            constant: the largest residual allowed.
        """
        x = np.asarray(x, float)[None]
        m1 = splits[0].first.shape[0]
        fault = inputs_fault(x) or self._fault(splits, math.sqrt(tau / second_width))
        if fault:
            return unmet(fault, {})
        residual = np.array([s.residual(x)[0] for s in splits]) * math.sqrt(m1 * second_width)
        carrier = np.array([s.carrier * s.scale for s in splits]) * math.sqrt(second_width / tau)
        background = np.array([s.background(x)[0] for s in splits])
        draws = len(splits)
        rms = float(np.sqrt(np.mean(residual**2)))
        variance = float(np.mean(carrier**2))
        correlation = float(np.corrcoef(carrier, background)[0, 1]) if draws > 2 else 0.0
        mismatch = float(np.mean([s.mismatch for s in splits]))
        numbers = {
            "residual": rms,
            "variance": variance,
            "correlation": correlation,
            "mismatch": mismatch,
            "draws": float(draws),
        }
        if abs(float(splits[0].direction[-1])) > 1e-12:
            return unmet(
                f"the direction has a last coordinate: residual {rms:.3g} / sqrt(m1 m2), "
                f"{mismatch:.3g} neurons change sides",
                numbers,
            )
        ratios = {
            "residual": rms / constant,
            "variance": abs(variance - 1) / (3 * math.sqrt(2 / draws)),
            "correlation": abs(correlation) / (3 / math.sqrt(draws)),
        }
        return judge(
            ratios,
            f"residual {rms:.3g} / sqrt(m1 m2), variance of rho {variance:.3g} of its value",
            numbers,
        )

    @staticmethod
    def _fault(splits: Sequence[SplitNeuron], size: float) -> str:
        r"""Where the splits were made otherwise: $\rho C = \alpha\sqrt{m_1}\sqrt{\tau/m_2}$."""
        for split in splits:
            carried = split.last_projection * math.sqrt(len(split.first))
            if not abs(split.carrier * split.scale - carried * size) <= 1e-9 * abs(carried * size):
                return "the splits were made with another `tau` or `second_width`"
            if not np.array_equal(split.direction, splits[0].direction):
                return "the splits are of different directions; judge one direction at a time"
        return ""


class Lemma56(AbstractTheorem):
    r"""Existence, three layers: for $m_1, m_2 \ge M$ there are $W^\star, V^\star$ with
    $\lVert W^\star\rVert_{2,\infty} \le C_0^2/(\varepsilon^{11}m_1)$,
    $\lVert V^\star\rVert_{2,\infty} \le \varepsilon^8\sqrt{m_1}/m_2$ (40) and
    $\mathbb E\sum_r|f^\star_r - g^{(b,b)}_r(x; W^\star, V^\star)| \le \varepsilon$ (42), signs at
    initialisation.

    Judged: the mean error on given inputs against `error`, for the weights that are given:
    VIOLATED says that these are no witness. The norms (40) are reported; with the free scale $c$ of
    the practical route they are no claim.
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma 5.6")

    @double
    def __call__(
        self, model: BiasedThreeLayer, weights: ThreeLayerWeights, inputs, truth, error: float | int
    ) -> Verdict:
        r"""`truth` are the concept's values on `inputs`.

        Args:
            model: the network at initialisation.
            weights: $W^\star$ and $V^\star$.
            error: the largest mean error allowed.
        """
        values = three_layer_representation(
            np.asarray(model.first),
            np.asarray(model.first_bias),
            np.asarray(model.second),
            np.asarray(model.second_bias),
            np.asarray(model.output),
            weights,
            inputs,
        )
        gap = np.abs(values - np.asarray(truth, float))
        mean = float(np.mean(gap if gap.ndim == 1 else gap.sum(axis=1)))
        m1, m2 = model.widths
        numbers = {
            "mean_error": mean,
            "first_norm_m1": float(np.max(np.linalg.norm(weights.first, axis=1))) * m1,
            "second_norm": float(np.max(np.linalg.norm(weights.second, axis=1)))
            * m2
            / math.sqrt(m1),
        }
        return judge(
            {"error": mean / error},
            f"mean error {mean:.3g} against {error:.3g} at widths {m1}, {m2}",
            numbers,
        )


class LemmaG1(AbstractTheorem):
    r"""Existence, two layers: for $m \ge M$ there is $\tilde W$ with
    $\lVert\tilde W\rVert_{2,\infty} \le C_0/m$ and
    $\mathbb E|g_r(x; \tilde W) - f^\star_r(x)| \le \varepsilon$ (404).

    Judged: the mean error of $\sum_ja_j\langle\tilde w_j,x\rangle D_j(x)$ (the bias part, of size
    $0.7\varepsilon_a$, left out) and, where given, the norm against $C_0/m$, for the weights that
    are given: VIOLATED says that these are no witness.
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma G.1")

    @double
    def __call__(
        self,
        model: BiasedTwoLayer,
        weights,
        inputs,
        truth,
        error: float | int,
        *,
        norm: float | int | None = None,
    ) -> Verdict:
        r"""`norm` is $C_0 = \sqrt k\,pC_\phi\max|a|/\varepsilon_a^2$ or None.

        Args:
            model: the network at initialisation.
            weights: $\tilde W$, shape (m, d).
            inputs: shape (sample, d).
            truth: the concept's values on them.
            error: $\varepsilon$.
        """
        weights = np.asarray(weights, float)
        values = two_layer_representation(
            np.asarray(model.hidden),
            np.asarray(model.bias),
            np.asarray(model.output),
            weights,
            inputs,
        )
        mean = float(np.mean(np.abs(values - np.asarray(truth, float))))
        largest = float(np.max(np.linalg.norm(weights, axis=1)))
        ratios = {"error": mean / error}
        if norm is not None:
            ratios["norm"] = largest * model.width / norm
        return judge(
            ratios,
            f"mean error {mean:.3g} against {error:.3g} at width {model.width}",
            {"mean_error": mean, "largest_row_m": largest * model.width},
        )


class CorollaryG2(AbstractTheorem):
    r"""Lemma G.1 beside the start: for $\varepsilon_a = \varepsilon/\tilde\Theta(1)$ also
    $\mathbb E\sum_r|f^\star_r(x) - g_r(x; W^{(0)}+\tilde W)| \le \varepsilon$ (406), since what the
    start adds, $\sum_ia_i(\langle w^{(0)}_i,x\rangle + b_i)\mathbf 1[\cdot]$, is of size
    $\varepsilon_a$.

    Judged for the weights that are given: VIOLATED says that these are no witness. Corrected: (419)
    is a difference of two values that both have the biases, and must not contain them.
    """

    citation: ClassVar = Citation("allenzhu2018", "Corollary G.2 (406)")

    @double
    def __call__(
        self, model: BiasedTwoLayer, weights, inputs, truth, error: float | int
    ) -> Verdict:
        r"""The signs are those of `model`.

        Args:
            model: the network at initialisation.
            weights: $\tilde W$, shape (m, d).
            inputs: shape (sample, d).
            truth: the concept's values on them.
            error: $\varepsilon$.
        """
        moved = np.asarray(model.weights) + np.asarray(weights, float)
        values = np.asarray(pseudo_outputs(model, inputs, signs(model, inputs), first=moved))
        gap = np.abs(values - np.asarray(truth, float))
        mean = float(np.mean(gap if gap.ndim == 1 else gap.sum(axis=1)))
        start = float(np.sqrt(np.mean(np.asarray(model.outputs(inputs)) ** 2)))
        return judge(
            {"error": mean / error},
            f"mean error {mean:.3g} against {error:.3g}; the start alone has rms {start:.3g}",
            {"mean_error": mean, "start": start},
        )
