"""Kernel matrices on disk, in chunks of the Zarr format: resumed after a kill, shared by several machines.

A folder holds `.zarray` (shape, chunks, dtype), `.zattrs` (what the kernel is of) and one file a chunk, uncompressed. Zarr, Dask
and xarray open it; wideflow reads and writes it without any of them, so that it runs on a bare node. A chunk is written under
a temporary name and then renamed: a file that is there is whole, so whoever starts again computes only what is missing. The
chunks are computed here, or by the workers of a Dask client.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..._core.errors import check_choice, check_count
from ..._core.precision import double
from .architecture_kernels import Kernels


@dataclass(frozen=True)
class StoredKernel:
    """A kernel matrix on disk; `block`, `rows` and `@` read what they need and no more.

    Attributes:
        path: the folder.
        shape: of the whole matrix.
        chunk: rows and columns of one file.
        dtype: of the numbers.
    """

    path: pathlib.Path
    shape: tuple[int, int]
    chunk: int
    dtype: np.dtype

    @property
    def chunks(self) -> tuple[int, int]:
        """Chunks along each side."""
        return -(-self.shape[0] // self.chunk), -(-self.shape[1] // self.chunk)

    @property
    def missing(self) -> list[tuple[int, int]]:
        """The chunks that are not there yet."""
        tall, wide = self.chunks
        return [(i, j) for i in range(tall) for j in range(wide) if not self._file(i, j).exists()]

    def block(self, i: int, j: int) -> np.ndarray:
        """One chunk, cut to the matrix."""
        place = self._file(i, j)
        if not place.exists():
            raise ValueError(
                f"chunk ({i}, {j}) of the kernel in {self.path} is not computed yet; run `write_kernel` with the same inputs to go on."
            )
        size = (self.chunk, self.chunk)
        values = np.fromfile(place, self.dtype).reshape(size)
        return values[: self.shape[0] - i * self.chunk, : self.shape[1] - j * self.chunk]

    def rows(self, i: int) -> np.ndarray:
        """All columns of the i-th row of chunks."""
        return np.concatenate([self.block(i, j) for j in range(self.chunks[1])], axis=1)

    def row(self, number: int) -> np.ndarray:
        """One row of the matrix; of each chunk only that row is read."""
        i, within = divmod(number, self.chunk)
        offset = within * self.chunk * self.dtype.itemsize
        read = lambda j: np.fromfile(self._file(i, j), self.dtype, self.chunk, offset=offset)
        parts = [read(j) for j in range(self.chunks[1])]
        return np.concatenate(parts)[: self.shape[1]]

    def diagonal(self) -> np.ndarray:
        """Of a square matrix."""
        return np.concatenate([np.diagonal(self.block(i, i)) for i in range(self.chunks[0])])

    def __matmul__(self, vectors) -> np.ndarray:
        """The product with (right,) or (right, output), one row of chunks in memory at a time."""
        vectors = np.asarray(vectors)
        return np.concatenate([self.rows(i) @ vectors for i in range(self.chunks[0])])

    def to_array(self) -> np.ndarray:
        """The whole matrix in memory."""
        return np.concatenate([self.rows(i) for i in range(self.chunks[0])])

    def _file(self, i: int, j: int) -> pathlib.Path:
        return self.path / f"{i}.{j}"

    def _write(self, i: int, j: int, values: np.ndarray) -> None:
        whole = np.zeros(
            (self.chunk, self.chunk), self.dtype
        )  # Zarr's chunks at the edge are whole
        whole[: values.shape[0], : values.shape[1]] = values
        temporary = self.path / f".{i}.{j}.{uuid.uuid4().hex}.tmp"  # several machines may write
        with temporary.open("wb") as file:
            file.write(whole.tobytes())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._file(i, j))


@double
def write_kernel(
    k: Kernels,
    path,
    x,
    x2=None,
    *,
    kernel: str = "ntk",
    chunk: int = 2048,
    part: tuple[int, int] = (0, 1),
    client=None,
    progress: Callable[[int, int], None] | None = None,
) -> StoredKernel:
    """Computes a kernel matrix chunk by chunk into a folder; goes on where an earlier call was stopped.

    Args:
        k: the kernels.
        path: the folder, such as 'mnist.zarr'; made if it is not there.
        x, x2: inputs; a symmetric matrix if `x2` is None, whose lower chunks are copied from the upper ones.
        kernel: 'ntk' or 'nngp'.
        chunk: samples along each side of a chunk.
        part: (p, of): work off every `of`-th chunk from the p-th. Machines that share a disk take a part each.
        client: a `dask.distributed.Client`; its workers, which must see `path`, compute and write the chunks.
        progress: called with the chunks done in this call and all that it has to do.

    Returns:
        The `StoredKernel`; with `part`, its `missing` chunks are the others'.
    """
    check_choice("kernel", kernel, ("ntk", "nngp"))
    check_count("chunk", chunk)
    if not (len(part) == 2 and 0 <= part[0] < part[1]):
        raise ValueError(f"`part` must be (p, of) with 0 <= p < of, got {part}.")
    x, symmetric = np.asarray(x), x2 is None
    right = x if symmetric else np.asarray(x2)
    stored = _prepare(k, pathlib.Path(path), x, x2, kernel, chunk)
    tall, wide = stored.chunks
    wanted = [(i, j) for i in range(tall) for j in range(wide) if not symmetric or j >= i]
    wanted = [
        (i, j)
        for i, j in wanted[part[0] :: part[1]]
        if not (stored._file(i, j).exists() and (not symmetric or stored._file(j, i).exists()))
    ]
    _check_disk(stored, len(wanted) * (2 if symmetric else 1))
    rows = lambda a, i: a[i * chunk : (i + 1) * chunk]
    tasks = [(stored, k, kernel, symmetric, i, j) for i, j in wanted]
    if client is None:
        results = (_compute(*task, rows(x, task[-2]), rows(right, task[-1])) for task in tasks)
    else:
        results = _on_workers(client, tasks, lambda i: rows(x, i), lambda j: rows(right, j))
    for done, _ in enumerate(results, 1):
        if progress is not None:
            progress(done, len(wanted))
    return stored


def _compute(stored: StoredKernel, k: Kernels, kernel: str, symmetric: bool, i: int, j: int, x, x2):
    """Computes and writes chunk (i, j) and its mirror image, whatever of the two is missing."""
    if stored._file(i, j).exists():  # killed between a chunk and its mirror image
        block = stored.block(i, j)
    else:
        same = symmetric and i == j
        block = np.asarray(getattr(k, kernel)(x, None if same else x2))
        stored._write(i, j, block)
    if symmetric and i != j:
        stored._write(j, i, block.T)


def _on_workers(client, tasks, left: Callable, right: Callable):
    """The same by Dask; rows of inputs travel to a worker once, and a chunk that failed raises here."""
    stored, k = tasks[0][:2] if tasks else (None, None)
    place = stored and dataclasses.replace(stored, path=stored.path.resolve())
    # a resolved path: workers have working folders of their own
    sides = [
        {n: client.scatter(rows(n), hash=False) for n in {task[at] for task in tasks}}
        for at, rows in ((-2, left), (-1, right))
    ]
    # each chunk is a file, written once: Dask shall neither merge equal-looking tasks nor forget one
    futures = [
        client.submit(_compute, place, k, *task[2:], sides[0][task[-2]], sides[1][task[-1]], pure=False)
        for task in tasks
    ]  # fmt: skip
    for future in futures:
        yield future.result()


def open_kernel(path) -> StoredKernel:
    """A kernel that `write_kernel` has written, or has begun.

    Args:
        path: the folder.
    """
    place = pathlib.Path(path)
    if not (place / ".zarray").is_file():
        raise ValueError(
            f"`path` must be a folder that `write_kernel` has made, got {str(path)!r}."
        )
    settings = json.loads((place / ".zarray").read_text())
    return StoredKernel(
        place, tuple(settings["shape"]), settings["chunks"][0], np.dtype(settings["dtype"])
    )


def _prepare(k, path, x, x2, kernel, chunk) -> StoredKernel:
    """The folder with its description; refused where it holds another kernel."""
    dtype = np.dtype(k.precision).newbyteorder("<")
    shape = (x.shape[0], (x if x2 is None else np.asarray(x2)).shape[0])
    chunk = min(chunk, max(shape))
    attributes = {
        "kernel": kernel,
        "architecture": repr(k.architecture),
        "parametrisation": k.parametrisation,
        "rates": list(k.rates),
        "inputs": _fingerprint(x, x2),
    }
    settings = {
        "zarr_format": 2, "shape": shape, "chunks": (chunk, chunk), "dtype": dtype.str, "order": "C",
        "compressor": None, "filters": None, "fill_value": None,
    }  # fmt: skip
    texts = {".zattrs": json.dumps(attributes, indent=1), ".zarray": json.dumps(settings, indent=1)}
    path.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        place = path / name
        if not place.exists():
            temporary = path / f".{name}.{os.getpid()}.tmp"
            temporary.write_text(text)
            temporary.replace(place)
        elif json.loads(place.read_text()) != json.loads(text):
            raise ValueError(
                f"`path` {str(path)!r} holds another kernel (its {name} differs). Choose a new folder, or give the same architecture, "
                "inputs, precision and chunk."
            )
    return StoredKernel(path, shape, chunk, dtype)


def _fingerprint(x, x2) -> str:
    digest = hashlib.sha256()
    for array in (x, x if x2 is None else np.asarray(x2)):
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _check_disk(stored: StoredKernel, chunks: int) -> None:
    needed = chunks * stored.chunk**2 * stored.dtype.itemsize
    free = shutil.disk_usage(stored.path).free
    if needed > free:
        raise ValueError(
            f"`path` {str(stored.path)!r} has {free / 2**30:.3g} GiB free, but the kernel needs {needed / 2**30:.3g} GiB more. "
            "Choose another disk, precision='float32' or fewer inputs."
        )


__all__ = ["StoredKernel", "open_kernel", "write_kernel"]
