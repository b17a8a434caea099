"""The gallery: every experiment with a small picture and its command. A MkDocs hook, and a command that draws the pictures.

The pictures are kept in docs/gallery, so that the book is built without running anything. They are drawn from saved records:

    python tools/gallery.py --runs FOLDER [FOLDER ...]     a record of each experiment, the largest size first
    python tools/gallery.py --missing                      names the experiments that have no picture yet
"""

import argparse
import io
import pathlib

from PIL import Image

from wideflow.experiments.base import SIZES
from wideflow.papers import Paper, papers
from wideflow.report.static import render
from wideflow.runs.records import DamagedRecordError, Record, read_record

PICTURES = pathlib.Path(__file__).parents[1] / "docs" / "gallery"
WIDTH, QUALITY = 480, 55  # pixels, and WebP's measure: about 8 kB a picture

HEAD = """# Gallery

Every experiment of wideflow, by paper. Each ends in a figure (here in small), a table and the paper's claims with their verdicts. The pictures are of the default size, or of the
size that was at hand; `--size smoke` makes any of them in seconds to a minute, `--size paper` as published.
"""


def page() -> str:
    """The gallery as Markdown with one card an experiment."""
    return "\n".join([HEAD, *(line for paper in papers().values() for line in _section(paper))])


def _section(paper: Paper) -> list[str]:
    """A heading with a link to the paper, and the cards of its experiments."""
    source = f" ([the paper]({paper.link}))" if paper.link else ""
    heading = [f"## {paper.name}", "", f"{paper.title}{source}.", ""]
    cards = [_card(paper.experiment(name)) for name in paper.experiments]
    return [*heading, '<div class="gallery" markdown>', "", *cards, "</div>", ""]


def _card(experiment) -> str:
    """One experiment: picture, title, where in the paper, command."""
    picture = ""
    if (PICTURES / f"{experiment.name}.webp").is_file():
        picture = f"![{experiment.title}](gallery/{experiment.name}.webp){{ loading=lazy }}\n\n"
    where = f"*{experiment.figure}*\n\n" if experiment.figure else ""
    return (
        f'<div class="card" id="{experiment.name}" markdown>\n\n{picture}**{experiment.title}**\n\n'
        f"{where}`wideflow run {experiment.name}`\n\n</div>\n"
    )


def on_files(files, config):
    """MkDocs: adds the page."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "gallery.md", content=page()))
    return files


def records(folders: list[pathlib.Path]) -> dict[str, Record]:
    """A record of each experiment in the folders; the first folder that has one, there the default size before others."""
    chosen: dict[str, Record] = {}
    for folder in folders:
        found = [_read(path) for path in sorted(folder.glob("*.nc"))]
        order = ("default", *SIZES[::-1])
        for record in sorted(filter(None, found), key=lambda r: order.index(r.size)):
            chosen.setdefault(record.experiment, record)
    return chosen


def _read(path: pathlib.Path) -> Record | None:
    try:
        return read_record(path)
    except DamagedRecordError:  # a table of something else in the same folder
        return None


def draw(experiment, record: Record) -> None:
    """The figure as a small WebP picture."""
    png, _ = render(experiment.draw(record.table))
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.thumbnail((WIDTH, 3 * WIDTH), Image.Resampling.LANCZOS)
    image.save(PICTURES / f"{experiment.name}.webp", quality=QUALITY, method=6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", nargs="*", type=pathlib.Path, default=[])
    parser.add_argument("--missing", action="store_true")
    options = parser.parse_args()
    saved = records(options.runs)
    for paper in papers().values():
        for name in paper.experiments:
            if name in saved:
                draw(paper.experiment(name), saved[name])
            elif options.missing and not (PICTURES / f"{name}.webp").is_file():
                print(name)


if __name__ == "__main__":
    main()
