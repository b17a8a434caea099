"""The shell of bare compute nodes: runs with no more than what such a node has, into the same
records.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from small_experiment import EXPERIMENT, with_short_figures

from wideflow.experiments import registry
from wideflow.runs import Store, perform
from wideflow.runs.minimal_cli import main

TESTS = pathlib.Path(__file__).parents[1]
SCRIPT = """
import importlib.util, sys
absent = {"h5netcdf", "h5py", "bokeh", "jinja2", "typer", "rich", "dask", "panel", "sklearn", "pooch"}
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in absent else found(name, package)
sys.path.insert(0, sys.argv.pop(1))
import small_experiment
from wideflow.experiments import registry
registry.experiments = small_experiment.with_short_figures
from wideflow.runs.minimal_cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_it_runs_without_the_optional_parts(tmp_path):
    words = [
        "small-one",
        "--size",
        "smoke",
        "--out",
        str(tmp_path / "node"),
        "--set",
        "width=8",
        "--set",
        "gammas=1,0.5",
    ]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, TESTS, *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (record,), damaged = Store(tmp_path / "node").records()
    assert damaged == []
    here = perform(
        EXPERIMENT, Store(tmp_path / "here"), size="smoke", overrides={"width": 8}
    ).record
    assert record.address == here.address
    np.testing.assert_allclose(record.table.loss, here.table.loss, rtol=1e-13)
    claims = json.loads(record.path.with_suffix(".claims.json").read_text())
    assert [claim["acceptable"] for claim in claims] == [True, True, True]
    assert record.path.with_suffix(".png").read_bytes()[:4] == b"\x89PNG"


def test_it_flows_when_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "experiments", with_short_figures)
    words = ["small-one", "--size", "smoke", "--out", str(tmp_path / "node"), "--flow"]
    assert main(words) == 0
    (record,), _ = Store(tmp_path / "node").records()
    here = perform(EXPERIMENT, Store(tmp_path / "here"), size="smoke", flow=True).record
    assert record.address == here.address
    np.testing.assert_allclose(record.table.loss, here.table.loss, rtol=1e-13)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["smal-one"], "there is no experiment 'smal-one'"),
        (["small-one", "--set", "widht=3"], "Did you mean 'width'?"),
        (["small-one", "--set", "width"], "`--set` takes field=value, got 'width'"),
        (["small-one", "--device", "tpu:9"], "`device` must be one of this machine's devices"),
        (["small-one", "--seed", str(2**63)], "must be a whole number of at most 63 bits"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(
    words, sentence, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(registry, "experiments", with_short_figures)
    assert main([*words, "--size", "smoke", "--out", str(tmp_path / "node")]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not (tmp_path / "node").exists()


def test_a_folder_that_is_a_file_is_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(registry, "experiments", with_short_figures)
    (tmp_path / "file").touch()
    assert main(["small-one", "--size", "smoke", "--out", str(tmp_path / "file")]) == 1
    assert "Choose another folder with --out." in capsys.readouterr().err
