"""CIFAR-10 features with cross-entropy: risk, movement, pruning (caron2023, Figure 4); see `images`
for the features.

Run:  wideflow run caron2023-figure4
Takes:  default 2 min on two cores, smoke 10 s, paper on a GPU
"""

import numpy as np
import xarray as xr

from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec
from .images import Settings, accuracy_at, common_claims, figure, has_features, run
from .members import LAZY, PUBLISHED_ORDER, RICH, beside, rises

# ResNet-18 features, released figure files; shown beside ours, which come from other features
PUBLISHED = {
    "test cross-entropy": (0.400, 0.408, 0.429, 0.510),
    "test accuracy": (0.862, 0.859, 0.851, 0.829),
    "movement": (9.2, 52.0, 66.0, 118.0),
    "accuracy, half removed": (0.775, 0.785, 0.775, 0.828),
    "accuracy, 95 % removed": (0.36, 0.52, 0.49, 0.827),
}


def draw(table: xr.Dataset) -> FigureSpec:
    return figure(table, "cross-entropy under asymmetric node scaling", "Figure 4")


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    statements = common_claims(table)
    if (
        not set(PUBLISHED_ORDER) <= set(table["setting"].values)
        or int(table["step"].values[-1]) < 500
    ):
        return tuple(statements)
    end, order = table.isel(step=-1), list(PUBLISHED_ORDER)
    whole, half, most = (accuracy_at(table, share) for share in (0.0, 0.5, 0.95))
    statements += [
        Claim(
            "movement of the most-moved node rises from γ=1 to (0, .4)",
            holds=rises(end["most_moved"]),
        ),
        Claim(
            "95 % removed: accuracy of (0, .4) minus that of γ=1",
            float(most.sel(setting=RICH) - most.sel(setting=LAZY)),
            at_least=0.1,
        ),
    ]
    if not has_features(table):
        return tuple(statements)
    statements += [
        Claim(
            "(0, .4): accuracy lost by removing 95 % of the nodes",
            float(whole.sel(setting=RICH) - most.sel(setting=RICH)),
            at_most=0.02,
        ),
        Claim(
            "unpruned accuracy is worst for (0, .4)",
            holds=bool(
                np.argmin(end["test_accuracy"].mean("seed").sel(setting=order).values)
                == len(order) - 1
            ),
        ),
    ]
    if int(table.attrs["epochs"]) < 100:
        return tuple(statements)
    ours = {
        "test cross-entropy": end["test_loss"].mean("seed"),
        "test accuracy": end["test_accuracy"].mean("seed"),
        "movement": end["most_moved"].mean("seed"),
        "accuracy, half removed": half,
        "accuracy, 95 % removed": most,
    }
    note = (
        f"{table.attrs['features']}, {table.attrs['samples']} images; the published number is of "
        "ResNet-18 features"
    )
    return (
        *statements,
        *(
            beside(
                f"{setting}: {text}", float(ours[text].sel(setting=setting)), numbers[i], 2.0, note
            )
            for text, numbers in PUBLISHED.items()
            for i, setting in enumerate(order)
        ),
    )


EXPERIMENT = Experiment(
    name="caron2023-figure4",
    paper="caron2023",
    title="Pruning on CIFAR-10 features with cross-entropy",
    figure="Figure 4",
    settings={
        "smoke": Settings(source="mixture", samples=300, width=100, epochs=3, records=4, seeds=1),
        "default": Settings(source="auto", samples=5000, width=500, epochs=8, records=20, seeds=1),
        "paper": Settings(),
    },
    run=run,
    draw=draw,
    claims=claims,
)
