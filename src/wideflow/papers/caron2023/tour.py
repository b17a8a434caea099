r"""Tour: node scaling against NTK, and then pruning (caron2023, Figure 1 and section 6.2).

One draw of weights and signs under three node scalings: NTK ($\gamma = 1$), half and half, and all
Zipf ($\gamma = 0$). All three fit the data; only where a few nodes carry much of the weight do
nodes move far, and there the others can be removed.

Run:  wideflow run tour-caron2023            Takes:  default 10 s on two cores, smoke 4 s
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ... import data, observables
from ..._core.errors import check_count, check_positive
from ..._core.precision import double
from ..._core.randomness import named_key
from ..._core.scalings import Zipf
from ...dynamics.descent import GradientDescent
from ...experiments.base import Claim, Experiment
from ...experiments.tours.moments import Moment, line_at, moment_when
from ...figures import FigureSpec, HLine, Line, Panel
from ...models.shallow import Shallow
from ...training.recorder import recording
from ...training.train import train
from .experiments.members import check_lengths, labels, levels_of

REMOVED = 0.8  # share of the nodes that is taken away
KEPT, LOST = 1.5, 10.0  # the pruned risk over the full one: "keeps its risk", "loses it"
LEARNT = 0.05  # of the risk of answering zero


@dataclass(frozen=True)
class Settings:
    samples: int = 100
    features: int = 50
    width: int = 2000
    gammas: tuple[float, ...] = (1.0, 0.5, 0.0)
    alphas: tuple[float, ...] = (0.7, 0.7, 0.4)
    noise: float = 0.1
    rate: float = 1.0
    time: float = 1000.0
    records: int = 60

    def __post_init__(self):
        for name in ("samples", "features", "width"):
            check_count(name, getattr(self, name), least=2)
        check_count("records", self.records, least=10)
        for name in ("rate", "time"):
            check_positive(name, getattr(self, name))
        check_lengths(self)
        if len(self.gammas) < 2 or self.gammas[0] != 1:
            raise ValueError(
                "`gammas` must start with 1, the NTK scaling, and have another to compare it "
                f"with, got {self.gammas}."
            )


@double
def run(settings: Settings, key, session) -> xr.Dataset:
    s, names = settings, labels(settings)
    training = data.sphere_sines(named_key(key, "data"), s.samples, s.features, s.noise)
    nets = [
        Shallow.init(
            named_key(key, "net"),
            features=s.features,
            width=s.width,
            scaling=Zipf(gamma, alpha),
        )
        for gamma, alpha in zip(s.gammas, s.alphas, strict=True)
    ]
    levels, steps = levels_of(s.width), math.ceil(s.time / s.rate)
    record = [
        observables.Risk(),
        observables.WeightMovement(),
        observables.KernelDistance("spectral", relative=False),
        observables.PrunedRisk(training.inputs, training.targets, levels),
    ]
    attributes = dict(
        samples=s.samples, width=s.width, zero=float(np.mean(np.asarray(training.targets) ** 2))
    )
    coordinates = dict(setting=names, removed=levels / s.width)
    finished = lambda table: table.assign_coords(coordinates).assign_attrs(attributes)
    table = train(
        nets,
        training,
        GradientDescent(s.rate),
        steps=steps,
        every=recording(steps, s.records),
        record=record,
        axis="setting",
        session=session.showing(finished),
    ).table
    return finished(table)


def farthest(table: xr.Dataset) -> np.ndarray:
    """How far the node that has moved most has come: (setting, step)."""
    return table.weight_movement.max("width").transpose("setting", "step").values


def cost_of_pruning(table: xr.Dataset) -> np.ndarray:
    """The risk with `REMOVED` of the nodes taken away over the full risk: (setting, step)."""
    pruned = table.pruned_risk.sel(removed=REMOVED, method="nearest")
    return (pruned / table.risk).transpose("setting", "step").values


def features_move(table: xr.Dataset) -> Moment | None:
    """A node of the last scaling has moved five times as far as any of NTK's, while NTK's risk is
    already small.
    """
    times, moved = table.time.values, farthest(table)
    learnt = table.risk.isel(setting=0).values <= LEARNT * table.attrs["zero"]
    lazy, rich = (str(table.setting.values[i]) for i in (0, -1))
    return moment_when(
        times,
        (times > 0) & learnt & (moved[-1] >= 5 * moved[0]),
        lambda time, now: (
            f"At t = {time:.3g} the farthest node of {rich} has moved {moved[-1, now]:.2g}, the "
            f"farthest of {lazy} {moved[0, now]:.2g}."
        ),
    )


def prunable(table: xr.Dataset) -> Moment | None:
    """Both have learnt; without most of its nodes the last scaling keeps its risk and NTK loses its
    own.
    """
    times, cost = table.time.values, cost_of_pruning(table)
    learnt = (table.risk.values[[0, -1]] <= LEARNT * table.attrs["zero"]).all(axis=0)
    lazy, rich = (str(table.setting.values[i]) for i in (0, -1))
    return moment_when(
        times,
        learnt & (cost[-1] <= KEPT) & (cost[0] >= LOST),
        lambda time, now: (
            f"At t = {time:.3g}, without {REMOVED:.0%} of the nodes, {rich} has "
            f"{cost[-1, now]:.2f} times its risk and {lazy} {cost[0, now]:.0f} times its own."
        ),
    )


def live(table: xr.Dataset) -> FigureSpec:
    time, names = table.time.values, [str(name) for name in table.setting.values]
    event, nodes = (
        line_at(prunable(table), f"{REMOVED:.0%} of the nodes can go"),
        np.arange(1, table.attrs["width"] + 1),
    )
    later = time > 0
    over_time = lambda values: [
        Line(time[later], values[i][later], name) for i, name in enumerate(names)
    ]
    moved = [
        Line(nodes, table.weight_movement.isel(setting=i, step=-1).values, name)
        for i, name in enumerate(names)
    ]
    pruned = [
        Line(100 * table.removed.values, table.pruned_risk.isel(setting=i, step=-1).values, name)
        for i, name in enumerate(names)
    ]
    zero = HLine(table.attrs["zero"], "answering zero", "dotted")
    return FigureSpec(
        f"Node scaling from lazy (γ=1) to rich (γ=0), {table.attrs['width']} nodes",
        [
            Panel(
                "Training risk",
                "flow time t",
                "mean of squares",
                [*over_time(table.risk.values), zero, event],
                xscale="log",
                yscale="log",
            ),
            Panel(
                "Movement of every node",
                "node, heaviest first",
                "‖w(t) − w(0)‖",
                moved,
                xscale="log",
            ),
            Panel(
                "Change of the kernel",
                "flow time t",
                "‖Θ(t) − Θ(0)‖₂",
                [*over_time(table.kernel_drift.values), event],
                xscale="log",
            ),
            Panel(
                "Risk after pruning",
                "% of the nodes removed, least important first",
                "mean of squares",
                [*pruned, zero],
                yscale="log",
            ),
        ],
        caption="One draw of weights, signs and data for all scalings. Compare caron2023, "
        "Figures 1 and 3.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    moved, cost = farthest(table)[:, -1], cost_of_pruning(table)[:, -1]
    return (
        Claim("nodes move far under asymmetric scaling", holds=features_move(table) is not None),
        Claim("and then most nodes can be removed", holds=prunable(table) is not None),
        Claim(
            "farthest node at the end, last scaling over NTK",
            float(moved[-1] / moved[0]),
            at_least=5.0,
        ),
        Claim(
            f"risk without {REMOVED:.0%} of the nodes over the full risk, last scaling",
            float(cost[-1]),
            at_most=KEPT,
        ),
        Claim(
            f"risk without {REMOVED:.0%} of the nodes over the full risk, NTK",
            float(cost[0]),
            at_least=LOST,
        ),
    )


EXPERIMENT = Experiment(
    name="tour-caron2023",
    paper="caron2023",
    title="Tour: node scaling against NTK, then pruning",
    figure="Figures 1 and 3",
    settings={
        "smoke": Settings(samples=40, features=20, width=500, rate=2.0, time=400.0, records=25),
        "default": Settings(),
        "paper": Settings(rate=0.02),
    },
    run=run,
    draw=live,
    claims=claims,
)
