"""Every registered experiment: its smoke size runs to its end, its claims are acceptable, its
figure draws.

The claims must come out the same from the table that was saved and read back: a saved file is
enough.
"""

import ast
import dataclasses
import importlib
import inspect
import pathlib
import re

import pytest

from wideflow.experiments.base import SIZES
from wideflow.experiments.registry import experiments
from wideflow.papers import papers
from wideflow.report.interactive import plots
from wideflow.report.static import build
from wideflow.runs import Store, perform, read_record
from wideflow.runs.runner import judged

EXPERIMENTS = experiments()
# a count of one with its noun in the plural
ONE_OF_MANY = re.compile(r"(?<![\w.,/])1 (seeds|draws|runs|samples|images|epochs|networks|rows)\b")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_smoke_size_runs_is_judged_and_drawn(name, request, tmp_path):
    experiment = EXPERIMENTS[name]
    if experiment.needs_data:
        request.getfixturevalue("data_folder")
    seen = []
    record = perform(
        experiment, Store(tmp_path), size="smoke", progress=lambda *told: seen.append(told)
    ).record
    assert [c for c in record.claims if not c.ok] == []
    assert all(0 <= done <= total * (1 + 1e-9) for done, total, _ in seen)

    again = read_record(record.path)
    large_enough = experiment.is_large_enough("smoke")
    repeated = [repr(judged(claim, large_enough)) for claim in experiment.claims(again.table)]
    assert repeated == list(map(repr, record.claims))

    spec = experiment.draw(again.table)
    words = [spec.title, spec.caption, *(claim.text for claim in record.claims)]
    assert not ONE_OF_MANY.search(" ".join(words))
    figure = build(spec)
    figure.draw_without_rendering()
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    for box in (legend.get_window_extent() for legend in legends):
        assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes), (
            "a legend lies on a panel"
        )
    assert len(plots(spec, name)) == len(spec.panels)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_it_declares_itself_properly(name):
    experiment = EXPERIMENTS[name]
    assert name in papers()[experiment.paper].experiments  # a `Paper` checks the names' beginning
    assert experiment.title
    assert experiment.figure
    settings = experiment.settings
    assert tuple(settings) == SIZES
    assert all(
        dataclasses.is_dataclass(s) and type(s).__dataclass_params__.frozen
        for s in settings.values()
    )
    assert "seeds" in {field.name for field in dataclasses.fields(settings["smoke"])}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_setting_is_used(name):
    """A field that no code of the paper's folder reads, outside its own checks, is a flag that does
    nothing.
    """
    kind = type(EXPERIMENTS[name].settings["smoke"])
    folder = pathlib.Path(inspect.getfile(kind)).parent
    read = set()
    for path in folder.glob("*.py"):
        tree = ast.parse(path.read_text())
        checks = {
            inner
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.name == "__post_init__"
            for inner in ast.walk(node)
        }
        read |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n not in checks}
    unused = {field.name for field in dataclasses.fields(kind)} - read
    assert unused == set()


@pytest.mark.parametrize("paper", papers())
def test_every_experiment_module_is_registered(paper):
    folder = importlib.import_module(f"wideflow.papers.{paper}.experiments")
    registered = papers()[paper].experiments
    for path in pathlib.Path(folder.__file__).parent.glob("*.py"):
        if "EXPERIMENT = Experiment(" in path.read_text():
            assert path.stem in registered.values(), f"{path.name} is not in PAPER of {paper}"
    for name in registered:
        assert papers()[paper].experiment(name).name == name
