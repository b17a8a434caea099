r"""How many samples a direction costs: time to weak recovery against the dimension, by information exponent (benarous2021, Theorem 1.3).

One neuron on the sphere learns $y = \mathrm{He}_k(\rho)/\sqrt{k!}$ from fresh samples, starting at the overlap $m = d^{-1/2}$ that chance gives. Its activation is the same Hermite
polynomial times a small factor $s$, so that gradients are those of the correlation loss: with $\delta = s\eta$ and in steps over $d$,
$$\dot m = \delta\,k\,m^{k-1}(1 - m^2) + O(\delta^2m),$$
which takes $d$ steps at $k = 1$, $d\log d$ at 2 and, as noise allows only $\delta \sim d^{-(k-2)/2}$, $d^{k-1}$ at $k \ge 3$. Weak recovery is taken at $m = 0.75$, where the
integrals of $1/(m^{k-1}(1-m^2))$ from $d^{-1/2}$ on are $\frac12\log d$ and $\sqrt d$ up to a few per cent, so that small $d$ do not bend the slopes.

Run:  wideflow run benarous2021-exponent
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.activations import hermite
from ...._core.errors import check_count, check_positive
from ...._core.randomness import named_key
from ....data.multi_index import MultiIndex
from ....dynamics.online_sgd import OnlineSGD
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, Line, Panel, Points
from ....limits.hermite_order import information_exponent, recovery_samples
from ....limits.order_parameters import OnlineEquations, Overlaps, order_parameters
from ....models.shallow import Shallow
from ....observables.overlaps import LargestCosine, weak_recovery_time
from ....training.session import Session
from ....training.train import train

THRESHOLD = 0.75
SMALL = 0.05  # s: the student's own output is that small beside the target
RECORDS = 400
PATIENCE = 2.5  # times the time of the equations


@dataclass(frozen=True)
class Settings:
    exponents: tuple[int, ...] = (1, 2, 3)
    rates: tuple[float, ...] = (0.3, 0.3, 0.1)  # delta, at k = 3 times sqrt(d)
    features: tuple[int, ...] = (32, 64, 128)  # the cube teacher takes d^2 steps
    batch: int = 16  # averages noise, so that larger rates do
    seeds: int = 12

    def __post_init__(self):
        for name in ("batch", "seeds"):
            check_count(name, getattr(self, name))
        for rate in self.rates:
            check_positive("rates", rate)
        if len(self.rates) != len(self.exponents):
            raise ValueError(
                f"`rates` must have one number an exponent ({len(self.exponents)}), got {len(self.rates)}."
            )

    def rate_at(self, exponent: int, features: int) -> float:
        r"""$\delta \propto d^{-(k-2)/2}$ for $k \ge 3$: with larger steps noise would win."""
        rate = self.rates[self.exponents.index(exponent)]
        return rate * features ** (-max(exponent - 2, 0) / 2)


def run(settings: Settings, key, session: Session) -> xr.Dataset:
    exponents, features = settings.exponents, settings.features
    times = np.full((len(exponents), len(features), settings.seeds), np.nan)
    predicted = np.full((len(exponents), len(features)), np.nan)
    jobs = len(exponents) * len(features)
    for i, exponent in enumerate(exponents):
        for j, d in enumerate(features):
            predicted[i, j] = d * _equations_time(settings, exponent, d)
            part = session.within(i * len(features) + j, jobs, f"exponent {exponent}, d = {d}")
            steps = math.ceil(PATIENCE * predicted[i, j])
            times[i, j] = _simulate(settings, key, exponent, d, steps, part)
    return xr.Dataset(
        {
            "steps": (("exponent", "features", "seed"), times),
            "predicted": (("exponent", "features"), predicted),
            "measured_exponent": ("exponent", [information_exponent(hermite(k)) for k in exponents]),
        },
        {"exponent": list(exponents), "features": list(features)},
        {"batch": settings.batch, "threshold": THRESHOLD},
    )  # fmt: skip


def _equations_time(settings: Settings, exponent: int, d: int) -> float:
    r"""$\tau$ at which the equations reach the threshold."""
    delta, act = settings.rate_at(exponent, d), hermite(exponent)
    equations = OnlineEquations(
        act, act, rate=delta / SMALL, scale=SMALL, batch=settings.batch, spherical=True
    )
    start = Overlaps([[d**-0.5]], [[1.0]], [[1.0]], [1.0])
    # dm/dtau >= delta k m^(k-1) (1 - 0.75^2), less what noise takes: twice the integral is enough
    integral = {1: 1.0, 2: math.log(d) / 2}.get(exponent, math.pow(d, (exponent - 2) / 2))
    grid = np.linspace(0.0, 5 * integral / (exponent * delta), 2001)
    overlaps = order_parameters(equations, start, grid, rtol=1e-7).M[:, 0, 0]
    return weak_recovery_time(grid, overlaps, THRESHOLD)


def _simulate(settings: Settings, key, exponent: int, d: int, steps: int, session) -> np.ndarray:
    m, act = d**-0.5, hermite(exponent)
    direction = m * np.eye(1, d) + math.sqrt(1 - m**2) * np.eye(1, d, 1)
    net = Shallow(math.sqrt(d) * direction, [SMALL], activation=act)
    run = train(
        [net] * settings.seeds,
        MultiIndex(act, np.eye(1, d)),
        OnlineSGD(settings.rate_at(exponent, d) / SMALL, settings.batch, spherical=True),
        steps=steps,
        every=max(steps // RECORDS, 1),
        record=[LargestCosine()],
        key=[named_key(key, "samples", exponent, d, seed) for seed in range(settings.seeds)],
        session=session,
    )
    cosines = run.table["largest_cosine"].transpose("seed", "step")
    clock = run.table["step"].values.astype(float)
    return np.array([weak_recovery_time(clock, row, THRESHOLD) for row in cosines.values])


def fit(table: xr.Dataset, exponent: int) -> tuple[float, float]:
    """Slope of log steps against log d (at exponent 2, of steps over log d), and its standard error from the spread of seeds."""
    at = table["steps"].sel(exponent=exponent)
    x = np.log(at["features"].values.astype(float))
    y = np.log(at.values) - (np.log(x)[:, None] if exponent == 2 else 0.0)
    means = np.nanmean(y, axis=1)
    errors = np.nanstd(y, axis=1, ddof=1) / np.sqrt(np.sum(np.isfinite(y), axis=1))
    weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    return float(weights @ means), float(np.sqrt(np.sum((weights * errors) ** 2)))


def draw(table: xr.Dataset) -> FigureSpec:
    d, marks = table["features"].values, []
    for exponent in table["exponent"].values:
        at, group = table.sel(exponent=exponent), f"exponent {int(exponent)}"
        mean = np.nanmean(at["steps"].values, axis=1)
        spread = np.nanstd(at["steps"].values, axis=1, ddof=1)
        marks.append(Points(d, mean, f"{group}, simulations", errors=spread, group=group))
        marks.append(Line(d, at["predicted"].values, f"{group}, equations", group=group))
    ratios = [
        Points(d, np.nanmean(table["steps"].sel(exponent=k).values, axis=1) / [recovery_samples(int(k), float(n)) for n in d], f"exponent {int(k)}")
        for k in table["exponent"].values
    ]  # fmt: skip
    return FigureSpec(
        "What a direction costs",
        [
            Panel("Steps to weak recovery", "dimension d", "steps", marks, "log", "log"),
            Panel("Over d, d log d, d²", "dimension d", "steps over the predicted power", ratios, "log", "log"),
        ],
    )  # fmt: skip


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    statements = [
        Claim("share of runs that recover", float(np.isfinite(table["steps"]).mean()), at_least=0.95),
        Claim("information exponents by quadrature", holds=bool((table["measured_exponent"] == table["exponent"]).all())),
    ]  # fmt: skip
    for exponent in table["exponent"].values:
        slope, error = fit(table, int(exponent))
        power, unit = max(int(exponent) - 1, 1), " (after the logarithm)" if exponent == 2 else ""
        text = f"exponent {int(exponent)}: power of d{unit}, within three standard errors"
        # 0.03: what the integrals at finite d bend (see the head of this file)
        statements.append(Claim(text, slope, expected=power, tolerance=3 * error + 0.03))
        text = f"exponent {int(exponent)}: standard error of that power"
        statements.append(Claim(text, error, at_most=0.1))
        ratio = table["steps"].sel(exponent=exponent).mean("seed") / table["predicted"].sel(exponent=exponent)  # fmt: skip
        text = f"exponent {int(exponent)}: mean steps over the equations', furthest from one"
        far = ratio.values[np.argmax(np.abs(np.log(ratio.values)))]
        # fluctuations of the start's own order d^(-1/2) are not in the equations
        statements.append(Claim(text, float(far), at_least=2 / 3, at_most=1.5))
    return tuple(statements)


EXPERIMENT = Experiment(
    name="benarous2021-exponent",
    paper="benarous2021",
    title="Time to weak recovery against the dimension, by information exponent",
    figure="Theorem 1.3",
    settings={
        "smoke": Settings(exponents=(2,), rates=(0.3,), features=(16, 32), batch=4, seeds=2),
        "default": Settings(),
        "paper": Settings(features=(64, 128, 256, 512), seeds=24),
    },
    run=run,
    draw=draw,
    claims=claims,
    claims_from_size="default",
)  # fmt: skip
