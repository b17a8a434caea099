"""Lines end within a hundred columns; formulas, tables and templates may run over."""

import ast
import io
import pathlib
import tokenize

import pytest

ROOT = pathlib.Path(__file__).parents[1]
FOLDERS = ("src", "tests", "tools", "benchmarks", "examples")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def docstrings(tree: ast.AST) -> set[int]:
    """The first lines of the string statements."""
    statements = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
    return {node.lineno for node in statements if isinstance(node, ast.Constant)}


def text_lines(source: str) -> dict[int, bool]:
    """The lines of strings over several lines, and whether the string is a docstring."""
    first = docstrings(ast.parse(source))
    rows_of = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.STRING and token.start[0] < token.end[0]:
            rows = range(token.start[0], token.end[0] + 1)
            rows_of |= dict.fromkeys(rows, token.start[0] in first)
    return rows_of


def too_long(source: str) -> list[int]:
    lines = source.split("\n")
    rows = [row for row, line in enumerate(lines, 1) if len(line) > 100]
    if not rows:
        return []
    text = text_lines(source)
    formula = lambda row: any(sign in lines[row - 1] for sign in "$|\\")
    return [row for row in rows if row not in text or (text[row] and not formula(row))]


@pytest.mark.parametrize("folder", FOLDERS)
def test_lines_end_within_a_hundred_columns(folder):
    here = [path for path in FILES if path.is_relative_to(ROOT / folder)]
    places = [
        f"{path.relative_to(ROOT)}:{row}" for path in here for row in too_long(path.read_text())
    ]
    assert here
    assert not places


def test_a_long_line_is_seen():
    words = "word " * 30
    assert too_long(f"x = 1\ny = '{words}'\n") == [2]
    assert too_long(f'"""One.\n\n{words}\n"""\n') == [3]
    assert too_long(f'"""One.\n\n$x$ {words}\n"""\n') == []
    assert too_long(f'x = """\n{words}\n"""\n') == []


def test_the_formatter_is_nowhere_silenced():
    mark = "# fmt: " + "skip"
    assert [str(path) for path in FILES if mark in path.read_text()] == []
