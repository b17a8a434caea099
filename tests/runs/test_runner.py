"""Runs are judged, resumed after `kill -9` with the same numbers, and refuse what makes no
sense.
"""

import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from small_experiment import EXPERIMENT, FAILING

from wideflow.runs import Store, perform, read_record
from wideflow.runs.overrides import parse
from wideflow.runs.runner import find_device, settings_of

TESTS = pathlib.Path(__file__).parents[1]
LONG = {"steps": 4000, "every": 20}
SCRIPT = """
import sys, time
sys.path.insert(0, sys.argv[1])
from small_experiment import EXPERIMENT
from wideflow.runs import Store, perform
perform(EXPERIMENT, Store(sys.argv[2], checkpoint_every=0.0), size="smoke",
        overrides=dict(steps=4000, every=20), progress=lambda *told: time.sleep(0.02))
"""


def test_a_killed_run_goes_on_with_the_same_numbers(tmp_path):
    killed = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(TESTS), str(killed)],
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
    )
    store = Store(killed, checkpoint_every=0.0)
    until = time.monotonic() + 120
    while len(_records_in(store)) < 5 and time.monotonic() < until:
        assert process.poll() is None, "it finished, or failed, before it could be killed"
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert store.records() == ([], [])
    kept = _records_in(store)[-1]
    assert 0 < kept < LONG["steps"]

    seen = []
    resumed = perform(
        EXPERIMENT, store, size="smoke", overrides=LONG, progress=lambda done, *_: seen.append(done)
    )
    assert min(seen) > kept  # it went on and did not start again
    whole = perform(EXPERIMENT, Store(tmp_path / "whole"), size="smoke", overrides=LONG)
    for name in whole.record.table.variables:
        np.testing.assert_array_equal(resumed.record.table[name], whole.record.table[name])
    assert store.unfinished() == []


def test_claims_are_judged_on_arrays_laid_out_as_in_the_file(tmp_path):
    """Sums over another layout differ in the last digit."""
    layouts = []

    def turned(settings, key, session):
        table = EXPERIMENT.run(settings, key, session)
        return table.assign(loss=(table.loss.dims, np.asfortranarray(table.loss.values)))

    def claims(table):
        layouts.append(table.loss.values.flags.c_contiguous)
        return EXPERIMENT.claims(table)

    experiment = dataclasses.replace(EXPERIMENT, run=turned, claims=claims)
    record = perform(experiment, Store(tmp_path), size="smoke").record
    claims(read_record(record.path).table)
    assert layouts == [True, True]


def _records_in(store: Store) -> list[int]:
    """The steps recorded in the last checkpoint."""
    for folder in store.unfinished():
        for path in folder.glob("*.npz"):
            with np.load(path, allow_pickle=False) as kept:
                return [int(step) for step in kept["step"]]
    return []


def test_claims_are_judged_and_kept(tmp_path):
    record = perform(EXPERIMENT, Store(tmp_path), size="smoke").record
    assert record.ok
    assert record.counts == {"failed": 0, "declared": 1, "unasked": 0, "holds": 2}
    failing = read_record(perform(FAILING, Store(tmp_path), size="smoke").record.path)
    assert not failing.ok
    assert [claim.kind for claim in failing.claims] == ["holds", "failed"]
    assert failing.claims[1].verdict == "FAILS"


def test_a_run_needs_no_global_64_bit_flag(tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from small_experiment import EXPERIMENT\n"
        "from wideflow.runs import Store, perform\n"
        "import jax; assert not jax.config.jax_enable_x64\n"
        "table = perform(EXPERIMENT, Store(sys.argv[2]), size='smoke').record.table\n"
        "assert table.loss.dtype == 'float64'; print(repr(float(table.loss[0, -1])))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, TESTS, tmp_path / "a"],
        capture_output=True,
        text=True,
        check=True,
    )
    here = perform(EXPERIMENT, Store(tmp_path / "b"), size="smoke").record.table
    assert float(told.stdout) == pytest.approx(float(here.loss[0, -1]), rel=1e-13)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["width=8"], {"width": 8}),
        (["rate=1e-2"], {"rate": 0.01}),
        (["gammas=1, 0.25,0"], {"gammas": (1.0, 0.25, 0.0)}),
        (["gammas=(0.5,)"], {"gammas": (0.5,)}),
        (["label=a=b"], {"label": "a=b"}),
        (["label=12"], {"label": "12"}),
        (["thorough=yes", "seeds=1"], {"thorough": True, "seeds": 1}),
    ],
)
def test_settings_from_text(texts, expected):
    settings = settings_of(EXPERIMENT, "smoke", parse(texts))
    for name, value in expected.items():
        assert getattr(settings, name) == value
        assert type(getattr(settings, name)) is type(value)


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (["widht=8"], r"no setting 'widht'. Did you mean 'width'\? It has width, rate, gammas"),
        (["width=abc"], "setting `width` of `small-one`: .*integer.* got 'abc'"),
        (["width=1.5"], "setting `width`.*got 1.5"),
        (["gammas=1,x"], "setting `gammas`, entry 1, of `small-one`: .*number.* got 'x'"),
        (["width=True"], "setting `width` of `small-one`: must be an integer, got True"),
        (["width=1e400"], "must be an integer, got inf"),
        (["gammas="], "setting `gammas` of `small-one`: must be at least one number, got ''"),
        (["rate=True"], "setting `rate` of `small-one`: must be a number, got 'True'"),
        (["thorough=2"], "setting `thorough` of `small-one`: must be True or False, got 2"),
        (["rate=-1"], "`rate` must be positive, got -1"),
        (["width"], "takes field=value, got 'width'"),
    ],
)
def test_wrong_settings_name_the_field(texts, sentence):
    with pytest.raises(ValueError, match=sentence):
        settings_of(EXPERIMENT, "smoke", parse(texts))


def test_unknown_sizes_and_devices_list_what_exists():
    with pytest.raises(
        ValueError, match=r"'smoke', 'default' or 'paper', got 'smok'. Did you mean 'smoke'\?"
    ):
        settings_of(EXPERIMENT, "smok", {})
    with pytest.raises(ValueError, match="cpu:0, got 'abacus'"):
        find_device("abacus")
    with pytest.raises(ValueError, match="got 'cpu:99'"):
        find_device("cpu:99")
    with pytest.raises(ValueError, match="got 'cpu:-1'"):
        find_device("cpu:-1")
    assert find_device("cpu").platform == "cpu"
