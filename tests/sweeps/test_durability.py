"""Workers, client and scheduler killed again and again: nothing lost, nothing run twice, the same numbers in the end.

Every process appends to one log when it begins to compute a run and when the run is saved.
"""

import collections
import contextlib
import json
import os
import pathlib
import random
import resource
import signal
import socket
import subprocess
import sys
import threading

import psutil
import pytest
import xarray as xr
from sweep_processes import client, listens, numbers, records, still_there, until, workers_of

import wideflow as wf
from wideflow.runs import Store
from wideflow.runs.sweeps import cluster, expand, read_spec, survey

RUNS = 120
SPEC = f"""\
experiment: train
size: smoke
set: {{width: 128, samples: 24, records: 4, steps: 20000, record: [largest_movement]}}
zip:
  rate: [0.02, 0.03]
  noise: [0.1, 0.0]
seeds: {RUNS // 2}
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
            def logged(experiment, store, settings, *, size, seed, **rest):
                run = f"{settings.rate}/{seed}"
                note("begin", run)
                record = compute(experiment, store, settings, size=size, seed=seed, **rest)
                note("saved", run)
                return record
            module.compute = logged
        spec.loader.exec_module = exec_module
        return spec

def note(what, run):
    handle = os.open(os.environ["SWEEP_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{what} {run}\\n".encode())
    os.close(handle)

sys.meta_path.insert(0, Finder())
"""


@pytest.fixture
def logged(tmp_path, monkeypatch) -> pathlib.Path:
    """Every process that starts from now on writes its log."""
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(LOGGING)
    path = os.pathsep.join([str(tmp_path / "hook"), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path.rstrip(os.pathsep))
    monkeypatch.setenv("SWEEP_LOG", str(tmp_path / "log"))
    return tmp_path / "log"


def kill_now_and_then(process: subprocess.Popen, over: threading.Event, dead: list[int]) -> None:
    chance = random.Random(0)
    while not over.wait(4.0):
        with contextlib.suppress(psutil.Error):
            if there := workers_of(process):
                victim = chance.choice(there)
                victim.send_signal(signal.SIGKILL)
                dead.append(victim.pid)


@contextlib.contextmanager
def killer(process: subprocess.Popen, dead: list[int]):
    over = threading.Event()
    thread = threading.Thread(target=kill_now_and_then, args=(process, over, dead), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
def test_whatever_is_killed_nothing_is_lost_and_nothing_is_run_twice(tmp_path, logged):
    spec, out, dead = tmp_path / "chaos.yaml", tmp_path / "out", []
    spec.write_text(SPEC)

    for reached in (20, 45):  # the client, which has the scheduler in it
        first = client(spec, out)
        with killer(first, dead):
            until(lambda reached=reached: len(records(out)) >= reached, f"{reached} records", 240)
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

    def kill_scheduler():
        until(lambda: len(records(out)) >= 70, "70 records", 240)
        scheduler.kill()

    try:
        until(lambda: listens(port), "the scheduler")
        crew.hire()
        thread = threading.Thread(target=kill_scheduler, daemon=True)
        thread.start()
        swept = wf.sweep(spec, out, scheduler=f"tcp://127.0.0.1:{port}")
        thread.join()
    finally:
        scheduler.kill()
        scheduler.wait()
        crew.dismiss()
    assert "scheduler was lost" in swept.stopped

    before = records(out)
    last = client(spec, out)
    with killer(last, dead):
        told = json.loads(last.communicate(timeout=400)[0])
    assert last.returncode == 0
    assert (told["missing"], told["stopped"], told["troubles"]) == (0, "", [])
    assert len(dead) >= 4
    after = records(out)
    assert len(after) == RUNS
    assert {name: after[name] for name in before} == before

    begun, saved = collections.Counter(), set()
    for line in logged.read_text().splitlines():
        what, run = line.split()
        assert run not in saved, f"{run} was done, and {what} again"
        begun[run] += what == "begin"
        if what == "saved":
            saved.add(run)
    assert len(begun) == RUNS
    again = sum(begun.values()) - RUNS
    assert again <= len(dead) + 2 * 2 + 2  # those that a kill cut short: one a process

    calm = wf.sweep(spec, tmp_path / "calm", workers=2)
    xr.testing.assert_identical(numbers(wf.sweep(spec, out).table), numbers(calm.table))
    print(f"{len(dead)} workers killed, {again} runs begun again, {RUNS} records")


@pytest.mark.slow
def test_two_clients_run_nothing_twice(tmp_path, logged):
    spec, out = tmp_path / "two.yaml", tmp_path / "out"
    spec.write_text(SPEC.replace(f"seeds: {RUNS // 2}", "seeds: 10"))
    both = [client(spec, out) for _ in range(2)]
    told = [json.loads(process.communicate(timeout=200)[0]) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum(one["computed"] for one in told) == 20
    lines = logged.read_text().split("\n")[:-1]
    assert len(lines) == len(set(lines)) == 2 * 20


@pytest.mark.slow
def test_a_full_disk_costs_only_what_could_not_be_written(tmp_path):
    """Files of this process tree may not be larger than the limit: the wide network's table is, the others' are not."""
    spec, out = tmp_path / "full.yaml", tmp_path / "out"
    spec.write_text(
        "experiment: train\nsize: smoke\ngrid: {records: [4, 400]}\nset: {steps: 400}\nseeds: 2\n"
    )

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing then fails as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    process = client(spec, out, preexec_fn=limit, env={**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"})  # fmt: skip
    process.communicate(timeout=120)
    plan = expand(read_spec(spec))
    seen = survey(plan, Store(out))
    small = {run.address for run in plan.runs if run.settings["records"] == 4}
    assert seen.done == small
    assert seen.failed.keys() == {run.address for run in plan.runs} - small
    assert all("too large" in sentence for sentence in seen.failed.values())
    assert seen.damaged == ()
    assert wf.sweep(spec, out, workers=1).computed == 2  # with room again
