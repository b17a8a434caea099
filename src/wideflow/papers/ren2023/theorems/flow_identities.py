"""Exact identities of the unclipped flow on any batch: Lemmas D.3, D.4 and D.5."""

import math
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from ...._core.arrays import real_array
from ...._core.precision import double
from ....theorems.base import AbstractTheorem, Citation, Verdict
from ..depth_separator import DepthSeparator
from ..laws.base import c_gamma
from ..laws.thresholds import Thresholds
from ..separator.samples import sample_field
from .judge import judge


def _field(model, inputs, targets):
    return sample_field(
        model.first, model.second_weight, model.second_bias, inputs, targets, Thresholds()
    )


def _moved(model, field, step):
    where = lambda m: [m.first, m.second_weight, m.second_bias]
    return eqx.tree_at(
        where, model, [a + step * v for a, v in zip(where(model), field[:3], strict=True)]
    )


def _rate(function, model, field, step):
    ahead, behind = (function(_moved(model, field, s)) for s in (step, -step))
    return (ahead - behind) / (2 * step)


def _residual(model, inputs, targets):
    """$S = (f_* - f) \\frac1{m_2} \\sum_j 1_j w_j$ per sample."""
    layer = model.layer(inputs)
    on = layer[:, None] * model.second_weight + model.second_bias > 0
    return (targets - model.outputs(inputs)) * (
        on @ model.second_weight
    ) / model.second_weight.shape[0], layer


def _compare(formula, measured, tolerance, what) -> Verdict:
    scale = float(jnp.max(jnp.abs(measured)))
    error = float(jnp.max(jnp.abs(formula - measured))) / scale if scale > 0 else math.nan
    return judge(
        tolerance - error,
        f"{what}: relative error {error:.2e} against central differences",
        {"error": error},
    )


class LemmaD3(AbstractTheorem):
    r"""$\dot\alpha = \frac{4 C_\Gamma}{\sqrt d} E\{S F\}$ with
    $S = (f_* - f)\, \mathrm{mean}_j 1_j w_{2,j}$, on any input law.

    Args:
        model: a `DepthSeparator`.
        inputs: shape (sample, feature).
        targets: $f_*$ at each, any numbers.
        step: of the difference quotient.
        tolerance: relative.
    """

    citation: ClassVar = Citation("ren2023", "Lemma D.3")

    @double
    def __call__(
        self, model: DepthSeparator, inputs, targets, *, step: float = 1e-6, tolerance: float = 1e-6
    ) -> Verdict:
        inputs, targets = (
            real_array("inputs", inputs, "(sample, feature)"),
            real_array("targets", targets),
        )
        pull, layer = _residual(model, inputs, targets)
        d = inputs.shape[1]
        formula = 4 * c_gamma(d) / math.sqrt(d) * jnp.mean(pull * layer)
        measured = _rate(lambda m: m.alpha, model, _field(model, inputs, targets), step)
        return _compare(formula, measured, tolerance, "growth of alpha")


class LemmaD4(AbstractTheorem):
    r"""$\frac{d}{dt} F(x) = 4 E'\{S'\, E_w \sigma(w\cdot x')\sigma(w\cdot x)\} + E'\{S'\, E_w
    \lVert w\rVert^2 \sigma'(w\cdot x')\sigma'(w\cdot x) \langle (I - \bar w\bar w^\top) x',
    x\rangle\}$.
    """

    citation: ClassVar = Citation("ren2023", "Lemma D.4")

    @double
    def __call__(
        self,
        model: DepthSeparator,
        inputs,
        targets,
        points,
        *,
        step: float = 1e-6,
        tolerance: float = 1e-6,
    ) -> Verdict:
        """`points` (point, feature) are where the growth of $F$ is compared.

        Args:
            model: a `DepthSeparator`.
            inputs: shape (sample, feature).
            targets: one number each.
            step: of the difference quotient.
            tolerance: relative.
        """
        inputs, targets, points = (jnp.asarray(a) for a in (inputs, targets, points))
        pull, _ = _residual(model, inputs, targets)
        first, width = model.first, model.width
        length = jnp.linalg.norm(first, axis=1)
        unit = first / length[:, None]
        there, here = inputs @ first.T, points @ first.T
        radial = jnp.maximum(here, 0) @ (jnp.maximum(there, 0).T @ pull) / (width * inputs.shape[0])
        mass = (
            ((there > 0) * pull[:, None]).T @ inputs / inputs.shape[0]
        )  # E' S' sigma' x', per neuron
        tangent = mass - jnp.sum(mass * unit, axis=1, keepdims=True) * unit
        turning = ((here > 0) * (points @ tangent.T)) @ length**2 / width
        measured = _rate(lambda m: m.layer(points), model, _field(model, inputs, targets), step)
        return _compare(4 * radial + turning, measured, tolerance, "growth of F")


class LemmaD5(AbstractTheorem):
    r"""$\frac{d}{dt} L = -[\mathrm{mean}\,\dot v_2^2 + \mathrm{mean}\,\dot r_2^2 + \mathrm{mean}
    \lVert \dot v_1\rVert^2]$ for the unclipped mean-field flow.

    Args:
        model: a `DepthSeparator`.
        inputs: shape (sample, feature).
        targets: one number each.
        step: of the difference quotient.
        tolerance: relative.
    """

    citation: ClassVar = Citation("ren2023", "Lemma D.5")

    @double
    def __call__(
        self, model: DepthSeparator, inputs, targets, *, step: float = 1e-6, tolerance: float = 1e-6
    ) -> Verdict:
        inputs, targets = (
            real_array("inputs", inputs, "(sample, feature)"),
            real_array("targets", targets),
        )
        field = _field(model, inputs, targets)
        squares = [
            jnp.mean(field.weight**2),
            jnp.mean(field.bias**2),
            jnp.mean(jnp.sum(field.first**2, axis=1)),
        ]
        loss = lambda m: 0.5 * jnp.mean((targets - m.outputs(inputs)) ** 2)
        return _compare(
            -sum(squares), _rate(loss, model, field, step), tolerance, "decay of the loss"
        )
