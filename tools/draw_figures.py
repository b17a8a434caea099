"""Draws the figures of the book again: those of the chapters from their experiments, those of the
guides from the guides' own code.

Run:  python tools/draw_figures.py                        all but those for a GPU, in 20 minutes
      python tools/draw_figures.py li2020-figure1 ...     single ones, by experiment or by guide
"""

import io
import pathlib
import shutil
import sys
import tempfile

import pages
from PIL import Image

from wideflow.experiments.registry import experiment
from wideflow.report.static import render
from wideflow.runs import Store, perform

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs"
CHAPTERS = {  # experiment: size; the chapter shows it as images/<experiment>.png
    "caron2023-figure1": "default",
    "caron2023-kinks": "default",
    "chen2022-figure4": "paper",
    "chen2022-dashboard": "default",
    "li2020-figure1": "default",
    "li2020-kernels": "default",
    "ren2023-figure2": "default",
    "ren2023-separation": "default",
    "allenzhu2018-three-beat-two": "default",
    "allenzhu2018-sign-changes": "default",
}
GUIDES = sorted(
    page.stem
    for page in (DOCS / "guides").glob("*.md")
    if f"figures/{page.stem}.png" in page.read_text()
)


def draw_chapter(name: str) -> None:
    """The experiment's figure with 256 colours, a third of the bytes and the same to the eye."""
    entry = experiment(name)
    record = perform(entry, Store(ROOT / "runs" / "book"), size=CHAPTERS[name]).record
    png, _ = render(entry.draw(record.table))
    image = Image.open(io.BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    image.save(DOCS / "images" / f"{name}.png", optimize=True)
    print(f"{name}: {record.counts}", flush=True)


def draw_guide(name: str) -> None:
    """The figures that a guide's own code saves, without the PDF and the folder of runs that it
    leaves.
    """
    with tempfile.TemporaryDirectory() as folder:
        pages.run(DOCS / "guides" / f"{name}.md", pathlib.Path(folder))
        for png in pathlib.Path(folder).glob("*.png"):
            shutil.copy(png, DOCS / "guides" / "figures" / png.name)


def main(names: list[str]) -> None:
    everything = [name for name, size in CHAPTERS.items() if size != "paper"] + GUIDES
    for name in names or everything:
        if name in CHAPTERS:
            draw_chapter(name)
        elif name in GUIDES:
            draw_guide(name)
        else:
            raise SystemExit(
                f"there is no figure {name!r}; known: {', '.join([*CHAPTERS, *GUIDES])}"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
