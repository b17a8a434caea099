"""States as addresses: what is not offered, out of bounds or unknown is refused with a sentence."""

import dataclasses
import re
import shlex
from types import SimpleNamespace
from urllib.parse import parse_qsl

import jax
import numpy as np
import pytest

from wideflow.experiments.training import build
from wideflow.lab.cards import as_html
from wideflow.lab.fields import FIELDS
from wideflow.lab.links import START, place, saved_link
from wideflow.lab.scenes import FREE, scenes
from wideflow.lab.uploads import MOST_FILES, Uploads, file_name
from wideflow.runs.overrides import parse
from wideflow.runs.runner import settings_of
from wideflow.training.session import Session


@pytest.fixture
def uploads():
    made = Uploads()
    yield made
    made.end()


def test_a_link_leads_back_to_its_place(uploads):
    asked = {
        "scene": "free",
        "data": "wave-2d",
        "width": "64",
        "scaling": "mean-field",
        "seed": "12",
    }
    first = place(asked, uploads)
    again = place(dict(parse_qsl(first.link())), uploads)
    assert again == first
    assert first.choices["width"] == 64
    assert set(first.choices) == set(START) - {"features", "rows", "time"}  # what matters here
    flow = place({**asked, "data": "sphere-sines", "dynamics": "flow"}, uploads)
    assert set(START) - set(flow.choices) == {"rows", "rate", "steps", "frequency", "amplitude"}


@pytest.mark.parametrize(
    "asked",
    [
        {"data": "wave-2d", "scaling": "zipf:0.3,0.6", "dynamics": "flow", "time": "7"},
        {"depth": "3", "scaling": "maximal-update", "dynamics": "adam"},
        {"scene": "tour-li2020"},
    ],
)
def test_a_saved_run_opens_its_own_place(uploads, asked):
    here = place({**asked, "seed": "6"}, uploads)
    settings = dataclasses.asdict(here.scene.settings(here.changes))
    record = SimpleNamespace(
        experiment=here.scene.experiment.name, settings=settings, seed=6, command="..."
    )
    assert place(dict(parse_qsl(saved_link(record))), uploads) == here


@pytest.mark.parametrize(
    ("experiment", "data", "said"),
    [
        ("caron2023-figure1", "", "not a scene of the lab"),
        ("train", "mine.csv", "upload that file"),
    ],
)
def test_a_saved_run_that_the_page_cannot_show_is_refused(experiment, data, said):
    settings = {"data": data, "dynamics": "flow"}
    record = SimpleNamespace(experiment=experiment, settings=settings, seed=0, command="...")
    with pytest.raises(ValueError, match=said):
        saved_link(record)


def test_a_table_that_is_not_on_this_machine_is_named(uploads, tmp_path, monkeypatch):
    monkeypatch.setattr("wideflow.data.files.cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setenv("WIDEFLOW_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"concrete.csv into a folder .* WIDEFLOW_DATA"):
        place({"data": "uci:concrete"}, uploads)
    (tmp_path / "concrete.csv").touch()
    assert place({"data": "uci:concrete"}, uploads).choices["data"] == "uci:concrete"


def test_the_shell_command_asks_for_the_same_settings(uploads):
    here = place({"width": "64", "scaling": "zipf:0.3,0.6", "seed": "5"}, uploads)
    words = shlex.split(here.command())
    assert words[:3] == ["wideflow", "run", "train"]
    given = parse([words[i + 1] for i, word in enumerate(words) if word == "--set"])
    asked = settings_of(here.scene.experiment, "default", given)
    assert asked == here.scene.settings(here.changes)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"scene": "nowhere"}, "there is no scene 'nowhere'"),
        ({"seed": "-1"}, "`seed` must lie in"),
        ({"seed": "x"}, "`seed` must be a whole number"),
        ({"width": "1e9"}, "`width` must be a whole number"),
        ({"width": "100000"}, "`width` must lie in"),
        ({"steps": "99999999", "dynamics": "descent"}, "`steps` must lie in"),
        ({"noise": "nan"}, "`noise` must lie in"),
        ({"activation": "eval"}, "`activation` must be"),
        ({"dynamics": "sgd"}, "`dynamics` must be"),
        ({"scaling": "zipf:9,9"}, "scaling"),
        ({"data": "/etc/passwd.csv"}, "`data` must be"),
        ({"data": "upload:0123"}, "no longer exists"),
        ({"target": "x" * 101, "data": "upload:1"}, "at most 100 characters"),
    ],
)
def test_wrong_states_are_explained(uploads, asked, reason):
    with pytest.raises(ValueError, match=re.escape(reason)):
        place(asked, uploads)


def test_what_is_not_offered_is_not_set(uploads):
    here = place(
        {"precision": "float32", "devices": "8", "record": "risk", "prepared": "False"}, uploads
    )
    settings = here.scene.settings(here.changes)
    assert (settings.precision, settings.devices, settings.record) == ("float64", 0, ("all",))
    assert set(here.choices) <= set(FIELDS)


def test_uploads_are_kept_under_chosen_names_and_the_oldest_goes(uploads):
    first = uploads.add(b"a,b\n1,2\n3,4\n", "../../etc/passwd")
    assert first.path.parent == uploads.folder
    assert first.name == "passwd.csv"
    assert uploads.folder.stat().st_mode & 0o077 == 0  # for the user alone
    for _ in range(MOST_FILES):
        uploads.add(b"a,b\n1,2\n3,4\n", "x.csv")
    assert not first.path.exists()
    assert len(list(uploads.folder.iterdir())) == MOST_FILES
    with pytest.raises(ValueError, match="no longer exists"):
        uploads.path(first.code)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a;b\n1;2\n3;4\n", "my.csv has one column, .* Save it with commas between the columns"),
        (
            b"a,b\nx,1\ny,2\n",
            "'x' in line 2. Encode those columns as numbers or take them out of the file",
        ),
        (b"a,b\n1,2\n", "my.csv has only one row"),
    ],
)
def test_a_defective_table_is_explained_by_what_the_page_can_do(uploads, content, said):
    with pytest.raises(ValueError, match=said) as told:
        uploads.add(content, "my.csv")
    assert "--" not in str(told.value)  # no option of the shell
    assert list(uploads.folder.iterdir()) == []


def test_what_fails_later_names_the_file_as_the_user_does(uploads):
    own = uploads.add(b"a,b\n1,1\n2,1\n3,1\n", "mine.csv")
    here = place({"data": own.code, "target": "b"}, uploads)
    with pytest.raises(ValueError, match="is constant") as told:
        build(here.scene.settings(here.changes), jax.random.key(0))
    assert own.path.stem in str(told.value)
    said = own.named(str(told.value))
    assert "the target of mine.csv is constant" in said
    assert own.path.stem not in said


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("a b.csv", "a_b.csv"),
        ("C:\\x\\y.csv", "y.csv"),
        ("'; rm -rf /", "data.csv"),
        ("..", "data.csv"),
        ("ü.csv", "csv.csv"),
    ],
)
def test_names_of_files_are_plain(given, name):
    assert file_name(given) == name


def test_cards_spell_out_tags():
    made = as_html("A <script>\n\n- one\n- **two**")
    assert made == "<p>A &lt;script&gt;</p><ul><li>one</li><li><strong>two</strong></li></ul>"


def test_every_scene_has_settings_and_a_command(uploads):
    for name in scenes():
        here = place({"scene": name, "seed": "2"}, uploads)
        assert f"wideflow run {here.scene.experiment.name} " in here.command()
        assert ("perform" in here.lines()) == (name != FREE)


@pytest.mark.parametrize(
    "asked",
    [
        {"dynamics": "descent", "rate": "0.5", "steps": "40"},
        {"dynamics": "flow", "time": "3"},
        {
            "dynamics": "adam",
            "rate": "0.01",
            "steps": "40",
            "depth": "2",
            "scaling": "maximal-update",
        },
    ],
    ids=lambda asked: asked["dynamics"],
)
def test_the_python_lines_repeat_the_run_bit_for_bit(uploads, asked):
    here = place({**asked, "samples": "6", "width": "8", "seed": "5"}, uploads)
    names: dict = {}
    exec(here.lines(), names)
    ours = here.scene.settings(here.changes)
    fewer = dataclasses.replace(ours, record=("kernel_change", "linearisation_gap", "test_risk"))
    table = here.scene.experiment.run(fewer, jax.random.key(5), Session())
    repeated = names["run"].table
    for name in ("loss", "kernel_change", "linearisation_gap", "test_risk", "time"):
        np.testing.assert_array_equal(repeated[name].values, table[name].values)
