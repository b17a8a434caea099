"""The risk of a network of which only the important nodes are kept, along a run."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._core.precision import double
from ..models.pruning import pruning_curve
from .base import AbstractObservable


class PrunedRisk(AbstractObservable):
    r"""Mean of squares on the given data with the $k$ least important nodes removed, for every $k$ of `levels`; see `pruning_curve`."""

    inputs: Float[Array, "sample feature"]
    targets: Float[Array, " sample *output"]
    levels: tuple[int, ...] = eqx.field(static=True)
    convention: str = eqx.field(static=True)
    name: str = eqx.field(static=True, default="pruned_risk")
    label: str = eqx.field(static=True, default="risk after pruning (mean of squares)")
    axes: tuple[str, ...] = eqx.field(static=True, default=("removed",))

    @double
    def __init__(self, inputs, targets, levels, convention: str = "paper"):
        self.inputs, self.targets = jnp.asarray(inputs), jnp.asarray(targets)
        self.levels, self.convention = tuple(int(k) for k in np.asarray(levels)), convention

    def __call__(self, snapshot):
        curve = pruning_curve(
            snapshot.model,
            self.inputs,
            self.targets,
            convention=self.convention,
            levels=self.levels,
        )
        return curve.risk
