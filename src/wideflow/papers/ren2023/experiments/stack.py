r"""Propagation of chaos in a multilayer mean-field network (ren2023, Appendix A: Definitions A.1
and A.3).

The law of the starting neurons is an empirical measure of `nodes` atoms a block, so that its limit
of infinite width is known exactly: it is the flow of the atoms (`limits.stack_limit`). A network of
width $m$ draws $m$ atoms a block and is trained by the same Euler steps.

* coupled distance: every neuron against the atom that it started from, in the limit; like
  $m^{-1/2}$.
* fluctuation: standard deviation over draws of the outputs; like $m^{-1/2}$.
* bias: mean output against the limit; like $1/m$. The fluctuation would drown it, but it is linear
  in the empirical measure to first order, and two networks $a, b$ of width $m$ make one of width
  $2m$: $E[\frac12(f_a + f_b) - f_{ab}] = \frac{c}{m} - \frac{c}{2m}$, where the first order cancels
  draw by draw.

Last, the start: with output factors drawn apart from the weights (`correlation` 0) the bottleneck
vanishes like $m^{-1/2}$, and the wider the network, the longer it stands still; correlated factors
have a limit that learns.

Run:  wideflow run ren2023-stack     Takes:  default about 1 min on two cores
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from ...._core.errors import check_count, check_positive
from ...._core.precision import double
from ...._core.randomness import named_key
from ....data.dataset import Dataset
from ....data.objective import AbstractObjective
from ....dynamics.base import Snapshot
from ....dynamics.descent import GradientDescent
from ....dynamics.losses import HalfMeanSquares
from ....experiments.base import Claim, Experiment
from ....experiments.spread import standard_error
from ....figures import FigureSpec, Line, Panel, Points
from ....limits.stack import stack_limit
from ....models.mean_field_stack import MeanFieldStack
from ....observables.base import AbstractObservable
from ....observables.risks import Outputs
from ....training.train import train

STARTS = (0.0, 0.5)  # correlation of factors and weights, compared in the last two panels


@dataclass(frozen=True)
class Settings:
    dimensions: tuple[int, ...] = (3, 2, 1)
    activation: str = "tanh"
    correlation: float = 0.5
    nodes: int = 512
    samples: int = 24
    widths: tuple[int, ...] = (16, 32, 64, 128, 256)
    seeds: int = 64
    rate: float = 0.1
    time: float = 20.0
    records: int = 10

    def __post_init__(self):
        for name in ("nodes", "samples", "records"):
            check_count(name, getattr(self, name))
        check_count("seeds", self.seeds, least=2)
        check_positive("rate", self.rate)
        check_positive("time", self.time)


class Neurons(AbstractObservable):
    """All neurons of all blocks, one after the other."""

    name: str = "neurons"
    label: str = "a, w"
    axes: tuple[str, ...] = ("parameter",)

    def __call__(self, snapshot: Snapshot[MeanFieldStack, AbstractObjective]):
        model = snapshot.model
        arrays = [a for pair in zip(model.outers, model.inners, strict=True) for a in pair]
        return jnp.concatenate([a.ravel() for a in arrays])


@double
def run(settings: Settings, key, session) -> xr.Dataset:
    data = _data(settings, named_key(key, "data"))
    shape = dict(dimensions=settings.dimensions, activation=settings.activation)
    atoms = (settings.nodes,) * (len(settings.dimensions) - 1)
    law = MeanFieldStack.init(
        named_key(key, "law"), widths=atoms, correlation=settings.correlation, **shape
    )
    steps = round(settings.time / settings.rate)
    grid = sorted({round(share * steps) for share in np.linspace(0, 1, settings.records + 1)})
    times = settings.rate * np.asarray(grid)
    layers = list(zip(law.outers, law.inners, strict=True))
    limit = stack_limit(
        layers,
        data.inputs,
        data.targets,
        times,
        settings.activation,
        rate=None if session.flow else settings.rate,
    )
    goal = np.asarray(limit.outputs)[..., 0]
    rows = {
        name: [] for name in ("fluctuation", "bias", "bias_noise", "distance", "distance_error")
    }
    for i, width in enumerate(settings.widths):
        drawn = [_draw(law, named_key(key, "draw", width, s), width) for s in range(settings.seeds)]
        halves = [law.select(d) for pair in drawn for d in pair]
        joined = [
            law.select([jnp.concatenate(d) for d in zip(*pair, strict=True)]) for pair in drawn
        ]
        part = session.within(i, 2 * len(settings.widths), f"width {width}")
        single = _train(halves, data, settings, grid, [Outputs(several=True), Neurons()], part)
        double_width = _train(joined, data, settings, grid, [Outputs(several=True)], part)
        for name, values in _deviations(single, double_width, goal).items():
            rows[name].append(values)
        distance = _distances(limit, single, [d for pair in drawn for d in pair])
        rows["distance"].append(distance.mean(0))
        rows["distance_error"].append(distance.std(0, ddof=1) / np.sqrt(len(distance)))
    bottleneck, left = _starts(settings, shape, data, key, grid, session)
    columns: dict[str, Any] = {
        name: (("width", "time"), np.array(values)) for name, values in rows.items()
    }
    columns |= {
        "bottleneck": (("start", "width", "seed"), bottleneck),
        "left": (("start", "width", "seed"), left),
    }
    columns["limit_loss"] = ("time", np.asarray(limit.losses))
    return xr.Dataset(
        columns, {"width": list(settings.widths), "time": times, "start": list(STARTS)}
    )


def _data(settings: Settings, key) -> Dataset:
    x = np.asarray(jax.random.normal(key, (settings.samples, settings.dimensions[0]), dtype=float))
    y = np.sin(2 * x[:, 0]) + 0.5 * x[:, 1 % x.shape[1]]
    return Dataset(x, y[:, None], "sine and line")


def _draw(law, key, width: int):
    """The atoms of two independent networks of this width."""
    widths = (width,) * law.blocks
    return [law.neurons(named_key(key, half), widths) for half in ("a", "b")]


def _train(nets, data, settings: Settings, grid, record, session) -> xr.Dataset:
    flow = GradientDescent(settings.rate)
    return train(
        nets,
        data,
        flow,
        steps=grid[-1],
        every=grid,
        record=record,
        loss=HalfMeanSquares(),
        session=session,
    ).table


def _outputs(table: xr.Dataset) -> np.ndarray:
    """(seed, record, sample) of the one output."""
    return table.outputs.isel(output=0).transpose("seed", "step", "sample").values


def _deviations(single: xr.Dataset, joined: xr.Dataset, goal) -> dict[str, np.ndarray]:
    """Root mean squares over the samples, per time. `bias` is that of width m, twice the measured
    difference.
    """
    outputs = _outputs(single)
    fluctuation = np.sqrt((outputs - goal).var(0, ddof=1).mean(-1))
    pairs = 0.5 * (outputs[0::2] + outputs[1::2])
    gap = 2 * (pairs - _outputs(joined))
    noise = gap.var(0, ddof=1) / len(gap)
    square = np.maximum(
        (gap.mean(0) ** 2 - noise).mean(-1), 0
    )  # the noise of the mean squared would add
    return {
        "fluctuation": fluctuation,
        "bias": np.sqrt(square),
        "bias_noise": np.sqrt(noise.mean(-1)),
    }


def _distances(limit, single: xr.Dataset, drawn) -> np.ndarray:
    """Coupled distance (draw, time), over all blocks."""
    places = single.neurons.transpose("seed", "step", "parameter").values
    sizes = [a.shape[1] for a in limit.outers]
    distances = np.zeros(places.shape[:2])
    for i, t in np.ndindex(*distances.shape):
        outers, inners, at = [], [], 0
        for l, out in enumerate(sizes):
            width, fan = len(drawn[i][l]), limit.inners[l].shape[2]
            outers.append(places[i, t, at : at + out * width].reshape(out, width))
            at += out * width
            inners.append(places[i, t, at : at + width * fan].reshape(width, fan))
            at += width * fan
        blocks = limit.coupled_distance(outers, inners, drawn[i], index=t)
        distances[i, t] = np.sqrt(np.mean(blocks**2))
    return distances


def _starts(settings: Settings, shape: dict, data, key, grid, session):
    """Size of the first bottleneck at the start, and share of the loss left at the first record, by
    correlation, width and seed.
    """
    seeds = min(settings.seeds, 16)
    bottleneck = np.zeros((len(STARTS), len(settings.widths), seeds))
    left = np.zeros_like(bottleneck)
    count = len(settings.widths)
    for j, width in enumerate(settings.widths):
        part = session.within(count + j, 2 * count, "starts")
        widths = (width,) * (len(settings.dimensions) - 1)
        for i, correlation in enumerate(STARTS):
            nets = [
                MeanFieldStack.init(
                    named_key(key, "start", width, s),
                    widths=widths,
                    correlation=correlation,
                    **shape,
                )
                for s in range(seeds)
            ]
            bottleneck[i, j] = [
                np.sqrt(np.mean(np.square(net.features(data.inputs)[1]))) for net in nets
            ]
            loss = (
                _train(nets, data, settings, grid[:2], [], part)
                .loss.transpose("seed", "step")
                .values
            )
            left[i, j] = loss[:, -1] / loss[:, 0]
    return bottleneck, left


def draw(table: xr.Dataset) -> FigureSpec:
    widths, end = table.width.values, table.isel(time=-1)
    guide = lambda values, power: values[0] * (widths / widths[0]) ** power
    size, bias = end.fluctuation.values, end.bias.values
    rates = [
        Points(
            widths,
            end.distance.values,
            "neurons against their limit",
            errors=end.distance_error.values,
        ),
        Points(widths, size, "fluctuation of outputs"),
        Points(widths, bias, "bias of outputs", errors=end.bias_noise.values),
        Line(widths, guide(size, -0.5), "m^−1/2", dash="dashed"),
        Line(widths, guide(bias, -1.0), "1/m", dash="dotted"),
    ]
    growth = [
        Line(table.time.values[1:], table.distance.sel(width=m).values[1:] * np.sqrt(m), f"m = {m}")
        for m in widths
    ]
    label = lambda start: "independent" if start == 0 else f"correlation {start:g}"
    mean = lambda name, start: table[name].sel(start=start).mean("seed").values
    bars = lambda name, start: standard_error(table[name].sel(start=start)).values
    panels = [
        Panel(
            "Finite networks against the limit",
            "width m of every block",
            "root mean square",
            rates,
            xscale="log",
            yscale="log",
        ),
        Panel("Coupled distance in time", "time t", "√m × distance", growth),
        *(
            Panel(
                title,
                "width m of every block",
                axis,
                [
                    Points(widths, mean(name, s), label(s), errors=bars(name, s))
                    for s in table.start.values
                ],
                xscale="log",
                yscale="log",
            )
            for name, title, axis in (
                ("bottleneck", "First bottleneck at the start", "rms F¹"),
                ("left", "Loss left at the first record", "L(t)/L(0)"),
            )
        ),
    ]
    return FigureSpec(
        "Propagation of chaos in a multilayer mean-field network",
        panels,
        caption="Networks of m neurons a block drawn from one law, and its exact limit of "
        "infinite width.",
    )


def _slope(x, y) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0]) if np.all(y > 0) else float("nan")


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    widths, end = table.width.values, table.isel(time=-1)
    slope = lambda name: _slope(widths, end[name].values)
    sizes = table.bottleneck.mean("seed")
    steady = sizes.sel(start=0.5).isel(width=-1) / sizes.sel(start=0.5).isel(width=-2)
    return (
        Claim(
            "coupled distance of neurons to the limit: slope in log m",
            slope("distance"),
            expected=-0.5,
            tolerance=0.1,
        ),
        Claim(
            "fluctuation of the outputs: slope in log m",
            slope("fluctuation"),
            expected=-0.5,
            tolerance=0.1,
        ),
        Claim("bias of the outputs: slope in log m", slope("bias"), expected=-1.0, tolerance=0.25),
        Claim(
            "the limit learns: its loss at the end over that at the start",
            float(table.limit_loss[-1] / table.limit_loss[0]),
            at_most=0.5,
        ),
        Claim(
            "independent factors: slope of the first bottleneck in log m",
            _slope(widths, sizes.sel(start=0.0).values),
            expected=-0.5,
            tolerance=0.1,
        ),
        Claim(
            "correlated factors: first bottleneck of the widest networks over that of the next, "
            "1 in the limit",
            float(steady),
            at_least=0.9,
            note="0.71 for independent factors at twice the width",
        ),
    )


EXPERIMENT = Experiment(
    name="ren2023-stack",
    paper="ren2023",
    title="Propagation of chaos in a multilayer mean-field network",
    figure="Appendix A",
    settings={
        "smoke": Settings(nodes=32, widths=(8, 16), seeds=4, time=4.0, records=2),
        "default": Settings(),
        "paper": Settings(nodes=2048, widths=(16, 32, 64, 128, 256, 512, 1024), seeds=256),
    },
    run=run,
    draw=draw,
    claims=claims,
    claims_from_size="default",
)
