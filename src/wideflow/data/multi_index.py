r"""Gaussian inputs with a teacher of a few indices: an exact population for any activation, and a
source of fresh samples.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._core.activations import Activation, activation as as_activation
from .._core.arrays import real_array
from .._core.errors import check_count, check_nonnegative, check_of_indices
from .._core.gaussian_lattice import line_rule
from .._core.memory import check_fits
from .._core.precision import DoubleModule, double
from .._core.randomness import named_key
from .._core.ridge_pairs import check_ridge, ridge_pair
from .._core.trees import Parameters, parameters, with_parameters
from .._core.types import Key, Scalar
from .dataset import Dataset
from .objective import AbstractObjective

__all__ = ["MultiIndex"]

LOSS_FACTORS = {"HalfSumSquares": 0.5, "HalfMeanSquares": 0.5, "MeanSquares": 1.0}
# a dimension of the rule for one neuron and a general teacher's indices: 1e-8 or better at
# variances up to two
NODES = {1: 128, 2: 72, 3: 40}


class MultiIndex(DoubleModule):
    r"""$x \sim N(0, I_d)$, $y = \sum_ra^*_r\sigma^*(\rho_r) + \sqrt\Delta\,\xi$ or
    $g(\rho) + \sqrt\Delta\,\xi$, with the indices $\rho = Vx$.

    Given to `train` in place of a dataset, the objective is the exact $\frac12E(f - E[y|x])^2$ of
    one sample (`MeanSquares()`: without the half), with its gradient, for any two-layer network on
    the raw inputs: $O(m^2d)$ a step, in closed form for erf, ReLU and its kin and polynomials, else
    by quadrature. `OnlineSGD` takes fresh samples from it instead.

    Args:
        teacher: $\sigma^*$, a name or an activation (also `activations.sign()` and
            `activations.hermite(k)`), or a function $g$ of the vector of indices, written with
            `jax.numpy`, with at most three indices.
        directions: $V$, one row an index. They are taken as they are: for
            $\rho_r = \langle w^*_r, x\rangle/\sqrt d$ give $w^*/\sqrt d$.
        coefficients: $a^*$; ones by default. A function $g$ has none.
        noise: $\Delta$, the variance of the labels' noise; it moves no population gradient.

    >>> population = MultiIndex("erf", [[1.0, 0.0, 0.0]])
    >>> population.features, population.indices
    (3, 1)
    """

    teacher: Activation | Callable[[Array], Array] = eqx.field(static=True)
    directions: Float[Array, "index feature"]
    coefficients: Float[Array, " index"]
    noise: float = eqx.field(static=True)

    @double
    def __init__(self, teacher, directions, coefficients=None, noise: float = 0.0):
        v = real_array("directions", directions, "(index, feature)").astype(float)
        if not np.all(np.any(np.asarray(v) != 0, axis=1)):
            raise ValueError(
                "`directions` must be rows other than zero; leave out the index of a zero row."
            )
        if isinstance(teacher, str | Activation):
            teacher = as_activation(teacher)
            check_ridge("teacher", teacher)
            values = np.ones(len(v)) if coefficients is None else coefficients
            a = real_array("coefficients", values, f"({len(v)},)").astype(float)
            if bool(jnp.any(a == 0)):
                raise ValueError(
                    "`coefficients` must not be zero; leave out the index that the teacher does "
                    "not use."
                )
        else:
            check_of_indices("teacher", teacher, len(v))
            a = jnp.ones(len(v))
            _check_general(v, coefficients)
        check_nonnegative("noise", noise)
        self.teacher, self.directions, self.coefficients = teacher, v, a
        self.noise = float(noise)

    @property
    def features(self) -> int:
        return self.directions.shape[1]

    @property
    def indices(self) -> int:
        return self.directions.shape[0]

    @double
    def targets(self, inputs) -> Float[Array, " sample"]:
        r"""$E[y|x]$ at the given inputs."""
        inputs = real_array("inputs", inputs, f"(sample, {self.features})")
        return self.objective().targets(inputs)

    @double
    def sample(self, key: Key, samples: int) -> Dataset:
        """A dataset of `samples` independent draws, with the labels' noise."""
        check_count("samples", samples)
        check_fits(samples=samples, features=self.features)
        inputs, targets = self.objective().draw(named_key(key, "samples"), samples, jnp.float64)
        return Dataset(inputs, targets, "Gaussian inputs with a multi-index teacher")

    @double
    def objective(self, loss=None, model=None) -> "MultiIndexObjective":
        """What dynamics descend. A given model is checked to fit."""
        name = "HalfSumSquares" if loss is None else type(loss).__name__
        if name not in LOSS_FACTORS:
            raise ValueError(
                "`loss` must be one of squares on an exact population (its closed form), got "
                f"{name}. "
                "For other losses train on `population.sample(key, samples)`."
            )
        objective = MultiIndexObjective(
            self.directions, self.coefficients, self.teacher, self.noise, LOSS_FACTORS[name]
        )
        if model is not None:
            objective.neurons(model)  # a model that does not fit fails here, with its reason
            check_ridge("activation", model.activation)
        return objective


class MultiIndexObjective(AbstractObjective):
    r"""$L = \kappa\,E(f - E[y|x])^2$ for $f(x) = \sum_ib_i\sigma(\langle h_i, x\rangle)$,
    $\kappa$ = `factor`.

    With the pairs of `ridge_pair` and Stein's lemma, $\varphi_j$ over all units (neurons with
    $c_j = b_j$, indices with $c_j = -a^*_j$) and $v_j$ their vectors,
    $$L = \kappa\sum_{ij}c_ic_jE[\varphi_i\varphi_j], \qquad
      \partial_{h_i}L = 2\kappa\,b_i\Big(\sum_jc_jE[\sigma''(\lambda_i)\varphi_j]\,h_i +
      \sum_jc_jE[\sigma'(\lambda_i)\varphi_j']\,v_j\Big).$$
    Computed in float64 whatever the weights are.
    """

    directions: Float[Array, "index feature"]
    coefficients: Float[Array, " index"]
    teacher: Activation | Callable[[Array], Array] = eqx.field(static=True)
    noise: float = eqx.field(static=True)
    factor: float = eqx.field(static=True)

    def value(self, model) -> Scalar:
        b, h = self.neurons(model)
        values, cross, square = self._tables(model.activation, h)
        own, _ = cross
        return self.factor * (b @ values.value @ b - 2 * b @ own + square)

    def gradient(self, model) -> tuple[Scalar, Parameters]:
        # gradients in (b, H) are closed forms; from there to the trained arrays autodiff takes
        # over, as every model has its own way to neurons
        (b, h), pull = jax.vjp(lambda trained: self.neurons(model, trained), parameters(model))
        pairs, (own, moved), square = self._tables(model.activation, h)
        response = pairs.value @ b
        # E[sigma'(l_i) f x] by Stein's lemma, less E[sigma'(l_i) y x]
        along = (pairs.first @ b)[:, None] * h + (pairs.mixed * b) @ h - moved
        value = b @ response - 2 * b @ own + square
        cotangent = (response - own, b[:, None] * along)
        (gradient,) = pull(jax.tree.map(lambda part: 2 * self.factor * part, cotangent))
        return self.factor * value, gradient

    def describe(self) -> str:
        half = "half the " if self.factor == 0.5 else ""
        indices, features = self.directions.shape
        return (
            f"{half}population mean of squares, E (f - E[y|x])^2, on Gaussian inputs (d = "
            f"{features}) "
            f"with a teacher of {indices} indices"
        )

    def targets(self, inputs) -> Float[Array, " sample"]:
        rho = inputs @ self.directions.T.astype(inputs.dtype)
        if isinstance(self.teacher, Activation):
            return self.teacher.value(rho) @ self.coefficients.astype(inputs.dtype)
        return jax.vmap(self.teacher)(rho)

    def draw(self, key: Key, samples: int, dtype) -> tuple[Array, Array]:
        """Fresh inputs and noisy targets; pure and compilable."""
        shape = (samples, self.directions.shape[1])
        inputs = jax.random.normal(named_key(key, "inputs"), shape, dtype)
        targets = self.targets(inputs)
        if self.noise:
            xi = jax.random.normal(named_key(key, "noise"), (samples,), dtype)
            targets = targets + np.sqrt(self.noise).astype(dtype) * xi
        return inputs, targets

    def neurons(self, model, trained: Parameters | None = None):
        r"""$(b, H)$ with $f(x) = \sum_ib_i\sigma(\langle H_i, x\rangle)$, in float64."""
        trained = parameters(model) if trained is None else trained
        wide = {name: array.astype(jnp.float64) for name, array in trained.items()}
        output, hidden = raw_neurons(with_parameters(model, wide), self.directions.shape[1])
        return output.astype(jnp.float64), hidden.astype(jnp.float64)

    def _tables(self, act: Activation, h):
        r"""Pairs of neurons; $(E[\sigma(\lambda_i)y],\ E[\sigma'(\lambda_i)yx])$; $E\,E[y|x]^2$."""
        gram = h @ h.T
        sizes = jnp.diagonal(gram)
        pairs = ridge_pair(act, act, sizes[:, None], gram, sizes)
        if not isinstance(self.teacher, Activation):
            return pairs, *_general(self.teacher, act, self.directions, h)
        v, a = self.directions, self.coefficients
        overlaps = v @ v.T
        lengths = jnp.diagonal(overlaps)
        cross = ridge_pair(act, self.teacher, sizes[:, None], h @ v.T, lengths)
        target = ridge_pair(self.teacher, self.teacher, lengths[:, None], overlaps, lengths)
        moved = (cross.first @ a)[:, None] * h + (cross.mixed * a) @ v
        return pairs, (cross.value @ a, moved), a @ target.value @ a


def raw_neurons(model, features: int):
    r"""$(b, H)$ with $f(x) = \sum_ib_i\sigma(\langle H_i, x\rangle)$, of a two-layer network on the
    raw inputs, `features` of them.
    """
    if hasattr(model, "neurons"):
        output, hidden = model.neurons()
    elif type(getattr(model, "embedding", None)).__name__ == "Identity":
        output, hidden = model.scales * model.output, model.hidden_scale * model.hidden
    else:
        raise ValueError(
            "the exact Gaussian population needs a two-layer network on the raw inputs, got "
            f"{type(model).__name__}. "
            "For others train on `population.sample(key, samples)`."
        )
    if output.ndim != 1 or hidden.shape[1] != features:
        raise ValueError(
            f"the model must have one output and the population's {features} features, got "
            "output weights of shape "
            f"{output.shape} and {hidden.shape[1]} features."
        )
    return output, hidden


def _general(g, act: Activation, v, h):
    r"""The same for $y = g(\rho)$ by quadrature over $\rho = Sz$ and the part of $\lambda_i$ that
    no index sees.

    With $V = SE$, $E$ orthonormal rows, $\lambda_i = \langle\alpha, z\rangle + \beta t$:
    $E[\sigma'gx] = \sum_rE[\sigma'gz_r]\,e_r + E[\sigma''g]\,(h_i - E^\top\alpha)$, as
    $E[\sigma'gt] = \beta E[\sigma''g]$; $g$ is never differentiated.
    """
    indices = len(v)
    # V = S E with E = S^-1 V: its rows are orthonormal, as E E^T = S^-1 V V^T S^-T = I
    root = jnp.linalg.cholesky(v @ v.T)
    largest = lambda rows: jnp.max(jnp.sum(rows**2, axis=1))
    t, w = line_rule(NODES[indices], jnp.sqrt(jnp.maximum(largest(v), largest(h))))
    grid = lambda x: jnp.stack(jnp.meshgrid(*[x] * indices, indexing="ij"), -1).reshape(-1, indices)
    z, weights = grid(t), jnp.prod(grid(w), axis=1)
    basis = jax.scipy.linalg.solve_triangular(root, v, lower=True)
    y = weights * jax.vmap(g)(z @ root.T)

    def neuron(h):
        alpha = basis @ h
        rest = h - alpha @ basis
        # (node of the indices, node of the rest)
        u = (z @ alpha)[:, None] + jnp.sqrt(jnp.sum(rest**2)) * t
        slope = act.slope(u) @ w
        moved = (y * slope) @ z @ basis + y @ (act.bend(u) @ w) * rest
        return y @ (act.value(u) @ w), moved

    return jax.lax.map(neuron, h), y @ jax.vmap(g)(z @ root.T)


def _check_general(v, coefficients) -> None:
    if coefficients is not None:
        raise ValueError(
            "`coefficients` belong to a teacher that is one activation; put them into the function."
        )
    if len(v) > max(NODES):
        raise ValueError(
            f"`teacher` is a function of {len(v)} indices; quadrature takes at most {max(NODES)}. "
            "Write it as a sum of one activation over indices."
        )
    singular = np.linalg.svd(np.asarray(v), compute_uv=False)
    # their Gram matrix, which the Cholesky factor needs, has the square of that as its condition:
    # 1e20 is beyond double precision
    if singular[-1] <= 1e-10 * singular[0]:
        raise ValueError(
            "`directions` of a function of the indices must be linearly independent; write it in "
            "fewer indices."
        )
