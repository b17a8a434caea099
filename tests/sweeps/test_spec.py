"""A description is checked before anything runs: every mistake is named with its line."""

import pytest

from wideflow.runs import Store
from wideflow.runs.sweeps import SpecError, expand, read_spec, survey

GOOD = """\
experiment: train
size: smoke
set: {steps: 20}
grid:
  width: [16, 32]
  scaling: [ntk, "zipf:0.5,0.7"]
zip:
  rate: [0.1, 0.2, 0.3]
  noise: [0.0, 0.1, 0.2]
list:
  - {activation: relu}
  - {activation: erf, deviation: 1.5}
seeds: [0, 7]
"""


def written(tmp_path, text):
    path = tmp_path / "my sweep.yaml"
    path.write_text(text)
    return path


def test_axes_are_multiplied_and_zipped_ones_go_together(tmp_path):
    spec = read_spec(written(tmp_path, GOOD))
    plan = expand(spec)
    assert spec.name == "my-sweep"
    assert [axis.name for axis in spec.axes] == ["width", "scaling", "rate_noise", "point"]
    assert len(plan.runs) == spec.count == 2 * 2 * 3 * 2 * 2
    assert len(plan.by_address) == len(plan.runs)
    pairs = {(run.settings["rate"], run.settings["noise"]) for run in plan.runs}
    assert pairs == {(0.1, 0.0), (0.2, 0.1), (0.3, 0.2)}
    assert {run.settings["deviation"] for run in plan.runs} == {1.0, 1.5}
    assert {run.seed for run in plan.runs} == {0, 7}
    # rate, noise and deviation are real numbers: one program for each width, scaling and activation
    assert len(plan.groups) == 2 * 2 * 2


def test_a_dictionary_describes_the_same(tmp_path):
    text = "experiment: train\nsize: smoke\ngrid: {width: [8, 16]}\nseeds: 2\n"
    by_file = expand(read_spec(written(tmp_path, text)))
    given = {"experiment": "train", "size": "smoke", "grid": {"width": [8, 16]}, "seeds": 2}
    assert [run.address for run in expand(read_spec(given)).runs] == [
        run.address for run in by_file.runs
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("  width: [16, 32]", "  widht: [16, 32]", 5, "no setting 'widht'. Did you mean 'width'?"),
        ("[16, 32]", "[16, many]", 5, "`width`"),
        (
            "[16, 32]",
            "\n    - 16\n    - -4",
            7,
            "`width` must be a whole number of at least 1, got -4",
        ),
        ("[16, 32]", "16", 5, "must be a list"),
        ("[16, 32]", "[]", 5, "at least one value"),
        ("[ntk,", "[nkt,", 6, "'nkt'"),
        ("noise: [0.0, 0.1, 0.2]", "noise: [0.0]", 7, "`rate` has 3, `noise` has 1"),
        ("noise: [", "width: [", 9, "`width` is set twice, first on line 5"),
        ("{activation: relu}", "relu", 11, "a point of `list`"),
        ("seeds: [0, 7]", "seeds: [7, 7]", 13, "`seeds`"),
        ("seeds: [0, 7]", "seeds: 0", 13, "`seeds`"),
        ("size: smoke", "size: smok", 2, "'smok'. Did you mean 'smoke'?"),
        ("experiment: train", "experiment: tarin", 1, "no experiment 'tarin'"),
        ("seeds: [0, 7]", "seed: 3", 13, "`seed` is not a part of a sweep. Did you mean 'seeds'?"),
        ("seeds: [0, 7]", "size: smoke", 13, "`size` appears twice, first on line 2"),
        ("seeds: [0, 7]", "seeds: [0, 7", 14, "not YAML"),
        ("seeds: [0, 7]", "name: ../up", 13, "`name`"),
        ("seeds: [0, 7]", "plot: {why: loss}", 13, "`plot` takes y, x, hue, at"),
        ("set: {steps: 20}", "set: {rate: -1}", 8, "`rate` is set twice, first on line 3"),
        ("set: {steps: 20}", "set: {loss: hinge}", 3, "`loss`"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path, old, new, line, words):
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(SpecError) as caught:
        expand(read_spec(path))
    assert f"{path}, line {line}: " in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\xff\xfe\x00broken", "not a text file"),
        (b"\x00\x01", "not YAML"),
        (b"- 1\n- 2\n", "line 1: a sweep is"),
        (b"grid: {width: [1]}\n", "`experiment` must be the name of one"),
        (b"a: &x [*x]\n", "contains itself"),
        (b"experiment: train\ngrid: {width: [1], 2: [3]}\n", "names must be text"),
    ],
)
def test_files_that_are_no_description(tmp_path, content, words):
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(SpecError, match=r"bad\.yaml") as caught:
        expand(read_spec(path))
    assert words in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SpecError, match=r"there is no file .*none\.yaml"):
        read_spec(tmp_path / "none.yaml")


def test_an_empty_folder_has_nothing(tmp_path):
    plan = expand(read_spec({"experiment": "train", "size": "smoke"}))
    seen = survey(plan, Store(tmp_path / "nowhere"))
    assert (seen.done, seen.running, seen.damaged) == (frozenset(), frozenset(), ())
    assert not (tmp_path / "nowhere").exists()
