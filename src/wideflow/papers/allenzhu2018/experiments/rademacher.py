"""Rademacher complexity of the learners, computed beside its bounds (allenzhu2018, Lemmas 5.9 and
G.5).

Run:  wideflow run allenzhu2018-rademacher      Takes:  default about 2 min on two cores, smoke 10 s

N = 50, tau_w = 20 m^-3/4, tau_v = 0.1. The bilinear part's sup is exact and 0.4-0.6 of the bound;
ascent on the true network exceeds the chain at small widths, by the coupling error that (50) leaves
out, and falls below it as m grows. Two layers: 0.5-0.9 of the bound.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, HLine, Panel
from ..concept_data import padded_sphere
from ..models.biased_three_layer import BiasedThreeLayer
from ..models.biased_two_layer import BiasedTwoLayer
from ..observables.rademacher import (
    bilinear_bound,
    bilinear_rademacher,
    network_sup,
    rademacher_signs,
    two_layer_bound,
    two_layer_sup,
)
from .marks import measured


@dataclass(frozen=True)
class Settings:
    """`draws` sign vectors for the exact sup, `ascents` of them for the true network."""

    widths: tuple[int, ...] = (50, 100, 200, 400)
    samples: int = 50
    draws: int = 8
    ascents: int = 3
    iterations: int = 40
    shallow_widths: tuple[int, ...] = (100, 400, 1600)
    seeds: int = 1


SMOKE = Settings(widths=(20,), samples=50, draws=2, ascents=1, iterations=4, shallow_widths=(20,))


def run(settings: Settings, key, session) -> xr.Dataset:
    names = ("exact", "chain", "bound", "network")
    results = {name: np.zeros(len(settings.widths)) for name in names}
    x = padded_sphere(named_key(key, "inputs"), settings.samples, 5)
    xi = rademacher_signs(named_key(key, "xi"), settings.samples, settings.draws)
    total = len(settings.widths) + len(settings.shallow_widths)
    for j, width in enumerate(settings.widths):
        session.progress(j, total, f"three layers, m={width}")
        model = BiasedThreeLayer.init(
            named_key(key, "network"), features=6, width=width, output_std=1.0
        )
        first, second = 20 * width**-0.75, 0.1
        results["exact"][j], results["chain"][j] = bilinear_rademacher(model, x, xi, first, second)
        results["bound"][j] = bilinear_bound(model, settings.samples, first, second)
        sups = [
            network_sup(
                named_key(key, "ascent", i),
                model,
                x,
                xi[i],
                first,
                second,
                iterations=settings.iterations,
            )
            for i in range(settings.ascents)
        ]
        base = [abs(float(xi[i] @ model.outputs(x))) for i in range(settings.ascents)]
        results["network"][j] = (np.mean(sups) - np.mean(base)) / settings.samples
    shallow = np.zeros(len(settings.shallow_widths))
    for j, width in enumerate(settings.shallow_widths):
        session.progress(len(settings.widths) + j, total, f"two layers, m={width}")
        model = BiasedTwoLayer.init(
            named_key(key, "network"), features=6, width=width, output_std=1.0
        )
        radius = 1 / width
        gains = [
            two_layer_sup(named_key(key, "two", i), model, x, xi[i], radius)
            - float(xi[i] @ model.outputs(x))
            for i in range(settings.draws)
        ]
        shallow[j] = (
            np.mean(gains) / settings.samples / two_layer_bound(model, settings.samples, radius)
        )
    session.progress(total, total, "done")
    return xr.Dataset(
        {
            **{name: ("width", values) for name, values in results.items()},
            "two_layer_ratio": ("shallow_width", shallow),
        },
        {"width": list(settings.widths), "shallow_width": list(settings.shallow_widths)},
    )


def draw(table: xr.Dataset) -> FigureSpec:
    labels = {
        "exact": "bilinear part, exact",
        "chain": "the paper's chain",
        "bound": r"$\tau_w \tau_v m^{1/4} \|a\| / \sqrt{N}$",
        "network": "true network, ascent (beyond its start)",
    }
    three = []
    for name, label in labels.items():
        three += measured(table["width"].values, table[name].values, label)
    ratios = measured(
        table["shallow_width"].values, table["two_layer_ratio"].values, "ascent / bound"
    )
    two = [*ratios, HLine(1.0, "bound")]
    return FigureSpec(
        "Rademacher complexity beside its bounds",
        (
            Panel("three layers", "width m", "complexity", three, xscale="log", yscale="log"),
            Panel(
                "two layers",
                "width m",
                r"complexity / $(\|a\|_1 \tau / \sqrt{N})$",
                two,
                xscale="log",
            ),
        ),
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    ratio = table["exact"] / table["bound"]
    excess = table["network"] / table["chain"]
    statements = [
        Claim(
            "bilinear complexity over its bound, largest",
            float(ratio.max()),
            at_most=1.0,
            note="reference runs 0.39-0.58",
        ),
        Claim("bilinear complexity over its bound, least", float(ratio.min()), at_least=0.3),
        Claim(
            "exact over the paper's chain, largest",
            float((table["exact"] / table["chain"]).max()),
            at_most=0.8,
            note="reference runs 0.6-0.7",
        ),
        Claim(
            "true network over the chain: falls from the smallest to the largest width",
            float(excess[-1] / excess[0]),
            at_most=0.8,
            note="the coupling error that (50) leaves out; reference runs give 0.66 from m = 100 "
            "to 400, two seeds from 50 to 400 gave 0.5 and 0.70",
        ),
        Claim(
            "two layers: complexity over its bound, largest",
            float(table["two_layer_ratio"].max()),
            at_most=1.0,
            note="reference runs 0.5-0.9",
        ),
    ]
    widths = table["width"].values
    if 100 in widths:
        statements.append(
            Claim(
                "true network over the chain at m = 100: the coupling error shows",
                float(excess.sel(width=100)),
                at_least=1.0,
                note="reference run 0.32 / 0.23",
            )
        )
    if 1000 in widths:
        statements.append(
            Claim(
                "true network over the chain at m = 1000: the coupling error is gone",
                float(excess.sel(width=1000)),
                at_most=1.0,
                note="reference run 0.13 / 0.25",
            )
        )
    return tuple(statements)


EXPERIMENT = Experiment(
    name="allenzhu2018-rademacher",
    claims_from_size="default",
    paper="allenzhu2018",
    title="Rademacher complexity beside its bounds",
    figure="Lemmas 5.9, G.5",
    settings={
        "smoke": SMOKE,
        "default": Settings(),
        "paper": Settings(widths=(100, 200, 400, 1000), ascents=8, draws=20, iterations=80),
    },
    run=run,
    draw=draw,
    claims=claims,
)
