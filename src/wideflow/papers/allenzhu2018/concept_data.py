r"""Data for the learners of allenzhu2018: inputs with $\lVert x\rVert = 1$ and $x_d = 1/2$, labels
from a concept.

The constant coordinate is the bias of the ground truth. Corrected: the paper pads
$\sqrt{1-\lVert x\rVert^2}$ and then $1/2$, which gives norm $\sqrt5/2$; here the raw part is scaled
into $\lVert z\rVert^2 \le 3/4$ first.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._core.arrays import real_values
from ..._core.errors import check_count, check_flag, check_kind, check_nonnegative, check_positive
from ..._core.precision import DoubleModule, double
from ..._core.randomness import named_key, normal
from ..._core.types import Key
from ...data.dataset import Dataset
from ...data.synthetic import sphere
from .laws.concepts import ThreeLayerConcept, TwoLayerConcept, plain_concept
from .laws.power_series import PowerSeries, polynomial, smooth

_RADIUS = 0.75**0.5


class UnitPadding(DoubleModule):
    r"""The padding rule fitted on one set of raw inputs, to be used on others:
    $x = (z, \sqrt{3/4-\lVert z\rVert^2}, 1/2)$.

    Args:
        factor: multiplies raw inputs.
        spherical: whether all raw points had one norm, in which case only $1/2$ is appended.
    """

    factor: float = eqx.field(static=True)
    spherical: bool = eqx.field(static=True)

    def __check_init__(self):
        check_positive("factor", self.factor)
        check_flag("spherical", self.spherical)

    @double
    def __call__(self, raw) -> Float[Array, "sample feature"]:
        """Padded inputs. A point outside the fitted radius is pulled back onto it; on the sphere
        every point is.
        """
        raw = _finite_rows(raw)
        if self.spherical and not np.all(np.any(raw != 0, axis=1)):
            row = int(np.flatnonzero(~np.any(raw != 0, axis=1))[0])
            raise ValueError(
                "`raw` must hold nonzero rows, since the rule was fitted on a sphere and zero "
                f"has no direction, got zero in row {row}. "
                "Leave such rows out, or fit `unit_padding` on all rows together."
            )
        z = self.factor * jnp.asarray(raw)
        norms = jnp.linalg.norm(z, axis=1, keepdims=True)
        half = jnp.full((z.shape[0], 1), 0.5)
        if self.spherical:
            return jnp.concatenate([z * (_RADIUS / norms), half], axis=1)
        z = z * jnp.minimum(1.0, _RADIUS / jnp.where(norms > 0, norms, 1.0))
        rest = jnp.sqrt(jnp.maximum(0.75 - jnp.sum(z**2, axis=1, keepdims=True), 0.0))
        return jnp.concatenate([z, rest, half], axis=1)


@double
def unit_padding(raw) -> UnitPadding:
    r"""Fits the rule on raw inputs (sample, d0): one constant puts every point into
    $\lVert z\rVert^2 \le 3/4$.

    Points of equal norm (a sphere, to 1e-9) are scaled onto radius $\sqrt3/2$ and get one new
    coordinate instead of two.

    Args:
        raw: the inputs before padding, shape (sample, d0), not all zero.
    """
    norms = np.linalg.norm(_finite_rows(raw), axis=1)
    largest = float(norms.max())
    if not largest > 0:
        raise ValueError("`raw` must hold a nonzero row, got zeros only.")
    return UnitPadding(_RADIUS / largest, bool(norms.min() >= largest * (1 - 1e-9)))


def _finite_rows(raw) -> np.ndarray:
    raw = np.asarray(real_values("raw", raw, empty=True), dtype=float)
    if raw.ndim != 2 or raw.shape[0] == 0:
        raise ValueError(
            f"`raw` must have shape (sample, feature) with at least one sample, got {raw.shape}. "
            "For one feature use `raw[:, None]`."
        )
    if not np.all(np.isfinite(raw)):
        row = int(np.flatnonzero(~np.all(np.isfinite(raw), axis=1))[0])
        raise ValueError(f"`raw` must be finite, got {raw[row]} in row {row}. Leave such rows out.")
    return raw


@double
def padded_sphere(key: Key, samples: int, features: int) -> Float[Array, "sample feature"]:
    r""" "Sphere data": uniform directions in $\mathbb R^{d_0}$ at radius $\sqrt3/2$, then $1/2$;
     $d_0$ = `features`, result (sample, d0 + 1).

    Args:
        samples: the number of rows.
        features: $d_0$.
    """
    check_count("samples", samples)
    check_count("features", features)
    return jnp.concatenate(
        [_RADIUS * sphere(key, samples, features), jnp.full((samples, 1), 0.5)], axis=1
    )


@double
def concept_data(
    key: Key, concept, *, samples: int, features: int, noise: float | int = 0.0
) -> Dataset:
    r"""Sphere data labelled by a concept: $y = F^\star(x)$, plus $\mathcal N(0, \text{noise}^2)$
    where `noise` > 0.

    `features` is $d_0$; the concept takes $d_0 + 1$ coordinates. Without noise the best loss
    $\varepsilon_0$ is 0.

    Args:
        concept: $F^\star$, a `TwoLayerConcept` or a `ThreeLayerConcept`.
        samples: $N$.
        features: $d_0$, the raw coordinates.
        noise: the deviation of the labels' noise.
    """
    check_nonnegative("noise", noise)
    check_kind(
        "concept",
        concept,
        (TwoLayerConcept, ThreeLayerConcept),
        "a `TwoLayerConcept` or `ThreeLayerConcept`",
    )
    inputs = padded_sphere(named_key(key, "inputs"), samples, features)
    targets = concept.outputs(inputs)
    if noise:
        targets = targets + noise * normal(named_key(key, "noise"), targets.shape)
    return Dataset(
        inputs, targets, f"{type(concept).__name__} (n={samples}, d0={features}, noise {noise:g})"
    )


@double
def product_concept(first: PowerSeries, second: PowerSeries, features: int) -> ThreeLayerConcept:
    r"""$\phi_1(x_1)\,\phi_2(x_2)$ on $d_0$ = `features` raw coordinates, as a member of (6) with
    $\Phi(z) = z$: for instance $\cos(6x_1)\cos(6x_2)$.

    Args:
        first: $\phi_1$.
        second: $\phi_2$.
        features: $d_0 \ge 2$.
    """
    basis = jnp.eye(features + 1)
    return ThreeLayerConcept(
        [1.0], polynomial((0.0, 1.0)), [[1.0]], [[1.0]], basis[:1], basis[1:2], first, second
    )


@double
def composite_of_sines(
    features: int, inner: float | int = 3.0, outer: float | int = 3.0
) -> ThreeLayerConcept:
    r"""$\sin(\omega_o(\sin\omega_ix_1 + \sin\omega_ix_2))$ as a plain three-layer concept (7):
    $\Phi(z) = \sin(\sqrt2\,\omega_oz)$, $v = (1,1)/\sqrt2$.

    Args:
        features: $d_0$, the number of raw coordinates, at least 2.
        inner: $\omega_i$.
        outer: $\omega_o$.
    """
    basis, even = jnp.eye(features + 1), 0.5**0.5
    return plain_concept(
        [1.0], smooth("sin", outer / even), [[even, even]], basis[:2], smooth("sin", inner)
    )
