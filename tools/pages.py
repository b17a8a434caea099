"""The code of a page: its Python blocks, run in order in one namespace, as a reader would, and what
they print.

A page shows the output of a block in a `text` block right behind it. The tests compare it; this
command writes it:

    python tools/pages.py docs/guides/is-my-network-lazy.md ...
"""

import contextlib
import importlib.util
import io
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "diagonal"  # the package of the guides "Add your own ..."
EXTRAS = (
    "dask_jobqueue",
    "dask_kubernetes",
    "torch",
)  # of the extras `slurm`, `kubernetes` and `torch`
_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def _matches(page: pathlib.Path) -> list[re.Match]:
    """The blocks that are run; what is included from a file (`--8<--`) is left out: the other
    blocks import it.
    """
    return [match for match in _BLOCK.finditer(page.read_text()) if "--8<--" not in match["code"]]


def blocks(page: pathlib.Path) -> list[str]:
    """The Python blocks of a page that are run."""
    return [match["code"] for match in _matches(page)]


def shown(page: pathlib.Path) -> list[str]:
    """What the page shows as the output of each of its blocks, '' where it shows none."""
    return [match["output"] or "" for match in _matches(page)]


def run(page: pathlib.Path, folder: pathlib.Path) -> list[str]:
    """Runs the page; figures go to `folder`, which pages call FOLDER. Gives what each block prints.

    A block that asks for an extra which is not installed is compiled only.
    """
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    scope, printed = {"FOLDER": folder}, []
    for block in blocks(page):
        code, stream = compile(block, page.name, "exec"), io.StringIO()
        if not any(name in block and not importlib.util.find_spec(name) for name in EXTRAS):
            with contextlib.redirect_stdout(stream):
                exec(code, scope)
        lines = stream.getvalue().replace(str(folder), "FOLDER").splitlines()
        printed.append("".join(line.rstrip() + "\n" for line in lines))
    return printed


def agree(output: str, expected: str, rtol: float = 1e-2, atol: float = 1e-6) -> bool:
    """Whether two outputs have the same words, and numbers that differ by no more than rounding on
    another machine.
    """
    words = [" ".join(_NUMBER.sub("#", text).split()) for text in (output, expected)]
    numbers = [[float(n) for n in _NUMBER.findall(text)] for text in (output, expected)]
    return words[0] == words[1] and all(
        abs(a - b) <= atol + rtol * abs(b) for a, b in zip(*numbers, strict=True)
    )


def write_outputs(page: pathlib.Path) -> None:
    """Runs the page and writes what its blocks print behind them."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        printed = iter(run(page, pathlib.Path(folder)))

    def replaced(match: re.Match) -> str:
        code = f"```python\n{match['code']}```\n"
        if "--8<--" in match["code"]:
            return match.group(0)
        output = next(printed)
        return code + (f"\n```text\n{output}```\n" if output else "")

    page.write_text(_BLOCK.sub(replaced, page.read_text()))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write_outputs(pathlib.Path(name).resolve())
        print(name, flush=True)
