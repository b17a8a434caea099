"""Experiments of other packages: the example package of the guides, seen through its entry point as
if it were installed.
"""

import json
import pathlib
import sys

import pytest

from wideflow.cli import main
from wideflow.experiments import registry
from wideflow.experiments.installed import GROUP, declared
from wideflow.runs import Store

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "diagonal"


def forget() -> None:
    registry.experiments.cache_clear()
    declared.cache_clear()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Gives a function that declares entry points: what an installer leaves behind, a `.dist-info`
    on the path.
    """
    monkeypatch.syspath_prepend(str(EXAMPLE))
    forget()

    def declare(text: str) -> None:
        folder = tmp_path / "diagonal_network-0.1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: diagonal-network\nVersion: 0.1.0\n"
        )
        (folder / "entry_points.txt").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))

    yield declare
    forget()
    for name in [name for name in sys.modules if name.startswith("diagonal_network")]:
        del sys.modules[name]


def declared_in_the_example() -> str:
    import tomllib

    points = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    return f"[{GROUP}]\n" + "\n".join(f"{n} = {v}" for n, v in points[GROUP].items())


def test_it_is_listed_run_drawn_and_reported_like_our_own(installed, tmp_path, monkeypatch, capsys):
    installed(declared_in_the_example())
    monkeypatch.chdir(tmp_path)
    assert main(["list", "--json"]) == 0
    names = [told["name"] for told in json.loads(capsys.readouterr().out)]
    assert "woodworth2020-sparsity" in names
    assert main(["run", "woodworth2020-sparsity", "--size", "smoke"]) == 0
    record = Store(tmp_path / "runs").records()[0][0]
    assert record.path.with_suffix(".png").is_file()
    assert [claim.verdict for claim in record.claims] == ["holds"] * 5
    assert main(["report"]) == 0
    page = (tmp_path / "runs" / "report.html").read_text()
    assert "woodworth2020" in page
    assert "not an experiment of this version" not in page
    capsys.readouterr()


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("other-name = diagonal_network.experiment:EXPERIMENT", "give both the same name"),
        (
            "woodworth2020-sparsity = diagonal_network.experiment:Settings",
            "must be an `Experiment`",
        ),
        (
            "woodworth2020-sparsity = diagonal_network.nowhere:EXPERIMENT",
            "uninstall diagonal-network",
        ),
    ],
    ids=["another name", "no experiment", "no module"],
)
def test_a_broken_package_is_named(installed, capsys, declared, said):
    installed(f"[{GROUP}]\n{declared}\n")
    assert main(["list"]) != 0
    told = " ".join(capsys.readouterr().err.split())
    assert said in told
    assert "diagonal-network" in told


@pytest.mark.parametrize("name", ["train", "tour-li2020", "caron2023-figure1"])
@pytest.mark.parametrize(
    "command", [["list"], ["run", "train", "--size", "smoke"]], ids=["list", "run"]
)
def test_a_name_that_is_taken_is_refused_with_the_package(installed, capsys, name, command):
    installed(f"[{GROUP}]\n{name} = diagonal_network.experiment:EXPERIMENT\n")
    assert main(command) != 0
    told = " ".join(capsys.readouterr().err.split())
    assert f"{name!r} of diagonal-network" in told
    assert "same name as an experiment of wideflow itself" in told
    assert "Rename it in diagonal-network" in told


def test_two_packages_with_one_name_are_both_named(installed, tmp_path, monkeypatch, capsys):
    installed(declared_in_the_example())
    other = tmp_path / "second" / "also_diagonal-1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: also-diagonal\nVersion: 1\n")
    (other / "entry_points.txt").write_text(declared_in_the_example())
    monkeypatch.syspath_prepend(str(other.parent))
    assert main(["list"]) != 0
    told = " ".join(capsys.readouterr().err.split())
    assert "also-diagonal" in told
    assert "diagonal-network" in told.replace("also-diagonal", "")
