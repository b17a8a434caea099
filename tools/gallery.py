"""The gallery: every experiment with a small picture and its command. A MkDocs hook, and a command
that draws the pictures.

The pictures are kept in docs/gallery, so that the book is built without running anything. They are
drawn from saved records:

    python tools/gallery.py FOLDER ...     draws what has no picture yet (--again: all) from the
                                           records in these folders, and names the experiments
                                           that no folder has
"""

import argparse
import io
import pathlib
from collections.abc import Iterator

from PIL import Image

from wideflow.experiments.base import SIZES
from wideflow.papers import Paper, papers
from wideflow.report.static import build
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


def records(folders: list[pathlib.Path], name: str) -> Iterator[Record]:
    """The records of an experiment in the folders, in their order, in each the default size before
    larger and smaller ones.
    """
    for folder in folders:
        for size in ("default", *(size for size in reversed(SIZES) if size != "default")):
            yield from filter(None, map(_read, sorted(folder.glob(f"{name}-{size}-*.nc"))))


def _read(path: pathlib.Path) -> Record | None:
    try:
        return read_record(path)
    except DamagedRecordError:  # a table of something else in the same folder
        return None


def draw(experiment, record: Record) -> bool:
    """The figure as a small WebP picture; False where the table is of an older version and lacks
    something.
    """
    try:
        figure, png = build(experiment.draw(record.table)), io.BytesIO()
    except (ValueError, KeyError, AttributeError) as error:
        print(f"{record.path}: {error}", flush=True)
        return False
    figure.savefig(png, format="png", dpi=1.5 * WIDTH / figure.get_size_inches()[0])
    image = Image.open(png).convert("RGB")
    image.thumbnail((WIDTH, 3 * WIDTH), Image.Resampling.LANCZOS)
    image.save(PICTURES / f"{experiment.name}.webp", quality=QUALITY, method=6)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    names = {name: paper for paper in papers().values() for name in paper.experiments}
    if not options.again:
        names = {n: p for n, p in names.items() if not (PICTURES / f"{n}.webp").is_file()}
    for name, paper in names.items():
        if not any(draw(paper.experiment(name), each) for each in records(options.folders, name)):
            print(f"{name}: no record in these folders that can be drawn", flush=True)


if __name__ == "__main__":
    main()
