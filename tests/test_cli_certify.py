"""`wideflow certify` on raw tables, sound and defective: a clear answer or a clear error each
time.
"""

import gzip
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
        (_missing, [], r"1 missing value, in column 'b'.*line 6"),
        (_constant_target, [], "target of t is constant"),
        (_constant_inputs, [], "every input column of t is constant"),
        (None, ["--target", "z"], "`target` 'z' is not a column"),
        (None, ["--scaling", "zipf:2,0.5"], "`gamma` must lie in"),
        (None, ["--scaling", "zip"], "`scaling` must be"),
        (None, ["--activation", "rleu"], "rleu"),
        (None, ["--delta", "2"], "`failure_probability`"),
        (None, ["--drop", "q"], "`drop` names columns"),
    ],
)
def test_defects_are_one_sentence_and_exit_code_2(tmp_path, capsys, change, words, message):
    assert main(["certify", table(tmp_path / "t.csv", change=change), *SMALL, *words]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert error.count("\n") == 1


LINES = "a,b,y\n" + "".join(f"{i}.5,{i * i % 7},{i % 3}\n" for i in range(9))

FILES = {
    "empty": (b"", "is empty"),
    "blank lines": (b"\n\n\n", "is empty"),
    "header only": (b"a,b,y\n", "has a header but no rows"),
    "no header": (LINES.split("\n", 1)[1].encode(), "no header"),
    "semicolons": (LINES.replace(",", ";").encode(), "separated by semicolons.*separator=';'"),
    "tabs": (LINES.replace(",", "\t").encode(), "separated by tabs"),
    "decimal commas": (
        b"a,y\n" + b"".join(b"%d,5,%d,25\n" % (i, i) for i in range(4)),
        "Expected 2 fields in line 2, saw 4.*decimal commas",
    ),
    "thousands": (b'a,b,y\n"1,000",2,3\n"2,500",3,4\n', "without commas between thousands"),
    "latin-1": ("größe,b,y\n1,2,3\n".encode("latin-1"), "is not UTF-8 text"),
    "utf-16": (LINES.encode("utf-16"), "is not UTF-8 text"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "is not UTF-8 text"),
    "infinite": (LINES.encode() + b"inf,2,3\n", "infinite.*column 'a'; the first is in line 11"),
    "overflow": (LINES.encode() + b"1,1e999,3\n", "infinite.*column 'b'; the first is in line 11"),
    "longer row": (LINES.encode() + b"1,2,3,4\n", "in line 11, saw 4"),
    "shorter row": (LINES.encode() + b"1,2\n", "1 missing value, in column 'y'.*line 11"),
    "marks for missing": (LINES.encode() + b"?,2,3\n", "stand for a missing value"),
    "names twice": (LINES.replace("a,b,y", "a,a,y").encode(), "names a column twice: 'a'"),
    "saved index": (
        b",a,y\n" + b"".join(b"%d,%d,%d\n" % (i, i * i, i % 2) for i in range(4)),
        "looks like an index",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_are_no_table_are_one_sentence(tmp_path, capsys, case):
    content, message = FILES[case]
    (tmp_path / "t.csv").write_bytes(content)
    assert main(["certify", str(tmp_path / "t.csv"), *SMALL]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error), error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "content",
    [gzip.compress(LINES.encode())[:40], LINES.encode()],
    ids=["cut off", "misnamed"],  # not by their bytes, which hold the time
)
def test_a_cut_off_or_misnamed_archive_is_told(tmp_path, capsys, content):
    (tmp_path / "t.csv.gz").write_bytes(content)
    assert main(["certify", str(tmp_path / "t.csv.gz"), *SMALL]) == 2
    assert "compressed as its name says" in capsys.readouterr().err


def _answer(tmp_path, capsys, content: str, *words: str) -> dict:
    (tmp_path / "t.csv").write_text(content)
    assert main(["certify", str(tmp_path / "t.csv"), *SMALL, *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_another_separator_and_a_saved_index_give_the_same_numbers(tmp_path, capsys):
    plain = _answer(tmp_path, capsys, LINES)
    other = _answer(tmp_path, capsys, LINES.replace(",", ";"), "--separator", ";")
    head, *rows = LINES.splitlines()
    indexed = "\n".join([f",{head}", *(f"{i},{row}" for i, row in enumerate(rows))])
    dropped = _answer(tmp_path, capsys, indexed, "--drop", "")
    assert plain["mean_gram"] == other["mean_gram"] == dropped["mean_gram"]


@pytest.mark.parametrize("exponent", [200, -200])
def test_huge_and_tiny_units_change_nothing(tmp_path, capsys, exponent):
    head, *rows = LINES.splitlines()
    cells = [row.split(",") for row in rows]
    sized = [f"{a}e{exponent},{b},{y}e{exponent}" for a, b, y in cells]
    plain, other = (_answer(tmp_path, capsys, "\n".join([head, *r])) for r in (rows, sized))
    np.testing.assert_allclose(
        other["mean_gram"]["eigenvalues"], plain["mean_gram"]["eigenvalues"], rtol=1e-9, atol=1e-13
    )


def test_a_value_out_of_all_proportion_is_told(tmp_path, capsys):
    told = _answer(tmp_path, capsys, LINES + "1e200,2,3\n3,4,1e30\n")
    notes = " ".join(told["notes"])
    assert "a has values" in notes
    assert "the target has values" in notes


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
    assert "merged 1 row with" in notes
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
