"""The risk of a network of which only the important nodes are kept, along a run."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from .._core.arrays import real_array, real_values
from .._core.errors import check_choice, check_count
from .._core.precision import double
from ..models.pruning import CONVENTIONS, pruning_curve
from .base import AbstractObservable

__all__ = ["PrunedRisk"]


class PrunedRisk(AbstractObservable):
    r"""Mean of squares on the given data with the $k$ least important nodes removed, for every $k$
    of `levels`; see `pruning_curve`.

    Args:
        inputs: shape (sample, feature).
        targets: shape (sample,) or (sample, output).
        levels: the $k$.
        convention: which importance, "paper" or "released"; see `importance`.
    """

    inputs: Float[Array, "sample feature"]
    targets: Float[Array, " sample *output"]
    levels: tuple[int, ...] = eqx.field(static=True)
    convention: str = eqx.field(static=True)
    name: str = eqx.field(static=True, default="pruned_risk")
    label: str = eqx.field(static=True, default="risk after pruning (mean of squares)")
    axes: tuple[str, ...] = eqx.field(static=True, default=("removed",))

    @double
    def __init__(self, inputs, targets, levels, convention: str = "paper"):
        self.inputs = real_array("inputs", inputs, "(sample, feature)")
        self.targets = real_array("targets", targets)
        if self.targets.shape[:1] != self.inputs.shape[:1]:
            raise ValueError(
                f"`targets` must have one row for each of the {len(self.inputs)} `inputs`, got "
                f"shape {self.targets.shape}."
            )
        check_choice("convention", convention, CONVENTIONS)
        levels = real_values("levels", levels)
        self.levels = tuple(np.atleast_1d(np.asarray(levels)).tolist())
        for level in self.levels:
            check_count("levels", level, least=0)
        self.convention = convention

    def __call__(self, snapshot):
        curve = pruning_curve(
            snapshot.model,
            self.inputs,
            self.targets,
            convention=self.convention,
            levels=self.levels,
        )
        return curve.risk
