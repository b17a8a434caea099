"""Stage 2: contraction of the second layer, preserved directions, barriers."""

import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...._core.arrays import real_array
from ...._core.precision import double
from ....theorems.arguments import checked
from ....theorems.base import AbstractTheorem, Citation, Verdict
from ..depth_separator import DepthSeparator
from ..laws.base import AbstractRadialLaw
from ..laws.thresholds import Thresholds
from ..limits.field import ReducedState, reduced_field, reduced_loss
from ..separator.directions import direction_error
from ..separator.samples import sample_field
from .judge import judge, not_applicable
from .problem import AbstractSeparatorTheorem, Problem


class LemmaD14(AbstractTheorem):
    r"""$\frac{d}{dt} \lVert (v_2, r_2) - (v_2', r_2')\rVert^2 \le 0$ for the unclipped flow on any
    batch, if every second-layer neuron is active at every sample with $\lVert x\rVert \le 1$.

    Args:
        model: a `DepthSeparator`.
        inputs: the batch, shape (sample, feature).
        tolerance: the growth that rounding may cause.
    """

    citation: ClassVar = Citation("ren2023", "Lemma D.14")

    @double
    def __call__(self, model: DepthSeparator, inputs, *, tolerance: float = 1e-14) -> Verdict:
        x = real_array("inputs", inputs, "(sample, feature)")
        r = jnp.linalg.norm(x, axis=1)
        w, b = model.second_weight, model.second_bias
        lowest = jnp.where((r <= 1)[:, None], model.layer(x)[:, None] * w + b, jnp.inf).min()
        if not float(lowest) > 0:
            return not_applicable(
                "a second-layer neuron is off at a sample of the unit ball", {"lowest": lowest}
            )
        field = sample_field(model.first, w, b, x, jnp.maximum(1 - r, 0), Thresholds())
        pairs = lambda v: v[:, None] - v
        rate = 2 * (pairs(w) * pairs(field.weight) + pairs(b) * pairs(field.bias))
        worst = float(rate.max())
        return judge(tolerance - worst, f"largest rate {worst:.2e}", {"rate": worst})


class LemmaD11(AbstractTheorem):
    r"""The symmetric part $L_1 = \frac12 E(f_* - \tilde f)^2$ leaves $\bar F = F/\alpha$ unchanged:
    $-\langle\nabla F, \nabla L_1\rangle + \bar F \langle\nabla\alpha, \nabla L_1\rangle = 0$.

    Corrected: the printed gradient has $\sigma$ for $\sigma'$ and lacks a factor $\lVert x\rVert$.

    Args:
        model: a `DepthSeparator`.
        inputs: over which $L_1$ is a mean, shape (sample, feature).
        points: where $\bar F$ is watched, shape (point, feature).
        tolerance: relative to the change of $F$.
    """

    citation: ClassVar = Citation("ren2023", "Lemma D.11")

    @double
    def __call__(
        self, model: DepthSeparator, inputs, points, *, tolerance: float = 1e-10
    ) -> Verdict:
        r = jnp.linalg.norm(real_array("inputs", inputs, "(sample, feature)"), axis=1)
        points = real_array("points", points)
        put = lambda first: eqx.tree_at(lambda m: m.first, model, first)
        loss = lambda first: 0.5 * jnp.mean((jnp.maximum(1 - r, 0) - put(first).symmetric(r)) ** 2)
        shape = lambda first: put(first).layer(points) / put(first).alpha
        velocity = -model.width * jax.grad(loss)(model.first)
        _value, change = jax.jvp(shape, (model.first,), (velocity,))
        speed = (
            jnp.max(
                jnp.abs(jax.jvp(lambda f: put(f).layer(points), (model.first,), (velocity,))[1])
            )
            / model.alpha
        )
        error = float(jnp.max(jnp.abs(change)) / jnp.maximum(speed, 1e-300))
        return judge(
            tolerance - error, f"change of F/alpha is {error:.1e} of that of F", {"error": error}
        )


class LemmaD12(AbstractSeparatorTheorem):
    r"""Under the gradient of $\frac12\bar w_2^2\, E_{r \le R}(\tilde F - F)^2$ alone,
    $e_2^2 = E_{\bar x}(\bar F - 1)^2$ does not grow.

    Corrected: the derivative of a square lacks its factor 2 and $d\bar F/dt$ is printed as $dF/dt$;
    the moving cut-off is avoided by $e_2$.

    Args:
        model: a `DepthSeparator`.
        tolerance: the growth that rounding may cause.
    """

    citation: ClassVar = Citation("ren2023", "Lemma D.12")

    def read(self, problem: Problem) -> dict[str, Any]:
        return {"model": problem.end}

    @double
    def evaluate(self, model: DepthSeparator, *, tolerance: float = 1e-12) -> Verdict:
        def term(first):
            alpha = eqx.tree_at(lambda m: m.first, model, first).alpha
            return alpha**2 * direction_error(first)

        velocity = -jax.grad(term)(model.first)
        error, rate = jax.jvp(direction_error, (model.first,), (velocity,))
        return judge(
            tolerance - float(rate),
            f"e_2^2 = {float(error):.3e} changes at rate {float(rate):.2e}",
            {"rate": rate, "error": error},
        )


class LemmaD15(AbstractTheorem):
    r"""$L \le c\, [(1 - b)^2 + ((1 + w\alpha)/(w\alpha))^2]$ in the reduced system with $w < 0$ and
    the neuron active on the unit ball.

    The constant is $c \le 0.05$ along trajectories from $w \approx 0^-$ and $c \le 0.12$ at
    arbitrary such states.
    """

    citation: ClassVar = Citation("ren2023", "Lemma D.15")

    @double
    def __call__(self, law: AbstractRadialLaw, alpha, w, b, *, constant: float = 0.12) -> Verdict:
        """At one state, or at all states (record,) of a path; states with a loss below 1e-10 are
        rounding and left out.

        Near the minimum $b + w\\alpha \\to 0$, so that rounding decides there even whether the
        neuron is active.

        Args:
            law: of the radius.
            constant: $c$.
        """
        alpha, w, b = (np.atleast_1d(np.asarray(x, float)) for x in (alpha, w, b))
        states = ReducedState(jnp.asarray(alpha), jnp.asarray(w)[:, None], jnp.asarray(b)[:, None])
        loss = np.asarray(jax.vmap(lambda state: reduced_loss(law, state))(states))
        resolved = ~(loss < 1e-10)  # a loss that is not a number is not small
        if not resolved.any():
            return not_applicable(f"the loss {loss.max():.1e} is at rounding level")
        if not np.all(((w < 0) & (b + w * alpha >= 0))[resolved]):
            return not_applicable(
                "it requires a negative weight and a neuron active on the unit ball"
            )
        ratio = loss / ((1 - b) ** 2 + ((1 + w * alpha) / (w * alpha)) ** 2)
        largest = float(ratio[resolved].max())
        return judge(
            constant - largest,
            f"c = {largest:.4f}",
            {"constant": largest, "loss": loss[resolved].min()},
        )


class LemmaD16(AbstractTheorem):
    r"""Barriers: at $b \to 1^-$ the bias falls, and at $w\alpha \to -1^+$ the product rises, while
    $L > 0$ (D.16, D.17).
    """

    citation: ClassVar = Citation("ren2023", "Lemmas D.16 and D.17")

    @double
    def __call__(self, law: AbstractRadialLaw, alpha: float, w: float, b: float) -> Verdict:
        """The barriers in line with the state: $(w, 1)$ and $(-1/\\alpha, b)$.

        Args:
            law: of the radius.
        """
        if not (-1 < w * alpha < 0 and 0 < b < 1):
            return not_applicable("it requires a state inside both barriers")
        bias = float(reduced_field(law, _state(alpha, w, 1.0), Thresholds()).b[0])
        edge = -1 / alpha
        field = reduced_field(law, _state(alpha, edge, b), Thresholds())
        product = float(field.w[0]) * alpha + float(field.alpha) * edge
        return judge(
            min(-bias, product),
            f"b' = {bias:.2e}, (w alpha)' = {product:+.2e} at the barriers",
            {"bias": bias, "product": product},
        )


class LemmaD18(AbstractTheorem):
    r"""If $\alpha \ge (2 C_\Gamma/\sqrt d) w^2$ at the start, then
    $|w| \le (\sqrt d/(2 C_\Gamma))^{1/3}$ as long as $|w\alpha| \le 1$: the flow conserves
    $\alpha - (2 C_\Gamma/\sqrt d) w^2 \ge 0$, so that $|w|^3 \le |w\alpha| \sqrt d/(2 C_\Gamma)$.
    """

    citation: ClassVar = Citation("ren2023", "Lemma D.18")

    @double
    def __call__(self, law: AbstractRadialLaw, alpha, w) -> Verdict:
        """`alpha` and `w` (record,) along a run from its start on, $w$ the mean of the second
        layer.

        Args:
            law: of the radius; gives the constant.
        """
        alpha, w = (np.atleast_1d(np.asarray(x, float)) for x in (alpha, w))
        invariant = alpha[0] - 2 * law.gain * w[0] ** 2
        inside = np.abs(w) * alpha <= 1
        if not (invariant >= 0 and inside.any()):
            return not_applicable(
                "it requires a start with alpha >= 2 C w^2 / sqrt d and for records with |w "
                "alpha| <= 1",
                {"invariant": invariant},
            )
        bound = (1 / (2 * law.gain)) ** (1 / 3)
        largest = float(np.abs(w[inside]).max())
        return judge(
            bound - largest,
            f"largest |w| = {largest:.4g} over {inside.sum()} records, bound {bound:.4g}",
            {"bound": bound, "largest": largest, "invariant": invariant},
        )


def _state(alpha, w, b) -> ReducedState:
    return ReducedState(jnp.asarray(float(alpha)), jnp.array([float(w)]), jnp.array([float(b)]))


@checked
def fixed_point(law: AbstractRadialLaw) -> tuple[float, float]:
    r"""$(|w^*|, \alpha^*) = ((1/2g)^{1/3}, (2g)^{1/3})$ with invariant 0, $g = C_\Gamma/\sqrt d$.

    Args:
        law: of the radius; gives $g$.
    """
    return (1 / (2 * law.gain)) ** (1 / 3), math.pow(2 * law.gain, 1 / 3)
