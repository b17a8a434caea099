"""`wideflow certify` on raw tables, sound and defective: a clear answer or a clear error each time."""

import json
import re

import numpy as np
import pytest

from wideflow.cli import main

SMALL = ["--width", "32"]


def table(path, rows=12, columns=("a", "b", "y"), change=None):
    random = np.random.default_rng(0)
    lines = [[f"{value:.6g}" for value in row] for row in random.normal(size=(rows, len(columns)))]
    if change:
        change(lines)
    path.write_text("\n".join(",".join(row) for row in [list(columns), *lines]) + "\n")
    return str(path)


def test_json_page_and_figure(tmp_path, capsys):
    code = main(
        [
            "certify",
            table(tmp_path / "t.csv"),
            "--target",
            "y",
            *SMALL,
            "--scaling",
            "zipf:0.5,0.7",
            "--json",
            "--out",
            str(tmp_path / "out"),
        ]
    )
    assert code == 0
    told = json.loads(capsys.readouterr().out)
    assert told["subject"]["width"] == 32
    assert told["subject"]["scaling"].startswith("Zipf(gamma=0.5, alpha=0.7")
    assert told["mean_gram"]["smallest"] > 0
    assert any("standardised" in note for note in told["notes"])
    page = (tmp_path / "out" / "certificate.html").read_text()
    for piece in ("Certificate of t", "Theorem 4.1", "Bokeh", "laziness"):
        assert piece in page
    markup = re.sub(r"(<script[^>]*>).*?</script>", r"\1", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)=\"https?://", markup)  # works from disk
    for name in ("certificate.png", "certificate.pdf", "certificate.json"):
        assert (tmp_path / "out" / name).stat().st_size > 1000


def test_tables_on_the_terminal(tmp_path, capsys):
    assert main(["certify", table(tmp_path / "t.csv", rows=5), *SMALL]) == 0
    out = capsys.readouterr().out
    for piece in ("kappa_n", "VACUOUS", "Do not apply here", "laziness index"):
        assert piece in out


def _text(rows):
    rows[3][0] = "blue"


def _missing(rows):
    rows[4][1] = ""


def _constant_target(rows):
    for row in rows:
        row[2] = "1"


def _constant_inputs(rows):
    for row in rows:
        row[0] = row[1] = "2"


@pytest.mark.parametrize(
    ("change", "words", "message"),
    [
        (_text, [], r"text where numbers are needed, in column 'a'.*'blue' in line 5"),
        (_missing, [], r"1 missing values, in column 'b'.*line 6"),
        (_constant_target, [], "target of t is constant"),
        (_constant_inputs, [], "every input column of t is constant"),
        (None, ["--target", "z"], "`target` 'z' is no column"),
        (None, ["--scaling", "zipf:2,0.5"], "`gamma` must lie in"),
        (None, ["--scaling", "zip"], "`scaling` must be"),
        (None, ["--activation", "rleu"], "rleu"),
        (None, ["--delta", "2"], "`delta`"),
        (None, ["--drop", "q"], "`drop` names columns"),
    ],
)
def test_defects_are_one_sentence_and_exit_code_2(tmp_path, capsys, change, words, message):
    assert main(["certify", table(tmp_path / "t.csv", change=change), *SMALL, *words]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert error.count("\n") == 1


def test_a_missing_file_is_named(tmp_path, capsys):
    table(tmp_path / "data.csv")
    assert main(["certify", str(tmp_path / "dta.csv")]) == 2
    assert "Did you mean 'data.csv'?" in capsys.readouterr().err


def test_duplicates_and_constant_columns_are_dealt_with_and_told(tmp_path, capsys):
    def change(rows):
        rows[1][:2] = rows[0][:2]
        for row in rows:
            row[1] = "7"

    assert main(["certify", table(tmp_path / "t.csv", change=change), *SMALL, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    notes = " ".join(told["notes"])
    assert "constant columns: b" in notes
    assert "merged 1 rows" in notes
    assert told["subject"]["samples"] == 11


def test_raw_takes_the_numbers_as_they_are(tmp_path, capsys):
    def change(rows):
        rows[1][:] = [*rows[0][:2], "100"]

    assert (
        main(["certify", table(tmp_path / "t.csv", change=change), *SMALL, "--raw", "--json"]) == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert told["mean_gram"]["resolved"] is False
    assert {check["name"]: check["verdict"] for check in told["checks"]}[
        "duplicate rows"
    ] == "wrong"


def test_one_row(tmp_path, capsys):
    assert main(["certify", table(tmp_path / "t.csv", rows=1), *SMALL, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["subject"]["samples"] == 1
    assert "one sample" in told["checks"][0]["meaning"]


def test_many_rows_are_sampled_with_a_warning(tmp_path, capsys):
    path = table(tmp_path / "t.csv", rows=20_000)
    assert main(["certify", path, *SMALL, "--samples", "50", "--json"]) == 0
    caught = capsys.readouterr()
    assert "50 of 20000 rows were drawn" in caught.err
    assert json.loads(caught.out)["subject"]["rows in all"] == 20_000


@pytest.mark.data
def test_real_table(data_folder, capsys):
    assert (
        main(
            [
                "certify",
                str(data_folder / "energy.csv"),
                "--target",
                "heating_load",
                "--drop",
                "cooling_load",
                *SMALL,
                "--samples",
                "100",
                "--json",
            ]
        )
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert told["subject"]["features"] == 9  # eight columns and the bias
    assert told["mean_gram"]["resolved"]
