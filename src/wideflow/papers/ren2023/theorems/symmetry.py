"""Symmetric functions against the first layer: Lemma 3.1, B.3 to B.5, and the symmetry of infinite
width.
"""

import math
from collections.abc import Callable
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ...._core.arrays import real_array
from ...._core.precision import double
from ....theorems.arguments import checked
from ....theorems.base import AbstractTheorem, Citation, Verdict
from ..depth_separator import DepthSeparator
from ..laws.base import AbstractRadialLaw, c_gamma, sphere
from ..laws.thresholds import as_thresholds
from ..limits.field import ReducedState, reduced_field
from ..limits.flow import alpha_of_norm
from ..separator.rays import ray_field
from .judge import judge


class Lemma31(AbstractTheorem):
    r"""For spherically symmetric $x$ and $g$ a function of $\lVert x \rVert$, with
    $C_\Gamma = \Gamma(d/2)\sqrt d/(2\sqrt\pi\,\Gamma((d+1)/2))$:
    $E\{g\,\sigma(v\cdot x)\} = \frac{C_\Gamma}{\sqrt d} E\{g\lVert x\rVert\} \lVert v\rVert$ (Lemma
    3.1, B.3), $E\{g\,\sigma'(v\cdot x) x\} = \frac{C_\Gamma}{\sqrt d} E\{g \lVert x\rVert\} \bar v$
    (B.5), and $E\{g F\} = \alpha E\{g\lVert x\rVert\}$ (B.4).

    Tested on a sample: every difference of the two sides must lie within `errors` standard errors
    of its mean. (Corrected: the proof of 3.1 drops the factor $r^{d-1}$ of the polar volume.)
    """

    citation: ClassVar = Citation("ren2023", "Lemma 3.1, Lemmas B.3 and B.5, Corollary B.4")

    @double
    def __call__(
        self, model: DepthSeparator, inputs, g: Callable, *, errors: float = 5.0
    ) -> Verdict:
        """`model` is a `DepthSeparator`, `inputs` a sample of the law, `g` a function of the
        radius.
        """
        x = real_array("inputs", inputs, "(sample, feature)")
        if len(x) < 2:
            raise ValueError("`inputs` must have at least two rows for a standard error, got one.")
        r = jnp.linalg.norm(x, axis=1)
        value, gain = g(r), c_gamma(x.shape[1]) / math.sqrt(x.shape[1])
        v = model.first
        length = jnp.linalg.norm(v, axis=1)
        h = x @ v.T
        first = value[:, None] * (jnp.maximum(h, 0) - gain * r[:, None] * length)
        layer = value * (model.layer(x) - model.alpha * r)
        unit = v[0] / length[0]
        slope = value[:, None] * ((h[:, :1] > 0) * x - gain * r[:, None] * unit)
        gaps = {
            "relu": _deviation(first),
            "derivative": _deviation(slope),
            "layer": _deviation(layer[:, None]),
        }
        worst = max(gaps.values())
        return judge(
            errors - worst,
            f"largest deviation {worst:.2f} standard errors on {x.shape[0]} samples",
            gaps,
        )


def _deviation(differences) -> float:
    mean, deviation = differences.mean(0), differences.std(0, ddof=1)
    error = jnp.where(deviation > 0, deviation, 1.0) / math.sqrt(differences.shape[0])
    return float(jnp.max(jnp.abs(mean) / error))


class InfiniteWidthSymmetry(AbstractTheorem):
    r"""If the first layer is spherically symmetric then $\dot v_1 \parallel v_1$ with a speed that
    depends on $\lVert v_1\rVert$ only, also under projection (Appendix B.4; corrected:
    $\dot v_1 = \langle \bar v_1, E\{...\}\rangle \bar v_1$, the print has twice that).

    Tested with a first layer of $K$ directions $\pm\bar w$: angles must fall like $K^{-1/2}$ and
    the radial speed must agree with the reduced flow, both within `constant`$\sqrt{d/K}$.

    Args:
        law: of the radius.
        norm: $\lVert v_1\rVert$ of all neurons.
        w, b: the second layer.
        clip: the bounds of the projection, or None.
        width: $K$.
    """

    citation: ClassVar = Citation("ren2023", "Appendix B.4")

    @double
    def __call__(
        self,
        law: AbstractRadialLaw,
        norm: float,
        w,
        b,
        *,
        clip=None,
        key=None,
        width: int = 2000,
        constant: float = 3.0,
    ) -> Verdict:
        clip = as_thresholds(clip)
        key = jax.random.key(0) if key is None else key
        w, b = (jnp.atleast_1d(jnp.asarray(x, float)) for x in (w, b))
        directions = sphere(key, width, law.d, antithetic=True)
        field = ray_field(law, norm * directions, w, b, directions, clip)
        radial = jnp.sum(field.first * directions, axis=1)
        across = jnp.linalg.norm(field.first - radial[:, None] * directions, axis=1)
        alpha = alpha_of_norm(law.d, norm)
        speed = (
            reduced_field(law, ReducedState(jnp.asarray(alpha), w, b), clip).alpha
            * norm
            / (2 * alpha)
        )
        angle = float(jnp.median(across / jnp.abs(radial)))
        error = float(abs(radial.mean() / speed - 1))
        bound = constant * math.sqrt(law.d / width)
        numbers = {"median_angle": angle, "speed_error": error, "bound": bound, "speed": speed}
        return judge(
            1 - max(angle, error) / bound,
            f"angle {angle:.2e}, radial speed off by {error:.2e}",
            numbers,
        )


@checked
def sup_radius_density(law: AbstractRadialLaw) -> float:
    r"""$\sup_r r^2 P(r)$; it grows like $0.239\, d^{1/3}$ for the Bessel law, so $P = O(1/r^2)$ is
    not uniform in $d$ near the edge.

    Args:
        law: of the radius, with density $P$.
    """
    r = np.concatenate([np.linspace(0.5, 3, 4001), np.geomspace(3, 50, 2001)]) * law.ppf(0.1)
    return float(np.max(r**2 * np.asarray(law.density(r))))
