r"""How much of the outputs' change first order misses: with `KernelDistance`, where a run is on the
line from lazy to rich.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._core.trees import parameters, with_parameters
from .base import AbstractObservable, check_samples, probe_features

__all__ = ["LinearisationGap"]


class LinearisationGap(AbstractObservable):
    r"""$\lVert f_t-f_0-J_0(\theta_t-\theta_0)\rVert/\lVert f_t-f_0\rVert$ on the training inputs; 0
    where nothing has moved.

    Args:
        samples: only the first so many training inputs.
    """

    samples: int | None = eqx.field(static=True)
    name: str = eqx.field(static=True, default="linearisation_gap")
    label: str = eqx.field(
        static=True, default="share of the outputs' change that first order misses"
    )
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, samples: int | None = None):
        check_samples(samples)
        self.samples = samples

    def __call__(self, snapshot):
        features = probe_features(snapshot, self.samples)
        now, theta = parameters(snapshot.model), parameters(snapshot.start)
        first, tangent = jax.jvp(
            lambda p: with_parameters(snapshot.start, p).respond(features),
            (theta,),
            ({name: now[name] - theta[name] for name in theta},),
        )
        last = with_parameters(snapshot.start, now).respond(features)
        change = (last - first).astype(jnp.float64)
        size = jnp.linalg.norm(change)
        defect = jnp.linalg.norm(change - tangent.astype(jnp.float64))
        return jnp.where(size > 0, defect / jnp.where(size > 0, size, 1.0), 0.0)
