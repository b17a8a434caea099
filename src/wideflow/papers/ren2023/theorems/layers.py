"""Small lemmas on the two layers: C.11 (D.6), C.13 and C.14."""

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from ...._core.arrays import real_array
from ...._core.polar import polar
from ...._core.precision import double
from ....theorems.base import Citation, Verdict
from ..depth_separator import DepthSeparator
from ..laws.base import AbstractRadialLaw, c_gamma, sphere
from ..observables.depth import radial_spread, second_spread, tangent_spread
from .judge import judge, not_applicable
from .problem import AbstractSeparatorTheorem, Problem
from .symmetry import sup_radius_density

DIRECTIONS = 2000  # random ones, beside those of the neurons, at which a run is judged


class LemmaC11(AbstractSeparatorTheorem):
    r"""If $v_2 F + r_2 = 0$ then $v_2' F + r_2' = -r_2 (v_2' - v_2)/v_2 + (r_2' - r_2)$, at most
    $(|r_2|/|v_2| + 1)\delta_2$ in size.

    Corrected: the print has $v_2 F + r_2'$ on the left and a plus sign on the right.

    Args:
        weights: all $v_2$, shape (second,).
        biases: all $r_2$, likewise.
    """

    citation: ClassVar = Citation("ren2023", "Lemma C.11 and Lemma D.6")

    def read(self, problem: Problem) -> dict[str, Any]:
        return {"weights": problem.end.second_weight, "biases": problem.end.second_bias}

    @double
    def evaluate(self, weights, biases) -> Verdict:
        w, b = (
            real_array("weights", weights).astype(float),
            real_array("biases", biases).astype(float),
        )
        if not bool(jnp.all(w != 0)):
            return not_applicable("a weight is zero, so its neuron has no kink")
        kink = (-b / w)[:, None]
        left = kink * w + b
        right = -b[:, None] * (w - w[:, None]) / w[:, None] + (b - b[:, None])
        bound = (jnp.abs(b / w)[:, None] + 1) * second_spread(w, b)
        error = float(jnp.max(jnp.abs(left - right)) / (1 + jnp.max(jnp.abs(left))))
        slack = float(jnp.min(bound - jnp.abs(left)))
        return judge(
            min(slack, 1e-10 - error),
            f"identity to {error:.1e}, smallest slack {slack:.2e}",
            {"error": error, "slack": slack},
        )


class LemmaC13(AbstractSeparatorTheorem):
    r"""$E|1_j - 1_l| \le K \alpha |w_j/b_j - w_l/b_l|$ with $K = \sup_r r^2 P(r)$; exactly it is
    $|M_0(\rho_j) - M_0(\rho_l)|$, $\rho_j = b_j/(|w_j|\alpha)$.

    The paper's form is $O(\alpha\delta_2)$; the constant is explicit here because $P(r) \le K/r^2$.

    Args:
        law: of the radius, with density $P$.
        alpha: $\alpha$.
        weights: $w_j < 0$, shape (second,).
        biases: $b_j > 0$, likewise.
    """

    citation: ClassVar = Citation("ren2023", "Lemma C.13")

    def read(self, problem: Problem) -> dict[str, Any]:
        w, b = problem.end.second_weight, problem.end.second_bias
        return {"law": problem.law, "alpha": float(problem.end.alpha), "weights": w, "biases": b}

    @double
    def evaluate(self, law: AbstractRadialLaw, alpha: float, weights, biases) -> Verdict:
        w, b = (
            real_array("weights", weights).astype(float),
            real_array("biases", biases).astype(float),
        )
        if not (bool(jnp.all(w < 0)) and bool(jnp.all(b > 0))):
            return not_applicable("it requires negative weights and positive biases")
        survive = law.sf(b / (-w * alpha))
        exact = float(jnp.max(survive) - jnp.min(survive))
        ratio = w / b
        bound = sup_radius_density(law) * alpha * float(ratio.max() - ratio.min())
        constant = exact / (alpha * float(second_spread(w, b))) if w.shape[0] > 1 and exact else 0.0
        return judge(
            bound - exact + 1e-14,
            f"exact {exact:.3e}, bound {bound:.3e}",
            {"exact": exact, "bound": bound, "constant": constant},
        )


class LemmaC14(AbstractSeparatorTheorem):
    r"""With $e_0 = |\bar F_0(\bar x) - 1|$ and $q = (\sqrt d/C_\Gamma)\delta_{1,T}$, at every
    direction $|\bar F(\bar x) - 1| \le e_0 + q + \delta_{1,R}(1 + e_0 + q)$, if the first layer
    started on one sphere.

    Corrected: print has $1 + O(\cdot)$ for $1 \pm O(\cdot)$.

    Args:
        model: a `DepthSeparator` after training.
        start: the same network at time 0.
        directions: the $\bar x$, unit rows.
    """

    citation: ClassVar = Citation("ren2023", "Lemma C.14")

    def read(self, problem: Problem) -> dict[str, Any]:
        random = sphere(jax.random.key(0), DIRECTIONS, problem.law.d, antithetic=True)
        directions = jnp.concatenate([polar(problem.end.first)[1], random])
        return {"model": problem.end, "start": problem.start, "directions": directions}

    @double
    def evaluate(self, model: DepthSeparator, start: DepthSeparator, directions) -> Verdict:
        if float(radial_spread(start)) > 1e-6:
            return not_applicable("the first layer did not start on one sphere")
        x = real_array("directions", directions)
        d = x.shape[1]
        e0 = jnp.abs(start.layer(x) / start.alpha - 1)
        q = math.sqrt(d) / c_gamma(d) * tangent_spread(model, start)
        tangential, radial = e0 + q, radial_spread(model)
        bound = tangential + radial * (1 + tangential)
        slack = float(jnp.min(bound - jnp.abs(model.layer(x) / model.alpha - 1)))
        return judge(
            slack + 1e-6,
            f"smallest slack {slack:.3e} over {x.shape[0]} directions",
            {"slack": slack, "tangent": q, "radial": radial},
        )
