r"""What a user should be warned of: a rate beyond the edge of stability, a loss above its start.

Descent at rate $\eta$ multiplies the mode of eigenvalue $\lambda$ of the linearised residual by
$1 - \eta\lambda$: above $2/\lambda_{\max}$ it grows. $\lambda_{\max}$ is known at the first record,
before any step.
"""

from typing import Any

import numpy as np
import xarray as xr

from .._core.status import Status

RISEN = 1.01  # times the initial loss (chosen): above it nothing has been learned


def diverged(table: xr.Dataset) -> bool:
    """Whether the loss is above its start, or no number any more."""
    if "loss" not in table:
        return False
    first, last = _ends(table)
    return bool(np.any(~(last <= RISEN * first)))


def _ends(table: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The losses of all networks at the first and at the last record."""
    first, last = (np.atleast_1d(table.loss.isel(step=place).values) for place in (0, -1))
    return first, last


def largest_rate(table: xr.Dataset, settings: Any) -> float | None:
    """$2/\\lambda_{\\max}$ of the first record, None for runs without a rate or a spectrum."""
    if getattr(settings, "dynamics", "") != "descent" or "kernel_spectrum" not in table:
        return None
    from ..experiments.training import FACTORS

    factor = FACTORS[settings.loss](table.sizes["eigenvalue"])
    return 2.0 / (factor * float(table.kernel_spectrum.values[0, -1]))


def warning(table: xr.Dataset, settings: Any) -> str:
    """One or two sentences, or nothing."""
    edge = largest_rate(table, settings)
    beyond = edge is not None and settings.rate > edge
    way_out = f"choose a rate below {edge:.2g}" if edge is not None else "choose a smaller rate"
    if diverged(table):
        first, last = _ends(table)
        risen = float(np.max(last / first))
        times = (
            f"{risen:.3g} times what it was at the start"
            if np.isfinite(risen)
            else "no longer a finite number"
        )
        remedy = f"; {way_out}" if beyond else ""
        return f"This run has diverged: the loss is {times}{remedy}."
    if beyond:
        return (
            f"The rate {settings.rate:g} is above 2/λ_max = {edge:.3g} of the initial kernel: the "
            f"loss will grow or oscillate at first; {way_out}."
        )
    return ""


def ending(table: xr.Dataset) -> str:
    """How the run ended, in words for the page."""
    if diverged(table):
        return "diverged"
    status = str(table.attrs.get("status", "finished"))
    return "finished" if status == Status.FINISHED.sentence else status
