r"""Learning rate against width: where the noise of single samples stays (veiga2022, phase diagram).

A student $f = \frac1p\sum_{i\le p}\sigma(\lambda_i)$ in the mean-field scaling learns
$f^* = \frac1M\sum_r\sigma(\rho_r)$ with noisy labels at rate $\gamma$. In its own time
$t = \gamma\tau/p$ the equations are
$$\dot Q = (\text{drift, free of } \gamma \text{ and of the size of } p) + \frac\gamma
  p\,(\text{noise}),$$
so that the error which noise leaves is of order $\gamma/p$. With $\gamma = \gamma_0p^\alpha$ it
falls like $p^{\alpha-1}$ for $\alpha < 1$ (perfect learning), does not depend on the width for
$\alpha = 1$ (the noise term stays), and rises for $\alpha > 1$.

Run:  wideflow run veiga2022-phases
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.activations import scaled_erf
from ...._core.errors import check_count, check_positive
from ...._core.randomness import named_key
from ....data.multi_index import MultiIndex
from ....dynamics.online_sgd import OnlineSGD
from ....experiments.base import Claim, Experiment
from ....experiments.online import simulated_errors
from ....experiments.spread import standard_error
from ....figures import FigureSpec, HLine, Line, Panel, Points
from ....limits.order_parameters import OnlineEquations, Overlaps, order_parameters
from ....models.shallow import Shallow
from ....training.session import Session

ERF = scaled_erf(1 / math.sqrt(2))
INDICES = 2


@dataclass(frozen=True)
class Settings:
    widths: tuple[int, ...] = (4, 6, 8, 12)
    exponents: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5)
    rate: float = (
        0.1  # gamma_0: rate over width stays far below one, where the noise acts in first order
    )
    noise: float = 0.1
    horizon: float = 600.0  # in t
    records: int = 30
    features: int = 300
    simulated: float = 2.0  # in t, at the smallest width and exponent 1
    seeds: int = 12

    def __post_init__(self):
        for name in ("records", "features", "seeds"):
            check_count(name, getattr(self, name))
        for name in ("rate", "noise", "horizon", "simulated"):
            check_positive(name, getattr(self, name))

    def rate_at(self, width: int, exponent: float) -> float:
        return self.rate * width**exponent


def run(settings: Settings, key, session: Session) -> xr.Dataset:
    widths, exponents = settings.widths, settings.exponents
    grid = np.linspace(0.0, settings.horizon, settings.records + 1)
    curves = np.full((len(widths), len(exponents), len(grid)), np.nan)
    for i, width in enumerate(widths):
        session.progress(i, len(widths) + 1, f"{width} units")
        for j, exponent in enumerate(exponents):
            curves[i, j] = _path(settings, width, exponent, grid)
    width = widths[0]
    rate = settings.rate_at(width, 1.0)
    records = np.linspace(0.0, settings.simulated, settings.records + 1)
    steps = np.round(records * width / rate * settings.features).astype(int)
    times = steps / settings.features * rate / width
    part = session.within(len(widths), len(widths) + 1, "simulations")
    return xr.Dataset(
        {
            "curve": (("width", "exponent", "time"), curves),
            "predicted": ("simulated_time", np.asarray(_path(settings, width, 1.0, times))),
            "simulated": (("seed", "simulated_time"), _simulate(settings, key, width, steps, part)),
        },
        {"width": list(widths), "exponent": list(exponents), "time": grid, "simulated_time": times},
        {"noise": settings.noise, "features": settings.features},
    )


def _path(settings: Settings, width: int, exponent: float, times) -> np.ndarray:
    """The error at `times` of the equations' own clock."""
    rate = settings.rate_at(width, exponent)
    equations = OnlineEquations(
        ERF, ERF, np.full(INDICES, 1 / INDICES), rate=rate, scale=1 / width, noise=settings.noise
    )
    rows = _weights(width, width + INDICES)
    start = Overlaps.of_weights(rows, np.eye(INDICES, width + INDICES), np.ones(width))
    path = order_parameters(equations, start, np.asarray(times) * width / rate, rtol=1e-6)
    return np.asarray(path.error)


def _weights(width: int, features: int) -> np.ndarray:
    """Unit k at overlap 1/2 with the teacher k mod M, its rest along a coordinate of its own:
    length 1/2.
    """
    own = 0.5 * np.eye(INDICES, features)[np.arange(width) % INDICES]
    return own + 0.5 * np.eye(width, features, INDICES)


def _simulate(settings: Settings, key, width: int, steps, session) -> np.ndarray:
    d = settings.features
    # NTK scaling divides outputs by sqrt(K); the output weights make that 1/K
    net = Shallow(math.sqrt(d) * _weights(width, d), np.full(width, width**-0.5), activation=ERF)
    population = MultiIndex(ERF, np.eye(INDICES, d), np.full(INDICES, 1 / INDICES), settings.noise)
    keys = [named_key(key, "samples", seed) for seed in range(settings.seeds)]
    sgd = OnlineSGD(settings.rate_at(width, 1.0))
    return simulated_errors(net, population, sgd, steps, keys, session)


def slopes(table: xr.Dataset) -> np.ndarray:
    """Log-log slope of the last error against the width, by exponent."""
    logs = np.log(table["curve"].isel(time=-1).values)
    return np.polyfit(np.log(table["width"].values), logs, 1)[0]


def draw(table: xr.Dataset) -> FigureSpec:
    ends, widths = table["curve"].isel(time=-1), table["width"].values
    by_width = [
        Points(widths, ends.sel(exponent=a).values, f"rate ~ width^{float(a):g}")
        for a in table["exponent"].values
    ]
    widest = table["curve"].isel(width=-1, time=slice(1, None))
    curves = [
        Line(table["time"].values[1:], widest.sel(exponent=a).values, f"rate ~ width^{float(a):g}")
        for a in table["exponent"].values
    ]
    check = (
        Line(table["simulated_time"].values, table["predicted"].values, "equations"),
        Points(
            table["simulated_time"].values, table["simulated"].mean("seed").values, "simulations"
        ),
    )
    return FigureSpec(
        "Rate against width",
        [
            Panel("Error that noise leaves", "width p", "error", by_width, "log", "log"),
            Panel(
                f"Learning at width {int(widths[-1])}",
                "t = rate τ / width",
                "error",
                curves,
                yscale="log",
            ),
            Panel(
                f"The equations on simulations at width {int(widths[0])}",
                "t",
                "error",
                check,
                yscale="log",
            ),
            Panel(
                "Powers of the width",
                "exponent of the rate",
                "log-log slope",
                (
                    Points(table["exponent"].values, slopes(table), "measured"),
                    Line(
                        table["exponent"].values,
                        table["exponent"].values - 1,
                        "exponent - 1",
                        dash="dashed",
                    ),
                    HLine(0.0),
                ),
            ),
        ],
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    curve = table["curve"]
    statements = [
        Claim(
            "the errors have settled: largest relative change over the last tenth",
            float(
                np.abs(
                    curve.isel(time=-1 - table.sizes["time"] // 10) / curve.isel(time=-1) - 1
                ).max()
            ),
            at_most=0.02,
        )
    ]
    for exponent, slope in zip(table["exponent"].values, slopes(table), strict=True):
        text = (
            f"rate ~ width^{exponent:g}: log-log slope of the error that noise leaves against the "
            "width"
        )
        # the law is of first order in rate/width, which must not grow with the width
        holds = bool(exponent <= 1)
        note = (
            ""
            if holds
            else "rate/width grows with the width, and the first order with it falls short"
        )
        statements.append(
            Claim(
                text,
                float(slope),
                expected=float(exponent - 1),
                tolerance=0.15,
                expected_to_hold=holds,
                note=note,
            )
        )
    after = table.isel(simulated_time=slice(1, None))
    error = standard_error(after["simulated"])
    slack = 3 * error + 3 * after["predicted"] / table.attrs["features"]
    inside = np.abs(after["simulated"].mean("seed") - after["predicted"]) <= slack
    statements.append(
        Claim(
            "share of records with the equations within three standard errors of simulations",
            float(inside.mean()),
            at_least=0.9,
        )
    )
    return tuple(statements)


EXPERIMENT = Experiment(
    name="veiga2022-phases",
    paper="veiga2022",
    title="Learning rate against width: where the noise term stays",
    figure="phase diagram",
    settings={
        "smoke": Settings(
            widths=(2, 3),
            exponents=(0.5, 1.0),
            horizon=5.0,
            records=2,
            features=40,
            simulated=0.2,
            seeds=2,
        ),
        "default": Settings(),
        "paper": Settings(widths=(4, 8, 16, 24), features=1000, seeds=24),
    },
    run=run,
    draw=draw,
    claims=claims,
    claims_from_size="default",
)
