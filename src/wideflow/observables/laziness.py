r"""The two numbers of `Regime`, read off a run as it goes: where it is on the line from lazy to rich."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._core.trees import parameters, with_parameters
from .base import AbstractObservable, probe_features
from .kernels import gram_of_features


class KernelChange(AbstractObservable):
    r"""$\lVert\Theta_t-\Theta_0\rVert_F/\lVert\Theta_0\rVert_F$ on the training inputs (or the first `samples`), first output."""

    samples: int | None = eqx.field(static=True)
    name: str = eqx.field(static=True, default="kernel_change")
    label: str = eqx.field(static=True, default="‖Θ(t) − Θ(0)‖ / ‖Θ(0)‖")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, samples: int | None = None):
        self.samples = samples

    def __call__(self, snapshot):
        features = probe_features(snapshot, self.samples)
        now, start = (
            gram_of_features(model, features, features, 0).astype(jnp.float64)
            for model in (snapshot.model, snapshot.start)
        )
        return jnp.linalg.norm(now - start) / jnp.linalg.norm(start)


class LinearisationGap(AbstractObservable):
    r"""$\lVert f_t-f_0-J_0(\theta_t-\theta_0)\rVert/\lVert f_t-f_0\rVert$ on the training inputs; 0 where nothing has moved."""

    samples: int | None = eqx.field(static=True)
    name: str = eqx.field(static=True, default="linearisation_gap")
    label: str = eqx.field(
        static=True, default="share of the outputs' change that first order misses"
    )
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, samples: int | None = None):
        self.samples = samples

    def __call__(self, snapshot):
        features = probe_features(snapshot, self.samples)
        now, theta = parameters(snapshot.model), parameters(snapshot.start)
        first, tangent = jax.jvp(
            lambda p: with_parameters(snapshot.start, p).respond(features),
            (theta,),
            ({name: now[name] - theta[name] for name in theta},),
        )
        moved = (with_parameters(snapshot.start, now).respond(features) - first).astype(jnp.float64)
        size = jnp.linalg.norm(moved)
        missed = jnp.linalg.norm(moved - tangent.astype(jnp.float64))
        return jnp.where(size > 0, missed / jnp.where(size > 0, size, 1.0), 0.0)
