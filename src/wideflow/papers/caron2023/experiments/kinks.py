"""Sticking kinks: where the ReLU proof of Theorem 4.1 has a gap (caron2023, Lemma D.1).

The proof takes the loss to decay at least at twice the smallest eigenvalue of the Gram matrix with
the 0/1 mask. Late in training on noisy targets thousands of pre-activations stick at zero; the
observed rate is then below that, and agrees with the Gram matrix of the mask averaged over a window
of steps.

Run:  wideflow run caron2023-kinks            Takes:  default 2 min on two cores, smoke 5 s
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from .... import data, observables
from ...._core.randomness import named_key
from ...._core.scalings import Zipf
from ....dynamics.descent import GradientDescent
from ....experiments.base import Claim, Experiment
from ....figures import Bars, FigureSpec, Line, Panel
from ....models.shallow import Shallow
from ....training.train import train
from ..observables.kinks import sliding
from .members import label, numbers

# between the observed rate and that of the averaged mask, in the reference runs at noise 1:
# .00533 and .00531; .00474 and .00469 to .00472
AGREEMENT = {"γ=1": 0.005, "γ=.5, α=.7": 0.011}


@dataclass(frozen=True)
class Settings:
    samples: int = 100
    features: int = 50
    width: int = 2000
    noise: float = 1.0
    gammas: tuple[float, ...] = (1.0, 0.5)
    alphas: tuple[float, ...] = (0.7, 0.7)
    rate: float = 1.0
    steps: int = 3000
    records: int = 30
    window: int = 300
    seeds: int = 1


def run(settings: Settings, key, session) -> xr.Dataset:
    dataset = data.sphere_sines(
        named_key(key, "data"), settings.samples, settings.features, settings.noise
    )
    names = [label(g, a) for g, a in zip(settings.gammas, settings.alphas, strict=True)]
    measurements, paths = [], []
    for i, (gamma, alpha) in enumerate(zip(settings.gammas, settings.alphas, strict=True)):
        for seed in range(settings.seeds):
            net = Shallow.init(
                named_key(key, "run", seed),
                features=settings.features,
                width=settings.width,
                scaling=Zipf(gamma, alpha),
            )
            burn = train(
                net,
                dataset,
                GradientDescent(settings.rate),
                steps=settings.steps,
                every=max(1, settings.steps // settings.records),
                record=[observables.KernelMinEigenvalue(), observables.Flips()],
                session=session.within(
                    i * settings.seeds + seed, len(names) * settings.seeds, "training", weight=0.9
                ),
            )
            window = sliding(burn.model, dataset, GradientDescent(settings.rate), settings.window)
            measurements.append(
                (
                    window.observed,
                    window.hard,
                    window.averaged,
                    float(window.stuck),
                    float(window.pairs),
                )
            )
            paths.append(burn.table)
    shape = (len(names), settings.seeds)
    rates = np.reshape(measurements, (*shape, 5))
    gaps, losses, flips = (
        np.reshape([t[v].values for t in paths], (*shape, -1))
        for v in ("kernel_gap", "loss", "flips")
    )
    time = paths[0]["time"].values
    smaller = np.minimum(gaps[..., 1:], gaps[..., :-1]) * np.diff(time)
    integral = np.concatenate([np.zeros((*shape, 1)), np.cumsum(smaller, axis=-1)], axis=-1)
    axes = ("setting", "seed")
    return xr.Dataset(
        {
            **{
                name: (axes, rates[..., i])
                for i, name in enumerate(("observed", "hard", "averaged", "stuck", "pairs"))
            },
            "loss": ((*axes, "step"), losses),
            "kernel_gap": ((*axes, "step"), gaps),
            "flips": ((*axes, "step"), flips),
            "excess": (
                (*axes, "step"),
                losses / (losses[..., :1] * np.exp(-2 * integral)),
                {"label": "loss over the bound of Lemma D.1"},
            ),
        },
        {
            "setting": names,
            "seed": np.arange(settings.seeds),
            "step": paths[0]["step"].values,
            "time": ("step", time),
        },
        paths[0].attrs,
    )


def draw(table: xr.Dataset) -> FigureSpec:
    time, mean = numbers(table["time"]), table.mean("seed")
    excess = [
        Line(time, numbers(mean["excess"].sel(setting=s)), str(s)) for s in table["setting"].values
    ]
    bars = [
        Bars([str(s) for s in table["setting"].values], numbers(mean[name]), text)
        for name, text in (
            ("observed", "observed"),
            ("averaged", "averaged mask"),
            ("hard", "hard mask"),
        )
    ]
    return FigureSpec(
        "Sticking kinks in the ReLU flow",
        [
            Panel(
                "Loss over L₀ exp(−2∫λ_min) with the hard mask",
                "flow time t",
                "ratio (a bound holds below 1)",
                excess,
                yscale="log",
            ),
            Panel("Rate of decay in the last window", "setting", "−d log L / dt", bars),
        ],
        caption="The observed rate is that of the averaged mask, below that of the hard mask on "
        "which the proof of Lemma D.1 rests.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    statements = []
    late = (
        float(table["time"].values[-1]) >= 2000
    )  # before that the slowest mode does not yet rule the decay
    for setting in table["setting"].values:
        one = table.sel(setting=setting).mean("seed")
        ratio = float(one["observed"] / one["averaged"])
        text = f"{setting}: observed rate over that of the averaged mask"
        if not late:
            statements.append(
                Claim(text, ratio, at_least=0.97, note="faster modes still add to the decay")
            )
        if late:
            statements.append(
                Claim(
                    text,
                    ratio,
                    expected=1.0,
                    tolerance=AGREEMENT.get(str(setting), 0.011),
                    note="one reference run at noise 1",
                )
            )
            statements += [
                Claim(
                    f"{setting}: share of pairs that stick",
                    float(one["stuck"] / one["pairs"]),
                    at_least=0.01,
                    note="reference runs: 0.033 at noise 1, 0.0035 at noise 0.1",
                ),
                Claim(
                    f"{setting}: observed rate over that of the hard mask (1 in Lemma D.1)",
                    float(one["observed"] / one["hard"]),
                    at_least=1.0,
                    expected_to_hold=False,
                    note="the gap of the ReLU proof",
                ),
            ]
    return tuple(statements)


EXPERIMENT = Experiment(
    name="caron2023-kinks",
    paper="caron2023",
    title="The gap of the ReLU proof at sticking kinks",
    figure="Lemma D.1",
    settings={
        "smoke": Settings(samples=20, features=10, width=100, steps=100, window=50, records=5),
        "default": Settings(),
        "paper": Settings(steps=4000, seeds=3),
    },
    run=run,
    draw=draw,
    claims=claims,
)
