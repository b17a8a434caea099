"""The share of the symmetric part on CIFAR-10 features (caron2023, Figure 11): alpha = 1/2, gamma
from .1 to .7.

Run:  wideflow run caron2023-figure11
Takes:  default 2 min on two cores, smoke 10 s, paper on a GPU
"""

from typing import Any

import numpy as np
import xarray as xr

from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec
from .images import Settings, accuracy_at, common_claims, figure, has_features, run

GRID: dict[str, Any] = {"gammas": (0.1, 0.2, 0.5, 0.7), "alphas": (0.5, 0.5, 0.5, 0.5)}


def draw(table: xr.Dataset) -> FigureSpec:
    return figure(table, "the share γ of the symmetric part", "Figure 11")


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    statements = common_claims(table)
    if int(table["step"].values[-1]) < 500:
        return tuple(statements)
    half = accuracy_at(table, 0.5).values
    if has_features(table):
        statements.append(
            Claim(
                "50% removed: accuracy of γ=.1 minus that of γ=.7",
                float(half[0] - half[-1]),
                at_least=0.0,
                expected_to_hold=False,
                note="the paper expects it to fall in γ from half on; on "
                f"{table.attrs['features']} all γ are about equal at half",
            )
        )
    for share in (0.75, 0.9):
        values = accuracy_at(table, share).values
        statements += [
            Claim(
                f"{share:.0%} removed: accuracy of γ=.1 minus that of γ=.7",
                float(values[0] - values[-1]),
                at_least=0.0,
            ),
            Claim(
                f"{share:.0%} removed: largest rise of accuracy from one γ to the next",
                float(np.max(np.diff(values))),
                at_most=0.03,
                note="neighbours may swap within the noise of a run",
            ),
        ]
    return tuple(statements)


EXPERIMENT = Experiment(
    name="caron2023-figure11",
    paper="caron2023",
    title="Effect of the symmetric share on pruning",
    figure="Figure 11",
    settings={
        "smoke": Settings(
            source="mixture", samples=300, width=100, epochs=3, records=4, seeds=1, **GRID
        ),
        "default": Settings(
            source="auto", samples=5000, width=500, epochs=8, records=20, seeds=1, **GRID
        ),
        "paper": Settings(**GRID),
    },
    run=run,
    draw=draw,
    claims=claims,
)
