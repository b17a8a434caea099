"""Who may work on a run: one at a time, and never held by the dead."""

import dataclasses
import errno
import json
import os
import socket
import subprocess
import sys
import time

import pytest

from wideflow.experiments.registry import experiment
from wideflow.runs import Store
from wideflow.runs.store import address
from wideflow.runs.sweeps import cluster, worker
from wideflow.runs.sweeps.reservations import STOPPED, Reservations
from wideflow.runs.sweeps.troubles import Troubles


def test_one_at_a_time(tmp_path):
    first, second = Reservations(tmp_path), Reservations(tmp_path)
    assert not first.held("a")
    with first.take("a") as ours:
        assert ours
        assert second.held("a")
        with second.take("a") as theirs:
            assert not theirs
        assert first.held("a")  # refusing it took nothing away
    with second.take("a") as theirs:
        assert theirs
    assert list(second.folder.iterdir()) == []


def test_a_dead_process_holds_nothing(tmp_path):
    script = f"""
import pathlib, os, sys
sys.path.insert(0, {str(os.path.dirname(worker.__file__))!r})
import reservations
with reservations.Reservations(pathlib.Path({str(tmp_path)!r})).take("a") as ours:
    assert ours
    os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == -9
    mine = Reservations(tmp_path)
    assert (mine.folder / "a").exists()
    assert not mine.held("a")
    with mine.take("a") as ours:
        assert ours


def test_a_number_used_again_is_another_process(tmp_path):
    mine = Reservations(tmp_path)
    mine.folder.mkdir()
    holder = {"host": socket.gethostname(), "pid": os.getpid(), "born": "1", "token": "x"}
    (mine.folder / "a").write_text(json.dumps(holder))
    assert not mine.held("a")


@pytest.mark.parametrize("content", ['{"host": "elsewhere", "pid": 1, "born": "1"}', "broken"])
def test_another_machine_is_believed_while_its_heart_beats(tmp_path, content):
    mine = Reservations(tmp_path)
    mine.folder.mkdir()
    (mine.folder / "a").write_text(content)
    assert mine.held("a")
    old = time.time() - STOPPED - 5
    os.utime(mine.folder / "a", (old, old))
    assert not mine.held("a")


def test_a_full_disk_is_reported_and_costs_no_other_run(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(worker, "compute", full)
    chosen = experiment("train")
    settings = dataclasses.asdict(type(chosen.settings["smoke"])())
    a, b = (address(chosen.name, settings, seed) for seed in (0, 1))
    tasks = [worker.Task(name, f"{name}.nc", {}, seed) for seed, name in enumerate((a, b))]
    found = [worker._one(Store(tmp_path), chosen, "smoke", task) for task in tasks]
    assert [outcome.kind for outcome in found] == ["failed", "failed"]
    assert "No space left on device" in found[0].sentence
    assert set(Troubles(tmp_path).all()) == {a, b}
    assert not Reservations(tmp_path).held(a)


def test_gpu_workers_are_pinned(monkeypatch):
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    devices = cluster.gpus()
    assert devices == ("2", "5")
    assert cluster.default_workers(1) == 2
    assert [
        cluster.device_environment(i, 2, devices)["CUDA_VISIBLE_DEVICES"] for i in range(2)
    ] == ["2", "5"]
    shared = cluster.device_environment(3, 4, devices)
    assert shared == {"CUDA_VISIBLE_DEVICES": "5", "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.450"}
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert cluster.gpus() == ()


def test_a_worker_process_is_given_its_own_device(monkeypatch, tmp_path):
    """The environment in which processes are started, and the threads that go with it."""
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    started = []
    monkeypatch.setattr(
        cluster.subprocess, "Popen", lambda words, env, **_: started.append(env) or Process()
    )
    crew = cluster.Crew("tcp://127.0.0.1:9", 3, 1, tmp_path)
    crew.hire()
    crew.dismiss()
    assert [env["CUDA_VISIBLE_DEVICES"] for env in started] == ["2", "5", "2"]
    assert {env["XLA_PYTHON_CLIENT_MEM_FRACTION"] for env in started} == {"0.450"}
    assert {env["OMP_NUM_THREADS"] for env in started} == {"1"}


class Process:
    """One that lives until it is killed."""

    stdin = None

    def poll(self):
        return None

    def kill(self):
        pass

    def wait(self):
        pass


def test_threads_do_not_depend_on_the_number_of_workers():
    environment = cluster.thread_environment(1)
    assert environment["OMP_NUM_THREADS"] == environment["NPROC"] == "1"
    assert "intra_op_parallelism_threads=1" in environment["XLA_FLAGS"]


def test_workers_that_would_cut_sums_otherwise_are_named():
    cluster.warn_of_threads({"tls://a:1": "1", "tls://b:2": "1"}, 1)  # no warning
    with pytest.warns(UserWarning, match=r"1 of 2 workers .*tls://b:2.*NPROC=1"):
        cluster.warn_of_threads({"tls://a:1": "1", "tls://b:2": ""}, 1)
