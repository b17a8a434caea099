"""Every notebook runs from top to bottom in an empty namespace of a fresh kernel, and ends with the
numbers that theory asks for.
"""

import ast
import os
import pathlib
import subprocess
import sys

import nbformat
import pytest

ROOT = pathlib.Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def read(path):
    return nbformat.read(path, as_version=4)


def caron2023(ends):
    lazy, middle, rich = ends["drift"]
    assert 5 * lazy < middle < rich  # the dial
    assert ends["fits"]
    assert ends["LemmaD1"] == ["HOLDS"] * 3
    assert ends["Theorem41"] == "VACUOUS"  # at least 4.39e12 nodes on every dataset
    fixed, half, random = ends["random_part"]
    assert (
        fixed < 0.03 < 0.1 < half < random
    )  # Proposition 3.3: random at infinite width unless gamma = 1


def chen2022(ends):
    assert ends["ours_over_ntk"] > 5  # equation (15): sqrt(m) = 22.6 between the two bounds
    assert ends["MovementBound"] == ["HOLDS"] * 3
    assert ends["test_risk"][0] < ends["test_risk"][1]
    assert ends["Certificate"] == ["NOT_APPLICABLE", "HOLDS"]
    assert 0 < ends["certified_rate"] < ends["seen_rate"]


def li2020(ends):
    events = ends["events"]
    assert events["T1"] < events["T2"] < events["T3"]
    assert 10 < events["T1"] < 22  # T1 is about d = 16
    assert ends["loss_over_floor"] < 0.05 < ends["kernel_over_floor"]
    assert ends["directions"] == 16
    assert ends["FiniteConvergence"] == ends["Lottery"] == "HOLDS"
    assert ends["twice_d_over_floor"] < 0.05  # Figure 2 does not reproduce: m = 2d is not stuck


def ren2023(ends):
    assert ends["loss"] < 1e-3
    assert ends["slope"] == pytest.approx(-1, abs=0.1)
    assert ends["height"] == pytest.approx(1, abs=0.05)
    assert ends["alpha_over_limit"] == pytest.approx(1, abs=0.06)
    assert ends["Lemma31"] == ends["Lemma43"] == "HOLDS"
    assert ends["power_of_width"] == pytest.approx(-0.5, abs=0.1)


def allenzhu2018(ends):
    assert ends["max_over_min"] < 1.35
    assert ends["WidthIndependence"] == "HOLDS"
    assert ends["sign_slope"] == pytest.approx(-0.5, abs=0.15)
    assert ends["coupling_slope"] < -0.4
    assert ends["representation_error"] < 1e-4
    assert ends["three_layer_error"] < 0.25


def online_learning(ends):
    assert ends["status"] == "done"
    one, two = ends["escape_steps"]
    assert one == pytest.approx(two, rel=0.1)  # exponential growth: equal factors cost equal times
    # 16 seeds at four times: 1/sqrt(30) each, and d^(-1/2) = 0.07 that the linear equation leaves
    # out
    assert ends["spread_over_theory"] == pytest.approx(1, abs=3 / 30**0.5)
    assert ends["last_error"] < 1e-3 < 0.1 < ends["level"]
    assert ends["exponents"] == [1, 2, 3]
    assert ends["leaps"] == [1, 3]


ENDS = {
    f.__name__: f for f in (caron2023, chen2022, li2020, ren2023, allenzhu2018, online_learning)
}


def ends(cells):
    """What the last cell shows: the numbers that the notebook ends with."""
    return ast.literal_eval(cells[-1].outputs[-1].data["text/plain"])


def test_there_is_one_for_every_paper_and_for_online_learning():
    assert {path.stem for path in NOTEBOOKS} == set(ENDS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_with_its_outputs_and_asks_a_question(path):
    cells = read(path).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert 10 <= len(cells) <= 30
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert any("image/png" in output.get("data", {}) for cell in code for output in cell.outputs)
    assert path.stat().st_size < 400_000
    assert any("Your turn" in cell.source for cell in cells)
    assert any("# change me" in cell.source for cell in code)


@pytest.fixture(scope="module")
def executed():
    """In a process of its own; what is found in build/notebooks was run with these very sources."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "notebooks.py", *NOTEBOOKS],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONSTARTUP": str(ROOT / "tests" / "one_context.py")},
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return dict(zip(NOTEBOOKS, map(read, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_ends_as_theory_says(path, executed):
    cells = [cell for cell in executed[path].cells if cell.cell_type == "code"]
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs)
    assert not any(output.get("name") == "stderr" for cell in cells for output in cell.outputs)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    ENDS[path.stem](ends(cells))
    stored = [cell for cell in read(path).cells if cell.cell_type == "code"]
    ENDS[path.stem](ends(stored))  # what a reader sees without running it
    assert ends(stored).keys() == ends(cells).keys()
