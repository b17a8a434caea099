"""Few neurons change sign (allenzhu2018, Lemmas 5.5 and G.3): fraction flipped along training, and
in the worst case.

Run:  wideflow run allenzhu2018-sign-changes
Takes:  default about 2 min on two cores, smoke 10 s

Along training the flipped fraction falls like m^-1/2 in two layers. The worst case within
||W'||_{2,4} <= m^-a flips about m^{6/5 - 4a/5} neurons, so the exponent of Lemma 5.5 is sharp.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ....experiments.base import Claim, Experiment
from ....experiments.slopes import slope
from ....figures import FigureSpec, Line, Panel, Points
from ..limits.sign_changes import first_layer_flips, greedy_flips
from .generators import biased_preactivations, generator
from .marks import guide, measured
from .three_layer_runs import three_layer_table
from .two_layer_runs import two_layer_table
from .width_settings import SMALL


@dataclass(frozen=True)
class Settings:
    """As in the width experiment; `worst_widths`, `exponents` and `draws` belong to the worst case
    $\\tau_w = m^{-a}$.
    """

    widths: tuple[int, ...] = (200, 400, 800, 1600, 3200, 6400)
    samples: tuple[int, ...] = (100, 400)
    seeds: int = 3
    features: int = 10
    steps: int = 4000
    output_std: float = 0.3
    test_samples: int = 1000
    widths3: tuple[int, ...] = (50, 100, 200, 400, 800)
    samples3: int = 300
    seeds3: int = 1
    steps3: int = 3000
    worst_widths: tuple[int, ...] = (256, 1024, 4096, 16384, 65536, 262144, 1048576)
    exponents: tuple[float, ...] = (0.75, 0.6, 0.5)
    draws: int = 20


SMOKE = Settings(
    **SMALL,
    worst_widths=(256, 1024, 4096),
    draws=4,
)


def worst_case(settings: Settings, key) -> xr.Dataset:
    """Greedy counts against the asymptotic formula; the largest widths need few draws, their counts
    hardly scatter.
    """
    counts = np.zeros((len(settings.exponents), len(settings.worst_widths)))
    formula = np.zeros_like(counts)
    for j, width in enumerate(settings.worst_widths):
        rng = generator(key, "worst", width)
        draws = max(2, min(settings.draws, 2_000_000 // width))
        layers = [biased_preactivations(rng, width) for _ in range(draws)]
        for i, exponent in enumerate(settings.exponents):
            counts[i, j] = np.mean([greedy_flips(z, width**-exponent, 4.0) for z in layers])
            formula[i, j] = first_layer_flips(width**-exponent, width)
    return xr.Dataset(
        {
            "worst": (("exponent", "worst_width"), counts),
            "worst_formula": (("exponent", "worst_width"), formula),
        },
        {"exponent": list(settings.exponents), "worst_width": list(settings.worst_widths)},
    )


def run(settings: Settings, key, session) -> xr.Dataset:
    two = two_layer_table(settings, key, session.within(0, 2.0))
    three = three_layer_table(settings, key, session.within(1, 2.0))
    return xr.merge(
        [two[["flipped"]], three[["flipped_first", "flipped_second"]], worst_case(settings, key)]
    )


def draw(table: xr.Dataset) -> FigureSpec:
    widths, trained = table["width"].values, []
    for n in table["samples"].values:
        flipped = table["flipped"].sel(samples=n).mean("seed").values
        trained += measured(widths, flipped, f"two layers, N = {n}")
    trained.append(guide(widths, 1.5 * flipped[0], -0.5, "$m^{-1/2}$"))
    for layer in ("first", "second"):
        flipped = table[f"flipped_{layer}"].mean("seed3").values
        label = f"three layers, {layer} layer"
        trained += measured(table["width3"].values, flipped, label, dash="dashed")
    worst = []
    for a in table["exponent"].values:
        # the formula alone as a line: it would hide one through the points
        one, label = table.sel(exponent=a), rf"$\tau_w = m^{{-{a:g}}}$"
        worst.append(Points(table["worst_width"].values, one["worst"].values, label))
        formula = one["worst_formula"].values
        worst.append(Line(table["worst_width"].values, formula, group=label, dash="dotted"))
    return FigureSpec(
        "Sign changes against width",
        (
            Panel(
                "along training",
                "width m",
                "fraction of signs changed",
                trained,
                xscale="log",
                yscale="log",
            ),
            Panel(
                r"worst case, $\|W'\|_{2,4} \leq \tau_w$",
                "width m",
                "signs changed",
                worst,
                xscale="log",
                yscale="log",
                note=r"dotted: $0.9526\,\tau_w^{4/5} m^{6/5}$",
            ),
        ),
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    statements = []
    for n in table["samples"].values:
        value = slope(table["width"], table["flipped"].sel(samples=n).mean("seed"))
        statements.append(
            Claim(
                f"two layers, N={n}: slope of the flipped fraction",
                value,
                at_least=-0.6,
                at_most=-0.4,
                note="reference run -0.5",
            )
        )
    first = slope(table["width3"], table["flipped_first"].mean("seed3"))
    second = slope(table["width3"], table["flipped_second"].mean("seed3"))
    statements.append(
        Claim(
            "three layers, first layer: slope",
            first,
            at_least=-0.7,
            at_most=-0.35,
            note="reference run -0.52",
        )
    )
    statements.append(
        Claim(
            "three layers, second layer: slope",
            second,
            at_least=-0.75,
            at_most=0.0,
            note="reference run -0.40",
        )
    )
    for a in table["exponent"].values:
        one = table.sel(exponent=a)
        value = slope(table["worst_width"], one["worst"])
        statements.append(
            Claim(
                f"worst case, tau_w = m^-{a:g}: slope of the count",
                value,
                expected=1.2 - 0.8 * float(a),
                tolerance=0.03,
            )
        )
    ratio = (
        (table["worst"] / table["worst_formula"])
        .sel(exponent=table["exponent"].values[0])
        .isel(worst_width=-1)
    )
    statements.append(
        Claim(
            "worst case over the formula at the largest width",
            float(ratio),
            expected=1.0,
            tolerance=0.05,
        )
    )
    return tuple(statements)


EXPERIMENT = Experiment(
    name="allenzhu2018-sign-changes",
    paper="allenzhu2018",
    title="Few neurons change sign",
    figure="Lemmas 5.5, G.3",
    settings={"smoke": SMOKE, "default": Settings(), "paper": Settings(seeds=5, seeds3=3)},
    claims_from_size="default",
    run=run,
    draw=draw,
    claims=claims,
)
