"""Images as features of a frozen extractor: the cached CIFAR-10 features, and a stand-in that needs
no file.
"""

import os
import pathlib

import jax
import numpy as np

from .._core.errors import check_count, check_positive
from .._core.precision import double
from .._core.randomness import named_key, normal
from .dataset import Dataset, one_hot
from .files import DataNotFoundError, cache_folder

__all__ = ["cifar10_features", "mixture_features"]


def cifar10_features(
    extractor: str = "mobilenetv2-pca512", *, samples: int = 0
) -> tuple[Dataset, Dataset]:
    """Training and test features of CIFAR-10 under a named extractor, with one-hot targets.

    Reads `cifar10-<extractor>.npz` from the folder `WIDEFLOW_DATA` or from the cache;
    `tools/cifar10_features.py` writes it, once, in an environment of its own. `mobilenetv2-pca512`
    is MobileNetV2 reduced to 512 principal components; `resnet18` is the extractor of caron2023.

    Args:
        extractor: which features; it stands in the name of both datasets.
        samples: use the first so many training images; 0 for all.
    """
    name = f"cifar10-{extractor}.npz"
    places = [os.environ.get("WIDEFLOW_DATA"), str(cache_folder())]
    for place in places:
        path = pathlib.Path(place or "").expanduser() / name
        if place and path.is_file():
            return _read(path, extractor, samples)
    raise DataNotFoundError(
        f"the features {name} were not found. Looked in WIDEFLOW_DATA ({places[0]}) and the "
        f"cache ({places[1]}). "
        "Compute them once with `python tools/cifar10_features.py --out "
        f"{pathlib.Path(places[1]) / name}`; see the header of that script."
    )


def _read(path: pathlib.Path, extractor: str, samples: int) -> tuple[Dataset, Dataset]:
    try:
        with np.load(path, allow_pickle=False) as file:
            source = str(file["extractor"])
            parts = {
                part: (file[f"{part}_inputs"], file[f"{part}_labels"]) for part in ("train", "test")
            }
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(
            f"{path} is damaged or a different file: {error}. Compute the features again."
        ) from error
    if source != extractor:
        raise ValueError(f"{path} holds features of {source!r}, not of {extractor!r}. Rename it.")
    count = samples or len(parts["train"][1])
    if not 0 < count <= len(parts["train"][1]):
        raise ValueError(
            f"`samples` must lie in 1..{len(parts['train'][1])} for {path.name}, got {samples}."
        )
    sets = []
    for part, rows in (("train", count), ("test", None)):
        inputs, labels = parts[part]
        sets.append(
            Dataset(
                inputs[:rows],
                one_hot(labels[:rows].astype(int), 10),
                f"CIFAR-10 {part} as {extractor}",
            )
        )
    return sets[0], sets[1]


@double
def mixture_features(
    key,
    samples: int = 5000,
    tests: int = 1000,
    features: int = 64,
    classes: int = 10,
    spread: float = 1.0,
) -> tuple[Dataset, Dataset]:
    r"""A stand-in for extracted features: $x = \mu_k + \mathcal N(0, \text{spread}^2 I)$ with class
    means $\mu_k\sim\mathcal N(0, \tfrac14I)$.

    Args:
        samples: rows of the training set.
        tests: rows of the test set.
        features: the dimension of $x$.
        classes: the number of means, equally likely.
        spread: the deviation within a class, in each coordinate.
    """
    for name, value in (
        ("samples", samples),
        ("tests", tests),
        ("features", features),
        ("classes", classes),
    ):
        check_count(name, value)
    check_positive("spread", spread)
    # deviation 1/2 is variance 1/4
    means = np.asarray(normal(named_key(key, "means"), (classes, features))) / 2.0
    sets = []
    for part, count in (("train", samples), ("test", tests)):
        labels = np.asarray(
            jax.random.randint(named_key(key, part, "labels"), (count,), 0, classes)
        )
        noise = np.asarray(normal(named_key(key, part, "inputs"), (count, features)))
        sets.append(
            Dataset(
                means[labels] + spread * noise,
                one_hot(labels.astype(int), classes),
                f"Gaussian mixture, {part}",
            )
        )
    return sets[0], sets[1]
