"""Kernels on disk: the same numbers, resumed after a kill, shared between machines, and never mixed
up.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.limits import open_kernel, write_kernel

X = np.random.default_rng(3).standard_normal((50, 3))
K = wf.limits.kernels(wf.architecture.mlp(depth=1))


def test_chunks_hold_the_kernel_in_the_zarr_format(tmp_path):
    stored = write_kernel(K, tmp_path / "k.zarr", X, chunk=16)
    whole = np.asarray(K.ntk(X))
    assert stored.chunks == (4, 4)
    assert stored.missing == []
    assert_allclose(stored.to_array(), whole, rtol=1e-13, atol=1e-15)
    assert_allclose(open_kernel(tmp_path / "k.zarr") @ X, whole @ X, rtol=1e-12)
    # read by the format's rules alone: chunk (i, j) is the file 'i.j', row by row, padded to the
    # chunk's size
    settings = json.loads((tmp_path / "k.zarr" / ".zarray").read_text())
    assert settings["zarr_format"] == 2
    assert (settings["shape"], settings["chunks"], settings["dtype"]) == ([50, 50], [16, 16], "<f8")
    corner = np.fromfile(tmp_path / "k.zarr" / "3.1", "<f8").reshape(16, 16)
    assert_allclose(corner[:2], whole[48:, 16:32], rtol=1e-13, atol=1e-15)
    assert_allclose(corner[2:], 0)


def test_zarr_opens_it(tmp_path):
    zarr = pytest.importorskip("zarr")
    write_kernel(K, tmp_path / "k.zarr", X, chunk=16)
    assert_allclose(
        zarr.open(str(tmp_path / "k.zarr"), mode="r")[:], K.ntk(X), rtol=1e-13, atol=1e-15
    )


def test_parts_of_several_machines_make_one_kernel(tmp_path):
    first = write_kernel(K, tmp_path / "k", X, X[:20], kernel="nngp", chunk=16, part=(0, 2))
    assert len(first.missing) == 4
    with pytest.raises(ValueError, match="is not computed yet"):
        first.to_array()
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "k").glob("*.*")}
    calls = []
    whole = write_kernel(
        K,
        tmp_path / "k",
        X,
        X[:20],
        kernel="nngp",
        chunk=16,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(k, 4) for k in range(1, 5)]  # the missing ones alone
    assert {p: p.stat().st_mtime_ns for p in stamps} == stamps
    assert_allclose(whole.to_array(), K.nngp(X, X[:20]), rtol=1e-13, atol=1e-15)


CHILD = """
import sys, time, numpy as np, wideflow as wf
client = None
if sys.argv[2] == "dask":
    from distributed import Client
    client = Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None)
x = np.random.default_rng(3).standard_normal((50, 3))
k = wf.limits.kernels(wf.architecture.mlp(depth=1))
def progress(done, total):
    print("DONE", done, flush=True)
    time.sleep(0.2)
wf.limits.write_kernel(k, sys.argv[1], x, chunk=5, progress=progress, client=client)
"""


@pytest.mark.parametrize("way", ["alone", "dask"])
def test_a_kill_loses_nothing_and_nothing_is_computed_twice(tmp_path, way):
    place = tmp_path / "k"
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(place), way], stdout=subprocess.PIPE, text=True
    )
    for line in child.stdout:
        if line.strip() == "DONE 7":
            break
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    time.sleep(0.05)
    begun = open_kernel(place)
    chunks = [p for p in place.iterdir() if not p.name.startswith(".")]
    stamps = {path: path.stat().st_mtime_ns for path in chunks}
    assert len(stamps) >= 7
    calls = []
    whole = write_kernel(K, place, X, chunk=5, progress=lambda done, total: calls.append(total))
    assert begun.missing == whole.missing == []  # `missing` looks at the folder as it is now
    assert len(calls) <= 55 - 7  # of 55 chunks on and above the diagonal
    assert {p: p.stat().st_mtime_ns for p in stamps} == stamps
    assert_allclose(whole.to_array(), K.ntk(X), rtol=1e-13, atol=1e-15)


def test_another_kernel_and_a_full_disk_are_refused(tmp_path, monkeypatch):
    write_kernel(K, tmp_path / "k", X, chunk=32)
    with pytest.raises(ValueError, match="holds another kernel"):
        write_kernel(K, tmp_path / "k", X + 1, chunk=32)
    with pytest.raises(ValueError, match="holds another kernel"):
        write_kernel(K, tmp_path / "k", X, chunk=16)
    with pytest.raises(ValueError, match="`path` must be a folder"):
        open_kernel(tmp_path)
    with pytest.raises(ValueError, match="`part` must be"):
        write_kernel(K, tmp_path / "n", X, part=(2, 2))
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(ValueError, match="GiB free, but the kernel needs"):
        write_kernel(K, tmp_path / "full", X, chunk=16)


def test_activations_of_one_name_are_told_apart(tmp_path):
    # A function of one's own has no name to be told by, and parameters print in six digits.
    a = wf.architecture
    kernels = lambda act: wf.limits.kernels(a.Chain(a.Dense(8), a.Activate(act), a.Dense(1)))
    pairs = [
        (lambda z: jnp.exp(-(z**2) / 8), lambda z: z * jnp.exp(-(z**2) / 8)),
        (wf.activations.leaky_relu(0.2), wf.activations.leaky_relu(0.2000001)),
    ]
    for n, (first, second) in enumerate(pairs):
        assert repr(kernels(first)) == repr(kernels(second))
        write_kernel(kernels(first), tmp_path / str(n), X[:4])
        write_kernel(kernels(first), tmp_path / str(n), X[:4])
        with pytest.raises(ValueError, match=r"holds another kernel \(different: activations\)"):
            write_kernel(kernels(second), tmp_path / str(n), X[:4])


def test_what_cannot_be_stored_is_refused_before_a_folder_is_made(tmp_path):
    a = wf.architecture
    spatial = wf.limits.kernels(a.Chain(a.Conv(4, (3,)), a.Activate("relu")))
    with pytest.raises(ValueError, match="`k` must end in one row of outputs"):
        write_kernel(spatial, tmp_path / "k", np.ones((5, 6, 2)))
    with pytest.raises(ValueError, match="`x` must be finite"):
        write_kernel(K, tmp_path / "k", np.where(X > 2, np.nan, X))
    assert not (tmp_path / "k").exists()


def test_rows_and_the_chunk_of_a_folder(tmp_path):
    write_kernel(K, tmp_path / "k", X, chunk=16, part=(0, 2))
    stored = write_kernel(
        K, tmp_path / "k", X.tolist()
    )  # goes on with its chunks, and knows the numbers
    assert stored.chunk == 16
    assert stored.missing == []
    assert stored.symmetric
    whole = np.asarray(K.ntk(X))
    for start, stop in [(0, 50), (3, 4), (15, 17), (10, 49), (48, 60)]:
        assert_allclose(stored.rows(start, stop), whole[start:stop], rtol=1e-13, atol=1e-15)


def test_dask_computes_each_missing_chunk_once_and_reports_a_failure(tmp_path):
    distributed = pytest.importorskip("distributed")
    calls = []
    with distributed.Client(
        processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as client:
        first = write_kernel(K, tmp_path / "k", X, chunk=16, part=(0, 2), client=client)
        assert (
            len(first.missing) == 16 - 8
        )  # (0,0), (0,2), (1,1), (1,3), (2,3) and mirrors of three
        stamps = {p: p.stat().st_mtime_ns for p in (tmp_path / "k").glob("[0-9]*")}
        whole = write_kernel(
            K, tmp_path / "k", X, chunk=16, client=client, progress=lambda *t: calls.append(t)
        )
        assert calls == [(n, 5) for n in range(1, 6)]
        assert {p: p.stat().st_mtime_ns for p in stamps} == stamps
        assert_allclose(whole.to_array(), K.ntk(X), rtol=1e-13, atol=1e-15)
        broken = np.where(X > 2, np.nan, X)
        with pytest.raises(ValueError, match=r"`x2?` must be finite"):
            write_kernel(K, tmp_path / "broken", broken, chunk=16, client=client)
