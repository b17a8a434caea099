"""Where a run lies from lazy to rich: the numbers that the dial shows."""

import xarray as xr

from ..observables.regime import LAZY, RICH, Regime
from .health import diverged


def dial(table: xr.Dataset) -> dict | None:
    """The two numbers of the regime at the last record, the richness they give, and the verdict; a
    run that diverges is neither lazy nor rich.
    """
    if not {"kernel_change", "linearisation_gap"} <= set(table):
        return None
    last = table.isel(step=-1)
    regime = Regime(*(float(last[n].values.max()) for n in ("kernel_change", "linearisation_gap")))
    return {
        "richness": regime.richness,
        "verdict": _verdict(table, regime),
        "kernel_change": regime.kernel_change,
        "linearisation_gap": regime.linearisation_gap,
        "lazy": LAZY,
        "rich": RICH,
    }


def _verdict(table: xr.Dataset, regime: Regime) -> str:
    if table.sizes["step"] == 1:
        return "at the start"  # nothing has moved: that says nothing of the regime
    return "diverged" if diverged(table) else regime.verdict
