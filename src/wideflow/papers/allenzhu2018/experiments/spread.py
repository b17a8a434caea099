"""What is learned is spread over all neurons (allenzhu2018, section 1 and Lemma 5.3's norms).

Run:  wideflow run allenzhu2018-spread      Takes:  default about 2 min on two cores, smoke 10 s

A fixed share of the neurons carries the increments at every width, the top 1 % hold an eighth of
the energy, and a random half of the neurons (doubled) predicts as the whole, the better the wider.
Norms of three-layer increments follow m^-3/4, m^-1/2.
"""

from dataclasses import replace

import xarray as xr

from ....experiments.base import Claim, Experiment
from ....experiments.slopes import slope
from ....figures import FigureSpec, Line, Panel
from .three_layer_runs import three_layer_table
from .two_layer_runs import two_layer_table
from .width_settings import SMALL, WidthSettings

SPREAD = (
    "participation",
    "largest",
    "top_energy",
    "awake",
    "dropped_top",
    "random_half",
    "half_correlation",
)
NORMS = ("first_norm_4", "first_norm_2", "first_norm_inf", "second_norm_2", "second_norm_inf")
DEFAULT = WidthSettings(widths=(400, 1600, 6400), samples=(400,), test_samples=1000)


def run(settings: WidthSettings, key, session) -> xr.Dataset:
    two = two_layer_table(settings, key, session.within(0, 2.0))
    three = three_layer_table(settings, key, session.within(1, 2.0))
    return xr.merge([two[list(SPREAD)], three[list(NORMS)]])


def draw(table: xr.Dataset) -> FigureSpec:
    mean = table.isel(samples=-1).mean("seed")
    widths = table["width"].values
    shares = [
        Line(widths, mean[name].values, table[name].attrs.get("label", name))
        for name in ("participation", "top_energy", "awake")
    ]
    errors = [
        Line(widths, mean[name].values, table[name].attrs.get("label", name))
        for name in ("random_half", "dropped_top")
    ]
    norms = [
        Line(
            table["width3"].values,
            table[name].mean("seed3").values,
            table[name].attrs.get("label", name),
        )
        for name in NORMS
    ]
    return FigureSpec(
        "Information is spread over all neurons",
        (
            Panel("shares of neurons", "width m", "share", shares, xscale="log"),
            Panel(
                "leaving neurons out",
                "width m",
                "relative squared error",
                errors,
                xscale="log",
                yscale="log",
            ),
            Panel(
                "norms of three-layer increments",
                "width m",
                "norm",
                norms,
                xscale="log",
                yscale="log",
            ),
        ),
        columns=3,
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    mean = table.isel(samples=-1).mean("seed")
    part, half = mean["participation"], mean["random_half"]
    deep = {name: slope(table["width3"], table[name].mean("seed3")) for name in NORMS}
    return (
        Claim(
            "participation ratio of the increments, least over widths",
            float(part.min()),
            at_least=0.15,
            note="reference run 0.22",
        ),
        Claim(
            "participation ratio, max/min over widths", float(part.max() / part.min()), at_most=1.3
        ),
        Claim(
            "energy of the top 1 % of neurons, largest over widths",
            float(mean["top_energy"].max()),
            at_most=0.2,
            note="reference run 0.128",
        ),
        Claim(
            "relative error of a random half, slope in m", slope(table["width"], half), at_most=-0.6
        ),
        Claim(
            "relative error of a random half from one width to the next, largest ratio",
            float((half.values[1:] / half.values[:-1]).max(initial=0.0)),
            at_most=1.0,
        ),
        Claim(
            "correlation of a random half at the largest width",
            float(mean["half_correlation"].isel(width=-1)),
            at_least=0.995,
            note="reference runs 0.980, 0.994, 0.998 at m = 400, 1600, 6400",
        ),
        Claim(
            "three layers: slope of ||W||_{2,4}",
            deep["first_norm_4"],
            expected=-0.75,
            tolerance=0.2,
            note="reference run -0.78",
        ),
        Claim(
            "three layers: slope of ||W||_F",
            deep["first_norm_2"],
            expected=-0.5,
            tolerance=0.2,
            note="reference run -0.55",
        ),
        Claim(
            "three layers: slope of ||W||_{2,inf}",
            deep["first_norm_inf"],
            at_least=-1.1,
            at_most=-0.55,
            note="reference run -0.86; flatter than the theory's -1; the cause was not examined",
        ),
        Claim(
            "three layers: slope of ||V||_F",
            deep["second_norm_2"],
            expected=-0.47,
            tolerance=0.2,
            note="reference run; eight other seeds -0.34 to -0.58",
        ),
        Claim(
            "three layers: slope of ||V||_{2,inf}",
            deep["second_norm_inf"],
            expected=-0.78,
            tolerance=0.2,
            note="reference run; eight other seeds -0.62 to -0.88",
        ),
    )


EXPERIMENT = Experiment(
    name="allenzhu2018-spread",
    paper="allenzhu2018",
    title="What is learned is spread over all neurons",
    figure="Lemma 5.3 (norms)",
    settings={
        "smoke": WidthSettings(**SMALL),
        "default": DEFAULT,
        "paper": replace(DEFAULT, seeds=5, seeds3=3),
    },
    claims_from_size="default",
    run=run,
    draw=draw,
    claims=claims,
)
