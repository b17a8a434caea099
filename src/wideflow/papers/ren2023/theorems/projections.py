"""When no projection acts: Lemma 4.1 with explicit constants."""

import math
from typing import Any, ClassVar

import jax.numpy as jnp

from ...._core.arrays import real_array
from ...._core.precision import double
from ....theorems.base import Citation, Verdict
from ..depth_separator import DepthSeparator
from ..laws.base import c_gamma
from ..laws.thresholds import as_thresholds
from ..observables.depth import direction_sup
from ..separator.samples import sample_field
from .judge import judge, not_applicable
from .problem import AbstractSeparatorTheorem, Problem


class Lemma41(AbstractSeparatorTheorem):
    r"""Projections are inactive at every input, by explicit sufficient bounds. With
    $w_{2,j} \le 0$, $0 < b_{2,j} \le 1$: $\sup |g_{r_2}| \le 1$;
    $\sup |g_{v_2}| \le \max(\max_j b_j^2/(4 \min_j|w_j|),\, \alpha)$; and for one second-layer
    neuron (any number, with the largest $b$ and the mean weight) $\sup \lVert g_{v_1}\rVert \le
    \max(b^2\lVert v_1\rVert/(2\alpha),\, 2|\bar w_2| \lVert v_1\rVert)$.

    The paper's Lemma 4.1 asks $\alpha = \Theta(1/\sqrt d)$ and Lemma 4.2 gives
    $\alpha = \Theta(\sqrt d/R_{v_1})$; consistent is
    $\alpha = \Theta(\sqrt d/R_{v_1}^2) = \Theta(d^{-3/2})$, which
    $b^2\sqrt d/(2 C_\Gamma \lVert v_1\rVert) \le R_{v_1}$ with $\lVert v_1\rVert = 1/\sqrt d$ also
    says. Given `inputs`, the counters are checked on them as well. The bounds take $F = \alpha r$;
    `spread` (such as $e_\infty$) widens them to $(1 \pm \text{spread})\alpha$.

    Args:
        model: a `DepthSeparator`.
        clip: $R_{v_1}, R_{v_2}, R_{r_2}$.
    """

    citation: ClassVar = Citation("ren2023", "Lemma 4.1 and Lemma C.3")

    def read(self, problem: Problem) -> dict[str, Any]:
        spread = float(direction_sup(problem.end))
        return {"model": problem.end, "clip": problem.clip, "spread": spread}

    @double
    def evaluate(self, model: DepthSeparator, clip, inputs=None, *, spread: float = 0.0) -> Verdict:
        clip = as_thresholds(clip)
        w, b = model.second_weight, model.second_bias
        if not (bool(jnp.all(w < 0)) and bool(jnp.all((b > 0) & (b <= 1)))):
            return not_applicable("it requires negative weights and biases in (0, 1]")
        if not 0 <= spread < 1:
            return not_applicable(
                f"with a spread of {spread:.3g} the first layer may vanish on a ray"
            )
        alpha, largest = float(model.alpha), float(b.max())
        norm = float(jnp.max(jnp.linalg.norm(model.first, axis=1)))
        # on a ray with F = c alpha r the reach is 1 / c of that on the mean ray, the slope c times
        # as large
        bounds = {
            "bias": max(1.0, largest),
            "weight": max(largest**2 / (4 * float(jnp.min(-w))), alpha * (1 + spread)),
            "first": max(
                largest**2 * norm / (2 * alpha * (1 - spread)), 2 * float(-w.mean()) * norm
            ),
        }
        slack = {name: getattr(clip, name) / bound - 1 for name, bound in bounds.items()}
        numbers = {f"bound_{k}": v for k, v in bounds.items()}
        numbers |= {
            "first_sufficient": largest**2
            * math.sqrt(model.first.shape[1])
            / (2 * c_gamma(model.first.shape[1]) * norm)
        }
        margin = min(slack.values())
        if margin < 0:
            tight = min(slack, key=lambda name: slack[name])
            return not_applicable(
                f"the bound on `{tight}` exceeds its threshold: projections may act", numbers
            )
        if inputs is None:
            return judge(margin, "no projection can act at any input", numbers)
        x = real_array("inputs", inputs, "(sample, feature)")
        field = sample_field(
            model.first, w, b, x, jnp.maximum(1 - jnp.linalg.norm(x, axis=1), 0), clip
        )
        pairs = float(field.pairs.sum())
        return judge(
            margin if pairs == 0 else -pairs,
            f"{pairs:.0f} projected pairs on {x.shape[0]} inputs",
            numbers | {"pairs": pairs},
        )
