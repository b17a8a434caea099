"""The constructed direction really lowers the smoothed loss (allenzhu2018, Lemma 5.3, corrected).

Run:  wideflow run allenzhu2018-descent-direction
Takes:  default about 2 min on two cores, smoke 10 s

F* = sin(x1)cos(x2), 40 inputs, Huber loss, W = V = 0, lambda = 1. Along W*, V* of Lemma 5.6 the
smoothed loss falls at rate about 0.1 per unit of eta, and the inequality (360) behind the lemma
holds with excess about -0.1. The regulariser's own counterexample to the printed lemma stands
beside it.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....dynamics.bounded_losses import Huber
from ....experiments.base import Claim, Experiment
from ....figures import Bars, FigureSpec, HLine, Panel
from ..concept_data import concept_data, padded_sphere, product_concept
from ..laws.power_series import smooth
from ..limits.constructions.three_layer import ridge_carrier, three_layer_weights
from ..models.biased_three_layer import BiasedThreeLayer
from ..observables.smoothed_objective import descent_triple
from ..smoothed_sgd import SmoothedSGD
from ..theorems.optimisation import Lemma53Printed


@dataclass(frozen=True)
class Settings:
    """`scale` is the free c of Lemma 5.6: near (eps_a^3 sqrt(2 m) / K)^(1/2) it balances the two
    cross variances.
    """

    width: int = 3000
    seeds: int = 3
    draws: int = 3
    rates: tuple[float, ...] = (0.1, 0.02)
    output_std: float = 0.2
    scale: float = 0.3
    samples: int = 40


SMOKE = Settings(width=40, seeds=1, draws=2, samples=50)


def run(settings: Settings, key, session) -> xr.Dataset:
    m, concept = settings.width, product_concept(smooth("sin"), smooth("cos"), 5)
    results = {
        name: np.zeros((settings.seeds, len(settings.rates)))
        for name in ("moved", "shrunk", "excess", "here")
    }
    for s in range(settings.seeds):
        k = named_key(key, "seed", s)
        session.progress(s, settings.seeds, f"start {s + 1} of {settings.seeds}")
        model = BiasedThreeLayer.init(
            named_key(k, "network"), features=6, width=m, output_std=settings.output_std
        )
        data = concept_data(named_key(k, "data"), concept, samples=settings.samples, features=5)
        net = (
            np.asarray(model.first),
            np.asarray(model.first_bias),
            np.asarray(model.second),
            np.asarray(model.second_bias),
            np.asarray(model.output),
        )
        carrier = ridge_carrier(
            net[0], net[1], concept, 0, np.asarray(padded_sphere(named_key(k, "carrier"), 300, 5))
        )
        signs = np.sign(np.asarray(padded_sphere(named_key(k, "signs"), 1, m))[:, :m])
        weights = three_layer_weights(
            *net,
            concept,
            output_std=settings.output_std,
            signs=signs,
            carriers=[carrier],
            scale=settings.scale,
        )
        first, second = jnp.asarray(weights.first), jnp.asarray(weights.second)
        dynamics = SmoothedSGD(
            0.1, shrink=False, first_smoothing=2 / m, second_smoothing=0.2 / m**0.5
        )
        for j, rate in enumerate(settings.rates):
            triple = descent_triple(
                named_key(k, "noise"),
                model,
                data,
                Huber(),
                dynamics,
                first,
                second,
                jnp.asarray(rate),
                settings.draws,
            )
            c1, c2, c3 = float(triple.moved), float(triple.shrunk), float(triple.here)
            results["moved"][s, j], results["shrunk"][s, j] = (c1 - c3) / rate, (c2 - c3) / rate
            results["excess"][s, j], results["here"][s, j] = (
                (c1 - (1 - rate) * (2 * c3 - c2)) / rate,
                c3,
            )
    session.progress(settings.seeds, settings.seeds, "done")
    table = xr.Dataset(
        {name: (("seed", "rate"), values) for name, values in results.items()},
        {"seed": np.arange(settings.seeds), "rate": list(settings.rates)},
    )
    # R = 1 with data loss 0, the point at which the printed lemma fails
    point: dict[str, Any] = dict(
        first=[[1.0, 0.0]],
        second=[[1.0]],
        first_star=[[0.0, 0.03]],
        second_star=[[0.03]],
        first_penalty=0.5,
        second_penalty=0.5,
    )
    for scaling in ("printed", "lambda"):
        numbers = Lemma53Printed()(**point, scaling=scaling).numbers
        table[f"margin_{scaling}"] = numbers["bound"] - min(numbers["c1"], numbers["c2"])
    return table


def draw(table: xr.Dataset) -> FigureSpec:
    seeds, rate = table["seed"].values, table["rate"].values[0]
    one = table.sel(rate=rate)
    bars = [
        Bars([f"{seed}" for seed in seeds], one[name].values, label)
        for name, label in (
            ("moved", r"$(c_1 - c_3)/\eta$"),
            ("shrunk", r"$(c_2 - c_3)/\eta$"),
            ("excess", "excess of (360)"),
        )
    ]
    return FigureSpec(
        "The existential direction lowers the smoothed loss",
        (Panel(f"η = {rate:g}", "initialisation", "rate of change", [*bars, HLine(0.0)]),),
        columns=1,
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    first = table.isel(rate=0)
    statements = [
        Claim(
            "(c1 - c3)/eta, largest over initialisations", float(first["moved"].max()), at_most=0.0
        ),
        Claim(
            "excess of (360), largest over initialisations",
            float(first["excess"].max()),
            at_most=0.03,
        ),
        Claim(
            "(c1 - c3)/eta, mean",
            float(first["moved"].mean()),
            at_most=-0.04,
            note="reference runs -0.044 to -0.150",
        ),
        Claim(
            "excess of (360), mean",
            float(first["excess"].mean()),
            at_most=0.0,
            note="reference runs -0.114 to 0.005",
        ),
        Claim(
            "the printed lemma holds at R = 1, data loss 0",
            holds=bool(table["margin_printed"] >= 0),
            expected_to_hold=False,
            note="no move lowers the printed regulariser",
        ),
        Claim(
            "with R(sqrt(lambda) W, sqrt(lambda) V) it holds there",
            holds=bool(table["margin_lambda"] >= 0),
        ),
    ]
    if table.sizes["rate"] > 1:
        change = float(abs(table["excess"].isel(rate=1) - first["excess"]).max())
        statements.append(
            Claim("change of the excess from the larger to the smaller eta", change, at_most=0.05)
        )
    return tuple(statements)


EXPERIMENT = Experiment(
    name="allenzhu2018-descent-direction",
    paper="allenzhu2018",
    title="The constructed direction lowers the smoothed loss",
    figure="Lemma 5.3",
    settings={"smoke": SMOKE, "default": Settings(), "paper": Settings(seeds=25, draws=6)},
    claims_from_size="default",
    run=run,
    draw=draw,
    claims=claims,
)
