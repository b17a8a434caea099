"""Kernel matrices on disk, in chunks of the Zarr format: resumed after a kill, shared by several
machines.

A folder holds `.zarray` (shape, chunks, dtype), `.zattrs` (what the kernel is of) and one file a
chunk, uncompressed. Zarr, Dask and xarray open it; wideflow reads and writes it without any of
them, so that it runs on a bare node. A chunk is written under a temporary name and then renamed: a
file that is there is whole, so whoever starts again computes only what is missing. The chunks are
computed here, or by the workers of a Dask client. `kernel_identity.py` says when two kernels are
the same.
"""

import dataclasses
import json
import os
import pathlib
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._core.errors import check_choice, check_count, check_kind, check_path, check_progress
from ..._core.precision import double
from .architecture_kernels import Kernels
from .kernel_identity import differing, folder_name, identity

# 32 MiB of float64: large files, and blocks that glibc's allocator gives back when they are freed
CHUNK = 2048


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

    ndim: ClassVar = 2

    @property
    def identity(self) -> dict:
        """What the kernel is of: architecture, inputs and which of the two kernels."""
        return json.loads((self.path / ".zattrs").read_text())

    @property
    def symmetric(self) -> bool:
        """Whether it is of one set of inputs with itself."""
        return self.identity["row inputs"] == self.identity["column inputs"]

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
        values = np.fromfile(self._present(i, j), self.dtype).reshape(self.chunk, self.chunk)
        return values[: self.shape[0] - i * self.chunk, : self.shape[1] - j * self.chunk]

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Rows from `start` up to `stop`, all columns; of each chunk only those rows are read."""
        stop = min(stop, self.shape[0])
        values = np.empty((stop - start, self.shape[1]), self.dtype)
        for i in range(start // self.chunk, -(-stop // self.chunk)):
            top = i * self.chunk
            # chunks are stored row by row, so that consecutive rows of one are one piece of its
            # file
            first, last = max(start, top), min(stop, top + self.chunk)
            offset = (first - top) * self.chunk * self.dtype.itemsize
            for j in range(self.chunks[1]):
                left, right = j * self.chunk, min((j + 1) * self.chunk, self.shape[1])
                count = (last - first) * self.chunk
                part = np.fromfile(self._present(i, j), self.dtype, count=count, offset=offset)
                part = part.reshape(-1, self.chunk)[:, : right - left]
                values[first - start : last - start, left:right] = part
        return values

    def diagonal(self) -> np.ndarray:
        """Of a square matrix."""
        return np.concatenate([np.diagonal(self.block(i, i)) for i in range(self.chunks[0])])

    def __matmul__(self, vectors) -> np.ndarray:
        """The product with (right,) or (right, output), one chunk in memory at a time."""
        vectors = np.asarray(vectors)
        parts = [vectors[j * self.chunk : (j + 1) * self.chunk] for j in range(self.chunks[1])]
        product = lambda i: sum(self.block(i, j) @ part for j, part in enumerate(parts))
        return np.concatenate([product(i) for i in range(self.chunks[0])])

    def to_array(self) -> np.ndarray:
        """The whole matrix in memory."""
        return self.rows(0, self.shape[0])

    def _file(self, i: int, j: int) -> pathlib.Path:
        return self.path / f"{i}.{j}"

    def _present(self, i: int, j: int) -> pathlib.Path:
        place = self._file(i, j)
        if not place.exists():
            raise ValueError(
                f"chunk ({i}, {j}) of the kernel in {self.path} is not computed yet; run "
                "`write_kernel` with the same inputs to go on."
            )
        return place

    def _write(self, i: int, j: int, values: np.ndarray) -> None:
        # Zarr's chunks at the edge are whole
        whole = np.zeros((self.chunk, self.chunk), self.dtype)
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
    chunk: int | None = None,
    part: tuple[int, int] = (0, 1),
    client=None,
    progress: Callable[[int, int], None] | None = None,
) -> StoredKernel:
    """Computes a kernel matrix chunk by chunk into a folder; goes on where an earlier call was
    stopped.

    Args:
        k: the kernels.
        path: the folder, such as 'mnist.zarr'; made if it is not there.
        x, x2: inputs; a symmetric matrix if `x2` is None, whose lower chunks are copied from the
            upper ones.
        kernel: 'ntk' or 'nngp'.
        chunk: samples along each side of a chunk; 2048, or what the folder was begun with, if None.
        part: (p, of): work off every `of`-th chunk from the p-th. Machines that share a disk take a
            part each.
        client: a `dask.distributed.Client`; its workers, which must see `path`, compute and write
            the chunks.
        progress: called with the chunks done in this call and all that it has to do.

    Returns:
        The `StoredKernel`; with `part`, its `missing` chunks are the others'.
    """
    check_choice("kernel", kernel, ("ntk", "nngp"))
    if chunk is not None:
        check_count("chunk", chunk)
    check_kind("k", k, Kernels, "kernels", "`wf.limits.kernels(architecture)` gives them.")
    check_path("path", path)
    check_progress(progress)
    pair = isinstance(part, tuple | list) and len(part) == 2
    if not (pair and all(isinstance(p, int) for p in part) and 0 <= part[0] < part[1]):
        raise ValueError(
            f"`part` must be two whole numbers (p, of) with 0 <= p < of, got {part!r}."
        )
    if client is not None and not (hasattr(client, "submit") and hasattr(client, "scatter")):
        raise ValueError(f"`client` must be a `dask.distributed.Client`, got {client!r}.")
    x, right = _checked(k, x, x2)
    symmetric = x2 is None
    stored = _prepare(k, pathlib.Path(path), x, right, kernel, chunk)
    chunk = stored.chunk
    tall, wide = stored.chunks
    places = [(i, j) for i in range(tall) for j in range(wide) if not symmetric or j >= i]
    places = [
        (i, j)
        for i, j in places[part[0] :: part[1]]
        if not (stored._file(i, j).exists() and (not symmetric or stored._file(j, i).exists()))
    ]
    _check_disk(stored, len(places) * (2 if symmetric else 1))
    rows = lambda a, i: a[i * chunk : (i + 1) * chunk]
    tasks = [(stored, k, kernel, symmetric, i, j) for i, j in places]
    if client is None:
        results = (_compute(*task, rows(x, task[-2]), rows(right, task[-1])) for task in tasks)
    else:
        results = _on_workers(client, tasks, lambda i: rows(x, i), lambda j: rows(right, j))
    for done, _ in enumerate(results, 1):
        if progress is not None:
            progress(done, len(places))
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
    """The same by Dask; rows of inputs travel to a worker once, and a chunk that failed raises
    here.
    """
    stored, k = tasks[0][:2] if tasks else (None, None)
    place = stored and dataclasses.replace(stored, path=stored.path.resolve())
    # a resolved path: workers have working folders of their own
    sides = [
        {n: client.scatter(rows(n), hash=False) for n in {task[at] for task in tasks}}
        for at, rows in ((-2, left), (-1, right))
    ]
    # each chunk is a file, written once: Dask shall neither merge equal-looking tasks nor forget
    # one
    futures = [
        client.submit(
            _compute, place, k, *task[2:], sides[0][task[-2]], sides[1][task[-1]], pure=False
        )
        for task in tasks
    ]
    for future in futures:
        yield future.result()


def open_kernel(path) -> StoredKernel:
    """A kernel that `write_kernel` has written, or has begun.

    Args:
        path: the folder.
    """
    check_path("path", path)
    place = pathlib.Path(path)
    if not (place / ".zarray").is_file():
        raise ValueError(
            f"`path` must be a folder that `write_kernel` has made, got {str(path)!r}."
        )
    settings = json.loads((place / ".zarray").read_text())
    return StoredKernel(
        place, tuple(settings["shape"]), settings["chunks"][0], np.dtype(settings["dtype"])
    )


def stored_kernel(
    store, k: Kernels, x, kernel: str, progress: Callable | None = None
) -> StoredKernel:
    """The kernel of `x` with itself, kept in `store` by an estimator.

    Args:
        store: a folder, in which it is found again by its identity or else written; or a
            `StoredKernel`, refused where it is another one.
        k, x, kernel, progress: as in `write_kernel`.
    """
    if isinstance(store, StoredKernel):
        here = identity(k, *_checked(k, x, None), kernel)
        _refuse_other("store", store.path, differing(store.identity, here))
        check_complete("store", store)
        return store
    if not isinstance(store, str | os.PathLike):
        raise ValueError(
            f"`store` must be a folder, a `StoredKernel` or None, got {store!r}. "
            "`wf.limits.open_kernel(path)` opens a kernel that is there."
        )
    name = folder_name(identity(k, *_checked(k, x, None), kernel), k.precision)
    return write_kernel(k, pathlib.Path(store) / name, x, kernel=kernel, progress=progress)


def check_complete(name: str, stored: StoredKernel) -> None:
    """Refuses a kernel with missing chunks before work begins."""
    count = len(stored.missing)
    if count:
        raise ValueError(
            f"`{name}` must be complete, but {count} chunks of the kernel in "
            f"{str(stored.path)!r} are not computed yet; run `write_kernel` "
            "with the same inputs to go on."
        )


def _checked(k: Kernels, x, x2) -> tuple[np.ndarray, np.ndarray]:
    """Both sets of inputs as the kernel takes them, refused here rather than after hours, or on
    another machine.
    """
    left, right = k._inputs(x, x2)
    shape = k.architecture.output_shape(left.shape[1:])
    if len(shape) != 1:
        raise ValueError(
            "`k` must end in one row of outputs to be stored as a matrix, but it gives outputs "
            f"of shape {shape}. Add `Flatten()` or `GlobalAveragePool()`."
        )
    left = np.asarray(left)
    return left, left if right is None else np.asarray(right)


def _prepare(k, path, x, right, kernel, chunk) -> StoredKernel:
    """The folder with its description; refused where it holds another kernel."""
    dtype = np.dtype(k.precision).newbyteorder("<")
    shape = (x.shape[0], right.shape[0])
    begun = (path / ".zarray").is_file()
    if begun and chunk is None:
        chunk = open_kernel(path).chunk
    chunk = min(chunk or CHUNK, max(shape))
    settings = {
        "zarr_format": 2,
        "shape": shape,
        "chunks": (chunk, chunk),
        "dtype": dtype.str,
        "order": "C",
        "compressor": None,
        "filters": None,
        "fill_value": None,
    }
    attributes = identity(k, x, right, kernel)
    if begun:
        place, old = str(path), json.loads((path / ".zarray").read_text())
        _refuse_other("path", place, differing(open_kernel(path).identity, attributes))
        _refuse_other(
            "path", place, [f for f in settings if old[f] != json.loads(json.dumps(settings[f]))]
        )
    else:
        path.mkdir(parents=True, exist_ok=True)
        # the attributes first: a folder with `.zarray` is one that can be opened
        for name, content in ((".zattrs", attributes), (".zarray", settings)):
            temporary = path / f".{name}.{os.getpid()}.tmp"
            temporary.write_text(json.dumps(content, indent=1))
            temporary.replace(path / name)
    return StoredKernel(path, shape, chunk, dtype)


def _refuse_other(argument: str, path, fields: list[str]) -> None:
    if fields:
        raise ValueError(
            f"`{argument}` {str(path)!r} holds another kernel (different: {', '.join(fields)}). "
            "Choose a new folder, or give the same architecture, "
            "inputs, precision and chunk."
        )


def _check_disk(stored: StoredKernel, chunks: int) -> None:
    needed = chunks * stored.chunk**2 * stored.dtype.itemsize
    free = shutil.disk_usage(stored.path).free
    if needed > free:
        raise ValueError(
            f"`path` {str(stored.path)!r} has {free / 2**30:.3g} GiB free, but the kernel needs "
            f"{needed / 2**30:.3g} GiB more. "
            "Choose another disk, precision='float32' or fewer inputs."
        )


__all__ = ["StoredKernel", "open_kernel", "write_kernel"]
