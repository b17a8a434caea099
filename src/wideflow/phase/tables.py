"""The data of a plane beside its runs: one file, named by what is in it, so that a run is found
again wherever the folder lies.
"""

import functools
import io
import pathlib

import numpy as np

from ..data.dataset import Dataset
from ..training.identity import digest


def identity(data: Dataset) -> str:
    return digest(data.inputs, data.targets)


def save_table(folder: pathlib.Path, data: Dataset) -> str:
    """Writes the data into `folder` unless they are there; gives the name under which runs ask for
    them.
    """
    name = identity(data)
    path = _path(folder, name)
    if not path.is_file():
        from ..runs.files import write_whole

        buffer = io.BytesIO()
        np.savez(buffer, inputs=data.inputs, targets=data.targets)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, buffer.getvalue())
    return name


@functools.lru_cache(maxsize=2)
def load_table(folder: pathlib.Path, name: str) -> Dataset:
    """The data of that name; a file that holds others is refused."""
    path = _path(folder, name)
    try:
        with np.load(path, allow_pickle=False) as arrays:
            data = Dataset(arrays["inputs"], arrays["targets"])
    except (OSError, KeyError, ValueError) as error:
        raise ValueError(
            f"`data` {name} cannot be read from {path}: {error}. Run `wideflow phase` again, "
            "which writes it."
        ) from error
    if identity(data) != name:
        raise ValueError(f"{path} is damaged: remove it and run `wideflow phase` again.")
    return data


def _path(folder: pathlib.Path, name: str) -> pathlib.Path:
    return folder / f"phase-data-{name}.npz"
