"""The code of a page: its Python blocks, run in order in one namespace, as a reader would."""

import importlib.util
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "diagonal"  # the package of the guides "Add your own ..."
EXTRAS = ("dask_jobqueue", "dask_kubernetes", "torch")  # extras of the same names
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page: pathlib.Path) -> list[str]:
    """The Python blocks of a page. What is included from a file (`--8<--`) is left out: the other blocks import it."""
    return [block for block in _BLOCK.findall(page.read_text()) if "--8<--" not in block]


def run(page: pathlib.Path, folder: pathlib.Path) -> dict:
    """Runs the page; figures go to `folder`, which pages call FOLDER. Gives the namespace at the end.

    A block that asks for an extra which is not installed is compiled only.
    """
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    scope = {"FOLDER": folder}
    for block in blocks(page):
        code = compile(block, page.name, "exec")
        if not any(name in block and not importlib.util.find_spec(name) for name in EXTRAS):
            exec(code, scope)
    return scope
