"""A real scheduler and real workers in processes of their own: killed, resumed, shared, and equal
in the end.
"""

import json
import pathlib
import re
import signal
import threading

import jax
import numpy as np
import pytest
import xarray as xr
import yaml
from sweep_processes import (
    client,
    kill_client,
    numbers,
    records,
    separate_scheduler,
    until,
    workers_of,
)

import wideflow as wf
from wideflow.cli import main
from wideflow.experiments.registry import experiment
from wideflow.runs import Store
from wideflow.runs.sweeps import cluster, survey

SPEC = """\
experiment: train
size: smoke
set: {width: 128, samples: 24, records: 4, steps: 5000, record: [largest_movement]}
list:
  - {rate: 0.02}
  - {rate: 0.03}
  - {rate: 1.0e+6}
  - {data: nowhere.csv}
seeds: 4
"""
GOOD, BAD = 12, 4  # of the points the third diverges, which is a result, and the fourth raises


@pytest.fixture(scope="module")
def spec(tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("spec") / "rates.yaml"
    path.write_text(SPEC)
    return path


@pytest.fixture(scope="module")
def watched() -> list[tuple[float, float, str]]:
    """What the undisturbed sweep told of its progress."""
    return []


@pytest.fixture(scope="module")
def undisturbed(spec, watched, tmp_path_factory):
    """The sweep on a scheduler that was there before, with one worker."""
    out = tmp_path_factory.mktemp("undisturbed")
    with cluster.connected(None, 1, 1) as engine:
        progress = lambda *told: watched.append(told)
        address, certificates = engine.client.scheduler.address, engine.crew.certificates
        return wf.sweep(spec, out, scheduler=address, security=certificates, progress=progress)


def test_progress_counts_every_run_and_begins_with_the_dashboard(undisturbed, watched):
    done = [told[0] for told in watched]
    assert {told[1] for told in watched} == {GOOD + BAD}
    assert done[0] == 0
    assert done == sorted(done)
    assert done[-1] == GOOD + BAD
    assert re.match(r"dashboard http://127\.0\.0\.1:\d+/status$", watched[0][2])
    assert not any("dashboard" in told[2] for told in watched[1:])


def test_an_undisturbed_sweep_is_one_labelled_table(undisturbed):
    assert undisturbed.stopped == ""
    assert undisturbed.computed == GOOD
    assert len(undisturbed.missing) == BAD
    told = {(what, why.split(":")[0].split(" ")[0]) for what, _, why in undisturbed.troubles}
    assert ("warning", "diverged") in told
    assert (
        sum(what == "failed" and "nowhere.csv" in why for what, _, why in undisturbed.troubles)
        == BAD
    )
    table = undisturbed.table
    assert table.loss.dims == ("point", "seed", "step")
    np.testing.assert_array_equal(table.rate, [0.02, 0.03, 1e6, 0.1])
    assert np.isfinite(table.loss[:2]).all()
    assert (table.run_status[3] == "missing").all()
    assert np.isnan(table.loss[3]).all()


def test_a_run_of_a_sweep_is_the_run_alone(undisturbed):
    """The same settings and seed through `train` itself, in this process."""
    run = undisturbed.plan.runs[1]
    kind = type(experiment("train").settings["smoke"])
    alone = experiment("train").run(kind(**run.settings), jax.random.key(run.seed), wf.Session())
    together = undisturbed.table.isel(point=0, seed=1)
    np.testing.assert_allclose(together.loss.values, alone.loss.values, rtol=1e-12)


def test_killed_workers_and_clients_lose_nothing_and_repeat_nothing(spec, undisturbed, tmp_path):
    first = client(spec, tmp_path)
    try:
        until(lambda: records(tmp_path), "a first record")
        workers_of(first)[0].send_signal(signal.SIGKILL)
        until(lambda: len(workers_of(first)) == 2, "a new worker")
        until(lambda: len(records(tmp_path)) >= 3, "more records")
    finally:
        kill_client(first)
    before = records(tmp_path)
    assert 3 <= len(before) <= GOOD
    damaged = sorted(before)[0]
    (tmp_path / damaged).write_bytes(before[damaged][:-200] + bytes(200))

    second = client(spec, tmp_path, workers=1)  # two clients at the same time
    here = wf.sweep(spec, tmp_path, workers=1)
    told = json.loads(second.communicate(timeout=120)[0])

    assert second.returncode == 1  # the runs that raise have no result
    assert here.computed + told["computed"] == GOOD - (len(before) - 1)
    assert damaged in str(here.troubles) + str(told["troubles"])
    after = records(tmp_path)
    assert len(after) == GOOD
    assert {name: after[name] for name in before if name != damaged} == {
        name: content for name, content in before.items() if name != damaged
    }
    xr.testing.assert_identical(numbers(here.table), numbers(undisturbed.table))
    assert (
        wf.sweep({**COMPLETE, "seeds": 4}, tmp_path).computed == 0
    )  # no engine is started for nothing


COMPLETE = {
    "experiment": "train",
    "size": "smoke",
    "set": {
        "width": 128,
        "samples": 24,
        "records": 4,
        "steps": 5000,
        "record": ["largest_movement"],
    },
    "grid": {"rate": [0.02, 0.03]},
}


def test_a_killed_scheduler_is_told_and_the_rest_goes_on_later(tmp_path):
    out = tmp_path / "out"
    with separate_scheduler(tmp_path, 1) as (address, scheduler):

        def kill():
            until(lambda: len(records(out)) >= 2, "two records")
            scheduler.kill()

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        swept = wf.sweep({**COMPLETE, "seeds": 40}, out, scheduler=address)
        killer.join()
    assert "scheduler was lost" in swept.stopped
    seen = survey(swept.plan, Store(out))
    assert 2 <= len(seen.done) < 80
    assert len(swept.missing) == 80 - swept.computed
    assert seen.damaged == ()
    assert np.isfinite(swept.table.loss).any(dim="step").sum() == len(seen.done)


def test_a_lone_worker_that_dies_is_replaced_and_its_runs_are_sent_again(tmp_path):
    """No worker is left for a moment, and the new one has a new address."""
    spec, out = tmp_path / "lone.yaml", tmp_path / "out"
    spec.write_text(yaml.safe_dump({**COMPLETE, "seeds": 6}))
    process = client(spec, out, workers=1)
    try:
        until(lambda: len(records(out)) >= 2, "two records")
        workers_of(process)[0].send_signal(signal.SIGKILL)
        told = json.loads(process.communicate(timeout=150)[0])
    finally:
        process.kill()
        process.wait()
    assert (told["missing"], told["stopped"], told["troubles"]) == (0, "", [])
    assert len(records(out)) == 12


def test_no_scheduler_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "REACH", 0.5)
    swept = wf.sweep({**COMPLETE, "seeds": 1}, tmp_path, scheduler="tcp://127.0.0.1:9")
    assert "no Dask scheduler at tcp://127.0.0.1:9" in swept.stopped
    assert len(swept.missing) == 2


def test_wrong_numbers_of_workers_are_refused(tmp_path):
    with pytest.raises(ValueError, match="`workers` must be a whole number of at least 1, got 0"):
        wf.sweep(COMPLETE, tmp_path, workers=0)


SMALLER = SPEC.replace("  - {rate: 1.0e+6}\n  - {data: nowhere.csv}\n", "")


def test_the_shell_draws_what_is_there_and_tells_its_state(undisturbed, tmp_path, capsys):
    """All runs of the smaller sweep are found, so that no engine starts."""
    spec, out = tmp_path / "smaller.yaml", undisturbed.store.folder
    spec.write_text(SMALLER)
    assert (
        main(["sweep", str(spec), "--out", str(out), "--plot", "y=loss", "x=rate", "hue=seed"]) == 0
    )
    assert "0 computed, 8 found, 0 missing of 8 runs" in " ".join(capsys.readouterr().out.split())
    for name in ("table.nc", "figure.png", "figure.pdf", "index.html"):
        assert (out / "smaller" / name).is_file()
    with xr.open_dataset(out / "smaller" / "table.nc") as table:
        assert table.loss.sizes == {"point": 2, "seed": 4, "step": 5}

    assert main(["sweep", str(spec), "--out", str(out), "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["runs"], told["missing"], told["programs"]) == (8, 0, 1)
    assert told["axes"] == {"point": 2, "seed": 4}

    spec.write_text(SPEC)
    assert main(["sweep", str(spec), "--out", str(out), "--status", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["done"], told["failed"], told["missing"]) == (GOOD, BAD, BAD)
    assert "nowhere.csv" in told["troubles"][0]["reason"]


def test_a_dry_run_learns_the_time_from_two_runs_and_keeps_them(tmp_path, capsys):
    spec, out = tmp_path / "dry.yaml", tmp_path / "out"
    spec.write_text("experiment: train\nsize: smoke\ngrid: {width: [16, 32]}\nseeds: 3\n")
    words = ["sweep", str(spec), "--out", str(out), "--workers", "1"]
    assert main([*words, "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["runs"], told["done"], told["missing"], told["programs"]) == (6, 2, 4, 2)
    assert told["learnt_from"] == len(records(out)) == 2
    assert told["seconds"] > 0
    assert main([*words, "--status"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "dry: 6 runs, 2 done, 4 missing" in shown
    assert "of work for one worker remains" in shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--plot", "y=loss"], "`--plot` needs x="),
        (["another.yaml"], "`sweep` takes one file"),
        (["--workers", "0"], "--workers"),
    ],
)
def test_wrong_words_are_exit_code_2(spec, tmp_path, capsys, words, sentence):
    assert main(["sweep", str(spec), "--out", str(tmp_path), *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_wrong_file_is_exit_code_2_and_starts_nothing(tmp_path, capsys):
    path = tmp_path / "wrong.yaml"
    path.write_text("experiment: train\ngrid:\n  width: [16, -1]\n")
    assert main(["sweep", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "wrong.yaml, line 3: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
