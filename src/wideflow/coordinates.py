r"""The coordinate check: how the size of activations and of their updates depends on the width.

After a few steps of training at one rate, a parameterisation in which features are learnt at every width has updates of size $m^0$; under the NTK
scaling those of the hidden layer go like $m^{-1/2}$; one that blows up has a positive exponent. The slopes tell.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ._core.errors import check_callable, check_count, check_kind, check_positive
from ._core.precision import double
from ._core.randomness import as_key, named_key
from .data.dataset import Dataset
from .dynamics.descent import GradientDescent
from .dynamics.losses import HalfMeanSquares
from .figures import FigureSpec, Line, Panel
from .models.base import AbstractModel
from .models.shallow import Shallow
from .training.train import train


@dataclass(frozen=True)
class CoordinateCheck:
    """Root mean squares over coordinates, inputs and seeds, for each layer along the widths.

    Attributes:
        initial: size of the activations at the start, by layer.
        updates: size of their change after `steps` steps.
        slopes: of log(update) on log(width), by layer; 0 means features move at every width.
        errors: standard error of each slope.
    """

    widths: tuple[int, ...]
    steps: int
    rate: float
    initial: dict[str, np.ndarray]
    updates: dict[str, np.ndarray]
    slopes: dict[str, float]
    errors: dict[str, float]

    def __str__(self) -> str:
        lines = [
            f"coordinate check: {self.steps} steps at rate {self.rate:g}, widths {', '.join(map(str, self.widths))}"
        ]
        for name, slope in self.slopes.items():
            sizes = ", ".join(f"{value:.3g}" for value in self.updates[name])
            lines.append(
                f"  {name}: updates {sizes}; width^{slope:.2f} ± {self.errors[name]:.2f}: {_reading(slope)}"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict:
        arrays = {
            part: {name: values.tolist() for name, values in getattr(self, part).items()}
            for part in ("initial", "updates")
        }
        return {
            "widths": list(self.widths),
            "steps": self.steps,
            "rate": self.rate,
            **arrays,
            "slopes": self.slopes,
            "errors": self.errors,
        }

    def figure(self) -> FigureSpec:
        """Size of the activations at the start and of their updates, against the width."""
        panels = [
            Panel(
                title,
                "width",
                "root mean square",
                [Line(self.widths, values, name) for name, values in sizes.items()],
                "log",
                "log",
            )
            for title, sizes in (
                ("activations at the start", self.initial),
                (f"their change after {self.steps} steps", self.updates),
            )
        ]
        told = ", ".join(f"{name}: {slope:.2f}" for name, slope in self.slopes.items())
        return FigureSpec(
            "Coordinate check", panels, columns=2, caption=f"Slopes of the updates: {told}."
        )


@double
def coordinate_check(
    constructor: Callable,
    widths: Sequence[int],
    inputs,
    targets,
    *,
    activations: Callable | None = None,
    rate: float = 0.1,
    steps: int = 3,
    seeds: int = 3,
    key: int | object = 0,
) -> CoordinateCheck:
    """Trains networks of several widths for a few steps and measures how their activations move.

    Args:
        constructor: `constructor(key, width)` gives a wideflow model, or a pair `(apply, params)` with `apply(params, inputs)` on a batch.
        widths: at least two.
        inputs, targets: a batch and what is to be fitted, by half the mean of squares.
        activations: `activations(model_or_params, inputs)` gives a dictionary of arrays, one a layer; default: pre-activations (for `Shallow`) and outputs.
        rate: of gradient descent, the same at every width; wideflow models add their own neuron factor, others get none.
        steps, seeds: how many steps, and over how many draws the squares are averaged.
    """
    check_callable("constructor", constructor, "a function of (key, width)")
    check_kind("widths", widths, (Sequence, np.ndarray), "a list of widths")
    widths = tuple(np.asarray(widths).tolist())
    if len(set(widths)) < 2:
        raise ValueError(f"`widths` must hold at least two different widths, got {widths}.")
    for width in widths:
        check_count("widths", width)
    check_count("steps", steps)
    check_count("seeds", seeds)
    check_positive("rate", rate)
    data, key = Dataset(inputs, targets, "batch"), as_key(key)
    initial: dict[str, list] = {}
    updates: dict[str, list] = {}
    for width in widths:
        squares: dict[str, list] = {}
        for seed in range(seeds):
            try:
                made = constructor(named_key(key, "coordinates", seed), width)
            except TypeError as error:
                raise ValueError(
                    f"`constructor` must be a function of (key, width), but it raises: {error}."
                ) from error
            before, after = _trained(made, data, rate, steps, activations)
            for name, start in before.items():
                moved = np.asarray(after[name], float) - np.asarray(start, float)
                squares.setdefault(name, []).append(
                    (np.mean(np.square(np.asarray(start, float))), np.mean(np.square(moved)))
                )
        for name, pairs in squares.items():
            first, second = np.mean(pairs, axis=0)
            initial.setdefault(name, []).append(math.sqrt(first))
            updates.setdefault(name, []).append(math.sqrt(second))
    fits = {name: _slope(widths, values) for name, values in updates.items()}
    return CoordinateCheck(
        widths, steps, rate, {n: np.array(v) for n, v in initial.items()}, {n: np.array(v) for n, v in updates.items()},
        {n: f[0] for n, f in fits.items()}, {n: f[1] for n, f in fits.items()},
    )  # fmt: skip


def _trained(made, data: Dataset, rate: float, steps: int, activations) -> tuple[dict, dict]:
    if isinstance(made, AbstractModel):
        run = train(
            made, data, GradientDescent(rate), steps=steps, loss=HalfMeanSquares(), every=steps
        )
        look = activations or _layers
        return look(made, data.inputs), look(run.model, data.inputs)
    try:
        apply, params = made
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`constructor` must give a wideflow model or a pair (apply, params), got {type(made).__name__}."
        ) from error
    look = activations or (lambda p, x: {"outputs": apply(p, x)})
    x, y = jnp.asarray(data.inputs), jnp.asarray(data.targets)
    moving, static = eqx.partition(params, eqx.is_inexact_array)

    def loss(p):
        outputs = apply(eqx.combine(p, static), x)
        return jnp.sum((outputs.reshape(y.shape) - y) ** 2) / (2 * len(y))

    @jax.jit
    def descend(p):
        return jax.tree.map(lambda w, g: w - rate * g, p, jax.grad(loss)(p))

    end = moving
    for _ in range(steps):
        end = descend(end)
    return look(params, x), look(eqx.combine(end, static), x)


def _layers(model, inputs) -> dict:
    layers = {"outputs": model.outputs(inputs)}
    return (
        {"preactivations": model.preactivations(inputs), **layers}
        if isinstance(model, Shallow)
        else layers
    )


def _slope(widths, values) -> tuple[float, float]:
    if not min(values) > 0:
        return math.nan, math.nan
    x, y = np.log(widths), np.log(values)
    x = x - x.mean()
    slope = float(x @ y / (x @ x))
    rest = y - y.mean() - slope * x
    error = (
        math.sqrt(float(rest @ rest) / max(len(x) - 2, 1) / float(x @ x))
        if len(x) > 2
        else math.nan
    )
    return slope, error


def _reading(slope: float) -> str:
    if not math.isfinite(slope):
        return "does not move"
    if slope > 0.15:
        return "grows with the width: unstable"
    return "features move at every width" if slope > -0.15 else "vanishes with the width: lazy"
