r"""Gaussian inputs with a teacher of absolute values: the exact population of li2020, standing
where data stand.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._core.arc_cosine import abs_pair, abs_pair_with_slope
from ..._core.arrays import real_array, real_values
from ..._core.errors import check_count
from ..._core.memory import budget
from ..._core.polar import polar
from ..._core.precision import DoubleModule, double
from ..._core.randomness import named_key, normal
from ..._core.tiles import by_rows
from ..._core.trees import Parameters, parameters, with_parameters
from ..._core.types import Key, Scalar
from ...data.dataset import Dataset
from ...data.multi_index import raw_neurons
from ...data.objective import AbstractObjective

_LOSS_FACTORS = {"MeanSquares": 1.0, "HalfSumSquares": 1.0, "HalfMeanSquares": 0.5}


class GaussianAbsTeacher(DoubleModule):
    r"""$x \sim \mathcal N(0, I_d)$, $y = f^*(x) = \sum_k a_k|\langle w^*_k, x\rangle|$; in the
    paper with $a_k > 0$ and orthonormal $w^*_k$.

    Any signs and any non-zero directions will do, also correlated or more than $d$ of them; the
    paper's theory (stages, basis-like neurons, kernels' floor by degree) speaks of orthonormal
    ones. Given to `train` in place of a dataset, the descended objective is the exact
    $L = \mathbb E(f - f^*)^2$ with its closed-form gradient, $O(m^2d)$ a step, for any network of
    absolute values or ReLUs on the raw inputs (`Homogeneous`, `Shallow`). There is no factor one
    half: a population has no sum of samples, so the default `HalfSumSquares()` of `train` and
    `MeanSquares()` both mean $L$; `HalfMeanSquares()` means $L/2$.

    Args:
        coefficients: $a$, one a direction; $a_k = 1/d$ in the paper's simulations.
        directions: rows $w^*_k$ of any length but zero; the first basis vectors by default.
        features: $d$, where it is not the number of coefficients and no directions are given.
        memory: budget for the pairwise arrays ('512M', bytes); default `WIDEFLOW_MEMORY`, else 2
            GiB.

    >>> teacher = GaussianAbsTeacher([0.5, 0.5])
    >>> round(teacher.floor, 8)  # (1 - 3/pi) sum a^2: the best fit of degree two
    0.02253517
    """

    coefficients: Float[Array, " direction"]
    directions: Float[Array, "direction feature"]
    memory: int | str | None = eqx.field(static=True)

    @double
    def __init__(
        self,
        coefficients,
        directions=None,
        features: int | None = None,
        memory: int | str | None = None,
    ):
        a = np.asarray(real_values("coefficients", coefficients, "(direction)"), dtype=np.float64)
        if directions is None:
            features = a.size if features is None else features
            check_count("features", features, least=a.size)
            directions = np.eye(a.size, features)
        v = np.asarray(real_values("directions", directions), dtype=np.float64)
        if v.ndim != 2 or v.shape[0] != a.size:
            raise ValueError(
                f"`directions` must have one row per coefficient ({a.size}), got shape {v.shape}."
            )
        if features is not None and features != v.shape[1]:
            raise ValueError(
                f"`features` must be the {v.shape[1]} columns of `directions`, got {features}."
            )
        if not np.all(np.isfinite(v)) or not np.all(np.any(v != 0, axis=1)):
            raise ValueError(
                "`directions` must be finite rows other than zero; leave out the term of a zero "
                "row."
            )
        budget(memory)
        self.coefficients, self.directions, self.memory = jnp.asarray(a), jnp.asarray(v), memory

    @property
    def features(self) -> int:
        return self.directions.shape[1]

    @property
    def condition(self) -> float:
        r"""$\kappa$: the smallest with $a_k/\sum a \in [1/(\kappa d), \kappa/d]$; infinite where a
        coefficient is not positive.
        """
        a = np.asarray(self.coefficients)
        if not a.min() > 0:
            return float("inf")
        shares = a / a.sum() * a.size
        return float(max(shares.max(), 1 / shares.min()))

    @property
    @double
    def floor(self) -> float:
        r"""What no function of degree at most three can go below: $(1 - 3/\pi)\sum a^2$ for
        orthonormal directions.

        In general $\sum_{k\ge4}c_k\|\sum_ia_i\|w^*_i\|\,(\bar w^*_i)^{\otimes k}\|^2$.
        """
        return float(self.objective().floor)

    @double
    def targets(self, inputs) -> Float[Array, " sample"]:
        r"""$f^*$ at the given inputs."""
        inputs = real_array("inputs", inputs, f"(sample, {self.features})")
        return jnp.abs(inputs @ self.directions.T) @ self.coefficients

    @double
    def sample(self, key: Key, samples: int) -> Dataset:
        """A dataset of `samples` independent draws, without label noise."""
        check_count("samples", samples)
        inputs = normal(named_key(key, "inputs"), (samples, self.features))
        return Dataset(
            inputs, self.targets(inputs), "Gaussian inputs with an absolute-value teacher"
        )

    @double
    def objective(self, loss=None, model=None) -> "GaussianAbsObjective":
        """What dynamics descend; without a loss it is $L$. A given model is checked to fit."""
        name = "MeanSquares" if loss is None else type(loss).__name__
        if name not in _LOSS_FACTORS:
            raise ValueError(
                "`loss` must be `MeanSquares()` on an exact population (its closed form), got "
                f"{name}. "
                "For other losses train on `population.sample(key, samples)`."
            )
        lengths, units = polar(self.directions)
        objective = GaussianAbsObjective(
            self.coefficients * lengths, units, _LOSS_FACTORS[name], budget(self.memory)
        )
        if model is not None:
            _neurons(model, self.features)  # a model that does not fit fails here, with its reason
        return objective


def _neurons(model, features: int):
    r"""$(b, H)$ with $f(x) = \sum_ib_i\sigma(\langle H_i, x\rangle)$, for the two activations that
    the closed form knows.
    """
    name = getattr(getattr(model, "activation", None), "name", None)
    if name not in ("abs", "relu"):
        raise ValueError(
            "the exact Gaussian population needs a network of 'abs' or 'relu' neurons, got "
            f"{name!r} in "
            f"{type(model).__name__}. For others train on `population.sample(key, samples)`."
        )
    return raw_neurons(model, features)


class GaussianAbsObjective(AbstractObjective):
    r"""$L = \mathbb E(f - f^*)^2$ for $f(x) = \sum_i b_i\sigma(\langle h_i, x\rangle)$, $\sigma$
    abs or ReLU.

    With $q_i = b_i\|h_i\|$, unit $u_i$, $R = UU^\top$, $S = UW^{*\top}$ and $K$ the pair
    expectation of absolute values, $\kappa(R) = K(R)$, $\chi(S) = K(S)$ for abs and
    $\kappa = (K(R) + R)/4$, $\chi = K(S)/2$ for ReLU:
    $$L = q^\top\kappa(R)q - 2q^\top\chi(S)a + \mathbb Ef^{*2},\quad e = \kappa(R)q - \chi(S)a,\quad
      \partial_{b_i}L = 2r_ie_i,$$
    $$\partial_{h_i}L = 2b_i\Big(e_iu_i + \sum_jq_j\kappa'(R_{ij})(u_j - R_{ij}u_i)
      - \sum_ka_k\chi'(S_{ik})(w^*_k - S_{ik}u_i)\Big).$$
    Computed in float64 whatever the weights are ($L$ is a small difference of numbers of order
    one), row by row in tiles that fit the memory budget; finite and continuous at aligned and
    antipodal neurons.

    Args:
        coefficients: $a_k\|w^*_k\|$ of a teacher whose directions have any length.
        directions: unit rows.
        factor: of the loss, 1 or one half.
        memory: budget in bytes.
    """

    coefficients: Float[Array, " direction"]
    directions: Float[Array, "direction feature"]
    factor: float = eqx.field(static=True)
    memory: int = eqx.field(static=True)

    @double
    def value(self, model) -> Scalar:
        output, hidden = self._neurons(model, parameters(model))
        kernel, cross = _kinds(model)
        r, u = polar(hidden)
        q = output * r

        def rows(unit):
            cosines = unit @ u.T
            overlap = cross * abs_pair(unit @ self.directions.T) @ self.coefficients
            return kernel(abs_pair(cosines), cosines) @ q - 2 * overlap

        mixed = by_rows(rows, u, bytes_per_row=self._row_bytes(u), memory=self.memory)
        return self.factor * (q @ mixed + self._second_moment())

    @double
    def gradient(self, model) -> tuple[Scalar, Parameters]:
        (output, hidden), pull = jax.vjp(
            lambda trained: self._neurons(model, trained), parameters(model)
        )
        kernel, cross = _kinds(model)
        a, v = self.coefficients, self.directions
        r, u = polar(hidden)
        q = output * r

        def rows(unit, b):
            cos_w, cos_t = unit @ u.T, unit @ v.T
            k_w, slope_w = abs_pair_with_slope(cos_w)
            k_t, slope_t = abs_pair_with_slope(cos_t)
            square, overlap = kernel(k_w, cos_w) @ q, cross * k_t @ a
            pull_w, pull_t = kernel(slope_w, 1.0) * q, cross * slope_t * a
            inward = jnp.sum(pull_w * cos_w, axis=1) - jnp.sum(pull_t * cos_t, axis=1)
            residual = square - overlap
            tangent = pull_w @ u - pull_t @ v + (residual - inward)[:, None] * unit
            return square - 2 * overlap, residual, 2 * b[:, None] * tangent

        # a neuron without weights sits at the kink, where the slope is 0 by convention
        b = jnp.where(r > 0, output, 0.0)
        mixed, residual, along = by_rows(
            rows, u, b, bytes_per_row=self._row_bytes(u), memory=self.memory
        )
        value = q @ mixed + self._second_moment()
        (gradient,) = pull((self.factor * 2 * r * residual, self.factor * along))
        return self.factor * value, gradient

    @property
    @double
    def floor(self):
        r"""$\sum_{k\ge4}c_k\|\sum_ia_i(w^*_i)^{\otimes k}\|^2$, in the units of `value`;
        $(1 - 3/\pi)\sum a^2$ where orthonormal.
        """
        a, overlaps = self.coefficients, self._overlaps()
        beyond = abs_pair(overlaps) - 2 / jnp.pi - overlaps**2 / jnp.pi  # K without orders 0 and 2
        return self.factor * a @ beyond @ a

    def describe(self) -> str:
        half = "half the " if self.factor == 0.5 else ""
        directions, features = self.directions.shape
        return (
            f"{half}population mean of squares, E (f - f*)^2, on Gaussian inputs (d = {features}) "
            f"with {directions} absolute values"
        )

    def _neurons(self, model, trained: Parameters):
        """The two layers as functions of the trained arrays, in float64 from the first operation
        on.
        """
        wide = {name: array.astype(jnp.float64) for name, array in trained.items()}
        return _neurons(with_parameters(model, wide), self.directions.shape[1])

    def _overlaps(self):
        """Cosines between target directions, one exactly on the diagonal."""
        cosines = self.directions @ self.directions.T
        return jnp.where(jnp.eye(len(cosines), dtype=bool), 1.0, cosines)

    def _second_moment(self):
        r"""$\mathbb Ef^{*2} = a^\top K(W^*W^{*\top})a$."""
        return self.coefficients @ abs_pair(self._overlaps()) @ self.coefficients

    def _row_bytes(self, u) -> int:
        return 64 * (u.shape[0] + self.directions.shape[0] + u.shape[1])


def _kinds(model):
    """(kappa from K and rho, factor of chi): see `GaussianAbsObjective`."""
    if model.activation.name == "abs":
        return (lambda k, rho: k), 1.0
    return (lambda k, rho: (k + rho) / 4), 0.5
