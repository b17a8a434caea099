"""Empirical Rademacher complexity: Lemma 5.9 for three layers, Lemma G.5 for two."""

from typing import ClassVar

import numpy as np

from ...._core.precision import double
from ....theorems.base import AbstractTheorem, Citation, Verdict
from ..models.biased_three_layer import BiasedThreeLayer
from ..models.biased_two_layer import BiasedTwoLayer
from ..observables.rademacher import (
    bilinear_bound,
    bilinear_rademacher,
    two_layer_bound,
    two_layer_sup,
)
from .hypotheses import inputs_fault, signs_fault
from .judging import judge, unmet


class Lemma59(AbstractTheorem):
    r"""The empirical Rademacher complexity of
    $\{\mathbb E_\Sigma f(\cdot; W_0+W^\rho+\Sigma W', V_0+V^\rho+V'\Sigma)\}$ over
    $\lVert V'\rVert_F \le \tau_v$, $\lVert W'\rVert_{2,4} \le \tau_w$ is at most
    $\tilde O(\tau_w\tau_vm_1^{1/4}\sqrt{m_2}/\sqrt N + 1/\sqrt N)$ (50).

    Judged for the bilinear main part $aD_vV'D_wW'x$, whose sup is computed exactly, against
    $\tau_w\tau_vm_1^{1/4}\lVert a\rVert_2/\sqrt N$. Corrected: for the network itself the right
    side also needs the coupling error
    $\tilde O(\tau_w^{16/5}m_1^{4/5}m_2^{3/2} + \sqrt{m_2/m_1}\,\tau_v)$; it is visible at small
    widths.
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma 5.9")

    @double
    def __call__(
        self,
        model: BiasedThreeLayer,
        inputs,
        xi,
        first_radius: float | int,
        second_radius: float | int,
    ) -> Verdict:
        """`xi` (draw, sample) from `observables.rademacher_signs`; all of them, or enough that the
        mean is sharp.

        Args:
            model: where the signs are taken.
            inputs: unit rows, shape (sample, feature).
            first_radius, second_radius: of the two balls.
        """
        samples = np.asarray(inputs).shape[0]
        fault = inputs_fault(inputs) or signs_fault("xi", xi)
        if fault:
            return unmet(fault, {})
        exact, chain = bilinear_rademacher(model, inputs, xi, first_radius, second_radius)
        bound = bilinear_bound(model, samples, first_radius, second_radius)
        numbers = {"exact": exact, "chain": chain, "bound": bound}
        return judge(
            {"bound": exact / bound, "chain": exact / chain},
            f"complexity {exact:.3g} against {bound:.3g}",
            numbers,
        )


class LemmaG5(AbstractTheorem):
    r"""Two layers: $\frac1N\mathbb E_\xi\sup_{\lVert W'\rVert_{2,\infty}\le\tau_w}\sum_i\xi_if(x_i;
    W_0+W') \le \tilde O(m\tau_w/\sqrt N)$ (433).

    Judged with the constant of the contraction, $\lVert a\rVert_1\tau_w/\sqrt N$. The sup comes
    from ascent, hence from below: HOLDS means "not refuted".
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma G.5")

    @double
    def __call__(self, key, model: BiasedTwoLayer, inputs, xi, radius: float | int) -> Verdict:
        """`xi` (draw, sample); at least 4 draws, the mean of whose part at $W' = 0$ is taken off
        exactly.

        Args:
            model: at the centre of the ball.
            inputs: unit rows, shape (sample, feature).
            radius: of every row's ball.
        """
        xi, samples = np.asarray(xi, float), np.asarray(inputs).shape[0]
        fault = inputs_fault(inputs) or signs_fault("xi", xi)
        if fault:
            return unmet(fault, {})
        if len(xi) < 4:
            return unmet("needs at least 4 sign vectors", {"draws": float(len(xi))})
        base = np.asarray(model.outputs(inputs))
        gains = [two_layer_sup(key, model, inputs, one, radius) - float(one @ base) for one in xi]
        measured, bound = float(np.mean(gains)) / samples, two_layer_bound(model, samples, radius)
        return judge(
            {"bound": measured / bound},
            f"complexity at least {measured:.3g} against {bound:.3g}",
            {"measured": measured, "bound": bound},
        )
