"""The doctor finds this installation well, and finds what is wrong when something is."""

import json
import pathlib
import re

import pytest

from wideflow import doctor
from wideflow.cli import main
from wideflow.doctor import machine, routes


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    return doctor.examine(tmp_path_factory.mktemp("runs"))


def test_this_installation_is_well(findings):
    assert [finding for finding in findings if finding.verdict == "wrong"] == []
    told = {finding.what for finding in findings}
    assert {
        "versions",
        "devices",
        "precision",
        "data files",
        "folder of runs",
        "cache folder",
        "compilation cache",
    } <= told
    assert sum(what.startswith("self-test") for what in told) == len(routes.ROUTES) == 6


def test_optional_parts_are_those_that_the_package_imports():
    """Each optional part is one that the sources import, so that the doctor misses nothing that
    nobody uses.
    """
    names = {"scikit-learn": "sklearn"}
    sources = "".join(
        path.read_text() for path in pathlib.Path(doctor.__file__).parents[1].rglob("*.py")
    )
    for package in machine.OPTIONAL:
        name = names.get(package, package)
        assert re.search(rf"(?:import|from) {name}\b|find_spec\(.{name}.\)", sources), package


def test_a_wrong_number_is_found(monkeypatch):
    right = routes.tangent_gram
    monkeypatch.setattr(routes, "tangent_gram", lambda *args: right(*args) * (1 + 1e-9))
    monkeypatch.setattr(routes, "ROUTES", {"gram": routes.structured_gram_against_autodiff})
    (finding,) = routes.compare_routes()
    assert finding.verdict == "wrong"


def test_a_route_that_breaks_is_reported_and_does_not_break_the_doctor(monkeypatch):
    def broken(key):
        raise ArithmeticError("no")

    monkeypatch.setattr(routes, "ROUTES", {"broken": broken})
    (finding,) = routes.compare_routes()
    assert (finding.verdict, finding.found) == ("wrong", "ArithmeticError: no")


def test_a_folder_that_cannot_be_written_to_is_found(tmp_path):
    (tmp_path / "file").write_text("in the way")
    findings = machine.look_over(tmp_path / "file")
    assert [f.what for f in findings if f.verdict == "wrong"] == ["folder of runs"]


def test_the_command_tells_all_as_json(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(
        routes, "ROUTES", {"closed form, quadrature": routes.closed_form_against_quadrature}
    )
    assert main(["doctor", "--out", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told[-1]["verdict"] == "well"
    assert main(["doctor", "--out", str(tmp_path)]) == 0
    assert "closed form" in capsys.readouterr().out
