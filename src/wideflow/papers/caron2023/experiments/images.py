"""CIFAR-10 on frozen features with cross-entropy and mini-batches (caron2023, Figures 4 and 11).

The paper trains on 512 features of an ImageNet-trained ResNet-18 at rate 5, batches of 64,
cross-entropy, ten outputs, width 2000; the released code adds 100 epochs and features of random
crops. Here features are computed once (`tools/cifar10_features.py`), by default by MobileNetV2
reduced to 512 principal components, and `source` says so in every output; `resnet18` takes the
paper's own extractor where its features are there. `auto` takes MobileNetV2 features if they are
cached and else a Gaussian mixture that needs no file.
"""

from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr

from .... import observables
from ...._core.errors import check_choice
from ...._core.precision import Precision
from ...._core.randomness import named_key
from ....data.features import cifar10_features, mixture_features
from ....data.files import DataNotFoundError
from ....dynamics.losses import CrossEntropy
from ....dynamics.sgd import SGD
from ....experiments.base import Claim
from ....figures import FigureSpec
from .members import (
    ALPHAS,
    GAMMAS,
    check_settings,
    curves,
    labels,
    levels_of,
    mean_of,
    movement_panel,
    prune_members,
    train_members,
)

SOURCES = ("auto", "mixture", "mobilenetv2-pca512", "resnet18")
EXTRACTOR = "mobilenetv2-pca512"


@dataclass(frozen=True)
class Settings:
    source: str = EXTRACTOR
    samples: int = 0  # training images; 0 for all there are
    width: int = 2000
    gammas: tuple[float, ...] = GAMMAS
    alphas: tuple[float, ...] = ALPHAS
    convention: str = "released"
    shifted: bool = False  # the released code's power law, one index too low
    rate: float = 5.0
    batch: int = 64
    epochs: int = 100
    records: int = 60
    seeds: int = 5
    precision: Precision = "float32"

    def __post_init__(self):
        check_settings(self)
        check_choice("source", self.source, SOURCES)


@dataclass(frozen=True)
class _Steps:
    """The settings with epochs turned into steps, as `train_members` reads them."""

    settings: Settings
    steps: int

    def __getattr__(self, name):
        return getattr(self.settings, name)


def load(settings: Settings, key):
    if settings.source == "mixture":
        return mixture_features(named_key(key, "data"), settings.samples or 5000)
    if settings.source != "auto":
        return cifar10_features(settings.source, samples=settings.samples)
    try:
        return cifar10_features(EXTRACTOR, samples=settings.samples)
    except DataNotFoundError:
        return mixture_features(named_key(key, "data"), settings.samples or 5000)


def run(settings: Settings, key, session) -> xr.Dataset:
    train_set, test_set = load(settings, key)
    classes = train_set.targets.shape[1]
    steps = settings.epochs * -(
        -len(train_set) // settings.batch
    )  # the last batch of an epoch is smaller
    record = [observables.TestLoss(), observables.Accuracy(), observables.WeightMovement()]
    with jax.default_matmul_precision("highest"):  # no reduced-precision products on accelerators
        table, nets = train_members(
            _Steps(settings, steps),
            key,
            train_set,
            test_set,
            SGD(settings.rate, settings.batch),
            loss=CrossEntropy(),
            record=record,
            outputs=classes,
            session=session.within(0, 1.0, "training"),
        )
        pruned = prune_members(
            nets, labels(settings), {"test": test_set}, levels_of(settings.width)
        )
    table = table.drop_vars("loss").merge(pruned, compat="equals", join="exact")
    attributes = {
        k: getattr(settings, k) for k in ("convention", "width", "rate", "batch", "epochs")
    }
    attributes |= {"features": train_set.name, "samples": len(train_set), "classes": classes}
    return table.assign_attrs(table.attrs | attributes)


def panels(table: xr.Dataset) -> list:
    ranking = str(table.attrs["convention"])
    step, removed = "mini-batch steps", "removed nodes"
    entropy, accuracy = (
        table[f"pruned_{m}"].sel(importance=ranking, part="test")
        for m in ("cross_entropy", "accuracy")
    )
    return [
        curves(table, table["test_loss"], "step", "Test risk", step, "cross-entropy"),
        movement_panel(table, step),
        curves(table, entropy, "removed", "Test risk after pruning", removed, "cross-entropy"),
        curves(table, accuracy, "removed", "Test accuracy after pruning", removed, "share right"),
    ]


def figure(table: xr.Dataset, title: str, which: str) -> FigureSpec:
    """All panels under `title`; `which` is the paper's figure."""
    features = table.attrs["features"]
    return FigureSpec(
        f"{features}: {title}",
        panels(table),
        caption=f"{features}, width {table.attrs['width']}, "
        f"{table.attrs['epochs']} epochs. {mean_of(table)}. Compare caron2023, {which}, which has "
        "features of ResNet-18.",
    )


def common_claims(table: xr.Dataset) -> list[Claim]:
    """What must hold whatever the features: pruning starts where training ended, two computations
    of one number.
    """
    whole = table["pruned_cross_entropy"].sel(removed=0, importance="released", part="test")
    ended = table["test_loss"].isel(step=-1)
    start = table["pruned_accuracy"].sel(removed=0, importance="released", part="test")
    right = start - table["test_accuracy"].isel(step=-1)
    return [
        Claim(
            "with no node removed the pruned network's test risk is the trained one's, largest "
            "relative difference",
            float(np.max(np.abs(whole / ended - 1))),
            at_most=1e-3,
        ),
        Claim(
            "with no node removed the pruned network's test accuracy is the trained one's, "
            "largest difference",
            float(np.max(np.abs(right))),
            at_most=2e-3,
            note="an image or two may lie on the boundary in single precision",
        ),
    ]


def has_features(table: xr.Dataset) -> bool:
    """Whether the run saw features of images; the Gaussian mixture in their place has its own,
    fewer claims.
    """
    return "mixture" not in str(table.attrs["features"])


def accuracy_at(table: xr.Dataset, share: float) -> xr.DataArray:
    """Mean test accuracy after removing that share of the nodes by their weight."""
    width = int(table["removed"].values[-1])
    return (
        table["pruned_accuracy"]
        .sel(importance="released", part="test", removed=int(round(share * width)))
        .mean("seed")
    )
