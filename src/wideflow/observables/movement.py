"""How far weights and features have moved from where they started."""

import equinox as eqx
import jax.numpy as jnp

from .._core.errors import check_flag, check_interval
from .._core.trees import parameters
from ..models.deep import Deep
from ..models.rescaled import Rescaled
from ..models.shallow import Shallow
from .base import AbstractObservable, check_samples, probe_features

__all__ = [
    "ActiveFraction",
    "FeatureMovement",
    "LargestMovement",
    "ParameterMovement",
    "WeightMovement",
]


class WeightMovement(AbstractObservable):
    r"""$\lVert w_j(t) - w_j(0)\rVert$ of every node: the norm of the difference."""

    name: str = eqx.field(static=True, default="weight_movement")
    label: str = eqx.field(static=True, default="‖w_j(t) − w_j(0)‖")
    axes: tuple[str, ...] = eqx.field(static=True, default=("width",))

    def __call__(self, snapshot):
        return jnp.linalg.norm(hidden_change(snapshot), axis=0)


class LargestMovement(AbstractObservable):
    r"""$\max_j \lVert w_j(t) - w_j(0)\rVert$."""

    name: str = eqx.field(static=True, default="largest_movement")
    label: str = eqx.field(static=True, default="max over nodes of ‖w_j(t) − w_j(0)‖")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot):
        return jnp.max(jnp.linalg.norm(hidden_change(snapshot), axis=0))


class ParameterMovement(AbstractObservable):
    r"""$\lVert\theta(t) - \theta(0)\rVert / \lVert\theta(0)\rVert$ over all trained arrays."""

    name: str = eqx.field(static=True, default="parameter_movement")
    label: str = eqx.field(static=True, default="relative movement of all weights")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot):
        now, start = parameters(snapshot.model), parameters(snapshot.start)
        moved = sum(jnp.sum((now[name] - start[name]) ** 2) for name in now)
        return jnp.sqrt(moved / sum(jnp.sum(start[name] ** 2) for name in now))


class FeatureMovement(AbstractObservable):
    r"""Mean over nodes and inputs of $|h_j(x_i; t) - h_j(x_i; 0)|$, `relative` to the mean of
    $|h(0)|$ or not.

    The nodes of a `Deep` network are those of all its hidden layers; `LayerFeatureMovement` takes
    them layer by layer.

    Args:
        relative: whether to divide by the mean of $|h(0)|$.
        samples: only the first so many training inputs.
    """

    relative: bool = eqx.field(static=True)
    samples: int | None = eqx.field(static=True)
    name: str = eqx.field(static=True, default="feature_movement")
    label: str = eqx.field(static=True, default="mean |h(t) − h(0)|")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, relative: bool = False, samples: int | None = None):
        check_flag("relative", relative)
        check_samples(samples)
        self.relative, self.samples = relative, samples

    def __call__(self, snapshot):
        features = probe_features(snapshot, self.samples)
        start, now = (_preactivations(m, features) for m in (snapshot.start, snapshot.model))
        moved = jnp.mean(jnp.abs(now - start))
        return moved / jnp.mean(jnp.abs(start)) if self.relative else moved


class ActiveFraction(AbstractObservable):
    r"""Share of (input, node) pairs with $h_j(x_i)$ inside the activation's interval.

    Args:
        interval: an open interval; the activation's own if None.
    """

    interval: tuple[float, float] | None = eqx.field(static=True)
    name: str = eqx.field(static=True, default="active_fraction")
    label: str = eqx.field(static=True, default="share of active (input, node) pairs")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, interval: tuple[float, float] | None = None):
        self.interval = None if interval is None else check_interval(interval)

    def __call__(self, snapshot):
        if not isinstance(snapshot.model, Shallow):
            raise ValueError(
                f"`ActiveFraction` needs a `Shallow` model, got {type(snapshot.model).__name__}."
            )
        low, high = self.interval or snapshot.model.activation.interval
        h = probe_features(snapshot, None) @ snapshot.model.weights
        return jnp.mean(((h > low) & (h < high)).astype(jnp.float64))


def _preactivations(model, features):
    """Of all hidden nodes, (sample, node)."""
    while isinstance(model, Rescaled):
        model = model.model
    if isinstance(model, Deep):
        layers = model.hidden(features).values()
        return jnp.concatenate([h.reshape(h.shape[0], -1) for h in layers], axis=1)
    if "weights" not in model.trained:
        raise ValueError(
            f"{type(model).__name__} does not say what its hidden nodes are; use "
            "`ParameterMovement`."
        )
    return features @ parameters(model)["weights"]


def hidden_change(snapshot):
    """The change of the hidden weights, (feature, width) with nodes along the last axis."""
    now, start = parameters(snapshot.model), parameters(snapshot.start)
    if "weights" not in now:
        raise ValueError(
            f"{type(snapshot.model).__name__} has no single hidden layer; use `ParameterMovement`."
        )
    return (now["weights"] - start["weights"]).astype(jnp.float64)
