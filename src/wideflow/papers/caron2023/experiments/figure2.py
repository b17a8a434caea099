"""Regression on four UCI sets, one panel of each (caron2023, Figure 2); the table holds all panels
of Figures 6-9 too.

Run:  wideflow run caron2023-figure2
Takes:  default 4 min on two cores, smoke 20 s, paper on a GPU
"""

import dataclasses

import xarray as xr

from ....experiments.base import Experiment
from ....figures import FigureSpec
from .regression import DEFAULT, SMOKE, Settings, caption, claims, panels, run

DATASETS = ("concrete", "energy", "airfoil", "plant")
SHOWN = {"concrete": "movement", "energy": "drift", "airfoil": "pruned", "plant": "transfer_test"}


def draw(table: xr.Dataset) -> FigureSpec:
    shown = []
    for name, quantity in SHOWN.items():
        if name in table["dataset"].values:
            panel = panels(table.sel(dataset=name))[quantity]
            shown.append(dataclasses.replace(panel, title=f"{name}: {panel.title}"))
    return FigureSpec(
        "Regression under asymmetric node scaling",
        shown,
        caption=caption(table, "Figure 2"),
    )


EXPERIMENT = Experiment(
    name="caron2023-figure2",
    paper="caron2023",
    title="Feature learning, pruning and transfer on four regression sets",
    figure="Figure 2",
    settings={
        "smoke": Settings(datasets=DATASETS[:2], **SMOKE),
        "default": Settings(
            datasets=DATASETS, **{**DEFAULT, "steps": 1000, "seeds": 1, "tops": (10, 100)}
        ),
        "paper": Settings(datasets=DATASETS),
    },
    run=run,
    draw=draw,
    claims=claims,
    needs_data=DATASETS,
)
