"""Notebooks are kept with their outputs, and become pages of the book: a MkDocs hook, and a command for tests and authors.

`executed(path)` runs a notebook from top to bottom in a fresh kernel and keeps the result in build/notebooks, under a hash of its code
and of wideflow's sources; asking again reads it. The hook turns every docs/notebooks/*.ipynb, as it is stored, into a page.

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

import nbformat

ROOT = pathlib.Path(__file__).parents[1]
NOTEBOOKS = ROOT / "docs" / "notebooks"
KEPT = ROOT / "build" / "notebooks"
LIMIT = 300  # seconds a cell may take


def executed(path: pathlib.Path) -> pathlib.Path:
    """The notebook with its outputs, run now or found; a cell that raises ends it with the traceback."""
    code = "\0".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
    digest = hashlib.sha256((code + importlib.metadata.version("jax")).encode())
    for source in sorted((ROOT / "src").rglob("*.py")):
        digest.update(source.read_bytes())
    result = KEPT / f"{path.stem}-{digest.hexdigest()[:16]}.ipynb"
    with _locked(path.stem):
        if not result.exists():
            notebook = _run(nbformat.read(path, as_version=4))
            for old in KEPT.glob(f"{path.stem}-*.ipynb"):
                old.unlink()
            nbformat.write(notebook, result)
    return result


@contextlib.contextmanager
def _locked(name: str):
    """One process at a time runs the notebook of that name; the others wait and find it done."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with open(KEPT / f"{name}.lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _run(notebook):
    from nbclient import NotebookClient
    from traitlets.config import Config

    with (
        tempfile.TemporaryDirectory() as sockets
    ):  # files in place of ports: nothing listens on the network
        talk = {"transport": "ipc", "ip": f"{sockets}/kernel"}
        client = NotebookClient(
            notebook,
            timeout=LIMIT,
            kernel_name="python3",
            resources={"metadata": {"path": str(KEPT)}},
            config=Config(KernelManager=talk),
        )
        return client.execute()


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
    """Every notebook of the repository with the outputs of a fresh run, pictures in 64 colours, nothing of the machine."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = nbformat.read(executed(path), as_version=4)
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
        for name in sys.argv[1:]:
            print(executed(pathlib.Path(name).resolve()))
