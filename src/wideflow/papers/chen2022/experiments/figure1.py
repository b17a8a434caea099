r"""Random labels: the loss falls at a linear rate, also where $n > d$ (chen2022, Experiment 1,
Figures 1 and 5).

A shallow tanh network in the mean-field scaling fits labels uniform on $[-\frac12, \frac12]$ at
Gaussian inputs. Corollary 1 covers $n \le d$ alone, where $G = X X^\top / d$ is regular; the loss
vanishes beyond it too, since $K = G \circ A$ is positive definite for a singular $G$. Figure 5 is
the same at half the width.

Run:  wideflow run chen2022-figure1
Takes:  smoke 3 s, default 20 s on two cores, paper 5 min on a GPU
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from .... import data, observables
from ...._core.foreign import untyped
from ...._core.randomness import named_key
from ...._core.scalings import MeanField
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, HLine, Line, Panel, Points
from ....models.shallow import Shallow
from .common import LITERAL_STEPS, descend, last, records_of, slope, stack, tell

FLOOR = 1e-22  # times the first loss: rounding of the outputs

SLOW = (
    "beyond n = d about 5 % of the draws of the data (3 of 60, 95 % interval 1 to 14 %) let "
    "λ_min(K) fall a hundredfold during training; they show no "
    "linear rate, and one followed for forty times the paper's run did not recover it"
)
SHARE = 0.8  # of the seeds: four of five


@dataclass(frozen=True)
class Settings:
    samples: tuple[int, ...] = (10, 20, 40, 80)
    features: int = 20
    widths: tuple[int, ...] = (512,)
    steps_of_one: int = LITERAL_STEPS
    fraction: float = 0.5
    literal: bool = False
    seeds: int = 5


def run(settings: Settings, key, session) -> xr.Dataset:
    record = [
        observables.SumLoss(),
        observables.FeatureMovement(),
        observables.KernelMinEigenvalue(),
        observables.KernelMaxEigenvalue(),
    ]
    tables, jobs = {}, len(settings.widths) * len(settings.samples)
    for i, width in enumerate(settings.widths):
        for j, samples in enumerate(settings.samples):
            done = i * len(settings.samples) + j
            sets = [
                data.random_labels(named_key(key, "data", seed), samples, settings.features)
                for seed in range(settings.seeds)
            ]
            nets = [
                Shallow.init(
                    named_key(key, "net", seed),
                    features=settings.features,
                    width=width,
                    scaling=MeanField(),
                    activation="tanh",
                )
                for seed in range(settings.seeds)
            ]
            trained = descend(
                nets,
                sets,
                total_time=settings.steps_of_one / samples,
                fraction=settings.fraction,
                literal=settings.literal,
                record=record,
                session=session.within(done, jobs, f"n = {samples}"),
            )
            table = records_of(trained, samples)
            grams = [
                np.linalg.eigvalsh(np.asarray(one.inputs @ one.inputs.T) / settings.features)
                for one in sets
            ]
            table["gram_gap"] = ("seed", [values[0] / values[-1] for values in grams])
            tables.setdefault(width, {})[samples] = table
    joined = stack({width: stack(group, "n") for width, group in tables.items()}, "m")
    return tell(joined, settings, figure="chen2022, Figures 1 and 5")


def draw(table: xr.Dataset) -> FigureSpec:
    panels = []
    for m in table.m.values:
        lines = []
        for n in table.n.values:
            one = table.sel(m=m, n=n)
            losses = np.maximum(one.sum_loss / n, 1e-35)
            good = np.isfinite(one.step.values)
            steps, group = one.time.values[good] * n, f"n = {n}"
            lines.append(Line(steps, losses.mean("seed").values[good], group, group=group))
            lines += [
                Line(steps, losses.sel(seed=seed).values[good], "", dash="dotted", group=group)
                for seed in one.seed.values
            ]
        panels.append(
            Panel(
                f"Training loss, m = {m}",
                "step of size 1 on the half mean (t n)",
                "½ mean of squares",
                lines,
                yscale="log",
            )
        )
    one = table.isel(m=-1)
    rates = [np.nanmean(_slopes(one.sel(n=n))[0]) for n in table.n.values]
    ratio = [
        Points(table.n.values, -np.asarray(rates), "measured rate −d log L/dt"),
        Points(table.n.values, _promised(one), "2 λ_min(K) at the end"),
    ]
    panels.append(
        Panel("Rate of decay against n", "n", "rate", [*ratio, HLine(0.0, "")], xscale="log")
    )
    seeds = table.sizes["seed"]
    shown = f"Mean over {seeds} seeds (solid, as in the paper) and every seed (dotted)"
    return FigureSpec(
        "Random labels are fitted at a linear rate",
        panels,
        caption=f"{table.attrs['loss']}. {shown if seeds > 1 else 'One seed'}; d = "
        f"{table.attrs['features']}.",
    )


def _after(table: xr.Dataset, steps: int) -> xr.DataArray:
    """The loss after that many steps of size 1 on the half mean, or at the end of a shorter run."""
    return last(table.sum_loss.where(table.time * table.n <= steps * (1 + 1e-9)))


def _promised(table: xr.Dataset) -> np.ndarray:
    return 2 * last(table.kernel_gap).mean("seed").values


def _slopes(one: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Slope of log L and its R² for every seed, over the second half of the run before the rounding
    floor.
    """
    slopes, shares = [], []
    for seed in one.seed.values:
        loss, time = one.sum_loss.sel(seed=seed).values, one.time.values
        good = np.isfinite(loss) & (loss > FLOOR * loss[0])
        end = time[good].max()
        late = good & (time >= end / 2)
        fitted, explained = slope(time[late], np.log(loss[late]))
        slopes.append(fitted)
        shares.append(explained)
    return np.array(slopes), np.array(shares)


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    one = table.isel(m=-1)
    per_sample = np.maximum(_after(one, 10_000) / one.n, FLOOR)
    statements = [
        Claim(
            "½ mean of squares after 10 000 steps of size 1 rises with n, in every seed",
            holds=bool(
                (per_sample.diff("n") >= 0).all()
                and (per_sample.isel(n=-1) > per_sample.isel(n=0)).all()
            ),
            note="values at the rounding floor count as equal",
        ),
        Claim(
            "feature movement rises with n in the mean over seeds",
            holds=bool((last(one.feature_movement).mean("seed").diff("n") > 0).all()),
        ),
    ]
    long = table.attrs["steps_of_one"] >= 20_000
    for n in one.n.values:
        if n > 2 * table.attrs["features"]:
            continue
        fitted, explained = _slopes(one.sel(n=n))
        crowded = n > table.attrs["features"]
        ratio = fitted / (-2 * last(one.kernel_gap.sel(n=n)).values)
        if crowded:
            allowed = 0.2 if long else 0.35
            statements += _in_most_seeds(
                f"n = {n}: log L is linear in t (R² at least 0.98)", explained >= 0.98
            )
            statements += _in_most_seeds(
                f"n = {n}: slope within {allowed:.0%} of −2 λ_min(K)", np.abs(ratio - 1) <= allowed
            )
        else:
            statements.append(
                Claim(
                    f"n = {n}: log L is linear in t, R² of the worst seed",
                    float(explained.min()),
                    at_least=0.98,
                )
            )
        if n == table.attrs["features"]:
            worst = float(ratio[np.argmax(np.abs(ratio - 1))])
            statements.append(
                Claim(
                    f"n = {n}: slope over −2 λ_min(K), the worst seed",
                    worst,
                    expected=1.0,
                    tolerance=0.1,
                )
            )
        gap = (
            float(one.gram_gap.sel(n=n).min())
            if n <= table.attrs["features"]
            else float(np.abs(one.gram_gap.sel(n=n)).max())
        )
        if n <= table.attrs["features"]:
            statements.append(
                Claim(f"n = {n}: rank X = n, smallest λ_min(G)/λ_max(G)", gap, at_least=1e-8)
            )
        else:
            statements.append(
                Claim(
                    f"n = {n} > d: λ_min(G) is rounding, Corollary 1 is silent", gap, at_most=1e-10
                )
            )
            ended = (last(one.sum_loss.sel(n=n)) / one.sum_loss.sel(n=n).isel(record=0)).values
            text = f"n = {n} > d: and yet the loss falls a thousandfold"
            statements += _in_most_seeds(text, ended <= 1e-3)
    if len(table.m) > 1 and table.m.min() >= 4096:
        logs = (
            untyped(np.log10)(_after(table, 10_000))
            .mean("seed")
            .sel(n=[n for n in table.n.values if n >= 40])
        )
        statements.append(
            Claim(
                "half the width changes the mean log10 loss at step 10 000 by",
                float(np.abs(logs.diff("m")).max()),
                at_most=0.5,
            )
        )
    return tuple(statements)


def _in_most_seeds(text: str, good: np.ndarray) -> list[Claim]:
    """The share of seeds; where a slow one is among them, the paper's "every seed" beside it,
    declared as not reproducing.
    """
    share = float(np.mean(good))
    claims = [Claim(f"{text}: share of seeds", share, at_least=SHARE, note=SLOW)]
    if not good.all():
        claims.append(Claim(f"{text}, in every seed", share, at_least=1.0, expected_to_hold=False))
    return claims


EXPERIMENT = Experiment(
    name="chen2022-figure1",
    paper="chen2022",
    title="Random labels at a linear rate",
    figure="Figures 1 and 5",
    settings={
        "smoke": Settings(samples=(10, 20), features=10, widths=(128,), steps_of_one=3000, seeds=2),
        "default": Settings(),
        "paper": Settings(
            samples=(20, 40, 80, 160),
            widths=(4096, 8192),
            steps_of_one=LITERAL_STEPS,
            literal=True,
            seeds=5,
        ),
    },
    run=run,
    draw=draw,
    claims=claims,
)
