"""Radii of the three projections of the clipped flow."""

import math
from typing import NamedTuple

import numpy as np

from ...._core.arrays import real_values


class Thresholds(NamedTuple):
    r"""$R_{v_1}, R_{v_2}, R_{r_2}$: bounds on one sample's mean-field gradient of a first-layer
    neuron (a vector), a second-layer weight and a second-layer bias (numbers). Infinite means not
    projected.

    Attributes:
        first: $R_{v_1}$.
        weight: $R_{v_2}$.
        bias: $R_{r_2}$.
    """

    first: float = math.inf
    weight: float = math.inf
    bias: float = math.inf

    @classmethod
    def standard(cls, d: int) -> "Thresholds":
        r"""$(10 d, d^3, 10)$: the paper's $\Theta(d), \Theta(d^3), \Theta(1)$ with large enough
        constants.
        """
        return cls(10.0 * d, float(d) ** 3, 10.0)

    @property
    def off(self) -> bool:
        return all(math.isinf(bound) for bound in self)


def as_thresholds(clip) -> Thresholds:
    """Thresholds from None (no projection), a triple, or thresholds; each must be positive."""
    if clip is None:
        return Thresholds()
    bounds = np.asarray(real_values("clip", clip, "(3,)", finite=False), float)
    if not np.all(bounds > 0):
        raise ValueError(
            f"`clip` must be three positive bounds, got {tuple(bounds.tolist())}. Use `inf` to "
            "switch a projection off."
        )
    return Thresholds(*bounds.tolist())
