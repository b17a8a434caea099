r"""What the projections do: a batch with a few far samples, with and without them (ren2023, equation (4)).

Random batches of the Bessel law practically never reach the bounds once the weights are negative; a few samples at radius 10 to 50
with a first layer of ordinary size do. One unprojected step of such a batch moves the second layer by orders of magnitude more.

Run:  wideflow run ren2023-clipping     Takes:  a few seconds
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import xarray as xr

from ...._core.precision import double
from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, HLine, Line, Panel
from ..depth_separator import DepthSeparator
from ..estimators import radial_target
from ..laws.base import sphere
from ..laws.bessel import BesselLaw
from ..laws.thresholds import Thresholds
from ..separator.samples import sample_field


@dataclass(frozen=True)
class Settings:
    features: int = 10
    width: int = 128
    second: int = 16
    batch: int = 512
    far: int = 8
    bounds: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
    deviation: float = 0.05
    seeds: int = 1


@double
def run(settings: Settings, key, session) -> xr.Dataset:
    law = BesselLaw(settings.features)
    net = DepthSeparator.init(
        named_key(key, "net"), features=settings.features, width=settings.width, second=settings.second, radius=1.0,
        deviation=settings.deviation,
    )  # fmt: skip
    inputs = np.array(law.inputs(named_key(key, "data"), settings.batch))
    plain = jnp.asarray(
        np.minimum(1, 5 / np.linalg.norm(inputs, axis=1))[:, None] * inputs
    )  # nothing beyond radius 5
    directions = np.asarray(sphere(named_key(key, "far"), settings.far, settings.features))
    inputs[: settings.far] = np.linspace(10, 50, settings.far)[:, None] * directions
    rows = {"ordinary": plain, "with far samples": jnp.asarray(inputs)}
    speed, share = (
        np.zeros((2, len(settings.bounds) + 1, 3)),
        np.zeros((2, len(settings.bounds) + 1, 3)),
    )
    for i, x in enumerate(rows.values()):
        for j, bound in enumerate((*settings.bounds, np.inf)):
            field = sample_field(
                net.first,
                net.second_weight,
                net.second_bias,
                x,
                radial_target(x),
                Thresholds(*3 * (jnp.asarray(bound),)),
            )
            speed[i, j] = [
                jnp.abs(field.first).max(),
                jnp.abs(field.weight).max(),
                jnp.abs(field.bias).max(),
            ]
            share[i, j] = field.share
        session.progress(i + 1, 2, list(rows)[i])
    axes = ("batch", "bound", "array")
    return xr.Dataset(
        {"speed": (axes, speed), "share": (axes, share)},
        {
            "batch": list(rows),
            "bound": [*settings.bounds, np.inf],
            "array": ["first", "weight", "bias"],
        },
    )


def draw(table: xr.Dataset) -> FigureSpec:
    finite = table.isel(bound=slice(0, -1))
    panels = []
    for array, name in (("first", "First layer"), ("weight", "Second-layer weights")):
        marks = [
            Line(finite.bound.values, finite.speed.sel(batch=b, array=array).values, str(b))
            for b in table.batch.values
        ]
        free = float(table.speed.sel(batch="with far samples", array=array).isel(bound=-1))
        panels.append(
            Panel(
                name,
                "bound R",
                "largest speed",
                (*marks, HLine(free, "far samples, no bound")),
                xscale="log",
                yscale="log",
            )
        )
    shares = [
        Line(
            finite.bound.values, finite.share.sel(batch="with far samples", array=a).values, str(a)
        )
        for a in table.array.values
    ]
    panels.append(Panel("Projected pairs, far samples", "bound R", "share", shares, xscale="log"))
    return FigureSpec("Projection of single samples", panels, columns=3)


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    far, plain = table.sel(batch="with far samples"), table.sel(batch="ordinary")
    free = far.speed.isel(bound=-1)
    ratio = float((free / plain.speed.isel(bound=-1)).sel(array="weight"))
    limit = (far.speed.isel(bound=slice(0, -1)) / far.bound.isel(bound=slice(0, -1))).max()
    return (
        Claim("speed of weights, far samples over ordinary ones, no bound", ratio, at_least=5),
        Claim("no speed exceeds its bound: largest ratio", float(limit), at_most=1.0),
        Claim(
            "projected share falls as bounds grow", holds=bool((far.share.diff("bound") <= 0).all())
        ),
        Claim("pairs projected without bounds", float(far.share.isel(bound=-1).sum()), at_most=0),
        Claim(
            "far samples are projected at the smallest bound, smallest share",
            float(far.share.isel(bound=0).sel(array=["first", "weight"]).min()),
            at_least=1e-3,
        ),
    )


EXPERIMENT = Experiment(
    name="ren2023-clipping",
    paper="ren2023",
    title="What the projections do",
    figure="Equation (4)",
    settings={
        "smoke": Settings(width=16, second=4, batch=64, far=4),
        "default": Settings(),
        "paper": Settings(width=512, batch=4000),
    },
    run=run,
    draw=draw,
    claims=claims,
)
