"""A plane of 200 runs under kills of workers, client and scheduler: nothing lost, nothing twice,
the same numbers in the end.
"""

import collections
import json
import subprocess
import sys

import numpy as np
import pytest
from sweep_processes import kill_client, killing_workers, log_runs, separate_scheduler, until

from wideflow.runs import read_record

RUNS = 200
KILLS = 15  # runs between two of them
PLANE = """
import json, sys
import numpy as np, wideflow as wf

def asked(runs):
    x = np.random.default_rng(0).normal(size=(200, 3))
    return dict(
        data=wf.Dataset(x, np.sin(2 * x[:, 0]), "waves"), axes={"richness": (0.01, 10.0, 13), "width": [4, 6, 8, 16]},
        runs=runs, loss=(0.8, 0.5), steps=4000, samples=60, folds=5,
    )

if __name__ == "__main__":
    where = {"scheduler": sys.argv[3]} if len(sys.argv) > 3 else {"workers": 2}
    plane = wf.phase(**asked(int(sys.argv[2])), out=sys.argv[1], **where)
    print(json.dumps({"runs": plane.runs, "stopped": plane.stopped, "sentence": str(plane)}))
"""


@pytest.fixture
def logged(tmp_path, monkeypatch):
    log = log_runs(tmp_path, monkeypatch)
    (tmp_path / "hook" / "plane.py").write_text(PLANE)
    return log


def start(out, *more) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "plane", str(out), str(RUNS), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def saved(out) -> int:
    return len(list(out.glob("phase-point-*.nc")))


@pytest.mark.slow
def test_a_plane_of_two_hundred_runs_survives_kills_of_everything(tmp_path, logged):
    out = tmp_path / "out"
    there = lambda: saved(out)
    for reached in (RUNS // 5, RUNS * 9 // 20):
        first = start(out)
        with killing_workers(first, there, KILLS) as killed:
            until(lambda reached=reached: there() >= reached, f"{reached} runs", 400)
            kill_client(first)
        assert killed

    with separate_scheduler(tmp_path, 2) as (address, scheduler):
        second = start(out, address)
        until(lambda: there() >= RUNS * 7 // 10, "two thirds of the runs", 400)
        scheduler.kill()
        cut = json.loads(second.communicate(timeout=400)[0])
    assert "scheduler was lost" in cut["stopped"]

    last = start(out)
    with killing_workers(last, there, KILLS) as killed:
        answer = json.loads(last.communicate(timeout=900)[0])
    assert killed
    assert answer["runs"] == there() == RUNS
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
