"""The shell: what it prints, its exit codes, and one sentence for everything that can go wrong."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
from compile_log import compilations
from small_experiment import EXPERIMENT, FAILING, with_short_figures

import wideflow.runs.files
from wideflow.cli import app, main
from wideflow.experiments import registry
from wideflow.runs import Store
from wideflow.shell.lab import _query

COMMANDS = sorted(command.name or command.callback.__name__ for command in app.registered_commands)


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    """The registry holds the small experiments; the folder of work is empty."""
    monkeypatch.setattr(registry, "experiments", with_short_figures)
    monkeypatch.chdir(tmp_path)


def test_a_run_ends_in_claims_and_files(capsys, tmp_path):
    assert main(["run", "small-one", "--size", "smoke"]) == 0
    said = capsys.readouterr().out
    assert "the loss falls" in said
    assert "1 does not reproduce (declared), 2 hold" in said
    record = Store(tmp_path / "runs").records()[0][0]
    for ending in (".nc", ".png", ".pdf"):
        assert record.path.with_suffix(ending).is_file()
    assert main(["run", "small-one", "--size", "smoke"]) == 0
    assert "Found in the folder" in capsys.readouterr().out


def test_a_second_run_in_the_process_finds_the_programs_of_the_first():
    words = ["run", "small-one", "--size", "smoke", "--seed"]
    assert main([*words, "1"]) == 0
    with compilations() as names:
        assert main([*words, "2"]) == 0
    assert "_many_steps" not in names
    assert "_observe" not in names


def test_a_failed_claim_is_exit_code_1_and_stands_first(capsys):
    assert main(["run", "small-failing", "--size", "smoke"]) == 1
    said = capsys.readouterr().out
    assert said.index("two is three") < said.index("fine")


def test_json_is_json_and_nothing_else(capsys):
    words = [
        "run",
        "small-one",
        "--size",
        "smoke",
        "--set",
        "width=8",
        "--seeds",
        "1",
        "--seed",
        "5",
        "--precision",
        "float32",
        "--json",
    ]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["settings"]["width"] == 8
    assert told["settings"]["seeds"] == 1
    assert told["settings"]["precision"] == "float32"
    assert told["seed"] == 5
    assert told["changed"] == ["width", "seeds", "precision"]
    assert [claim["verdict"] for claim in told["claims"]] == [
        "holds",
        "does not reproduce (declared)",
        "holds",
    ]
    assert all(pathlib.Path(path).is_file() for path in (told["file"], *told["figures"]))


def test_list(capsys):
    assert main(["list"]) == 0
    said = capsys.readouterr().out
    assert said.index("small-failing") < said.index("more  A network") < said.index("tour-li2020")
    assert main(["list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told] == ["small-one", "small-failing", *registry.others()]
    assert told[0]["settings"]["smoke"]["steps"] == 40


def test_list_is_one_line_an_experiment_and_fits_80_columns(capsys, monkeypatch):
    monkeypatch.undo()  # the real registry
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["list"]) == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    names = [*registry.experiments(), *registry.others()]
    assert max(map(len, lines)) <= 80
    starts = [line.split()[0] for line in lines if line.startswith("  ")]
    assert starts == names
    assert (
        len(lines) <= len(names) + len(registry.papers()) + 2
    )  # headings and the remark at the foot


def test_list_filters_by_words(capsys):
    assert main(["list", "tour", "LI2020"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  tour-li2020  Tour: the plateau and the lottery that ends it"
    ]
    assert main(["list", "tour", "li2020", "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == ["tour-li2020"]
    assert main(["list", "no such thing"]) == 2
    assert "no experiment matches 'no such thing'" in capsys.readouterr().err


def test_a_misspelt_beginning_names_the_paper(capsys):
    assert main(["run", "carn"]) == 2
    assert "Did you mean one of caron2023: `wideflow list caron2023`?" in capsys.readouterr().err


def test_list_runs_names_what_is_damaged(capsys, tmp_path):
    assert main(["list", "--runs", "--out", "o"]) == 0
    assert "No runs in o" in capsys.readouterr().out
    main(["run", "small-one", "--size", "smoke", "--out", "o"])
    (tmp_path / "o" / "bad.nc").write_bytes(b"\x89HDF\r\n\x1a\n cut short")
    capsys.readouterr()
    assert main(["list", "--runs", "--out", "o"]) == 0
    said = capsys.readouterr().out
    assert "small-one" in said.replace("\n", "")
    assert "bad.nc" in said
    assert main(["list", "--runs", "--out", "o", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["experiment"] for one in told["runs"]] == ["small-one"]
    assert "bad.nc" in told["damaged"][0]["file"]


def test_reproduce_runs_all_and_reports_even_what_fails(capsys, tmp_path):
    assert main(["reproduce", "caron2023", "--size", "smoke", "--out", "o"]) == 1
    said = capsys.readouterr().out
    assert "these did not: small-failing" in said.replace("\n", " ")
    page = (tmp_path / "o" / "report.html").read_text()
    assert "two is three" in page
    assert main(["reproduce", "li2020", "--size", "smoke", "--out", "o"]) == 0  # none there


def test_report_writes_where_it_is_told(capsys, tmp_path):
    main(["run", "small-one", "--size", "smoke", "--out", "o"])
    capsys.readouterr()
    assert main(["report", "--out", "o", "--file", "elsewhere/page.html", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"report": "elsewhere/page.html"}
    assert (tmp_path / "elsewhere" / "page.html").is_file()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["rnu"], "No such command 'rnu'. Did you mean 'run'?"),
        (["run"], "Missing argument"),
        (["run", "small-oen"], "there is no experiment 'small-oen'. Did you mean 'small-one'?"),
        (["run", "small-one", "--size", "big"], "'big' is not one of 'smoke', 'default', 'paper'"),
        (
            ["run", "small-one", "--set", "widht=3"],
            "no setting 'widht'. Did you mean 'width'? It has width, rate",
        ),
        (["run", "small-one", "--set", "width=x"], "setting `width` of `small-one`"),
        (["run", "small-one", "--set", "rate=-1"], "`rate` must be positive, got -1"),
        (["run", "small-one", "--set", "nothing"], "takes field=value"),
        (["run", "small-one", "--seeds", "0"], "--seeds"),
        (
            ["run", "small-one", "--seeds", "10000000000"],
            "`wideflow run --help` shows how to use it.",
        ),
        (["run", "small-one", "--seed", "9" * 23], "'--seed'"),
        (["run", "small-one", "--set", "width=3", "--set", "width=4"], "names 'width' twice"),
        (["run", "small-one", "--device", ""], "`device` must be one of this machine's"),
        (["certify", "."], "is a folder; name the CSV file in it."),
        (["sweep", "."], "is a folder; name the YAML file in it."),
        (["run", "small-one", "--precision", "float16"], "float16"),
        (
            ["run", "small-one", "--device", "abacus"],
            "one of this machine's devices, cpu:0, got 'abacus'",
        ),
        (["report", "--out", "nowhere"], "the folder 'nowhere' does not exist"),
        (["reproduce", "caron2032"], "Did you mean 'caron2023'?"),
        (
            ["list", "--nonsense"],
            "No such option: --nonsense. `wideflow list --help` shows how to use it.",
        ),
        (
            ["run", "small-one", "--width", "3"],
            "No such option: --width. Settings are changed by `--set FIELD=VALUE`. "
            "`wideflow run --help` shows how to use it.",
        ),
    ],
)
def test_wrong_words_are_one_sentence_and_exit_code_2(capsys, words, sentence):
    assert main(words) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.startswith("wideflow: ")
    assert told.count("\n") == 1
    assert "Traceback" not in told


def test_debug_shows_the_traceback(capsys):
    assert main(["run", "nothing-like-it", "--debug"]) == 2
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert told.splitlines()[-1].startswith("wideflow: there is no experiment")


def test_a_folder_that_cannot_be_written_to(capsys, tmp_path):
    (tmp_path / "file").write_text("in the way")
    main(["run", "small-one", "--size", "smoke", "--out", "o"])
    capsys.readouterr()
    for words in (
        ["run", "small-one", "--size", "smoke", "--out", "file/below"],
        ["report", "--out", "o", "--file", "file/below/page.html"],
    ):
        assert main(words) == 1
        told = capsys.readouterr().err
        assert "cannot write to 'file/below'" in told
        assert "--out" in told
        assert told.count("\n") == 1


def test_a_full_disk(capsys, tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(wideflow.runs.files.os, "fsync", full)
    assert main(["run", "small-one", "--size", "smoke"]) == 1
    told = capsys.readouterr().err
    assert "the disk is full" in told
    assert "Traceback" not in told
    assert list((tmp_path / "runs").glob("*.nc")) == []
    assert list((tmp_path / "runs").rglob("*.tmp")) == []
    monkeypatch.undo()


def test_an_error_inside_an_experiment_is_one_sentence(capsys, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("division by zero")

    bad = type(EXPERIMENT)(**{**vars(EXPERIMENT), "run": broken})
    monkeypatch.setattr(
        registry, "experiments", lambda: {"small-one": bad, "small-failing": FAILING}
    )
    assert main(["run", "small-one", "--size", "smoke"]) == 1
    told = capsys.readouterr().err
    assert told == "wideflow: small-one stopped: ZeroDivisionError: division by zero\n"


def test_interrupted_from_inside_says_that_nothing_was_kept(capsys, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    slow = type(EXPERIMENT)(**{**vars(EXPERIMENT), "run": stopped})
    monkeypatch.setattr(registry, "experiments", lambda: {"small-one": slow})
    assert main(["run", "small-one", "--size", "smoke"]) == 130
    assert "interrupted; it had no checkpoint yet" in capsys.readouterr().err


SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs inherit an ignored Ctrl-C
sys.path.insert(0, sys.argv.pop(1))
import small_experiment
from wideflow.experiments import registry
from wideflow.runs import store
registry.experiments = small_experiment.with_short_figures
store.Store.__init__.__defaults__ = (0.0,)
from wideflow.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_ctrl_c_keeps_the_checkpoint_and_says_how_to_go_on(tmp_path):
    words = [
        "run",
        "small-one",
        "--size",
        "smoke",
        "--set",
        "steps=200000000",
        "--set",
        "every=20000",
    ]
    here = str(pathlib.Path(__file__).parent)
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, here, *words, "--out", str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"WIDEFLOW_CACHE": str(tmp_path / "cache")},
    )
    store, until = Store(tmp_path), time.monotonic() + 120
    while not store.unfinished() and time.monotonic() < until and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "its last checkpoint is saved" in told
    assert "the same command continues" in told
    assert "Traceback" not in told
    assert len(store.unfinished()) == 1


def test_bench_outside_a_checkout_says_where_it_is(capsys, monkeypatch, tmp_path):
    import wideflow.cli

    monkeypatch.setattr(wideflow.cli, "__file__", str(tmp_path / "site" / "wideflow" / "cli.py"))
    assert main(["bench"]) == 1
    assert "part of the repository" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_every_option_is_explained(command, capsys):
    assert main([command, "--help"]) == 0
    assert f"wideflow {command}" in capsys.readouterr().out
    import typer.main

    found = typer.main.get_command(app).commands[command]
    assert found.help
    for parameter in found.params:
        shown = not getattr(parameter, "hidden", False)
        assert getattr(parameter, "help", None) or not shown, f"{command} {parameter.name}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_stands_in_the_docs(command):
    repository = pathlib.Path(__file__).parents[1]
    pages = [repository / "README.md", *(repository / "docs").rglob("*.md")]
    assert any(f"wideflow {command}" in page.read_text() for page in pages)


def test_no_words_show_the_help(capsys):
    assert main([]) == 0
    said = capsys.readouterr().out
    assert all(command in said for command in COMMANDS)


def test_python_m_wideflow_is_the_same():
    done = subprocess.run(
        [sys.executable, "-m", "wideflow", "list", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "caron2023-figure1" in [one["name"] for one in json.loads(done.stdout)]


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("zzz", "`state` must be the folder of a phase plane"),
        ("scene=free&widht=20", "Did you mean 'width'?"),
        ("scene=free&width=many", "`width` must be a whole number, got 'many'"),
        ("scene=free&width=20&width=30", "names a setting twice"),
        ("scene=free&width", "`state` must be the folder of a phase plane"),
        ("scene=tour-li2021", "there is no scene 'tour-li2021'"),
        ("scene=plane", "this lab was started without one"),
    ],
)
def test_the_lab_refuses_a_damaged_state_before_it_starts(state, sentence, capsys):
    assert main(["lab", "--no-open", state]) == 2
    assert sentence in capsys.readouterr().err


def test_an_address_of_an_earlier_lab_opens_without_its_token():
    earlier = "http://127.0.0.1:4000/?token=old&scene=free&width=20"
    assert _query(earlier) == "scene=free&width=20"


def test_a_report_names_what_it_leaves_out(capsys, tmp_path):
    """A folder in which nothing can be read is a failure; one bad file beside good ones is not."""
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "foreign.nc").write_text("no netCDF")
    assert main(["report", "--out", "o"]) == 1
    assert "foreign.nc" in capsys.readouterr().err
    assert main(["run", "small-one", "--size", "smoke", "--out", "o"]) == 0
    assert main(["report", "--out", "o"]) == 0
    assert "foreign.nc" in capsys.readouterr().err
    assert main(["report", "--out", "o", "--file", "o"]) == 2
    assert "`--file` must name a file, got the folder o" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--set", "noise=-1"], "`noise` must be finite and not negative, got -1"),
        (["--set", "stop_below=nan"], "`stop_below` must be finite and not negative, got nan"),
        (["--set", "target=y"], "`target` is for tables, got 'y' with `data` = 'sphere-sines'"),
        (["--set", "seeds=2000000"], "`seeds` must be at most 1000000, got 2000000"),
        (["--set", "data=nofile.csv"], "there is no file nofile.csv"),
        (["--set", "width=3", "--set", "symmetric=yes"], "`width` must be even"),
        (["--set", "dynamics=sgd", "--flow"], "run it without --flow"),
        (["--device", "cpu:-1"], "`device` must be one of this machine's devices"),
    ],
)
def test_values_that_a_run_refuses_are_wrong_usage(words, sentence, capsys):
    assert main(["run", "train", "--size", "smoke", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_list_runs_of_a_file_is_wrong_usage(capsys, tmp_path):
    (tmp_path / "file").touch()
    assert main(["list", "--runs", "--out", "file"]) == 2
    assert "`--out` must be a folder, got the file file" in capsys.readouterr().err
