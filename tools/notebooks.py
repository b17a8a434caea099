"""Notebooks are kept with their outputs, and become pages of the book: a MkDocs hook, and a command
for tests and authors.

`executed(paths)` runs notebooks from top to bottom, each in an empty namespace of one fresh kernel,
and keeps the results in build/notebooks, under a hash of their code and of wideflow's sources;
asking again reads them. The hook turns every docs/notebooks/*.ipynb, as it is stored, into a page.

Run:  python tools/notebooks.py docs/notebooks/li2020.ipynb   prints the executed notebook's path
      python tools/notebooks.py --store                       runs all, stored with their outputs
"""

import base64
import contextlib
import fcntl
import hashlib
import importlib.metadata
import io
import pathlib
import sys
import tempfile
from collections.abc import Sequence

import nbformat

ROOT = pathlib.Path(__file__).parents[1]
NOTEBOOKS = ROOT / "docs" / "notebooks"
KEPT = ROOT / "build" / "notebooks"
LIMIT = 300  # seconds a cell may take


def executed(paths: Sequence[pathlib.Path]) -> list[pathlib.Path]:
    """The notebooks with their outputs, run now or found.

    A cell that raises ends its notebook; the others are run, and then the tracebacks end it all.
    """
    sources = hashlib.sha256(importlib.metadata.version("jax").encode())
    for source in sorted((ROOT / "src").rglob("*.py")):
        sources.update(source.read_bytes())
    results = [_place(path, sources.copy()) for path in paths]
    with _locked():
        pairs = zip(paths, results, strict=True)
        missing = [(path, result) for path, result in pairs if not result.exists()]
        if missing:
            _run(missing)
    return results


def _place(path: pathlib.Path, digest) -> pathlib.Path:
    """Where the notebook lies once it was run with these sources."""
    code = "\0".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
    digest.update(code.encode())
    return KEPT / f"{path.stem}-{digest.hexdigest()[:16]}.ipynb"


@contextlib.contextmanager
def _locked():
    """One process at a time runs notebooks; the others wait and find them done."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with open(KEPT / "lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _run(missing: Sequence[tuple[pathlib.Path, pathlib.Path]]) -> None:
    """Runs each notebook and writes its result; one kernel serves all: wideflow is imported
    once.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
    from traitlets.config import Config

    errors = []
    with (
        tempfile.TemporaryDirectory() as sockets
    ):  # files in place of ports: nothing listens on the network
        talk = {"transport": "ipc", "ip": f"{sockets}/kernel"}
        client = NotebookClient(
            nbformat.v4.new_notebook(),
            timeout=LIMIT,
            kernel_name="python3",
            resources={"metadata": {"path": str(KEPT)}},
            config=Config(KernelManager=talk),
        )
        with client.setup_kernel():
            for path, result in missing:
                notebook = nbformat.read(path, as_version=4)
                notebook.cells.insert(0, nbformat.v4.new_code_cell("%reset -f"))
                client.nb = notebook
                try:
                    client.execute(cleanup_kc=False)
                except CellExecutionError as error:
                    errors.append(f"{path.name}: {error}")
                    continue
                del notebook.cells[0]
                _number(notebook)
                for old in KEPT.glob(f"{path.stem}-*.ipynb"):
                    old.unlink()
                nbformat.write(notebook, result)
    if errors:
        raise SystemExit("\n".join(errors))


def _number(notebook) -> None:
    """Cells count from 1, as in a kernel of their own."""
    for number, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), 1):
        cell.execution_count = number
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number


def on_files(files, config):
    """MkDocs: a page for every notebook, its pictures, and the notebook itself for download."""
    from mkdocs.structure.files import File

    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        text, pictures = as_markdown(nbformat.read(path, as_version=4), path.name)
        page = File.generated(config, f"notebooks/{path.stem}.md", content=text)
        files.append(page)
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{path.stem}/{name}", content=content))
    return files


def as_markdown(notebook, download: str) -> tuple[str, dict[str, bytes]]:
    """The notebook as a page, and its pictures by file name."""
    parts, pictures = [], {}
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                name = f"cell{number}-{len(pictures)}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![Figure of cell {number}]({pathlib.Path(download).stem}/{name})")
            elif text := output.get("text") or data.get("text/plain"):
                parts.append(f"```text\n{text.rstrip()}\n```")
    title, *rest = parts
    parts = [
        title,
        f"*This page is a notebook: [download it]({download}) and change it.*",
        *rest,
    ]
    return "\n\n".join(parts) + "\n", pictures


def store() -> None:
    """Every notebook of the repository with the outputs of a fresh run, pictures in 64 colours,
    nothing of the machine.
    """
    paths = sorted(NOTEBOOKS.glob("*.ipynb"))
    for path, result in zip(paths, executed(paths), strict=True):
        notebook = nbformat.read(result, as_version=4)
        notebook.metadata = {"kernelspec": notebook.metadata.get("kernelspec", {})}
        for cell in notebook.cells:
            cell.metadata = {}
            for output in cell.get("outputs", ()):
                data = output.get("data", {})
                if "image/png" in data:
                    data["image/png"] = _fewer_colours(data["image/png"])
        nbformat.write(notebook, path)


def _fewer_colours(encoded: str) -> str:
    """The same picture to the eye in a third of the bytes."""
    from PIL import Image

    image, small = Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGB"), io.BytesIO()
    image.quantize(64, dither=Image.Dither.NONE).save(small, format="png", optimize=True)
    return base64.b64encode(small.getvalue()).decode()


if __name__ == "__main__":
    if sys.argv[1:] == ["--store"]:
        store()
    else:
        for result in executed([pathlib.Path(name).resolve() for name in sys.argv[1:]]):
            print(result)
