r"""Concentration and loss decomposition at $d = 20$ over seeds, with the bands that 147 seeds gave
(ren2023, Section 4, eq. (6)).

Run:  wideflow run ren2023-concentration
Takes:  default about 2 s a seed on one core, plus compilation
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.precision import Precision, double
from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, Line, Panel
from ..laws.bessel import BesselLaw
from .learner import reduced_reference, train_learner
from .start import start_claim
from .verdicts import verdict_claims, with_verdicts

TIMES = (83.5, 167.0, 250.0)
LIMIT_ALPHA = (0.33310, 0.53036, 0.58310)


NOT_CHECKED = (
    "settings differ from the default: the bands of 147 seeds and the lemmas do not belong to this "
    "run and are not checked"
)


@dataclass(frozen=True)
class Settings:
    features: int = 20
    width: int = 256
    second: int = 32
    ab: float = 1.0
    radius: float = 1.0
    deviation: float = 1e-3
    bias: float = 0.3
    batch: int = 512
    rate: float = 0.5
    steps: int = 500
    records: int = 25
    seeds: int = 3
    precision: Precision = "float64"


@double
def run(settings: Settings, key, session) -> xr.Dataset:
    law = BesselLaw(settings.features, settings.ab)
    marks = [round(t / settings.rate) for t in TIMES]
    stride = max(1, settings.steps // settings.records)
    grid = sorted(
        {
            1,
            2,
            *range(0, settings.steps + 1, stride),
            *(m for m in marks if m <= settings.steps),
            settings.steps,
        }
    )
    tables, verdicts = [], []
    for seed in range(settings.seeds):
        part = session.within(seed, settings.seeds, f"seed {seed}")
        table, verdict = train_learner(
            law, settings, named_key(key, "seed", seed), part, time_grid=grid
        )
        tables.append(table)
        verdicts.append(verdict)
    table = with_verdicts(xr.concat(tables, "seed").drop_vars("profile"), verdicts)
    reference = reduced_reference(law, settings, table.time.values[1:])
    table["limit_alpha"] = ("step", np.concatenate([[np.nan], reference.alpha.values]))
    table["limit_loss"] = ("step", np.concatenate([[np.nan], reference.loss.values]))
    return table.assign_attrs(
        full=int(settings == Settings(seeds=settings.seeds)),
        rate=settings.rate,
        features=settings.features,
        width=settings.width,
    )


def draw(table: xr.Dataset) -> FigureSpec:
    one, t = table.isel(seed=0), table.time.values
    parts = [Line(t, np.abs(one.loss_parts.sel(part=p).values), p) for p in ("L1", "L2", "L3")]
    parts.append(
        Line(t, np.abs(one.loss_parts.sel(part="eq6").values), "eq. (6) for L2", dash="dashed")
    )
    panels = (
        Panel(
            "Loss and its parts",
            "time t",
            "loss",
            [Line(t, one.loss.values, "L"), *parts],
            yscale="log",
        ),
        Panel(
            "Size of the first layer",
            "time t",
            "α",
            [
                *(
                    Line(t, table.alpha.isel(seed=i).values, "network", group="network")
                    for i in range(table.sizes["seed"])
                ),
                Line(t, one.limit_alpha.values, "infinite width", dash="dashed"),
            ],
        ),
        Panel(
            "Errors of the layers",
            "time t",
            "e₂, δ₂, δ₁ᵀ",
            [
                Line(t, one.direction_error.values, "e₂"),
                Line(t, one.second_spread.values, "δ₂"),
                Line(t[1:], one.tangent_spread.values[1:], "δ₁ᵀ"),
            ],
            yscale="log",
        ),
    )
    return FigureSpec(
        "The loss splits as in equation (6), and the second layer stays together", panels, columns=3
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    end, start = table.isel(step=-1), table.isel(step=0)
    w, b = end.second_weight.mean("second"), end.second_bias.mean("second")
    parts = {p: end.loss_parts.sel(part=p) for p in ("L1", "L2", "L3", "eq6")}
    worst = lambda values: float(values.max())
    total = parts["L1"] + parts["L2"] + parts["L3"]
    statements = [
        Claim(
            "L = L1 + L2 + L3, relative error",
            worst(abs(total / end.loss - 1)),
            at_most=1e-5,
            note="" if table.attrs["full"] else NOT_CHECKED,
        ),
        Claim(
            "pairs projected in the whole run",
            worst(end.projected_pairs.sum("threshold")),
            at_most=0,
        ),
        Claim(
            "all w₂ < 0 after two steps: largest weight",
            worst(table.second_weight.isel(step=2)),
            at_most=0,
        ),
    ]
    if not table.attrs["full"]:
        return tuple(statements)
    at = table.isel(step=int(np.argmin(np.abs(table.time.values - TIMES[0]))))
    alphas = [table.alpha.isel(step=int(np.argmin(np.abs(table.time.values - t)))) for t in TIMES]
    drift = max(
        worst(abs(a / expected - 1)) for a, expected in zip(alphas, LIMIT_ALPHA, strict=True)
    )
    nearest = [int(np.argmin(np.abs(table.time.values - t))) for t in TIMES]
    limit_error = np.max(np.abs(table.limit_alpha.values[nearest] / LIMIT_ALPHA - 1))
    statements += [
        Claim("loss at t = 250, largest over seeds", worst(end.loss), at_most=2e-4),
        Claim("loss at t = 83.5, smallest", float(at.loss.min()), at_least=5.8e-3),
        Claim("loss at t = 83.5, largest", worst(at.loss), at_most=7.5e-3),
        Claim(
            "|L2/eq. (6) − 1| on one evaluation set",
            worst(abs(parts["L2"] / parts["eq6"] - 1)),
            at_most=0.06,
        ),
        Claim(
            "|L2/eq. (6) − 1| against its exact form",
            worst(abs(parts["L2"] / table.exact_eq6 - 1)),
            at_most=0.15,
        ),
        Claim(
            "|L3|/max(L1, L2)",
            worst(abs(parts["L3"]) / np.maximum(parts["L1"], parts["L2"])),
            at_most=0.1,
        ),
        Claim("|w̄₂ α + 1|", worst(abs(w * end.alpha + 1)), at_most=0.06),
        Claim("|b̄₂ − 1|", worst(abs(b - 1)), at_most=0.03),
        Claim("δ₂(end)/δ₂(0)", worst(end.second_spread / start.second_spread), at_most=1.05),
        Claim("δ₂(end)/|w̄₂|", worst(end.second_spread / abs(w)), at_most=0.01),
        Claim("max |f − f̃| for ‖x‖ ≤ 3", worst(table.symmetry_gap), at_most=0.16),
        start_claim(table),
        Claim("e₂(end)/e₂(0)", worst(end.direction_error / start.direction_error), at_most=0.65),
        Claim("α against infinite width at three times, relative", drift, at_most=0.04),
        Claim(
            "α of infinite width at three times against the table, relative",
            float(limit_error),
            at_most=5e-5,
            note="printed to five decimals",
        ),
        *verdict_claims(table),
    ]
    return tuple(statements)


EXPERIMENT = Experiment(
    name="ren2023-concentration",
    paper="ren2023",
    title="Neurons concentrate and the loss splits as in equation (6)",
    figure="Section 4, equation (6)",
    settings={
        "smoke": Settings(
            features=6, width=32, second=8, batch=64, rate=0.2, steps=20, records=4, seeds=1
        ),
        "default": Settings(),
        "paper": Settings(seeds=20),
    },
    run=run,
    draw=draw,
    claims=claims,
)
