"""The five node scalings of caron2023 side by side: one program for all settings and seeds, and
their panels.
"""

import math

import numpy as np
import xarray as xr

from ...._core.errors import check_choice
from ...._core.foreign import untyped
from ...._core.randomness import named_key
from ...._core.scalings import Zipf
from ....experiments.base import Claim
from ....experiments.spread import deviation
from ....figures import Line, Panel
from ....models.pruning import pruning_curve
from ....models.shallow import Shallow
from ....training.train import train

CONVENTIONS = ("released", "paper")
DEVIATION = {"released": math.sqrt(2.0), "paper": 1.0}
"""Initial deviation of the weights: in the authors' code, and in the text."""

GAMMAS = (1.0, 0.5, 0.5, 0.2, 0.0)
ALPHAS = (0.7, 0.7, 0.5, 0.5, 0.4)
"""The text has (1), (.5,.7), (.5,.5), (0,.4); the released figures have (.2,.5) for the third. All
five are run.
"""

PUBLISHED_ORDER = ("γ=1", "γ=.5, α=.7", "γ=.2, α=.5", "γ=0, α=.4")
LAZY, RICH = PUBLISHED_ORDER[0], PUBLISHED_ORDER[-1]


def label(gamma: float, alpha: float) -> str:
    short = lambda v: f"{v:g}".replace("0.", ".")
    return "γ=1" if gamma == 1 else f"γ={short(gamma)}, α={short(alpha)}"


def labels(settings) -> list[str]:
    return [label(g, a) for g, a in zip(settings.gammas, settings.alphas, strict=True)]


def check_settings(settings) -> None:
    """What every settings class of this folder asks of its common fields."""
    check_choice("convention", settings.convention, CONVENTIONS)
    check_lengths(settings)


def check_lengths(settings) -> None:
    if len(settings.gammas) != len(settings.alphas):
        raise ValueError(
            f"`gammas` and `alphas` must have equal lengths, got {len(settings.gammas)} and "
            f"{len(settings.alphas)}."
        )


def start(
    settings, key, seed: int, index: int, features: int, outputs: int | None = None
) -> Shallow:
    """The network of one seed under one setting; a seed draws the same weights and signs in every
    setting.
    """
    return Shallow.init(
        named_key(key, "run", seed),
        features=features,
        width=settings.width,
        outputs=outputs,
        scaling=Zipf(settings.gammas[index], settings.alphas[index], released=settings.shifted),
        weight_std=DEVIATION[settings.convention],
    )


def train_members(settings, key, dataset, test, dynamics, *, loss, record, session, outputs=None):
    """All settings and seeds in one program.

    Returns:
        the table with axes `setting` and `seed`, and the trained networks as `nets[setting][seed]`.
    """
    names = labels(settings)
    starts = [
        [
            start(settings, key, seed, index, dataset.dimension, outputs)
            for seed in range(settings.seeds)
        ]
        for index in range(len(names))
    ]
    result = train(
        [net for row in starts for net in row],
        dataset,
        dynamics,
        steps=settings.steps,
        every=max(1, settings.steps // settings.records),
        record=record,
        loss=loss,
        test=test,
        precision=settings.precision,
        axis="member",
        key=named_key(key, "batches"),
        session=session,
    )
    table = unstack(result.table, names, settings.seeds)
    if "weight_movement" in table:
        table["most_moved"] = most_moved(table["weight_movement"])
        table = table.drop_vars("weight_movement")
    nets = [
        [
            Shallow(
                result.model[i * settings.seeds + s].hidden, net.output, net.scaling, net.activation
            )
            for s, net in enumerate(row)
        ]
        for i, row in enumerate(starts)
    ]
    return table, nets


def most_moved(movement: xr.DataArray) -> xr.DataArray:
    """The whole history of the node that moved most by the end, run by run."""
    node = movement.isel(step=-1, drop=True).argmax("width")
    moved = movement.isel(width=node)
    return moved.assign_attrs(label="‖w_j(t) − w_j(0)‖ of the most-moved node")


def unstack(table: xr.Dataset, names, seeds: int) -> xr.Dataset:
    """The axis `member` as (setting, seed), settings outermost."""
    variables = {}
    for name, values in table.data_vars.items():
        axes = [a for a in values.dims if a != "member"]
        shaped = values.transpose("member", *axes).values
        shaped = shaped.reshape(len(names), seeds, *shaped.shape[1:])
        variables[name] = (("setting", "seed", *axes), shaped, values.attrs)
    coordinates = {"setting": list(names), "seed": np.arange(seeds), "step": table["step"].values}
    coordinates["time"] = ("step", table["time"].values)
    return xr.Dataset(variables, coordinates, table.attrs)


def prune_members(nets, names, parts: dict, levels) -> xr.Dataset:
    """Pruning curves of every network under both importances: axes (setting, seed, importance,
    part, removed).
    """
    seeds = len(nets[0])
    columns: dict[str, list] = {}
    for row in nets:
        for net in row:
            for convention in ("paper", "released"):
                for dataset in parts.values():
                    curve = pruning_curve(
                        net, dataset.inputs, dataset.targets, convention=convention, levels=levels
                    )
                    for measure in ("risk", "accuracy", "cross_entropy"):
                        value = getattr(curve, measure)
                        if value is not None:
                            columns.setdefault(f"pruned_{measure}", []).append(np.asarray(value))
    shape = (len(names), seeds, 2, len(parts), len(levels))
    axes = ("setting", "seed", "importance", "part", "removed")
    return xr.Dataset(
        {name: (axes, np.reshape(values, shape)) for name, values in columns.items()},
        {
            "setting": list(names),
            "seed": np.arange(seeds),
            "importance": ["paper", "released"],
            "part": list(parts),
            "removed": np.asarray(levels),
        },
    )


def levels_of(width: int) -> np.ndarray:
    """Numbers of removed nodes: every 5 per cent of the width, ends included."""
    return np.unique(np.round(np.linspace(0.0, 1.0, 21) * width).astype(int))


def numbers(values) -> list[float]:
    """An array as the plain list of numbers that a figure's marks hold."""
    return np.asarray(values, dtype=float).tolist()


def curves(
    table: xr.Dataset,
    values: xr.DataArray,
    along: str,
    title: str,
    x: str,
    y: str,
    xscale="linear",
    yscale="linear",
) -> Panel:
    """One line a setting: mean over seeds with a band of one deviation."""
    lines = []
    for name in values["setting"].values:
        one = values.sel(setting=name)
        middle, spread = one.mean("seed").values, deviation(one).values
        low = np.maximum(middle - spread, middle / 3) if yscale == "log" else middle - spread
        x_values, y_values = numbers(table[along]), numbers(middle)
        band = numbers(low), numbers(middle + spread)
        lines.append(Line(x_values, y_values, str(name), *band))
    return Panel(title, x, y, lines, xscale=xscale, yscale=yscale)


def mean_of(table: xr.Dataset) -> str:
    """What a curve and its band are, for captions."""
    seeds = table.sizes["seed"]
    return f"Mean over {seeds} seeds, band of one deviation" if seeds > 1 else "One seed"


def movement_panel(table: xr.Dataset, step: str) -> Panel:
    """Of the most-moved node."""
    title = "Movement of the most-moved node"
    return curves(table, table["most_moved"], "step", title, step, "‖w(t) − w(0)‖")


def kernel_panels(table: xr.Dataset, step: str) -> dict[str, Panel]:
    """Change and smallest eigenvalue of the Gram matrix along training."""
    drift = untyped(np.sqrt)(table["kernel_drift"])
    return {
        "drift": curves(
            table,
            drift,
            "step",
            "Gram change (square root)",
            step,
            "‖Θ(t) − Θ(0)‖₂^½",
        ),
        "gap": curves(
            table,
            table["kernel_gap"],
            "step",
            "Smallest Gram eigenvalue",
            step,
            "λ_min(Θ)",
            yscale="log",
        ),
    }


def unpruned_risks(table: xr.Dataset, subject: str = "") -> list[Claim]:
    """Pruning starts where training ended: two computations of one number, of both risks."""
    end, unpruned = table.isel(step=-1), table["pruned_risk"].sel(importance="released", removed=0)
    whole = unpruned.sel(part="train") / end["risk"]
    tested = unpruned.sel(part="test") / end["test_risk"]
    return [
        Claim(
            f"{subject}with no node removed the pruned network's training risk is the trained "
            "one's, largest relative difference",
            float(np.max(np.abs(whole - 1))),
            at_most=1e-2,
        ),
        Claim(
            f"{subject}the same of its test risk", float(np.max(np.abs(tested - 1))), at_most=1e-2
        ),
    ]


def rises(values: xr.DataArray, order=PUBLISHED_ORDER) -> bool:
    """Whether the mean over seeds strictly increases along the published settings."""
    mean = values.mean("seed").sel(setting=list(order)).values
    return bool(np.all(np.diff(mean) > 0))


def least(values: xr.DataArray) -> bool:
    """Whether the symmetric setting has the smallest mean over seeds of the published settings."""
    mean = values.mean("seed").sel(setting=list(PUBLISHED_ORDER)).values
    return bool(np.all(mean[1:] > mean[0]))


def beside(text: str, value: float, published: float, factor: float, note: str = "") -> Claim:
    """Our number within `factor` of the published one."""
    return Claim(
        text,
        value,
        at_least=published / factor,
        at_most=published * factor,
        published=published,
        note=note,
    )
