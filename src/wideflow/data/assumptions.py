r"""Whether a dataset meets the assumptions of the convergence theorems (caron2023, Assumption
2.1).
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from .._core.arrays import real_array
from .._core.precision import double

__all__ = ["DataAssumptions", "check_data_assumptions"]

PARALLEL = 1e-7  # a sine below this is parallel to the precision of float64 inner products


class DataAssumptions(NamedTuple):
    r"""What Assumption 2.1 asks of the data.

    Attributes:
        largest_norm, smallest_norm: of the inputs; (a) asks $0 < |x_i|\le 1$.
        target_bound: $C = \max_i|y_i|$ of (c).
        smallest_sine: $\min_{i<k}\sqrt{1-\rho_{ik}^2}$ over pairs of inputs, both directions; (b)
            asks that it be positive.
        closest_pair: the pair that attains it, (-1, -1) with a single input.
        same_direction: whether that pair points the same way ($\rho > 0$) or oppositely.
    """

    largest_norm: float
    smallest_norm: float
    target_bound: float
    smallest_sine: float
    closest_pair: tuple[int, int]
    same_direction: bool

    @property
    def bounded(self) -> bool:
        """(a): no input is zero or longer than 1 (to rounding)."""
        return self.smallest_norm > 0.0 and self.largest_norm <= 1.0 + 1e-12

    @property
    def no_parallels(self) -> bool:
        """(b): no two inputs are parallel, either way."""
        return self.smallest_sine > PARALLEL

    @property
    def hold(self) -> bool:
        return self.bounded and self.no_parallels

    @property
    def message(self) -> str:
        """What fails and what to do about it."""
        faults = []
        if not self.smallest_norm > 0.0:
            faults.append("an input is zero: drop it")
        if self.largest_norm > 1.0 + 1e-12:
            faults.append(
                f"the longest input has norm {self.largest_norm:.4g} > 1: divide by it "
                "(`data.on_unit_ball()`)"
            )
        if not self.no_parallels:
            first, second = self.closest_pair
            if self.same_direction:
                faults.append(
                    f"inputs {first} and {second} are parallel: kappa_n is 0 for ReLU, and for "
                    "every activation if they are equal"
                )
            else:
                faults.append(
                    f"inputs {first} and {second} are opposite: harmless for ReLU, kappa_n is 0 "
                    "where sigma' is even"
                )
        return (
            "; ".join(faults) if faults else "inputs lie in the unit ball and no two are parallel"
        )


@double
def check_data_assumptions(inputs, targets) -> DataAssumptions:
    r"""Norms, target bound and smallest angle of a dataset (caron2023, Assumption 2.1).

    The sine of a pair comes from $|\hat u\mp\hat v|$, the chord between unit vectors, so nearly
    parallel inputs are resolved to rounding.

    Args:
        inputs: $x_i$, shape (sample, feature).
        targets: $y_i$, shape (sample,) or (sample, output).
    """
    inputs = real_array("inputs", inputs, "(sample, feature)").astype(float)
    targets = real_array("targets", targets).astype(float)
    if inputs.ndim != 2 or targets.shape[:1] != inputs.shape[:1]:
        raise ValueError(
            f"`inputs` and `targets` must have one row per sample, got shapes {inputs.shape} and "
            f"{targets.shape}."
        )
    norms = np.asarray(jnp.linalg.norm(inputs, axis=1))
    unit = np.asarray(inputs) / np.where(norms > 0, norms, 1.0)[:, None]
    sine, pair, same = np.inf, (-1, -1), True
    for first in range(len(unit) - 1):
        rest = unit[first + 1 :]
        minus, plus = (np.linalg.norm(rest + sign * unit[first], axis=1) for sign in (-1.0, 1.0))
        sines = minus * plus / 2.0  # |u - v| |u + v| = 2 sin(angle) for unit vectors
        best = int(np.argmin(sines))
        if sines[best] < sine:
            sine, pair, same = (
                float(sines[best]),
                (first, first + 1 + best),
                bool(minus[best] < plus[best]),
            )
    return DataAssumptions(
        float(norms.max()),
        float(norms.min()),
        float(jnp.max(jnp.abs(targets))),
        min(sine, 1.0),
        pair,
        same,
    )
