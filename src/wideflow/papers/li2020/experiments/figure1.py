r"""Stage-wise convergence on the exact population (li2020, Figure 1).

$d = 30$, $m = 100$, absolute-value learner, $a_i = 1/d$, exact population gradient at mean-field
rate 0.25. Orders 0 and 2 settle within $\tau \approx d$, a long plateau follows, then all higher
orders fall together while neurons align with the target's directions. The figure's axes fit
$d^2c_k\ell_k$ (the un-normalised target), which is what is drawn.

Run:  wideflow run li2020-figure1
Takes:  default 10 s on two cores, smoke 3 s, paper (92 seeds) 3 min
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, HLine, Line, Panel
from ....models.homogeneous import Homogeneous
from ..theorems.expansion import HermiteExpansion, OrderGradients
from .stage_runs import (
    event_marks,
    furthest,
    median,
    order_panel,
    run_events,
    scaled_orders,
    shared,
    stage_table,
    value_at,
)


@dataclass(frozen=True)
class Settings:
    features: int = 30
    width: int = 100
    rate: float = 0.25
    time: float = 1000.0
    records: int = 400
    seeds: int = 2


def run(settings: Settings, key, session) -> xr.Dataset:
    table = stage_table(
        key,
        **shared(settings),
        width=settings.width,
        session=session.within(0, 1.0, "descent"),
    )
    first = Homogeneous.init(
        named_key(key, "net", 0), features=settings.features, width=settings.width
    )
    return table.assign(_identities(np.asarray(first.weights), settings.features))


def _identities(weights: np.ndarray, d: int) -> dict[str, float]:
    """How well (2.1) and (2.5) hold on the first network: relative errors, and those of the printed
    constants.
    """
    a = np.full(d, 1 / d)
    gradient = OrderGradients()(weights, a, order=4).numbers
    return {
        "expansion_error": HermiteExpansion()(weights, a).numbers["relative_error"],
        "gradient_error": gradient["relative_error"],
        "printed_gradient_error": gradient["printed_error"],
    }


def draw(table: xr.Dataset) -> FigureSpec:
    d, floor, time = table.attrs["features"], table.attrs["floor"], table.time.values
    events = {name: median(values) for name, values in run_events(table).items()}
    marks = event_marks(events)
    losses = [
        Line(time, d * table.population.isel(seed=i).values, "d × loss", group="loss")
        for i in range(table.sizes["seed"])
    ]
    counts = [
        Line(time, table.basis_neurons.median("seed").values, "basis-like neurons"),
        Line(time, table.covered_directions.median("seed").values, "directions found"),
    ]
    return FigureSpec(
        f"Tensor stages on the exact population: d = {d}, m = {table.attrs['width']}",
        [
            order_panel(table, "Loss by tensor order (one seed)"),
            Panel(
                "Population loss",
                "mean-field time τ",
                "d × loss",
                [*losses, HLine(d * floor, "degree-two floor"), *marks],
                yscale="log",
            ),
            Panel("Neurons", "mean-field time τ", "count", [*counts, *marks]),
            Panel(
                "Largest neuron",
                "mean-field time τ",
                "max ‖w‖²",
                [Line(time, table.largest_neuron.median("seed").values, "max ‖w‖²"), *marks],
            ),
        ],
        caption="Orders 0 and 2 settle first, then a long plateau, then all higher orders fall. "
        "Vertical lines are detected events.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    d, m, floor = (table.attrs[name] for name in ("features", "width", "floor"))
    events = {name: median(values) for name, values in run_events(table).items()}
    orders, scaled, end = table.order_losses, scaled_orders(table), table.isel(step=-1)
    warm = table.time.values >= 5
    ordered = (orders.sel(order=0) < orders.sel(order=2)).values[:, warm].all()
    settled = value_at(table, scaled, 2.5 * events["T1"])
    each = run_events(table)
    statements = [
        Claim(
            "after the warm-up (τ ≥ 5) the order-0 loss stays below the order-2 loss, in every "
            "seed",
            holds=bool(ordered),
        ),
        Claim(
            "the stages come in order: order 2 has settled long before order 4 leaves its "
            "plateau (largest T₁ over the time of escape)",
            float((each["T1"] / each["escape"]).max()),
            at_most=0.5,
        ),
        Claim(
            "and order 4 leaves it before half the floor is reached (largest ratio of the times)",
            float((each["escape"] / each["T2"]).max()),
            at_most=1.0,
        ),
        Claim(
            "(2.1): the orders and their tail sum to the loss, at the start (relative error)",
            float(table.expansion_error),
            at_most=1e-12,
        ),
        Claim(
            "(2.5) with b = 4c: the order-4 gradient against a difference quotient (relative "
            "error)",
            float(table.gradient_error),
            at_most=1e-7,
        ),
        Claim(
            "(2.5) as printed, b = 4jc (relative error)",
            float(table.printed_gradient_error),
            at_most=1e-7,
            expected_to_hold=False,
            note="the radial part is counted twice",
        ),
        Claim(
            "on the plateau order 2 is far below order 4 (largest ratio over seeds)",
            float((settled[:, 1] / settled[:, 2]).max()),
            at_most=0.1,
        ),
        Claim(
            "at the end the loss is far below the degree-two floor (largest over seeds)",
            float(end.population.max()) / floor,
            at_most=0.05,
        ),
        Claim(
            "every direction of the target is found, in every seed",
            float(end.covered_directions.min()),
            at_least=float(d),
        ),
    ]
    if (d, m) == (30, 100) and table.time.values[-1] >= 1000:
        statements += _paper_size(table, events, orders, scaled)
    return tuple(statements)


def _paper_size(table, events, orders, scaled) -> list[Claim]:
    """The assertions measured over 92 seeds, about four standard deviations wide."""
    d, floor = table.attrs["features"], table.attrs["floor"]
    at = lambda variable, time: value_at(table, variable, time)
    start, end = at(orders, 0), table.isel(step=-1)
    each = run_events(table)

    def any_seed(text: str, values, low: float, high: float) -> Claim:
        value = furthest(values, low, high)
        return Claim(
            f"{text} (the seed furthest from the middle)", value, at_least=low, at_most=high
        )

    plateau = table.population.where((table.time >= 50) & (table.time <= 190), drop=True)
    return [
        any_seed("raw order-2 loss at the start", start[:, 1], 0.008, 0.014),
        any_seed("raw order-4 loss at the start", start[:, 2], 0.038, 0.045),
        Claim(
            "raw order-0 loss at τ = 50 (largest)", float(at(orders, 50)[:, 0].max()), at_most=2e-6
        ),
        Claim(
            "raw order-2 loss at τ = 50 (largest)", float(at(orders, 50)[:, 1].max()), at_most=2e-5
        ),
        Claim(
            "order 4 has not moved at τ = 50 (smallest ratio to the start)",
            float((at(orders, 50)[:, 2] / start[:, 2]).min()),
            at_least=0.88,
        ),
        any_seed("d × loss on the plateau, τ = 50", d * at(table.population, 50), 0.052, 0.058),
        Claim(
            "the loss stays above the floor for τ in [50, 190] (smallest ratio)",
            float(plateau.min()) / floor,
            at_least=1.0,
        ),
        Claim(
            "end of stage 1.1, T₁ (median)",
            events["T1"],
            at_least=24.0,
            at_most=39.0,
            note="Θ(d log d) in the paper; measured τ ≈ d",
        ),
        any_seed("first time below the floor", each["below_floor"], 190.0, 410.0),
        any_seed("half the floor, T₂", each["T2"], 370.0, 580.0),
        any_seed("a tenth of the floor, T₃", each["T3"], 560.0, 790.0),
        Claim(
            "d × loss at τ = 1000 (largest)",
            d * float(at(table.population, 1000).max()),
            at_most=1.2e-3,
        ),
        Claim(
            "raw order-4 loss at τ = 1000 (largest)",
            float(at(orders, 1000)[:, 2].max()),
            at_most=6e-4,
        ),
        any_seed("largest squared norm at the end", end.largest_neuron, 2.9, 3.4),
        any_seed("basis-like neurons at the end", end.basis_neurons, 40.0, 70.0),
        Claim(
            "order 2 falls below 0.1 in the figure's units (τ = 180, largest)",
            float(at(scaled, 180)[:, 1].max()),
            at_most=0.1,
        ),
        Claim(
            "order 4 falls to the paper's 1e-2 in the figure's units (τ = 1000, largest)",
            float(at(scaled, 1000)[:, 2].max()),
            at_most=0.0143,
            note="the paper says 1e-2, at an unstated number of iterations; 0.0143 is d² c₄ 6e-4",
        ),
        Claim(
            "order 0 starts above order 4 (share of seeds)",
            float(np.mean(at(scaled, 0)[:, 0] > at(scaled, 0)[:, 2])),
            at_least=0.5,
            expected_to_hold=False,
            note="at κ = 1 the order-0 loss starts at (2/π)·2d/m = 0.38 on average, below order "
            "4 (0.98): true only by chance of the seed",
        ),
    ]


EXPERIMENT = Experiment(
    name="li2020-figure1",
    paper="li2020",
    title="Tensor stages on the exact population",
    figure="Figure 1",
    settings={
        "smoke": Settings(features=10, width=40, time=300.0, records=150, seeds=2),
        "default": Settings(),
        "paper": Settings(seeds=20, records=1000),
    },
    run=run,
    draw=draw,
    claims=claims,
)
