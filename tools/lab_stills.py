"""Draws the pictures that the lab shows before its first live one: each tour's end, and the start
of free play, all of seed 0.

Run:  python tools/lab_stills.py [SCENE ...]      Takes:  two minutes on two cores
"""

import io
import pathlib
import sys

import jax
import matplotlib as mpl
from PIL import Image

import wideflow.lab
from wideflow._core.precision import double
from wideflow.lab.links import place
from wideflow.lab.scenes import FREE, scenes
from wideflow.lab.uploads import Uploads
from wideflow.report.static import build
from wideflow.training.session import Session

FOLDER = pathlib.Path(wideflow.lab.__file__).parent / "stills"
DOTS, QUALITY = 72, 60  # per inch: about as wide as the page; WebP's measure: 20 to 40 kB a picture


class FirstRecordError(Exception):
    """The start has been seen."""


@double
def last_table(scene, settings):
    """The table of a whole run; of free play that of its first record."""
    messages = []

    def on_record(so_far):
        messages.append(so_far())
        if scene.name == FREE:
            raise FirstRecordError

    try:
        return scene.experiment.run(settings, jax.random.key(0), Session(on_record=on_record))
    except FirstRecordError:
        return messages[-1]


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    uploads = Uploads()
    for name in sys.argv[1:] or scenes():
        here = place({"scene": name}, uploads)
        figure = build(here.scene.live(last_table(here.scene, here.scene.settings(here.changes))))
        png, path = io.BytesIO(), FOLDER / f"{name}.webp"
        with mpl.rc_context({"savefig.dpi": DOTS}):
            figure.savefig(png, format="png")
        Image.open(png).convert("RGB").save(path, quality=QUALITY, method=6)
        print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB", flush=True)
    uploads.end()


if __name__ == "__main__":
    main()
