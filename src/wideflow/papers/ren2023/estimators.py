r"""Ways to take the expectation over a radial law: fresh samples, one sample kept, exact radii, no
samples.
"""

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._core.polar import polar
from ..._core.precision import DoubleModule
from ..._core.randomness import named_key
from ..._core.types import Key, Scalar
from .laws.base import AbstractRadialLaw, sphere
from .laws.thresholds import Thresholds
from .separator.directions import alpha_of, direction_error
from .separator.integrated import integrated_field, integrated_loss
from .separator.rays import ray_field, ray_losses
from .separator.samples import Field, forward, sample_field

Learner = tuple[Float[Array, "width feature"], Float[Array, " second"], Float[Array, " second"]]


def radial_target(inputs) -> Float[Array, " sample"]:
    r"""$f_*(x) = \max(1 - \lVert x \rVert, 0)$."""
    return jnp.maximum(1 - jnp.linalg.norm(inputs, axis=1), 0)


class AbstractEstimator(DoubleModule):
    """How velocity and loss of the learner (first layer, weights, biases) are averaged over the
    inputs.
    """

    random: ClassVar[bool]
    exact_radius: ClassVar[bool]  # integrates each ray to infinity
    projects_first: ClassVar[bool] = True  # whether the first layer's projection is carried out

    @abc.abstractmethod
    def field(self, law: AbstractRadialLaw, learner: Learner, clip: Thresholds, key: Key) -> Field:
        """The mean-field velocity; `key` is this step's own, used by random estimators only."""

    @abc.abstractmethod
    def loss(self, law: AbstractRadialLaw, learner: Learner) -> Scalar:
        r"""$\frac12 E(f_* - f)^2$, the same function at every step."""

    @abc.abstractmethod
    def describe(self) -> str:
        """The estimator in words, for tables."""


class Fresh(AbstractEstimator):
    """New samples at every step (Appendix E); the recorded loss is that of one stratified sample,
    kept.
    """

    random: ClassVar[bool] = True
    exact_radius: ClassVar[bool] = False
    batch: int = eqx.field(static=True)
    stratified: bool = eqx.field(static=True)
    antithetic: bool = eqx.field(static=True)
    evaluation: Float[Array, "sample feature"]

    def inputs(
        self, law: AbstractRadialLaw, key: Key, dtype=jnp.float64
    ) -> Float[Array, "sample feature"]:
        """This step's batch."""
        options = dict(stratified=self.stratified, antithetic=self.antithetic)
        return law.inputs(key, self.batch, **options).astype(dtype)

    def field(self, law, learner, clip, key):
        inputs = self.inputs(law, key, learner[0].dtype)
        return sample_field(*learner, inputs, radial_target(inputs), clip)

    def loss(self, law, learner):
        return _sample_loss(learner, self.evaluation)

    def describe(self):
        kinds = [name for name in ("stratified", "antithetic") if getattr(self, name)]
        return (
            f"{self.batch} fresh {' '.join([*kinds, 'samples'])} a step, loss on "
            f"{self.evaluation.shape[0]} kept ones"
        )


class Fixed(AbstractEstimator):
    """One sample, kept: a deterministic flow on an empirical law, for which the exact identities
    hold.
    """

    random: ClassVar[bool] = False
    exact_radius: ClassVar[bool] = False
    sample: Float[Array, "sample feature"]

    def field(self, law, learner, clip, key):
        inputs = self.sample.astype(learner[0].dtype)
        return sample_field(*learner, inputs, radial_target(inputs), clip)

    def loss(self, law, learner):
        return _sample_loss(learner, self.sample)

    def describe(self):
        return f"{self.sample.shape[0]} samples, kept"


class Rays(AbstractEstimator):
    """Exact integrals over the radius on directions that are kept (`directions`)."""

    random: ClassVar[bool] = False
    exact_radius: ClassVar[bool] = True
    directions: Float[Array, "direction feature"]
    control: bool = eqx.field(static=True)

    def field(self, law, learner, clip, key):
        return ray_field(law, *learner, self.directions, clip, control=self.control)

    def loss(self, law, learner):
        return _ray_loss(law, learner, self.directions)

    def describe(self):
        return f"exact radius on {self.directions.shape[0]} directions, kept"


class FreshRays(AbstractEstimator):
    """Exact integrals over the radius on new directions at every step; the loss is that on kept
    ones.
    """

    random: ClassVar[bool] = True
    exact_radius: ClassVar[bool] = True
    count: int = eqx.field(static=True)
    antithetic: bool = eqx.field(static=True)
    control: bool = eqx.field(static=True)
    evaluation: Float[Array, "direction feature"]

    def field(self, law, learner, clip, key):
        directions = sphere(
            named_key(key, "direction"), self.count, law.d, antithetic=self.antithetic
        )
        return ray_field(law, *learner, directions, clip, control=self.control)

    def loss(self, law, learner):
        return _ray_loss(law, learner, self.evaluation)

    def describe(self):
        return f"exact radius on {self.count} fresh directions a step"


class Integrated(AbstractEstimator):
    """Radius and directions integrated, to the order stated in `integrated_field`: no samples."""

    random: ClassVar[bool] = False
    exact_radius: ClassVar[bool] = True
    projects_first: ClassVar[bool] = False

    def field(self, law, learner, clip, key):
        return integrated_field(law, *learner, clip)

    def loss(self, law, learner):
        return integrated_loss(law, *learner)

    def describe(self):
        return "radius and directions integrated"


def _sample_loss(learner: Learner, inputs):
    inputs = inputs.astype(learner[0].dtype)
    residual = radial_target(inputs) - forward(*learner, inputs)[1]
    return 0.5 * jnp.mean(residual**2)


def _ray_loss(law, learner: Learner, directions):
    first, w, b = learner
    phi = jnp.maximum(directions @ first.T, 0) @ polar(first)[0] / first.shape[0]
    return ray_losses(law, phi, w, b).mean()


def symmetric_error(law: AbstractRadialLaw, learner: Learner):
    r"""$\frac12 \bar w_2^2 \alpha^2 M_2(\rho) e_2^2$ with $\rho = \bar b_2/(|\bar w_2| \alpha)$:
    the second term of equation (6), exactly.

    Corrected: printed without the restriction $r \le \rho$, with which alone it is finite.
    """
    first, w, b = learner
    alpha, w, b = alpha_of(first), jnp.mean(w), jnp.mean(b)
    slope = jnp.maximum(-w * alpha, 1e-300)
    moment = law.moments(jnp.maximum(b, 0.0) / slope)[2]
    return 0.5 * (w * alpha) ** 2 * moment * direction_error(first)
