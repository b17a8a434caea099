r"""A radial law with the target $\max(1 - \lVert x \rVert, 0)$, standing where a dataset stands."""

import math

import equinox as eqx
import jax
import numpy as np

from ..._core.arrays import real_array
from ..._core.errors import check_choice, check_count, check_flag, check_kind
from ..._core.precision import DoubleModule, double
from ..._core.randomness import named_key
from ..._core.trees import Parameters
from ..._core.types import Key, Scalar
from ...data.dataset import Dataset
from ...data.objective import AbstractObjective
from .estimators import (
    AbstractEstimator,
    Fixed,
    Fresh,
    FreshRays,
    Integrated,
    Learner,
    Rays,
    radial_target,
)
from .laws.base import AbstractRadialLaw, sphere
from .laws.step_bound import step_bound
from .laws.thresholds import Thresholds
from .separator.samples import Field
from .separator.spanning import sees_every_ray


class Radial(DoubleModule):
    r"""$x = r \bar x$ with $r$ of a radial `law` and $\bar x$ uniform on the sphere; target
    $f_*(x) = \max(1 - r, 0)$.

    Given to `train` in place of a dataset. The loss is $L = \frac12 E(f_* - f)^2$ for a
    `DepthSeparator` $f$. The classmethods choose how the expectation is taken:

    | name | expectation | noise |
    |---|---|---|
    | `fresh` | new samples at every step | heavy-tailed; stratified radii and antithetic directions remove most |
    | `fixed` | one sample, kept | none; another law |
    | `rays` | exact radius, kept or fresh directions | of directions only, with `control` of order $F/\alpha - 1$ |
    | `integrated` | exact radius, directions in closed form | none; in the first layer second order in $F/\alpha - 1$, in the second third order left out |

    `Radial(law)` is `Radial.fresh(law)`.

    Args:
        law: of the radius $r$.
        estimator: how the expectation is taken; the classmethods build it.
    """

    law: AbstractRadialLaw
    estimator: AbstractEstimator

    def __init__(self, law: AbstractRadialLaw, estimator: AbstractEstimator | None = None):
        _check(law)
        if estimator is not None:
            check_kind("estimator", estimator, AbstractEstimator, "what `Radial.fixed` builds")
        self.law = law
        self.estimator = Radial.fresh(law).estimator if estimator is None else estimator

    @classmethod
    @double
    def fresh(
        cls,
        law: AbstractRadialLaw,
        batch: int = 1000,
        *,
        stratified: bool = False,
        antithetic: bool = False,
        evaluation: int = 8192,
    ) -> "Radial":
        """`batch` new samples at every step; losses are recorded on `evaluation` stratified
        samples, kept.

        Args:
            law: of the radius.
            batch: how many samples a step.
            stratified: whether radii come one from each of `batch` strata of equal probability.
            antithetic: whether every direction comes with its opposite.
            evaluation: how many samples the loss is recorded on.
        """
        _check(law)
        check_count("batch", batch)
        check_count("evaluation", evaluation)
        check_flag("stratified", stratified)
        check_flag("antithetic", antithetic)
        evaluated = law.inputs(
            named_key(jax.random.key(0), "evaluation"), evaluation, stratified=True, antithetic=True
        )
        return cls(law, Fresh(batch, stratified, antithetic, evaluated))

    @classmethod
    @double
    def fixed(
        cls,
        law: AbstractRadialLaw,
        key: Key,
        samples: int,
        *,
        stratified: bool = False,
        antithetic: bool = False,
    ) -> "Radial":
        """One sample, drawn here and kept.

        Args:
            law: of the radius.
            samples: how many.
            stratified, antithetic: as in `fresh`.
        """
        _check(law)
        check_count("samples", samples)
        return cls(
            law, Fixed(law.inputs(key, samples, stratified=stratified, antithetic=antithetic))
        )

    @classmethod
    @double
    def on(cls, law: AbstractRadialLaw, inputs) -> "Radial":
        """The given inputs (sample, feature) as the kept sample.

        Args:
            law: of the radius, which the inputs need not follow.
            inputs: of its dimension $d$.
        """
        _check(law)
        inputs = real_array("inputs", inputs, f"(sample, {law.d})").astype(float)
        return cls(law, Fixed(inputs))

    @classmethod
    @double
    def rays(
        cls,
        law: AbstractRadialLaw,
        key: Key,
        directions: int = 256,
        *,
        fresh: bool = False,
        antithetic: bool = True,
        control: bool = True,
    ) -> "Radial":
        """Exact radial integrals on `directions` unit vectors, kept or drawn anew at every step.

        Args:
            law: of the radius.
            directions: how many.
            fresh: whether they are drawn anew at every step.
            antithetic: whether every direction comes with its opposite.
            control: whether the symmetric part of the field is taken analytically, without noise.
        """
        _check(law)
        check_count("directions", directions)
        for name, flag in (("fresh", fresh), ("antithetic", antithetic), ("control", control)):
            check_flag(name, flag)
        unit_vectors = sphere(named_key(key, "direction"), directions, law.d, antithetic=antithetic)
        estimator = (
            FreshRays(directions, antithetic, control, unit_vectors)
            if fresh
            else Rays(unit_vectors, control)
        )
        return cls(law, estimator)

    @classmethod
    def integrated(cls, law: AbstractRadialLaw) -> "Radial":
        """No samples at all: radius exact, directions in closed form to second order
        (`integrated_field`).

        Args:
            law: of the radius.
        """
        return cls(law, Integrated())

    @double
    def sample(
        self, key: Key, samples: int, *, stratified: bool = False, antithetic: bool = False
    ) -> Dataset:
        """Inputs with targets, as a dataset."""
        inputs = self.law.inputs(key, samples, stratified=stratified, antithetic=antithetic)
        return Dataset(
            np.asarray(inputs),
            np.asarray(radial_target(inputs)),
            f"{type(self.law).__name__} d={self.law.d}",
        )

    @double
    def objective(self, loss, model) -> "RadialObjective":
        check_choice("loss", type(loss).__name__, ("HalfSumSquares", "HalfMeanSquares"))
        if not set(LEARNER_FIELDS) <= set(getattr(model, "trained", ())):
            raise ValueError(
                "`model` must be a `DepthSeparator` on a radial population, got "
                f"{type(model).__name__}. "
                "For others train on `population.sample(key, samples)`."
            )
        if model.first.shape[1] != self.law.d:
            raise ValueError(
                f"`model` reads {model.first.shape[1]} features, but the law has dimension "
                f"{self.law.d}."
            )
        endless = self.law.tail > 0 and self.estimator.exact_radius
        return RadialObjective(
            self.law, self.estimator, endless and not sees_every_ray(model.first)
        )


LEARNER_FIELDS = ("first", "second_weight", "second_bias")


class RadialObjective(AbstractObjective):
    r"""$L = \frac12 E(f_* - f)^2$ of a `DepthSeparator`, with the expectation taken by
    `estimator`.
    """

    law: AbstractRadialLaw
    estimator: AbstractEstimator
    blind: bool = eqx.field(static=True)  # F = 0 on some ray of a heavy-tailed law

    def value(self, model) -> Scalar:
        return self.estimator.loss(self.law, learner_of(model))

    def field(self, model, clip: Thresholds, key: Key) -> Field:
        """The projected mean-field velocity at `model`; `key` is that of the step."""
        if self.blind and not (self.estimator.projects_first and math.isfinite(clip.first)):
            raise ValueError(
                f"`model` has a first layer of {model.first.shape[0]} neurons that does not see "
                "every direction: on a ray "
                "with F = 0 the gradient is infinite on a heavy-tailed law. Take a larger "
                "`width`, `Truncated(law, radius)`, "
                "samples (`Radial.fresh`), or `ClippedFlow` on `Radial.rays`."
            )
        return self.estimator.field(self.law, learner_of(model), clip, key)

    def gradient(self, model) -> tuple[Scalar, Parameters]:
        if self.estimator.random:
            raise ValueError(
                "this population draws new samples at every step, so it has no gradient of its "
                "own; use `ClippedFlow`, "
                "or `Radial.fixed`, `Radial.rays` or `Radial.integrated`."
            )
        field = self.field(model, Thresholds(), jax.random.key(0))
        first, second = model.first.shape[0], model.second_weight.shape[0]
        plain = {
            "first": -field.first / first,
            "second_weight": -field.weight / second,
            "second_bias": -field.bias / second,
        }
        return field.loss, plain

    def step_bound(self, model) -> Scalar:
        r"""$\lambda$ of the step-size rule $\eta \le 1/(2\lambda)$."""
        return step_bound(self.law, model.alpha, model.second_weight, model.second_bias)

    def describe(self) -> str:
        return (
            f"(1/2) E (f* - f)^2 on {type(self.law).__name__} d={self.law.d}, "
            f"{self.estimator.describe()}"
        )


def learner_of(model) -> Learner:
    return model.first, model.second_weight, model.second_bias


def _check(law) -> None:
    if not isinstance(law, AbstractRadialLaw):
        raise ValueError(
            f"`law` must be a radial law such as `wf.limits.radial.BesselLaw(d)`, got {law!r}."
        )
