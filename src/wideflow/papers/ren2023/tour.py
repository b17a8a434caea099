r"""Tour: a three-layer network settles on the cone (ren2023, Figure 2).

The target is $\max(1-\lVert x\rVert, 0)$ under a heavy-tailed radial law in $d$ dimensions. The
first layer becomes $\alpha\lVert x\rVert$, the neurons of the second layer agree on one pair
$(w, b)$, and what is left are three numbers that must end at $\alpha w = -1$, $b = 1$. Dashed: the
same three numbers at infinite width.

Run:  wideflow run tour-ren2023            Takes:  default 26 s on two cores, smoke 13 s
"""

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import xarray as xr

from ..._core.errors import check_between, check_count, check_positive
from ..._core.precision import Precision, double
from ..._core.randomness import named_key
from ...experiments.base import Claim, Experiment
from ...experiments.tours.moments import Moment, line_at
from ...figures import FigureSpec, HLine, Line, Panel, Points
from ...observables.stages import first_time
from ...training.train import train
from .clipped_flow import ClippedFlow
from .experiments.learner import RADII, beginning, reduced_reference
from .laws.base import sphere
from .laws.bessel import BesselLaw
from .observables import depth

CONE = np.maximum(1 - RADII, 0.0)
CLOSE = 0.05  # of the height 1 of the cone
LIMIT_TIMES = 100  # points of the dashed curves


@dataclass(frozen=True)
class Settings:
    features: int = 100
    width: int = 512
    second: int = 128
    radius: float = 1.0
    deviation: float = 1e-3
    bias: float = 0.3
    batch: int = 1000
    rate: float = 0.5
    steps: int = 900
    records: int = 100
    precision: Precision = "float32"

    def __post_init__(self):
        for name in ("features", "width", "second", "batch", "steps"):
            check_count(name, getattr(self, name), least=2)
        check_count("records", self.records, least=10)
        check_positive("rate", self.rate)
        check_positive("radius", self.radius)
        check_between("bias", self.bias, 0.0, 1.0, open=True)


@double
def run(settings: Settings, key, session) -> xr.Dataset:
    law = BesselLaw(settings.features)
    times = np.linspace(0.0, settings.steps * settings.rate, LIMIT_TIMES + 1)[1:]
    limit = reduced_reference(law, settings, times).rename(time="limit_time")
    limit = limit.rename({name: f"limit_{name}" for name in limit.data_vars})
    mean, square = law.target_moments()
    attributes = dict(
        features=settings.features, width=settings.width, constant=(square - mean**2) / 2
    )
    finished = lambda table: (
        table.map(lambda values: values.astype(float))
        .assign_coords(radius=RADII)
        .merge(limit)
        .assign_attrs(attributes)
    )
    net, population, key, _ = beginning(law, settings, key)
    directions = sphere(named_key(key, "profile"), 64, settings.features)
    table = train(
        net,
        population,
        ClippedFlow(settings.rate),
        steps=settings.steps,
        every=max(1, settings.steps // settings.records),
        key=key,
        record=[
            depth.Alpha(),
            depth.SecondWeights(),
            depth.SecondBiases(),
            depth.Profile(radii=jnp.asarray(RADII), directions=directions),
        ],
        precision=settings.precision,
        session=session.showing(finished),
    ).table
    return finished(table)


def distance(table: xr.Dataset) -> np.ndarray:
    """At every record, the largest distance from the cone over radii up to 2 of the network's mean
    over directions.
    """
    mean = table.profile.mean("direction").values
    return np.abs(mean - CONE).max(axis=1)


def slopes(table: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """At every record, αw and b averaged over the second layer; the cone is (-1, 1)."""
    weight, bias = table.second_weight.mean("second"), table.second_bias.mean("second")
    return (table.alpha * weight).values, bias.values


def leaves_the_constant(table: xr.Dataset) -> Moment | None:
    """The loss falls to half of what the best constant leaves."""
    times, ratio = table.time.values, table.loss.values / table.attrs["constant"]
    time = first_time(times, ratio <= 0.5)
    if math.isnan(time) or time == 0:
        return None
    slope = slopes(table)[0][np.searchsorted(times, time)]
    return Moment(
        time,
        f"At t = {time:.0f} the loss is half of that of the best constant; the slope αw has "
        f"grown to {slope:.2f}.",
    )


def cone(table: xr.Dataset) -> Moment | None:
    """On every radius the network is within 0.05 of the cone, and it did not start there."""
    times, far = table.time.values, distance(table)
    time = first_time(times, far <= CLOSE)
    if math.isnan(time) or far[0] <= CLOSE:
        return None
    now = np.searchsorted(times, time)
    slope, bias = (values[now] for values in slopes(table))
    return Moment(
        time,
        f"At t = {time:.0f} the network is within {far[now]:.3f} of the cone at every radius: αw "
        f"= {slope:.2f} (cone −1), b = {bias:.2f} (cone 1), loss {float(table.loss[now]):.1e}.",
    )


def live(table: xr.Dataset) -> FigureSpec:
    time, event = table.time.values, line_at(cone(table), "within 0.05 of the cone")
    profile = table.profile
    now, start = profile.isel(step=-1), profile.isel(step=0)
    low, high = now.min("direction").values, now.max("direction").values
    function = [
        Line(RADII, CONE, "cone: the target", dash="dashed"),
        Line(RADII, start.mean("direction").values, "start", dash="dotted"),
        Line(RADII, now.mean("direction").values, "network", low, high),
    ]
    alpha, slope, bias = table.alpha.values, *slopes(table)
    limit = (table.limit_alpha * table.limit_w).values
    neurons = [
        Line(limit, table.limit_b.values, "infinite width", dash="dashed"),
        Line(slope, bias, "mean of the neurons so far", group="network"),
        Points(
            alpha[-1] * table.second_weight.values[-1],
            table.second_bias.values[-1],
            "neurons now",
            size=5,
        ),
        Points([-1.0], [1.0], "cone", size=9),
    ]
    losses = [
        Line(time, table.loss.values, "network"),
        Line(table.limit_time.values, table.limit_loss.values, "infinite width", dash="dashed"),
        HLine(table.attrs["constant"], "best constant", "dotted"),
        event,
    ]
    first = [
        Line(time, alpha, "network"),
        Line(table.limit_time.values, table.limit_alpha.values, "infinite width", dash="dashed"),
        event,
    ]
    return FigureSpec(
        f"The cone settles: d = {table.attrs['features']}, first layer {table.attrs['width']} "
        f"neurons, second {table.sizes['second']}",
        [
            Panel("The learnt function", "‖x‖", "f(x); band over directions", function),
            Panel("Second-layer neurons", "slope αw", "height b", neurons),
            Panel("Loss", "time t", "½ E (f − f*)²", losses, yscale="log"),
            Panel("Size of the first layer", "time t", "α", first),
        ],
        caption="Fresh samples at every step, clipped flow. Compare ren2023, Figure 2.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    slope, bias = (values[-1] for values in slopes(table))
    return (
        Claim(
            "the loss falls to half of the best constant's",
            holds=leaves_the_constant(table) is not None,
        ),
        Claim("the network settles on the cone", holds=cone(table) is not None),
        Claim(
            "and stays: largest distance from the cone at the end",
            float(distance(table)[-1]),
            at_most=2 * CLOSE,
        ),
        Claim("αw at the end", float(slope), expected=-1.0, tolerance=0.1),
        Claim("b at the end", float(bias), expected=1.0, tolerance=0.05),
    )


EXPERIMENT = Experiment(
    name="tour-ren2023",
    paper="ren2023",
    title="Tour: the cone settles",
    figure="Figure 2",
    settings={
        "smoke": Settings(features=20, width=256, second=32, batch=512, steps=500, records=50),
        "default": Settings(),
        "paper": Settings(),
    },
    run=run,
    draw=live,
    claims=claims,
)
