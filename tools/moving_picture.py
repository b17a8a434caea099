"""Draws docs/images/lazy-to-rich.webp: two networks of one width learn the same wave, one lazily
and one by moving its features.

python tools/moving_picture.py        about a minute
"""

import io
import pathlib

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

import wideflow as wf

OUT = pathlib.Path(__file__).parents[1] / "docs" / "images" / "lazy-to-rich.webp"
PAIRS, FRAMES, STEPS, RATE = 300, 56, 12_000, 0.02
STD, FACTOR = 3.0, 4.0  # of the weights at the start; size of the frozen output weights
SCALINGS = {"NTK scaling: lazy": wf.scalings.NTK(), "mean field: rich": wf.scalings.MeanField()}
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8A8A8A"
GRID = np.linspace(-1.25, 1.25, 200)


def with_bias(points: np.ndarray) -> np.ndarray:
    """Inputs (x, 1), so that the kink of neuron (w, b) lies at -b/w."""
    return np.stack([points, np.ones_like(points)], axis=1)


def wave() -> wf.Dataset:
    points = np.linspace(-1, 1, 14)
    return wf.Dataset(with_bias(points), np.sin(5 * points) * (1 - 0.3 * points), "wave")


def frames(scaling) -> list[tuple[np.ndarray, np.ndarray]]:
    """The network's function and its weights, at steps that grow geometrically."""
    # neurons in pairs of opposite sign: both networks start at the zero function, with the same
    # weights
    draw = STD * np.random.default_rng(0).normal(size=(PAIRS, 2))
    signs = FACTOR * np.repeat([1.0, -1.0], PAIRS)
    net = wf.Shallow(np.concatenate([draw, draw]), signs, scaling=scaling, activation="tanh")
    steps = np.unique(np.geomspace(1, STEPS, FRAMES).astype(int))
    path, model, done = [], net, 0
    for step in (0, *steps):
        if step > done:
            model = wf.train(model, wave(), wf.GradientDescent(RATE), steps=int(step - done)).model
        done = step
        path.append((np.asarray(model.outputs(with_bias(GRID))), np.asarray(model.hidden)))
    return path


def picture(moment: int, paths: dict) -> Image.Image:
    """One frame: above the function on its data, below every neuron and where it began."""
    data = wave()
    figure = Figure(figsize=(7.2, 4.6), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 2, height_ratios=(3, 2.4))
    for column, (title, path) in enumerate(paths.items()):
        outputs, weights = path[moment]
        above, below = axes[:, column]
        above.plot(GRID, path[0][0], color=GREY, lw=1, ls=":")
        above.plot(GRID, outputs, color=(BLUE, ORANGE)[column], lw=2)
        above.plot(data.inputs[:, 0], data.targets, "o", color="#222222", ms=4)
        above.set(title=title, ylim=(-2.1, 2.1), xlabel="input", xlim=(-1.25, 1.25))
        start = path[0][1]
        below.plot(start[:, 0], start[:, 1], ".", color=GREY, ms=3)
        below.plot(weights[:, 0], weights[:, 1], ".", color=(BLUE, ORANGE)[column], ms=4)
        below.set(xlabel="neurons: slope (across) and shift (up)", xlim=(-16, 16), ylim=(-12, 12))
    stream = io.BytesIO()
    figure.savefig(stream, format="png")
    return Image.open(stream).convert("RGB")


def main() -> None:
    paths = {title: frames(scaling) for title, scaling in SCALINGS.items()}
    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with mpl.rc_context(style):
        pictures = [picture(moment, paths) for moment in range(len(paths["mean field: rich"]))]
    durations = [110] * (len(pictures) - 1) + [2500]
    first, *rest = pictures
    first.save(
        OUT, save_all=True, append_images=rest, duration=durations, loop=0, quality=60, method=4
    )
    for title, path in paths.items():
        (_, start), (_, end) = path[0], path[-1]
        moved = np.linalg.norm(end - start) / np.linalg.norm(start)
        error = np.interp(wave().inputs[:, 0], GRID, path[-1][0]) - wave().targets
        print(
            f"{title}: weights moved by {moved:.2f} of their size, largest error "
            f"{np.abs(error).max():.3f}"
        )
    print(f"{OUT.name}: {OUT.stat().st_size / 1e3:.0f} kB, {len(pictures)} frames")


if __name__ == "__main__":
    main()
