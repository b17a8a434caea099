"""A plane of 200 runs under kills of workers, client and scheduler: nothing lost, nothing twice, the same numbers in the end.

Every process appends to one log when it begins to compute a run and when the run is saved.
"""

import collections
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import psutil
import pytest
from sweep_processes import listens, still_there, until, workers_of

from wideflow.runs import read_record
from wideflow.runs.sweeps import cluster

RUNS = 200
PLANE = """
import json, sys
import numpy as np, wideflow as wf

def asked():
    x = np.random.default_rng(0).normal(size=(200, 3))
    return dict(
        data=wf.Dataset(x, np.sin(2 * x[:, 0]), "waves"), axes={"richness": (0.01, 10.0, 13), "width": [4, 8, 16]},
        runs=200, loss=(0.8, 0.5), steps=4000, samples=60, folds=5,
    )

if __name__ == "__main__":
    where = {"scheduler": sys.argv[2]} if len(sys.argv) > 2 else {"workers": 2}
    plane = wf.phase(**asked(), out=sys.argv[1], **where)
    print(json.dumps({"runs": plane.runs, "stopped": plane.stopped, "sentence": str(plane)}))
"""
LOGGING = """
import importlib.abc, importlib.util, os, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "wideflow.runs.runner":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module
        def exec_module(module):
            execute(module)
            compute = module.compute
            def logged(experiment, store, settings, **rest):
                run = f"{settings.richness}/{settings.width}/{settings.fold}"
                note("begin", run)
                record = compute(experiment, store, settings, **rest)
                note("saved", run)
                return record
            module.compute = logged
        spec.loader.exec_module = exec_module
        return spec

def note(what, run):
    handle = os.open(os.environ["PHASE_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{what} {run}\\n".encode())
    os.close(handle)

sys.meta_path.insert(0, Finder())
"""


@pytest.fixture
def logged(tmp_path, monkeypatch):
    """Every process that starts from now on writes its log."""
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(LOGGING)
    (tmp_path / "hook" / "plane.py").write_text(PLANE)
    path = os.pathsep.join([str(tmp_path / "hook"), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path.rstrip(os.pathsep))
    monkeypatch.setenv("PHASE_LOG", str(tmp_path / "log"))
    return tmp_path / "log"


def start(out, *more) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "plane", str(out), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def saved(out) -> int:
    return len(list(out.glob("phase-point-*.nc")))


@contextlib.contextmanager
def killing_workers(process: subprocess.Popen):
    """A worker of the process dies every few seconds."""
    over, chance = threading.Event(), random.Random(0)

    def work():
        while not over.wait(4.0):
            with contextlib.suppress(psutil.Error):
                if there := workers_of(process):
                    chance.choice(there).send_signal(signal.SIGKILL)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
def test_a_plane_of_two_hundred_runs_survives_kills_of_everything(tmp_path, logged):
    out = tmp_path / "out"
    for reached in (40, 90):  # the client, which has the scheduler in it
        first = start(out)
        with killing_workers(first):
            until(lambda reached=reached: saved(out) >= reached, f"{reached} runs", 400)
            orphans = workers_of(first)
            os.kill(first.pid, signal.SIGKILL)
        first.wait()
        first.stdout.close()
        until(lambda orphans=orphans: not any(map(still_there, orphans)), "the orphans' end")

    with socket.socket() as free:  # a scheduler of its own
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]  # fmt: skip
    scheduler = subprocess.Popen([sys.executable, "-m", *words], stderr=subprocess.DEVNULL)
    crew = cluster.Crew(f"tcp://127.0.0.1:{port}", 2, 1, tmp_path)
    try:
        until(lambda: listens(port), "the scheduler")
        crew.hire()
        second = start(out, f"tcp://127.0.0.1:{port}")
        until(lambda: saved(out) >= 140, "140 runs", 400)
        scheduler.kill()
        told = json.loads(second.communicate(timeout=400)[0])
    finally:
        scheduler.kill()
        scheduler.wait()
        crew.dismiss()
    assert "scheduler was lost" in told["stopped"]

    last = start(out)
    with killing_workers(last):
        answer = json.loads(last.communicate(timeout=900)[0])
    assert answer["runs"] == saved(out) == RUNS
    events = [line.split() for line in logged.read_text().splitlines()]
    done = collections.Counter(run for what, run in events if what == "saved")
    assert set(done.values()) == {1}, "a run was computed twice"
    # a run whose worker died between saving and its note is on disk all the same
    begun = {run for what, run in events if what == "begin"}
    assert len(begun) == RUNS

    undisturbed = tmp_path / "undisturbed"
    quiet = json.loads(start(undisturbed).communicate(timeout=900)[0])
    assert quiet["sentence"] == answer["sentence"]
    assert {p.name for p in undisturbed.glob("phase-point-*.nc")} == {
        p.name for p in out.glob("phase-point-*.nc")
    }
    for path in undisturbed.glob("phase-point-*.nc"):
        one, two = (numbers_of(folder / path.name) for folder in (undisturbed, out))
        for name in one:
            np.testing.assert_array_equal(one[name], two[name])


def numbers_of(path) -> dict[str, np.ndarray]:
    table = read_record(path).table
    return {str(name): values.values for name, values in table.items()}
