r"""How many samples a direction costs: time to weak recovery against the dimension, by information
exponent (benarous2021, Theorem 1.3).

One neuron on the sphere learns $y = \mathrm{He}_k(\rho)/\sqrt{k!}$ from fresh samples, starting at
the overlap $m = d^{-1/2}$ that chance gives. Its activation is the same Hermite polynomial times a
small factor $s$, so that gradients are those of the correlation loss: with $\delta = s\eta$ and in
steps over $d$,
$$\dot m = \delta\,k\,m^{k-1}(1 - m^2) + O(\delta^2m),$$
which takes $d$ steps at $k = 1$, $d\log d$ at 2 and, as noise allows only
$\delta \sim d^{-(k-2)/2}$, $d^{k-1}$ at $k \ge 3$. The time is the integral of $1/(m^{k-1}(1-m^2))$
from $d^{-1/2}$ to the overlap $m_*$ of weak recovery:
$$k = 1:\ \operatorname{artanh}m_* - \operatorname{artanh}d^{-1/2}, \qquad k =
  2:\ \tfrac12\log(d - 1) + \log\frac{m_*}{\sqrt{1-m_*^2}}, \qquad
  k = 3:\ \sqrt d - \frac1{m_*} + \operatorname{artanh}m_* - \operatorname{artanh}d^{-1/2}.$$
At $k = 2, 3$ the constant vanishes for one $m_*$, which is the one taken, so that small $d$ do not
bend the powers. At $k = 1$ no $m_*$ does that: the start's own $d^{-1/2}$ is felt up to $d$ of some
hundreds (over 32 to 128 the equations' power is 1.08), and dimensions are eight times larger.

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

# m_*: m = sqrt(1 - m^2) at k = 2, artanh m = 1/m at k = 3 (see above); free at k = 1
THRESHOLDS = {1: 0.75, 2: 0.5**0.5, 3: 0.8335565596009647}
BEND = 0.03  # how far finite dimensions may bend the powers of the equations themselves
SMALL = 0.05  # s: the student's own output is that small beside the target
RECORDS = 400
PATIENCE = 2.5  # times the time of the equations


@dataclass(frozen=True)
class Settings:
    exponents: tuple[int, ...] = (1, 2, 3)
    rates: tuple[float, ...] = (0.3, 0.3, 0.1)  # delta, at k = 3 times sqrt(d)
    features: tuple[int, ...] = (32, 64, 128)  # the cube teacher takes d^2 steps
    factors: tuple[int, ...] = (8, 1, 1)  # of the dimensions, an exponent
    batch: int = 16  # averages noise, so that larger rates do
    seeds: int = 12

    def __post_init__(self):
        for name in ("batch", "seeds"):
            check_count(name, getattr(self, name))
        for rate in self.rates:
            check_positive("rates", rate)
        for name in ("rates", "factors"):
            if len(numbers := getattr(self, name)) != len(self.exponents):
                raise ValueError(
                    f"`{name}` must have one number per exponent ({len(self.exponents)}), got "
                    f"{len(numbers)}."
                )
        for exponent in self.exponents:
            check_count("exponents", exponent, 1, max(THRESHOLDS))
        check_count("features", len(self.features), least=2)

    def rate_at(self, exponent: int, features: int) -> float:
        r"""$\delta \propto d^{-(k-2)/2}$ for $k \ge 3$: with larger steps noise would win."""
        rate = self.rates[self.exponents.index(exponent)]
        return rate * features ** (-max(exponent - 2, 0) / 2)


def run(settings: Settings, key, session: Session) -> xr.Dataset:
    exponents = settings.exponents
    features = np.outer(settings.factors, settings.features)
    times = np.full((*features.shape, settings.seeds), np.nan)
    predicted = np.full(features.shape, np.nan)
    for job, (i, j) in enumerate(np.ndindex(features.shape)):
        exponent, d = exponents[i], int(features[i, j])
        predicted[i, j] = d * _equations_time(settings, exponent, d)
        part = session.within(job, features.size, f"exponent {exponent}, d = {d}")
        steps = math.ceil(PATIENCE * predicted[i, j])
        times[i, j] = _simulate(settings, key, exponent, d, steps, part)
    return xr.Dataset(
        {
            "steps": (("exponent", "place", "seed"), times),
            "predicted": (("exponent", "place"), predicted),
            "features": (("exponent", "place"), features),
            "threshold": ("exponent", [THRESHOLDS[k] for k in exponents]),
            "measured_exponent": (
                "exponent",
                [information_exponent(hermite(k)) for k in exponents],
            ),
        },
        {"exponent": list(exponents)},
        {"batch": settings.batch},
    )


def _equations_time(settings: Settings, exponent: int, d: int) -> float:
    r"""$\tau$ at which the equations reach the threshold."""
    delta, act = settings.rate_at(exponent, d), hermite(exponent)
    equations = OnlineEquations(
        act, act, rate=delta / SMALL, scale=SMALL, batch=settings.batch, spherical=True
    )
    start = Overlaps([[d**-0.5]], [[1.0]], [[1.0]], [1.0])
    # without noise the time is the integral of the head over delta k: five times it is enough
    integral = {1: 1.0, 2: math.log(d) / 2, 3: math.sqrt(d)}[exponent]
    grid = np.linspace(0.0, 5 * integral / (exponent * delta), 2001)
    overlaps = order_parameters(equations, start, grid, rtol=1e-7).M[:, 0, 0]
    return weak_recovery_time(grid, overlaps, THRESHOLDS[exponent])


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
    return np.array(
        [weak_recovery_time(clock, row, THRESHOLDS[exponent]) for row in cosines.values]
    )


def power(features: np.ndarray, exponent: int, steps: np.ndarray) -> float:
    """Slope of log steps against log d; at exponent 2, of steps over log d."""
    law = np.log(features) if exponent == 2 else 1.0
    return float(_slope_weights(features) @ np.log(steps / law))


def fit(table: xr.Dataset, exponent: int) -> tuple[float, float]:
    """The power of d in the geometric means over seeds, and its standard error from their
    spread.
    """
    at = table.sel(exponent=exponent)
    d, logs = at["features"].values, np.log(at["steps"].values)
    errors = np.nanstd(logs, axis=1, ddof=1) / np.sqrt(np.sum(np.isfinite(logs), axis=1))
    error = np.sqrt(np.sum((_slope_weights(d) * errors) ** 2))
    return power(d, exponent, np.exp(np.nanmean(logs, axis=1))), float(error)


def _slope_weights(features: np.ndarray) -> np.ndarray:
    r"""$w$ with slope $\sum_jw_jy_j$ of the least squares line through $(\log d_j, y_j)$."""
    x = np.log(features)
    return (x - x.mean()) / np.sum((x - x.mean()) ** 2)


def draw(table: xr.Dataset) -> FigureSpec:
    marks, ratios = [], []
    for exponent in table["exponent"].values:
        at, group = table.sel(exponent=exponent), f"exponent {int(exponent)}"
        d = at["features"].values
        mean = np.nanmean(at["steps"].values, axis=1)
        spread = np.nanstd(at["steps"].values, axis=1, ddof=1)
        marks.append(Points(d, mean, f"{group}, simulations", errors=spread, group=group))
        marks.append(Line(d, at["predicted"].values, f"{group}, equations", group=group))
        law = [recovery_samples(int(exponent), float(n)) for n in d]
        ratios.append(Points(d, mean / law, group))
    return FigureSpec(
        "What a direction costs",
        [
            Panel("Steps to weak recovery", "dimension d", "steps", marks, "log", "log"),
            Panel(
                "Over d, d log d, d²",
                "dimension d",
                "steps over the predicted power",
                ratios,
                "log",
                "log",
            ),
        ],
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    statements = [
        Claim(
            "share of runs that recover", float(np.isfinite(table["steps"]).mean()), at_least=0.95
        ),
        Claim(
            "information exponents by quadrature",
            holds=bool((table["measured_exponent"] == table["exponent"]).all()),
        ),
    ]
    for exponent in map(int, table["exponent"].values):
        at = table.sel(exponent=exponent)
        d, predicted = at["features"].values, at["predicted"].values
        slope, error = fit(table, exponent)
        law, unit = max(exponent - 1, 1), " (after the logarithm)" if exponent == 2 else ""
        text = f"exponent {exponent}: power of d{unit} in the equations, at these dimensions"
        statements.append(Claim(text, power(d, exponent, predicted), expected=law, tolerance=BEND))
        text = (
            f"exponent {exponent}: power of d{unit}, within three standard errors and the {BEND:g} "
            "that finite dimensions may add"
        )
        statements.append(Claim(text, slope, expected=law, tolerance=3 * error + BEND))
        text = f"exponent {exponent}: standard error of that power"
        statements.append(Claim(text, error, at_most=0.1))
        ratio = at["steps"].mean("seed").values / predicted
        text = f"exponent {exponent}: mean steps over the equations', furthest from one"
        far = ratio[np.argmax(np.abs(np.log(ratio)))]
        # fluctuations of the start's own order d^(-1/2) are not in the equations
        statements.append(Claim(text, float(far), at_least=2 / 3, at_most=1.5))
    return tuple(statements)


EXPERIMENT = Experiment(
    name="benarous2021-exponent",
    paper="benarous2021",
    title="Time to weak recovery against the dimension, by information exponent",
    figure="Theorem 1.3",
    settings={
        "smoke": Settings(
            exponents=(2,), rates=(0.3,), features=(16, 32), factors=(1,), batch=4, seeds=2
        ),
        "default": Settings(),
        "paper": Settings(features=(64, 128, 256, 512), seeds=24),
    },
    run=run,
    draw=draw,
    claims=claims,
    claims_from_size="default",
)
