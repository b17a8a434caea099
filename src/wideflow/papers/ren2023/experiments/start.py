"""What is known of the first layer at time zero, checked as a claim."""

import math

import numpy as np
import xarray as xr

from ....experiments.base import Claim
from ..laws.base import c_gamma


def start_claim(table: xr.Dataset) -> Claim:
    r"""$e_2^2$ against its mean over starts, $(1/(2C_\Gamma^2) - 1)/m_1$.

    Most of it is the linear part of $F$, a sum of $d$ squares of deviation $\sqrt{2/d}$ times its
    mean: four deviations are allowed. Ratios of $e_2$ alone would not notice a factor common to all
    times.
    """
    d, width = table.attrs["features"], table.attrs["width"]
    mean = (1 / (2 * c_gamma(d) ** 2) - 1) / width
    ratios = table.direction_error.isel(step=0).values ** 2 / mean
    return Claim(
        "e₂² at the start over its mean, (1/(2C²) − 1)/m₁ (furthest seed)",
        float(ratios[np.argmax(np.abs(ratios - 1))]),
        expected=1.0,
        tolerance=4 * math.sqrt(2 / d),
        note="four standard deviations of its linear part",
    )
