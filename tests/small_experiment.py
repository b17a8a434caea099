"""A small experiment for tests: known numbers, every kind of mark, a claim of every kind."""

import dataclasses
import math
from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr

from wideflow import Shallow, data, train
from wideflow.dynamics import GradientDescent
from wideflow.experiments.base import Claim, Experiment
from wideflow.figures import Bars, FigureSpec, Heatmap, HLine, Line, Panel, Points, VLine


@dataclass(frozen=True)
class Settings:
    width: int = 16
    rate: float = 0.5
    gammas: tuple[float, ...] = (1.0, 0.5)
    label: str = "plain"
    thorough: bool = False
    steps: int = 40
    every: int = 10
    seeds: int = 2
    precision: str = "float64"

    def __post_init__(self):
        if not self.rate > 0:
            raise ValueError(f"`rate` must be positive, got {self.rate}.")


def run(settings: Settings, key, session) -> xr.Dataset:
    dataset = data.sphere_sines(key, samples=8, features=4)
    nets = [
        Shallow.init(jax.random.fold_in(key, i), features=4, width=settings.width)
        for i in range(settings.seeds)
    ]
    table = train(
        nets,
        dataset,
        GradientDescent(settings.rate),
        steps=settings.steps,
        every=settings.every,
        precision=settings.precision,
        session=session.within(0, settings.steps, settings.label, weight=settings.steps),
    ).table
    told = {
        "gammas": settings.gammas,
        "thorough": settings.thorough,
        "nothing": None,
        "odd": math.inf,
    }
    table["kind"] = ("seed", np.array(["first", "second"] * settings.seeds)[: settings.seeds])
    return table.assign_attrs(told)


def draw(table: xr.Dataset) -> FigureSpec:
    time, losses = table.time.values, table.loss.values
    middle = losses.mean(0)
    return FigureSpec(
        "Every kind of mark",
        (
            Panel(
                "Curves",
                "time",
                "loss $L(t)$",
                [
                    Line(time, middle, "mean", middle / 2, middle * 2),
                    Line(time, losses[0], "first", dash="dashed"),
                    HLine(float(middle[-1]), "last"),
                    VLine(float(time[1]), "second record"),
                ],
                yscale="log",
            ),
            Panel(
                "Points",
                "time",
                "loss",
                [
                    Points(time, middle, "mean", errors=middle / 10),
                    Points(time, losses[0], group="first"),
                ],
            ),
            Panel(
                "Bars",
                "",
                "height",
                [Bars(["a", "b"], [1.0, 2.0], "left"), Bars(["a", "b"], [2.0, 1.0], "right")],
                note="in pairs",
            ),
            Panel(
                "Map",
                "x",
                "y",
                [
                    Heatmap(
                        [1.0, 2.0, 3.0],
                        [1.0, 10.0],
                        [[1.0, 2.0, 3.0], [4.0, math.nan, 6.0]],
                        "value",
                    )
                ],
                yscale="log",
            ),
            Panel(
                "Both signs",
                "time",
                "signed",
                [Line(time, middle - middle[2], "mean")],
                yscale="symlog",
            ),
        ),
        caption="For tests.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    first, last = float(table.loss[0, 0]), float(table.loss[0, -1])
    return (
        Claim("the loss falls", last / first, at_most=1.0, published=0.5),
        Claim(
            "a paper's claim that is wrong",
            last,
            at_least=1e9,
            expected_to_hold=False,
            note="declared",
        ),
        Claim(
            "attributes survive",
            holds=list(table.attrs["gammas"]) == [1.0, 0.5] and table.attrs["nothing"] is None,
        ),
    )


EXPERIMENT = Experiment(
    name="small-one",
    paper="caron2023",
    title="A small experiment",
    figure="Figure 0",
    settings={"smoke": Settings(), "default": Settings(steps=80), "paper": Settings(steps=160)},
    run=run,
    draw=draw,
    claims=claims,
)

FAILING = dataclasses.replace(
    EXPERIMENT,
    name="small-failing",
    claims=lambda table: (
        Claim("fine", 1.0, at_least=0.0),
        Claim("two is three", 2.0, expected=3.0, tolerance=0.1),
    ),
)


def registered() -> dict[str, Experiment]:
    """What stands in for the registry."""
    return {EXPERIMENT.name: EXPERIMENT, FAILING.name: FAILING}


def with_short_figures() -> dict[str, Experiment]:
    """The same with the first panel alone, where it is commands that are tested: drawing all kinds
    of marks takes a second.
    """

    def first_panel(table: xr.Dataset) -> FigureSpec:
        spec = draw(table)
        return dataclasses.replace(spec, panels=spec.panels[:1])

    return {name: dataclasses.replace(one, draw=first_panel) for name, one in registered().items()}
