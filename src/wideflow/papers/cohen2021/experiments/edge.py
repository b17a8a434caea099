"""The sharpness rises to 2/rate and stays there (cohen2021, Figures 1 and 2).

A tanh network in the standard form (plain layers, one rate), full-batch gradient descent on the
half mean of squares at rates whose threshold 2/rate lies above the first sharpness. While the
sharpness is below 2/rate it rises (progressive sharpening); from there on it hovers just above
2/rate, and the loss still falls over long times, though not from step to step.

Run:  wideflow run cohen2021-edge            Takes:  default 15 s of one core
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.architecture import mlp
from ...._core.errors import check_count
from ...._core.parametrisations import STANDARD
from ...._core.randomness import named_key
from ....data.synthetic import sphere_sines
from ....dynamics.descent import GradientDescent
from ....dynamics.losses import HalfMeanSquares
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, HLine, Line, Panel
from ....models.deep import Deep
from ....observables.sharpness import Sharpness, hessian_eigenvalues
from ....training.session import Session
from ....training.train import train

PLAIN = STANDARD.with_rate_exponent(0.0)  # the rate of the paper: the same number at every width
BAND = (0.9, 1.3)  # of 2/rate: the paper's "hovers right at, or just above"


@dataclass(frozen=True)
class Settings:
    samples: int = 20
    features: int = 3
    noise: float = 0.3
    width: int = 64
    depth: int = 2
    weight_std: float = 1.0
    shares: tuple[float, ...] = (1.1, 1.2, 1.3)  # 2/rate over the sharpness at the start
    steps: int = 4000
    records: int = 100
    seeds: int = 2

    def __post_init__(self):
        for name in ("samples", "features", "width", "depth", "steps", "records", "seeds"):
            check_count(name, getattr(self, name))
        if min(self.shares) < 1:
            raise ValueError(
                "`shares` must be at least 1, so that runs start below the edge, got "
                f"{self.shares}."
            )


def run(settings: Settings, key, session: Session) -> xr.Dataset:
    data = sphere_sines(named_key(key, "data"), settings.samples, settings.features, settings.noise)
    network = mlp(
        settings.depth, settings.width, "tanh", weight_std=settings.weight_std, bias_std=0.0
    )
    nets, rates = [], []
    for seed in range(settings.seeds):
        net = Deep.init(named_key(key, "network", seed), network, settings.features, PLAIN)
        start = float(hessian_eigenvalues(net, data, loss=HalfMeanSquares())[0])
        nets += [net] * len(settings.shares)
        rates += [2 / (share * start) for share in settings.shares]
    table = train(
        nets,
        data,
        [GradientDescent(rate) for rate in rates],
        steps=settings.steps,
        every=max(1, settings.steps // settings.records),
        loss=HalfMeanSquares(),
        record=[Sharpness(depth=20)],
        axis="member",
        session=session.within(0, 1, "training").descending(),
    ).table
    shape = (settings.seeds, len(settings.shares))
    axes = ("seed", "share", "step")
    values = {name: table[name].values.reshape(*shape, -1) for name in ("loss", "sharpness")}
    return xr.Dataset(
        {name: (axes, value) for name, value in values.items()}
        | {"rate": (axes[:2], np.reshape(rates, shape))},
        {
            "seed": np.arange(settings.seeds),
            "share": list(settings.shares),
            "step": table["step"].values,
        },
        {name: table.attrs[name] for name in ("loss", "model", "precision")},
    )


def late(table: xr.Dataset) -> xr.DataArray:
    """Sharpness x rate / 2: its median over the last fifth of the run, then the mean over seeds."""
    ratio = table["sharpness"] * table["rate"] / 2
    return ratio.isel(step=slice(-(table.sizes["step"] // 5), None)).median("step").mean("seed")


def draw(table: xr.Dataset) -> FigureSpec:
    at = table.isel(seed=0)
    step, sharp, loss = table["step"].values, [], []
    for share in table["share"].values:
        one = at.sel(share=share)
        label = f"rate {float(one['rate']):.3g}"
        sharp.append(Line(step, one["sharpness"].values, label, group=label))
        sharp.append(HLine(2 / float(one["rate"])))
        loss.append(Line(step, one["loss"].values, label, group=label))
    panels = [
        Panel("Sharpness; dashed: 2/rate", "step", "largest eigenvalue of the Hessian", sharp),
        Panel("Training loss", "step", "half mean of squares", loss, yscale="log"),
    ]
    return FigureSpec("Gradient descent at the edge of stability", panels, columns=2)


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    statements = []
    ends = late(table)
    for share in table["share"].values:
        when = f"2/rate = {share:g} x the first sharpness"
        statements.append(
            Claim(
                f"{when}: median sharpness of the last fifth over 2/rate",
                float(ends.sel(share=share)),
                at_least=BAND[0],
                at_most=BAND[1],
            )
        )
        losses = table["loss"].sel(share=share).mean("seed").values
        statements.append(
            Claim(
                f"{when}: loss at the end over the loss half way",
                float(losses[-1] / losses[len(losses) // 2]),
                at_most=1.0,
            )
        )
    return tuple(statements)


EXPERIMENT = Experiment(
    name="cohen2021-edge",
    paper="cohen2021",
    title="Sharpness against 2/rate",
    figure="Figures 1 and 2",
    settings={
        "smoke": Settings(steps=60, records=6, shares=(1.1, 1.3), width=16, seeds=1),
        "default": Settings(),
        "paper": Settings(steps=40_000, records=400, seeds=5, width=200),
    },
    run=run,
    draw=draw,
    claims=claims,
    claims_from_size="default",
)
