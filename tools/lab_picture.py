"""Draws docs/images/lab.webp: the lab's page while "lazy against rich" trains. Needs Chromium and
Playwright.

python tools/lab_picture.py        about a minute on two idle cores
"""

import io
import pathlib
import re
import shutil
import signal
import subprocess
import sys

from PIL import Image
from playwright.sync_api import sync_playwright

OUT = pathlib.Path(__file__).parents[1] / "docs" / "images" / "lab.webp"
VIEW, WIDTH = {"width": 1180, "height": 860}, 780  # pixels of the window, and of the picture
FRAMES, EVERY, QUALITY = 26, 450, 55  # pictures at most, milliseconds between them, WebP's measure
LIMIT = 300_000  # milliseconds
DRAWN = "() => window.lab && window.lab.messages.some(t => t.drawn)"
MOVED = (
    "() => window.lab.messages.slice(window.lab.messages.findLastIndex(t => t.fresh)).some(t => "
    "t.rival && t.step > 0)"
)
BOTH_ENDED = """() => {
  const loss = Bokeh.documents.flatMap((d) => [...d.all_models]).find((m) => m.type === "Figure" && m.title.text === "Loss");
  const curves = loss.renderers.filter((r) => ["lab/NTK", "lab/this network"].includes(r.tags[0]));
  return curves.length === 2 && curves.every((r) => r.data_source.data.true_y.length === 201);
}"""


def shot(page) -> Image.Image:
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    return image.resize(
        (WIDTH, round(image.height * WIDTH / image.width)), Image.Resampling.LANCZOS
    )


def frames(address: str) -> list[Image.Image]:
    """From the press of the button to the end of both runs."""
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport=VIEW, color_scheme="light")
        page.set_default_timeout(LIMIT)
        page.goto(address)
        page.wait_for_function(DRAWN)
        page.wait_for_selector("body[data-prepared]")
        pictures = [shot(page)]
        page.click("#compare")
        page.wait_for_function(MOVED)
        while len(pictures) < FRAMES - 1 and not page.evaluate(BOTH_ENDED):
            pictures.append(shot(page))
            page.wait_for_timeout(EVERY)
        page.wait_for_function(BOTH_ENDED)
        page.wait_for_timeout(1500)
        pictures.append(shot(page))
        browser.close()
    return pictures


def main() -> None:
    command = [sys.executable, "-m", "wideflow", "lab", "--no-open"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = re.search(r"http\S+", server.stdout.readline())
        assert address is not None
        first, *rest = frames(address[0])
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)
    durations = [900, *[160] * (len(rest) - 1), 2500]
    first.save(
        OUT,
        save_all=True,
        append_images=rest,
        duration=durations,
        loop=0,
        quality=QUALITY,
        method=4,
    )
    print(f"{OUT.name}: {OUT.stat().st_size / 1e3:.0f} kB, {1 + len(rest)} frames")


if __name__ == "__main__":
    main()
