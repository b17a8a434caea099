r"""Test error of regression with both kernels on growing parts of MNIST, beside trained networks
(lee2019).

Images are centred by the mean pixel and put on the sphere of radius $\sqrt{784}$; the targets are
0.9 for the class and -0.1 for the others. The kernels are those of an infinitely wide ReLU network,
the ridge is a small share of the kernel's mean diagonal; the finite networks have the same layers
and are trained by Adam on the same rows and targets.

Run:  wideflow run kernels-mnist
Takes:  default about 2 min of one core; paper on one GPU (see also benchmarks/mnist_kernels.py)
"""

import math
from dataclasses import dataclass

import numpy as np
import optax
import xarray as xr

from ...._core.architecture import Chain, Dense, mlp
from ...._core.errors import check_count, check_positive
from ...._core.parametrisations import STANDARD
from ...._core.precision import double
from ...._core.randomness import named_key
from ....data.dataset import Dataset
from ....data.files import mnist
from ....dynamics.losses import HalfMeanSquares
from ....dynamics.optimisers import Optax
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, Line, Panel
from ....limits.infinite_width.regression import apply_kernel, regress
from ....limits.kernels import kernels
from ....models.deep import Deep
from ....training.session import Session
from ....training.train import train

KERNELS = ("nngp", "ntk")
PLAIN = STANDARD.with_rate_exponent(0.0)  # plain layers under one rate, whatever the width
MEAN_PIXEL = 0.1307  # of the training images


@dataclass(frozen=True)
class Settings:
    samples: tuple[int, ...] = (250, 1000, 4000)
    tests: int = 10_000
    depth: int = 3
    bias_std: float = 0.1
    ridge: float = 1e-5  # as a share of the mean of the kernel's diagonal
    width: int = 256  # of the trained networks
    rate: float = 1e-3
    batch: int = 64
    steps: int = 2000
    seeds: int = 1

    def __post_init__(self):
        for name in ("tests", "depth", "width", "batch", "steps", "seeds"):
            check_count(name, getattr(self, name))
        for name in ("ridge", "rate"):
            check_positive(name, getattr(self, name))
        if np.any(np.diff(self.samples) <= 0):
            raise ValueError(f"`samples` must increase, got {self.samples}.")


def prepared(part: str, count: int) -> Dataset:
    """Images on the sphere and the classes as regression targets."""
    digits = mnist(part, count=count)
    images = np.asarray(digits.inputs) - MEAN_PIXEL
    images *= math.sqrt(images.shape[1]) / np.linalg.norm(images, axis=1, keepdims=True)
    return Dataset(images, np.asarray(digits.targets) - 0.1, digits.name)


@double
def run(settings: Settings, key, session: Session) -> xr.Dataset:
    whole, test = prepared("train", settings.samples[-1]), prepared("test", settings.tests)
    errors = np.zeros((len(KERNELS), len(settings.samples)))
    networks = np.zeros((settings.seeds, len(settings.samples)))
    parts = len(settings.samples) * (len(KERNELS) + settings.seeds)
    done = 0
    for j, count in enumerate(settings.samples):
        data = whole.take(np.arange(count))
        for i, kernel in enumerate(KERNELS):
            session(done, parts, f"{kernel}, {count} images")
            errors[i, j] = _kernel_error(settings, kernel, data, test)
            done += 1
        for seed in range(settings.seeds):
            part = session.within(done, parts, f"network {seed}, {count} images")
            networks[seed, j] = _network_error(
                settings, named_key(key, count, seed), data, test, part
            )
            done += 1
    label = {"label": "share of wrong digits"}
    return xr.Dataset(
        {
            "test_error": (("kernel", "samples"), errors, label),
            "network_error": (("seed", "samples"), networks, label),
        },
        {"kernel": list(KERNELS), "samples": list(settings.samples)},
        {"tests": settings.tests, "depth": settings.depth, "ridge": settings.ridge},
    )


def _kernel_error(settings: Settings, kernel: str, data: Dataset, test: Dataset) -> float:
    k = kernels(mlp(settings.depth, weight_std=math.sqrt(2), bias_std=settings.bias_std))
    size = float(np.mean(getattr(k, f"{kernel}_diagonal")(data.inputs)))
    solution = regress(k, data.inputs, data.targets, kernel=kernel, ridge=settings.ridge * size)
    return _error(
        apply_kernel(k, test.inputs, data.inputs, solution.coefficients, kernel=kernel), test
    )


def _network_error(settings: Settings, key, data: Dataset, test: Dataset, session: Session):
    hidden = mlp(
        settings.depth, settings.width, weight_std=math.sqrt(2), bias_std=settings.bias_std
    )
    # a readout that starts small: the random function at the start stays in the prediction as noise
    # (lee2019, equation 16)
    chain = Chain(*hidden.layers[:-1], Dense(10, weight_std=0.1))
    net = Deep.init(named_key(key, "network"), chain, data.dimension, PLAIN)
    adam = Optax(optax.adam(1.0), min(settings.batch, len(data)), rate=settings.rate)
    end = train(
        net,
        data,
        adam,
        steps=settings.steps,
        every=settings.steps,
        loss=HalfMeanSquares(),
        precision="float32",
        key=named_key(key, "batches"),
        session=session,
    )
    return _error(end.model.outputs(test.inputs), test)


def _error(outputs, test: Dataset) -> float:
    return float(np.mean(np.argmax(np.asarray(outputs), 1) != np.argmax(test.targets, 1)))


def draw(table: xr.Dataset) -> FigureSpec:
    names = {"nngp": "random networks (NNGP)", "ntk": "trained networks (NTK)"}
    counts, marks = table["samples"].values, []
    for kernel in KERNELS:
        errors = table["test_error"].sel(kernel=kernel).values
        spread = np.sqrt(errors * (1 - errors) / table.attrs["tests"])
        marks.append(Line(counts, errors, names[kernel], low=errors - spread, high=errors + spread))
    finite = table["network_error"].mean("seed").values
    marks.append(Line(counts, finite, "finite networks, Adam", dash="dashed"))
    panel = Panel("MNIST", "training images", "test error", marks, "log", "log")
    caption = "Share of wrong digits with binomial standard errors."
    return FigureSpec("Infinite-width kernels on MNIST", [panel], caption=caption)


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    errors = table["test_error"].values
    last, tests = errors[:, -1], table.attrs["tests"]
    spread = math.sqrt(
        2 * last.mean() * (1 - last.mean()) / tests
    )  # of a difference; on the same images it is less
    network = float(table["network_error"].mean("seed")[-1])
    return (
        Claim(
            "more images, fewer errors: the largest ratio of a kernel's successive errors",
            float((errors[:, 1:] / errors[:, :-1]).max()),
            at_most=1.0,
        ),
        Claim(
            "both kernels at the last size: difference in standard errors",
            float(abs(last[0] - last[1]) / spread),
            at_most=4.0,
        ),
        Claim(
            "finite networks at the last size: error over that of the tangent kernel",
            network / float(last[1]),
            expected=1.0,
            tolerance=0.5,
        ),
    )


EXPERIMENT = Experiment(
    name="kernels-mnist",
    paper="lee2019",
    title="Infinite-width kernels on MNIST",
    figure="Section 3",
    settings={
        "smoke": Settings(samples=(20, 60), tests=30, depth=1, width=16, steps=5, batch=10),
        "default": Settings(),
        "paper": Settings(
            samples=(1000, 3000, 10_000, 30_000, 60_000), width=2048, steps=10_000, seeds=3
        ),
    },
    run=run,
    draw=draw,
    claims=claims,
    needs_data=("mnist",),
    claims_from_size="default",
)
