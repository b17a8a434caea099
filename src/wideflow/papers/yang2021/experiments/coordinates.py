"""Slopes against the width of features, outputs and kernel, beside the exponents that theory
predicts (yang2021).

Tanh networks of depth 2 to 4 under the four parametrisations, a few steps of gradient descent at
one rate at every width; each change is measured as a root mean square over coordinates, inputs and
seeds and fitted against the width on log-log axes. `scalings.classify` says what to expect:
features of the kernel regimes freeze like n^(-1/2) and their kernel like 1/n; maximal update and
mean field, which are one path in two notations, keep both at every width.

Run:  wideflow run yang2021-coordinates            Takes:  default 4 min of one core
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.architecture import mlp
from ...._core.errors import check_count, check_positive
from ...._core.parametrisations import TABLE
from ...._core.randomness import named_key
from ...._core.scalings import classify
from ....data.synthetic import sphere_sines
from ....dynamics.descent import GradientDescent
from ....dynamics.losses import HalfMeanSquares
from ....experiments.base import Claim, Experiment
from ....experiments.slopes import slope
from ....figures import FigureSpec, Line, Panel, Points
from ....models.deep import Deep
from ....observables.kernels import tangent_gram
from ....training.session import Session
from ....training.train import train

TOLERANCE = 0.1  # of the specification: measured slopes within 0.1 of the predicted exponents


@dataclass(frozen=True)
class Settings:
    parametrisations: tuple[str, ...] = ("standard", "ntk", "maximal-update", "mean-field")
    depths: tuple[int, ...] = (2, 3, 4)
    widths: tuple[int, ...] = (128, 256, 512, 1024)
    samples: int = 16
    features: int = 10
    rate: float = 0.5
    steps: int = 20  # long enough for features under maximal update to move by their own size
    seeds: int = 20

    def __post_init__(self):
        for name in ("samples", "features", "steps", "seeds"):
            check_count(name, getattr(self, name))
        check_positive("rate", self.rate)


def run(settings: Settings, key, session: Session) -> xr.Dataset:
    data = sphere_sines(named_key(key, "data"), settings.samples, settings.features)
    cases = [(p, d) for p in settings.parametrisations for d in settings.depths]
    names = [*(f"layer_{l + 1}" for l in range(max(settings.depths))), "outputs", "kernel"]
    shape = (len(settings.parametrisations), len(settings.depths), len(names))
    changes = np.full((*shape, settings.seeds, len(settings.widths)), np.nan)
    predicted = np.full(shape, np.nan)
    done, total = 0, len(cases) * len(settings.widths)
    for i, name in enumerate(settings.parametrisations):
        for j, depth in enumerate(settings.depths):
            expected = classify(TABLE[name].abc(depth)).slopes
            for k, part in enumerate(names):
                predicted[i, j, k] = expected.get(part, np.nan)
            for w, width in enumerate(settings.widths):
                part_of = session.within(done, total, f"{name}, depth {depth}, width {width}")
                moves = _changes(settings, key, data, name, depth, width, part_of)
                for s, moved in enumerate(moves):
                    for part, value in moved.items():
                        changes[i, j, names.index(part), s, w] = value
                done += 1
    coordinates = {
        "parametrisation": list(settings.parametrisations),
        "depth": list(settings.depths),
        "part": names,
        "width": list(settings.widths),
        "seed": np.arange(settings.seeds),
    }
    axes = ("parametrisation", "depth", "part")
    return xr.Dataset(
        {"change": ((*axes, "seed", "width"), changes), "predicted": (axes, predicted)},
        coordinates,
        {"rate": settings.rate, "steps": settings.steps, "data": data.name},
    )


def _changes(settings, key, data, name: str, depth: int, width: int, session) -> list[dict]:
    """The change of every part, one dictionary a seed; all seeds train in one program."""
    starts = [
        Deep.init(
            named_key(key, "network", seed), mlp(depth, width, "tanh"), settings.features, name
        )
        for seed in range(settings.seeds)
    ]
    ends = train(
        starts,
        data,
        GradientDescent(settings.rate),
        steps=settings.steps,
        every=settings.steps,
        loss=HalfMeanSquares(),
        session=session,
    ).model
    return [_change(start, end, data.inputs) for start, end in zip(starts, ends, strict=True)]


def _change(start: Deep, end: Deep, inputs) -> dict[str, float]:
    size = lambda x: float(np.sqrt(np.mean(np.asarray(x) ** 2)))
    before, after = (net.preactivations(inputs) for net in (start, end))
    parts = {name: size(after[name] - before[name]) for name in before}
    parts["outputs"] = size(end.outputs(inputs) - start.outputs(inputs))
    grams = [np.asarray(tangent_gram(net, inputs)) for net in (start, end)]
    parts["kernel"] = float(np.linalg.norm(grams[1] - grams[0]) / np.linalg.norm(grams[0]))
    return parts


def width_slope(values: xr.DataArray) -> float:
    """Of the root mean square over seeds against the width, on log-log axes."""
    return slope(values["width"], np.sqrt((values**2).mean("seed")))


def draw(table: xr.Dataset) -> FigureSpec:
    depth = int(table["depth"].values[-1])
    at = table.sel(depth=depth)
    panels = []
    for part, title in (
        (f"layer_{depth}", "Features of the last hidden layer"),
        ("outputs", "Outputs"),
        ("kernel", "Tangent kernel (relative)"),
    ):
        marks = []
        for name in table["parametrisation"].values:
            values = at["change"].sel(parametrisation=name, part=part)
            mean = np.sqrt((values**2).mean("seed").values)
            width, expected = (
                table["width"].values,
                float(at["predicted"].sel(parametrisation=name, part=part)),
            )
            marks.append(Points(width, mean, str(name), group=str(name)))
            line = mean[-1] * (width / width[-1]) ** expected
            marks.append(Line(width, line, dash="dashed", group=str(name)))
        panels.append(Panel(title, "width n", "change after training", marks, "log", "log"))
    return FigureSpec(
        f"What moves as the width grows (depth {depth})",
        panels,
        columns=3,
        caption="Points: root mean squares over seeds. Dashed: the predicted slope, through the "
        "widest network.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    statements = []
    for name in table["parametrisation"].values:
        for depth in table["depth"].values:
            at = table.sel(parametrisation=name, depth=depth)
            for part in table["part"].values:
                expected = float(at["predicted"].sel(part=part))
                if np.isfinite(expected):
                    value = width_slope(at["change"].sel(part=part))
                    text = f"{name}, depth {depth}, {part}: slope against the width"
                    statements.append(Claim(text, value, expected=expected, tolerance=TOLERANCE))
    return tuple(statements)


EXPERIMENT = Experiment(
    name="yang2021-coordinates",
    paper="yang2021",
    title="Measured slopes against predicted width exponents",
    figure="Theorem 3.3 and Corollary 3.9",
    settings={
        "smoke": Settings(
            parametrisations=("ntk", "mean-field"), depths=(2,), widths=(32, 64), steps=3, seeds=2
        ),
        "default": Settings(),
        "paper": Settings(widths=(128, 256, 512, 1024, 2048, 4096), seeds=40),
    },
    run=run,
    draw=draw,
    claims=claims,
    claims_from_size="default",
)
