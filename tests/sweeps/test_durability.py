"""Workers, client and scheduler killed again and again: nothing lost, nothing run twice, the same
numbers in the end.
"""

import collections
import json
import os
import pathlib
import resource
import signal
import threading

import pytest
import xarray as xr
from sweep_processes import (
    client,
    kill_client,
    killing_workers,
    log_runs,
    numbers,
    records,
    separate_scheduler,
    until,
)

import wideflow as wf
from wideflow.runs import Store
from wideflow.runs.sweeps import expand, read_spec, survey

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


@pytest.fixture
def logged(tmp_path, monkeypatch) -> pathlib.Path:
    return log_runs(tmp_path, monkeypatch)


@pytest.mark.slow
def test_whatever_is_killed_nothing_is_lost_and_nothing_is_run_twice(tmp_path, logged):
    spec, out, dead = tmp_path / "chaos.yaml", tmp_path / "out", 0
    spec.write_text(SPEC)
    there = lambda: len(records(out))

    for reached in (20, 45):
        first = client(spec, out)
        with killing_workers(first, there) as killed:
            until(lambda reached=reached: there() >= reached, f"{reached} records", 240)
            kill_client(first)
        dead += len(killed)

    with separate_scheduler(tmp_path, 2) as (address, scheduler):

        def kill_scheduler():
            until(lambda: there() >= 70, "70 records", 240)
            scheduler.kill()

        thread = threading.Thread(target=kill_scheduler, daemon=True)
        thread.start()
        swept = wf.sweep(spec, out, scheduler=address)
        thread.join()
    assert "scheduler was lost" in swept.stopped

    before = records(out)
    last = client(spec, out)
    with killing_workers(last, there) as killed:
        told = json.loads(last.communicate(timeout=400)[0])
    dead += len(killed)
    assert last.returncode == 0
    assert (told["missing"], told["stopped"], told["troubles"]) == (0, "", [])
    assert dead >= 4
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
    assert again <= dead + 2 * 2 + 2  # those that a kill cut short: one a process

    calm = wf.sweep(spec, tmp_path / "calm", workers=2)
    xr.testing.assert_identical(numbers(wf.sweep(spec, out).table), numbers(calm.table))
    print(f"{dead} workers killed, {again} runs begun again, {RUNS} records")


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
    """Files of this process tree may not be larger than the limit: the wide network's table is, the
    others' are not.
    """
    spec, out = tmp_path / "full.yaml", tmp_path / "out"
    spec.write_text(
        "experiment: train\nsize: smoke\ngrid: {records: [4, 400]}\nset: {steps: 400}\nseeds: 2\n"
    )

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing then fails as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    process = client(
        spec, out, preexec_fn=limit, env={**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    )
    process.communicate(timeout=120)
    plan = expand(read_spec(spec))
    seen = survey(plan, Store(out))
    small = {run.address for run in plan.runs if run.settings["records"] == 4}
    assert seen.done == small
    assert seen.failed.keys() == {run.address for run in plan.runs} - small
    assert all("too large" in sentence for sentence in seen.failed.values())
    assert seen.damaged == ()
    assert wf.sweep(spec, out, workers=1).computed == 2  # with room again
