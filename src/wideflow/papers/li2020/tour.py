r"""Tour: the plateau, and the lottery that ends it (li2020, Figure 1 and Lemma A.3).

Norm-coupled neurons descend the exact population loss of $\frac1d\sum_i|x_i|$. All that a quadratic
can fit is learnt at once; then the loss waits at the floor $(1-3/\pi)/d$ of the best fit of degree
two, until the few neurons that started closest to a direction of the target have grown along it.

Run:  wideflow run tour-li2020            Takes:  default 15 s on two cores, smoke 3 s
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ..._core.errors import check_count, check_positive
from ..._core.randomness import named_key
from ...dynamics.descent import GradientDescent
from ...dynamics.losses import MeanSquares
from ...experiments.base import Claim, Experiment
from ...experiments.tours.moments import Moment, line_at
from ...figures import FigureSpec, HLine, Line, Panel, Points, VLine
from ...models.homogeneous import Homogeneous
from ...observables.stages import first_time
from ...training.train import train
from .experiments.stage_runs import scaled_orders, teacher_of
from .observables.lottery import CoveredDirections, NeuronShares, NeuronSizes, ranking_quality
from .observables.tensors import OrderLosses

ORDERS = (0, 2, 4, 6)
WINNING = 0.9  # a neuron has won a direction that holds this share of its squared norm
BAND = 1.35  # "at the floor": within this factor of it
TIME = "mean-field time τ"


@dataclass(frozen=True)
class Settings:
    features: int = 30
    width: int = 300
    rate: float = 0.05
    time: float = 800.0
    records: int = 160

    def __post_init__(self):
        check_count("features", self.features, least=4)
        check_count("width", self.width, least=2)
        check_count("records", self.records, least=10)
        check_positive("rate", self.rate)
        check_positive("time", self.time)


def run(settings: Settings, key, session) -> xr.Dataset:
    teacher = teacher_of(settings.features)
    attributes = dict(features=settings.features, width=settings.width, floor=teacher.floor)
    finished = lambda table: table.assign_coords(order=list(ORDERS)).assign_attrs(attributes)
    steps = math.ceil(settings.time / settings.rate)
    net = Homogeneous.init(
        named_key(key, "net"), features=settings.features, width=settings.width, activation="abs"
    )
    table = train(
        net,
        teacher,
        GradientDescent(settings.rate),
        steps=steps,
        every=max(1, steps // settings.records),
        loss=MeanSquares(),
        record=[OrderLosses(ORDERS), NeuronShares(), NeuronSizes(), CoveredDirections()],
        session=session.showing(finished),
    ).table
    return finished(table)


def settled(table: xr.Dataset) -> float:
    """The first time at which what a quadratic can fit is learnt: order 2 below 2 % of the floor
    (event T₁ of `stage_events`).
    """
    second = table.order_losses.sel(order=2).values / math.pi
    return first_time(table.time.values, second <= 0.02 * table.attrs["floor"])


def plateau(table: xr.Dataset) -> Moment | None:
    """Twice as long as it took to learn the quadratic part, the loss has not left the floor."""
    start, times = settled(table), table.time.values
    ratio = table.loss.values / table.attrs["floor"]
    left = (times >= start) & ((ratio > BAND) | (ratio < 1 / BAND))
    time = first_time(times, (times >= 3 * start) & (np.cumsum(left) == 0))
    if math.isnan(time):
        return None
    return Moment(
        time,
        f"By τ = {start:.0f} the quadratic part was learnt. At τ = {time:.0f} the loss is still "
        f"at the floor: {_at(ratio, times, time):.2f} of it.",
    )


def escape(table: xr.Dataset) -> Moment | None:
    """After the plateau the loss falls to half the floor, and the winners carry much of the
    mass.
    """
    waited, times = plateau(table), table.time.values
    if waited is None:
        return None
    half = (table.loss.values <= table.attrs["floor"] / 2) & (times >= waited.time)
    time = first_time(times, half)
    if math.isnan(time):
        return None
    won, mass = winners(table)
    return Moment(
        time,
        f"At τ = {time:.0f} the loss is half the floor: {_at(won, times, time):.0f} of "
        f"{table.attrs['width']} neurons have won a direction and carry "
        f"{_at(mass, times, time):.0%} of the mass.",
    )


def all_found(table: xr.Dataset) -> Moment | None:
    """Every direction of the target has its neuron."""
    d, times = table.attrs["features"], table.time.values
    time = first_time(times, table.covered_directions.values >= d)
    if math.isnan(time) or escape(table) is None:
        return None
    return Moment(
        time,
        f"At τ = {time:.0f} all {d} directions are found. In {ticket_quality(table, time):.0%} "
        "of all pairs the winner had the better ticket than the loser.",
    )


def winners(table: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """At every record, how many neurons have won and the share of the mass that they carry."""
    won = table.neuron_shares.values >= WINNING
    sizes = table.neuron_sizes.values
    return won.sum(axis=1), (sizes * won).sum(axis=1) / sizes.sum(axis=1)


def ticket_quality(table: xr.Dataset, time: float = math.inf) -> float:
    """How well the shares at the start rank the winners at `time` (default: now); a half is
    chance.
    """
    shares, now = table.neuron_shares.values, np.searchsorted(table.time.values, time)
    return ranking_quality(shares[0], shares[min(now, len(shares) - 1)] >= WINNING)


def _at(values, times, time: float) -> float:
    return float(values[np.searchsorted(times, time)])


def live(table: xr.Dataset) -> FigureSpec:
    d, m, time = table.attrs["features"], table.attrs["width"], table.time.values
    event = line_at(escape(table), "half the floor")
    shares, sizes = table.neuron_shares.values, table.neuron_sizes.values
    best = np.argsort(shares[0])[::-1]
    few = max(1, m // 10)
    neurons = [
        Points(shares[-1, which], sizes[-1, which], label, size=size)
        for which, label, size in (
            (best[few:], "all others", 4),
            (best[:few], "the best tenth of the tickets at the start", 6),
        )
    ]
    orders = scaled_orders(table)
    curves = [Line(time, orders.sel(order=k).values, f"order {k}") for k in ORDERS]
    return FigureSpec(
        f"The plateau and the lottery: d = {d}, m = {m}",
        [
            Panel(
                "Loss",
                TIME,
                "loss / floor",
                [
                    Line(time, table.loss.values / table.attrs["floor"], "loss"),
                    HLine(1.0, "floor: best fit of degree two"),
                    event,
                ],
                yscale="log",
            ),
            Panel(
                "Neurons",
                "share on its best direction",
                "‖w‖²",
                [*neurons, VLine(WINNING, "has won", "dotted")],
                yscale="log",
            ),
            Panel(
                "Loss by tensor order",
                TIME,
                "d² cₖ × loss of order k",
                [*curves, event],
                yscale="log",
            ),
            Panel(
                "Winners",
                TIME,
                "count",
                [
                    Line(time, winners(table)[0], "neurons that have won"),
                    Line(time, table.covered_directions.values, "directions found"),
                    HLine(d, "directions of the target", "dotted"),
                    event,
                ],
            ),
        ],
        caption="Exact population gradient; the floor (1 − 3/π)/d is where every fit of degree "
        "two stops. Compare li2020, Figure 1.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    end = float(table.loss[-1]) / table.attrs["floor"]
    return (
        Claim("the loss waits at the floor of degree two", holds=plateau(table) is not None),
        Claim("then winners take it to half the floor", holds=escape(table) is not None),
        Claim("every direction is found", holds=all_found(table) is not None),
        Claim("loss at the end over the floor", end, at_most=0.1),
        Claim(
            "the tickets of the start rank the winners: AUC", ticket_quality(table), at_least=0.7
        ),
    )


EXPERIMENT = Experiment(
    name="tour-li2020",
    paper="li2020",
    title="Tour: the plateau and the lottery that ends it",
    figure="Figure 1",
    settings={
        "smoke": Settings(features=16, width=60, rate=0.2, time=400.0, records=80),
        "default": Settings(),
        "paper": Settings(width=100, rate=0.25, time=1000.0, records=200),
    },
    run=run,
    draw=live,
    claims=claims,
)
