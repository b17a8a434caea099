"""The real data sets: a local folder first, then a checksummed cache, then a download."""

import gzip
import hashlib
import os
import pathlib
from dataclasses import dataclass

import numpy as np

from .._core.arrays import real_values
from .._core.errors import check_choice, check_count, check_kind
from .dataset import Dataset, one_hot
from .tables import read_csv

__all__ = [
    "MNIST",
    "UCI",
    "DataNotFoundError",
    "available",
    "cache_folder",
    "locate",
    "mnist",
    "split",
    "uci",
]

MNIST_MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"


@dataclass(frozen=True)
class Source:
    """A file: its name here, the checksums under which it is known, and where to download it."""

    file: str
    sha256: tuple[str, ...]
    url: str | None = None


@dataclass(frozen=True)
class Regression:
    """A regression set: its file, its target, and columns that are no inputs."""

    source: Source
    target: str
    drop: tuple[str, ...] = ()


UCI = {
    "concrete": Regression(
        Source(
            "concrete.csv", ("eb2a1f2a871cd01cbca7a96df487416fb6a1c3598bbda61687923e2207a9bc1b",)
        ),
        "compressive_strength",
    ),
    "energy": Regression(
        Source("energy.csv", ("30bbe70b033ee81405632da64449bef3cc1e679017c81eb506c369539c27b1cc",)),
        "heating_load",
        ("cooling_load",),
    ),
    "airfoil": Regression(
        Source(
            "airfoil.csv", ("9599fdf6ead339c7fb62d8d62738ce8d927f078967e69be861d3ab754e629351",)
        ),
        "sound_pressure_level",
    ),
    "plant": Regression(
        Source(
            "ccpp.csv.gz", ("250d47d9531f2a24100c9a0d5ca090e8ad4d2f5bab432d12895c590b3108f7bf",)
        ),
        "PE",
    ),
}

MNIST = {
    "train_images": Source(
        "mnist-train-images-idx3-ubyte.gz",
        (
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971",
        ),
        MNIST_MIRROR + "train-images-idx3-ubyte.gz",
    ),
    "train_labels": Source(
        "mnist-train-labels-idx1-ubyte.gz",
        ("3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",),
        MNIST_MIRROR + "train-labels-idx1-ubyte.gz",
    ),
    "test_images": Source(
        "mnist-t10k-images-idx3-ubyte.gz",
        ("8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",),
        MNIST_MIRROR + "t10k-images-idx3-ubyte.gz",
    ),
    "test_labels": Source(
        "mnist-t10k-labels-idx1-ubyte.gz",
        ("f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",),
        MNIST_MIRROR + "t10k-labels-idx1-ubyte.gz",
    ),
}


class DataNotFoundError(ValueError):
    """A data file was not found; the message says where it was looked for."""


def cache_folder() -> pathlib.Path:
    """Where downloads and computed features are kept: `WIDEFLOW_CACHE` or the user's cache
    folder.
    """
    own = os.environ.get("WIDEFLOW_CACHE")
    base = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return pathlib.Path(own or pathlib.Path(base) / "wideflow").expanduser()


def locate(source: Source) -> pathlib.Path:
    """The file on this machine, fetched if need be.

    Looks into the folder `WIDEFLOW_DATA`, then into the cache, then downloads into the cache: from
    `WIDEFLOW_DATA_URL` (a place that serves files of these names) or from the file's own address.

    Args:
        source: the file's name, its checksums and its address.
    """
    tried = []
    folder = os.environ.get("WIDEFLOW_DATA")
    if folder:
        path = pathlib.Path(folder).expanduser() / source.file
        if path.is_file():
            _check(path, source)
            return path
        tried.append(f"{path} (WIDEFLOW_DATA): not found")
    else:
        tried.append("WIDEFLOW_DATA: not set")
    cached = cache_folder() / source.file
    if cached.is_file():
        _check(cached, source)
        return cached
    tried.append(f"{cached} (cache): not found")
    mirror = os.environ.get("WIDEFLOW_DATA_URL")
    url = mirror.rstrip("/") + "/" + source.file if mirror else source.url
    if url is None:
        tried.append(
            "download: no address is known for this file; set WIDEFLOW_DATA_URL to a mirror"
        )
    else:
        try:
            return _download(url, source)
        except Exception as error:
            tried.append(f"{url} (download): {type(error).__name__}: {error}")
    raise DataNotFoundError(
        f"the data file {source.file} was not found. Tried " + "; ".join(tried) + ". "
        f"Put the file (sha256 {source.sha256[-1][:16]}...) into a folder and set WIDEFLOW_DATA "
        "to it."
    )


def available(name: str) -> bool:
    """Whether the file of that UCI set is on this machine, without a download.

    Args:
        name: 'concrete', 'energy', 'airfoil' or 'plant'.
    """
    file, local = UCI[name].source.file, os.environ.get("WIDEFLOW_DATA")
    folders = [cache_folder(), *([pathlib.Path(local).expanduser()] if local else [])]
    return any((folder / file).is_file() for folder in folders)


def _download(url: str, source: Source) -> pathlib.Path:
    import pooch

    last: Exception | None = None
    for sha in source.sha256:
        try:
            file = pooch.retrieve(
                url, f"sha256:{sha}", source.file, cache_folder(), progressbar=False
            )
            return pathlib.Path(file)
        except ValueError as error:  # another checksum may be the right one
            last = error
    raise last or ValueError("no checksum is known")


def _check(path: pathlib.Path, source: Source) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest not in source.sha256:
        raise ValueError(
            f"{path} is damaged or a different file: its sha256 is {digest[:16]}..., expected "
            f"{source.sha256[-1][:16]}.... Replace it."
        )


def uci(name: str) -> Dataset:
    """One of the four UCI regression sets: 'concrete', 'energy', 'airfoil', 'plant'; raw values.

    Rows come in the files' own order: shuffle before splitting. Energy's second target is dropped.

    Args:
        name: 'concrete', 'energy', 'airfoil' or 'plant'.
    """
    check_choice("name", name, UCI)
    entry = UCI[name]
    return read_csv(locate(entry.source), entry.target, drop=entry.drop, name=name)


def split(data: Dataset, fractions: tuple[float, ...], seed: int = 10) -> tuple[Dataset, ...]:
    """Random parts of the given fractions; the last part takes what is left.

    The permutation is NumPy's `RandomState(seed)`, as in the released code of caron2023 (seed 10).

    Args:
        data: the dataset to be cut.
        fractions: shares of the rows, positive, with a sum of at most 1.
        seed: of the permutation.
    """
    check_kind("data", data, Dataset, "a `Dataset`")
    fractions = np.asarray(real_values("fractions", fractions, "(part)")).tolist()
    check_count("seed", seed, least=0, most=2**32 - 1)
    if min(fractions) <= 0 or sum(fractions) > 1 + 1e-9:
        raise ValueError(f"`fractions` must be positive and sum to at most 1, got {fractions}.")
    order = np.random.RandomState(seed).permutation(len(data))
    # each part is rounded down; where the fractions sum to 1 the last one takes what that left over
    edges = np.cumsum([int(f * len(data)) for f in fractions])
    if sum(fractions) > 1 - 1e-9:
        edges[-1] = len(data)
    pieces = np.split(order, edges)[: len(fractions)]
    return tuple(data.take(rows) for rows in pieces)


def mnist(part: str = "train", start: int = 0, count: int | None = None) -> Dataset:
    """MNIST images as rows of 784 pixels in [0, 1] with one-hot targets.

    Args:
        part: 'train' (60000) or 'test' (10000).
        start, count: which images, in the files' order; default all.
    """
    check_choice("part", part, ("train", "test"))
    check_count("start", start, least=0)
    if count is not None:
        check_count("count", count)
    images = _idx(locate(MNIST[f"{part}_images"]), 16).reshape(-1, 784)
    labels = _idx(locate(MNIST[f"{part}_labels"]), 8)
    stop = len(images) if count is None else start + count
    if not 0 <= start < stop <= len(images):
        raise ValueError(
            f"`start` and `count` must stay within the {len(images)} images, got {start} and "
            f"{count}."
        )
    rows = slice(start, stop)
    return Dataset(
        images[rows] / 255.0,
        one_hot(labels[rows].astype(int), 10),
        f"MNIST {part} {start}-{stop - 1}",
    )


def _idx(path: pathlib.Path, offset: int) -> np.ndarray:
    try:
        raw = gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as error:
        raise ValueError(f"{path} is damaged: {error}.") from error
    return np.frombuffer(raw, np.uint8, offset=offset)
