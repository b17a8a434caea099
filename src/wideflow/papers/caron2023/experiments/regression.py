"""UCI regression: training, pruning and transfer under five node scalings (caron2023, Figures 2 and
6-9).

Preprocessing is the released code's: rows permuted with NumPy's `RandomState(10)`, 40 % training,
40 % validation, 20 % test, inputs and targets standardised over the training part. Descent of rate
1 on the mean of squares (on the half sum of squares it diverges). Transfer trains an external
network on the first half of the validation part and tests it on the second. The tangent Gram matrix
is watched at 50 inputs.

Conventions: `released` starts with deviation sqrt(2), ranks nodes by their weight alone and
transfers through two hidden layers; `paper` starts with deviation 1, ranks by weight times squared
norm and transfers through one. Pruning is recorded under both rankings in either. The external rate
is 0.1 in both: at the 1.0 of the text the external network does not train (section 7, E8 of the
errata).
"""

from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr

from .... import data, observables
from ...._core.precision import Precision
from ...._core.randomness import named_key
from ....dynamics.descent import GradientDescent
from ....dynamics.losses import MeanSquares
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec
from ....observables.kernels import tangent_gram
from .members import (
    ALPHAS,
    GAMMAS,
    LAZY,
    PUBLISHED_ORDER,
    RICH,
    beside,
    check_settings,
    curves,
    kernel_panels,
    labels,
    least,
    levels_of,
    mean_of,
    movement_panel,
    prune_members,
    rises,
    start,
    train_members,
    unpruned_risks,
)
from .transfer import transfer_members

PUBLISHED = {  # released figure files after 100 000 steps, in the order of PUBLISHED_ORDER
    "concrete": {
        "risk": (0.0100, 0.0139, 0.0265, 0.101),
        "test_risk": (0.163, 0.158, 0.157, 0.176),
        "movement": (3.0, 9.0, 13.2, 25.0),
        "root_drift": (0.29, 1.13, 1.98, 2.68),
        "gap": (8.2e-3, 7.4e-3, 1.9e-3, 1.2e-4),
        "pruned_half": (0.50, 0.44, 0.35, 0.101),
        "pruned_most": (0.94, 1.13, 0.90, 0.104),
        "transfer_10": (0.60, 0.45, 0.37, 0.21),
        "transfer_100": (0.19, 0.21, 0.21, 0.16),
    },
    "energy": {
        "risk": (6.0e-5, 2.2e-4, 2.4e-3, 0.0210),
        "test_risk": (0.0318, 0.0234, 0.0237, 0.0301),
        "movement": (2.7, 10.0, 13.4, 23.2),
        "root_drift": (0.37, 1.27, 2.44, 2.93),
        "gap": (0.0181, 0.0131, 0.0064, 2.7e-4),
        "pruned_half": (0.59, 0.36, 0.13, 0.021),
        "pruned_most": (0.86, 1.17, 0.36, 0.0228),
        "transfer_10": (0.138, 0.042, 0.042, 0.021),
        "transfer_100": (0.069, 0.016, 0.022, 0.013),
    },
    "airfoil": {
        "risk": (0.0976, 0.109, 0.144, 0.248),
        "test_risk": (0.233, 0.248, 0.273, 0.337),
        "movement": (4.6, 15.5, 18.5, 27.6),
        "root_drift": (0.39, 1.47, 2.60, 3.35),
        "gap": (2.1e-3, 1.4e-3, 5e-4, 4e-6),
        "pruned_half": (0.93, 0.45, 0.68, 0.248),
        "pruned_most": (1.04, 1.44, 1.47, 0.252),
        "transfer_10": (0.50, 0.27, 0.26, 0.25),
        "transfer_100": (0.20, 0.17, 0.23, 0.23),
    },
    "plant": {
        "risk": (0.0478, 0.0491, 0.0514, 0.0572),
        "test_risk": (0.0595, 0.0595, 0.0601, 0.0616),
        "movement": (1.3, 2.5, 3.7, 6.9),
        "root_drift": (0.26, 1.02, 2.52, 3.27),
        "gap": (9.3e-4, 5.9e-4, 2.3e-4, 6e-6),
        "pruned_half": (0.67, 0.24, 0.21, 0.057),
        "pruned_most": (0.82, 0.48, 0.34, 0.0576),
        "transfer_10": (0.140, 0.070, 0.064, 0.059),
        "transfer_100": (0.060, 0.059, 0.060, 0.057),
    },
}

WITHIN = {  # how close to the published mean of five runs ours must be, as a factor
    "risk": 1.5,
    "test_risk": 1.5,
    "movement": 1.5,
    "root_drift": 1.5,
    "gap": 3.0,
    "pruned_half": 2.5,
    "pruned_most": 2.5,
    "transfer_10": 2.0,
    "transfer_100": 2.0,
}


@dataclass(frozen=True)
class Settings:
    datasets: tuple[str, ...] = ("concrete",)
    largest: int = 0  # at most so many training rows; 0 for all
    width: int = 2000
    gammas: tuple[float, ...] = GAMMAS
    alphas: tuple[float, ...] = ALPHAS
    convention: str = "released"
    shifted: bool = False  # the released code's power law, one index too low
    rate: float = 1.0
    steps: int = 100_000
    records: int = 100
    probes: int = 50
    initialisations: int = 5
    tops: tuple[int, ...] = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    hidden: int = 64
    external_rate: float = 0.1
    external_steps: int = 5000
    seeds: int = 5
    precision: Precision = "float32"

    def __post_init__(self):
        check_settings(self)
        if max(self.tops) > self.width:
            raise ValueError(
                f"`tops` must not exceed the width {self.width}, got {max(self.tops)}."
            )


def load(name: str, largest: int) -> dict:
    """Training, test and the two halves of validation, standardised over the training part."""
    whole = data.uci(name)
    train_raw, validation, test = data.split(whole, (0.4, 0.4, 0.2))
    if largest and len(train_raw) > largest:
        train_raw = train_raw.take(np.arange(largest))
    half = len(validation) // 2
    parts = {
        "train": train_raw,
        "test": test,
        "transfer": validation.take(np.arange(half)),
        "transfer_test": validation.take(np.arange(half, len(validation))),
    }
    return {part: dataset.standardised(train_raw) for part, dataset in parts.items()}


def run(settings: Settings, key, session) -> xr.Dataset:
    tables = []
    total = len(settings.datasets)
    with jax.default_matmul_precision("highest"):  # no reduced-precision products on accelerators
        for number, name in enumerate(settings.datasets):
            tables.append(_one(settings, key, name, session.within(number, total, name)))
    joined = xr.concat(
        tables,
        xr.DataArray(list(settings.datasets), dims="dataset", name="dataset"),
        coords="different",
        compat="equals",
        join="exact",
    )
    attributes = {
        k: getattr(settings, k)
        for k in (
            "convention",
            "width",
            "steps",
            "rate",
            "probes",
            "largest",
            "external_steps",
            "external_rate",
        )
    }
    return joined.assign_attrs(
        tables[0].attrs | attributes | {"loss": "mean of squares, mean (f - y)^2, on each dataset"}
    )


def _one(settings: Settings, key, name: str, session) -> xr.Dataset:
    parts, names = load(name, settings.largest), labels(settings)
    key = named_key(key, name)
    record = [
        observables.Risk(),
        observables.TestRisk(),
        observables.WeightMovement(),
        observables.KernelDistance("spectral", relative=False, samples=settings.probes),
        observables.KernelMinEigenvalue(samples=settings.probes),
    ]
    table, nets = train_members(
        settings,
        key,
        parts["train"],
        parts["test"],
        GradientDescent(settings.rate),
        loss=MeanSquares(),
        record=record,
        session=session.within(0, 1.0, "training", weight=0.8),
    )
    levels = levels_of(settings.width)
    pruned = prune_members(nets, names, {p: parts[p] for p in ("train", "test")}, levels)
    moved = transfer_members(
        settings,
        key,
        nets,
        names,
        parts["transfer"],
        parts["transfer_test"],
        session.within(0.8, 1.0, weight=0.2),
    )
    table = (
        table.drop_vars("loss")
        .merge(pruned, compat="equals", join="exact")
        .merge(moved, compat="equals", join="exact")
    )
    table["initial_gap"] = (("setting", "seed"), table["kernel_gap"].isel(step=0).values)
    table["mean_initial_gap"] = ("setting", _initial_gaps(settings, key, parts["train"]))
    return table


def _initial_gaps(settings: Settings, key, dataset) -> np.ndarray:
    """Smallest eigenvalue at time zero, mean over `initialisations`: single draws may swap
    neighbouring settings.
    """
    inputs = np.asarray(dataset.inputs)[: settings.probes]
    gaps = [
        [
            np.linalg.eigvalsh(
                np.asarray(tangent_gram(start(settings, key, seed, index, inputs.shape[1]), inputs))
            )[0]
            for seed in range(settings.initialisations)
        ]
        for index in range(len(settings.gammas))
    ]
    return np.mean(gaps, axis=1)


def panels(table: xr.Dataset) -> dict:
    """The nine panels of Figures 6-9 for one dataset."""
    pruned = table["pruned_risk"].sel(importance=str(table.attrs["convention"]))
    step, removed, top = ("descent steps", "removed nodes", "features kept")
    return {
        "risk": curves(
            table, table["risk"], "step", "Training risk", step, "mean of squares", yscale="log"
        ),
        "test_risk": curves(
            table, table["test_risk"], "step", "Test risk", step, "mean of squares", yscale="log"
        ),
        "movement": movement_panel(table, step),
        **kernel_panels(table, step),
        "pruned": curves(
            table,
            pruned.sel(part="train"),
            "removed",
            "Training risk after pruning",
            removed,
            "mean of squares",
            yscale="log",
        ),
        "pruned_test": curves(
            table,
            pruned.sel(part="test"),
            "removed",
            "Test risk after pruning",
            removed,
            "mean of squares",
            yscale="log",
        ),
        "transfer": curves(
            table,
            table["transfer_risk"].transpose(..., "top"),
            "top",
            "Training risk of transfer",
            top,
            "mean of squares",
            yscale="log",
        ),
        "transfer_test": curves(
            table,
            table["transfer_test_risk"].transpose(..., "top"),
            "top",
            "Test risk of transfer",
            top,
            "mean of squares",
            yscale="log",
        ),
    }


def caption(table: xr.Dataset, which: str) -> str:
    """What was run, beside what the paper's figure `which` shows."""
    return (
        "{}; m = {width}, {steps} steps of rate {rate:g} on "
        "the mean square, convention {convention}. Compare caron2023, {} (m = 2000, 100 000 steps "
        "of rate 1).".format(mean_of(table), which, **table.attrs)
    )


def draw(table: xr.Dataset) -> FigureSpec:
    name = str(table["dataset"].values[0])
    return FigureSpec(
        f"{name}: training, pruning and transfer",
        list(panels(table.isel(dataset=0)).values()),
        columns=3,
        caption=caption(table, "Figures 6-9"),
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    statements: list[Claim] = []
    for name in table["dataset"].values:
        statements += _claims_of(str(name), table.sel(dataset=name), table.attrs)
    return tuple(statements)


def _claims_of(name: str, table: xr.Dataset, attrs: dict) -> list[Claim]:
    end = table.isel(step=-1)
    pruned = table["pruned_risk"]
    by_weight = pruned.sel(importance="released")
    width = int(table["removed"].values[-1])
    at = lambda values, share: values.sel(removed=int(round(share * width)))
    empty = by_weight.sel(removed=width, part="train")
    statements = [
        *unpruned_risks(table, f"{name}: "),
        Claim(
            f"{name}: with every node removed the training risk is the mean square of the "
            "targets, largest difference from 1",
            float(np.max(np.abs(empty - 1))),
            at_most=1e-6,
        ),
    ]
    if not set(PUBLISHED_ORDER) <= set(table["setting"].values) or int(attrs["steps"]) < 500:
        return statements
    order = list(PUBLISHED_ORDER)
    gaps = table["mean_initial_gap"].sel(setting=order).values
    full = int(attrs["steps"]) >= 100_000
    half, unpruned = (
        at(by_weight, 0.5).sel(setting=LAZY).mean("seed"),
        at(by_weight, 0.0).sel(setting=LAZY).mean("seed"),
    )
    most = at(by_weight, 0.95).sel(setting=RICH, part="train") / at(by_weight, 0.0).sel(
        setting=RICH, part="train"
    )
    top = int(table["top"].values[0])
    transfer = table["transfer_test_risk"].sel(top=top).mean("seed").sel(setting=order)
    slight = pruned.sel(removed=int(round(0.05 * width)), part="train").sel(
        setting=[s for s in order if s != RICH]
    )
    better = (slight.sel(importance="paper") < slight.sel(importance="released")).mean()
    statements += [
        Claim(f"{name}: training risk rises from γ=1 to (0, .4)", holds=rises(end["risk"])),
        Claim(f"{name}: movement of the most-moved node rises", holds=rises(end["most_moved"]))
        if full
        else Claim(
            f"{name}: the most-moved node moves least under γ=1",
            holds=least(end["most_moved"]),
            note="in short single runs (.5, .7) and (.2, .5) may swap",
        ),
        Claim(f"{name}: change of the Gram matrix rises", holds=rises(end["kernel_drift"])),
        Claim(
            f"{name}: smallest eigenvalue at t = 0 falls (mean of initialisations)",
            holds=bool(np.all(np.diff(gaps) < 0)),
        ),
        Claim(
            f"{name}: (0, .4) after removing 95 % of the nodes, risk over unpruned risk, largest",
            float(most.max()),
            at_most=1.1,
        ),
        Claim(
            f"{name}: γ=1 after removing half, training risk over unpruned",
            float(half.sel(part="train") / unpruned.sel(part="train")),
            at_least=3.0 if full else 2.0,
        ),
        Claim(
            f"{name}: γ=1 after removing half, test risk over unpruned",
            float(half.sel(part="test") / unpruned.sel(part="test")),
            at_least=1.5,
        ),
        Claim(
            f"{name}: transfer with {top} features, γ=1 is worst",
            holds=bool(transfer.values.argmax() == 0),
        ),
        Claim(
            f"{name}: 5 % removed, share of runs with γ>0 where ranking by λ‖w‖² beats ranking "
            "by λ",
            float(better),
            at_least=0.501,
            note="a majority",
        ),
    ]
    # in short runs single seeds decide: on energy (0, .4) is best at one seed and 66 % behind (.2,
    # .5) at the next
    if full:
        behind = float(transfer.sel(setting=RICH) / transfer.min())
        text = f"{name}: transfer with {top} features, (0, .4) over the best"
        statements.append(Claim(text, behind, at_most=1.15))
    if full and width == 2000 and attrs["convention"] == "released" and not int(attrs["largest"]):
        statements += _published(name, table, end, at, by_weight)
    return statements


def _published(name, table, end, at, by_weight) -> list[Claim]:
    mean = lambda values: values.mean("seed")
    ours = {
        "risk": mean(end["risk"]),
        "test_risk": mean(end["test_risk"]),
        "movement": mean(end["most_moved"]),
        "root_drift": mean(np.sqrt(end["kernel_drift"])),
        "gap": table["mean_initial_gap"],
        "pruned_half": mean(at(by_weight, 0.5).sel(part="train")),
        "pruned_most": mean(at(by_weight, 0.95).sel(part="train")),
        "transfer_10": mean(table["transfer_test_risk"].sel(top=10)),
        "transfer_100": mean(table["transfer_test_risk"].sel(top=100)),
    }
    texts = {
        "risk": "training risk",
        "test_risk": "test risk",
        "movement": "movement",
        "root_drift": "root of the Gram change",
        "gap": "smallest eigenvalue at t = 0",
        "pruned_half": "training risk, half removed",
        "pruned_most": "training risk, 95 % removed",
        "transfer_10": "transfer test risk, 10 features",
        "transfer_100": "transfer test risk, 100 features",
    }
    return [
        beside(
            f"{name}, {setting}: {texts[quantity]}",
            float(ours[quantity].sel(setting=setting)),
            numbers[i],
            WITHIN[quantity],
        )
        for quantity, numbers in PUBLISHED[name].items()
        for i, setting in enumerate(PUBLISHED_ORDER)
    ]


SMOKE = {
    "largest": 60,
    "width": 100,
    "steps": 20,
    "records": 4,
    "probes": 10,
    "initialisations": 1,
    "tops": (5, 10),
    "external_steps": 10,
    "seeds": 1,
}
DEFAULT = {
    "largest": 1000,
    "width": 1000,
    "steps": 1500,
    "records": 30,
    "tops": (10, 50, 100),
    "external_steps": 2500,
    "seeds": 2,
}


def build(dataset: str, figure: str) -> Experiment:
    """The experiment of one dataset."""
    return Experiment(
        name=f"caron2023-{figure.lower().replace(' ', '')}",
        paper="caron2023",
        figure=figure,
        title=f"Feature learning, pruning and transfer on {dataset}",
        settings={
            "smoke": Settings(datasets=(dataset,), **SMOKE),
            "default": Settings(datasets=(dataset,), **DEFAULT),
            "paper": Settings(datasets=(dataset,)),
        },
        run=run,
        draw=draw,
        claims=claims,
        needs_data=(dataset,),
    )
