r"""The coordinate check: how the size of activations and of their updates depends on the width.

After a few steps of training at one rate, a parameterisation in which features are learned at every
width has updates of size $m^0$; under the NTK scaling those of the hidden layer go like $m^{-1/2}$;
one that blows up has a positive exponent. The slopes tell. For `Deep` networks they stand beside
the exponents that `scalings.classify` predicts, which they confirm or refute.
"""

import dataclasses
import inspect
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import stdtrit

from ._core.arrays import real_values
from ._core.counted import counted
from ._core.errors import as_key, check_callable, check_count, check_kind, check_positive
from ._core.precision import double
from ._core.randomness import named_key
from ._core.scalings import ABC, classify
from .data.dataset import Dataset
from .dynamics.descent import GradientDescent
from .dynamics.losses import HalfMeanSquares
from .figures import FigureSpec, Line, Panel
from .models.base import AbstractModel
from .models.deep import Deep
from .models.shallow import Shallow
from .observables.kernels import tangent_gram
from .training.train import train

__all__ = ["ArrayScaling", "CoordinateCheck", "coordinate_check"]

# a measured slope this close to a predicted one agrees with it, as finite widths bend the line
# (chosen)
MARGIN = 0.1
# a measured exponent further from a multiple of 1/2 than this suggests nothing (chosen: at 1/4 the
# two nearest are equally far)
UNCLEAR = 0.2


class ArrayScaling(NamedTuple):
    r"""Which powers of the width an array wants, so that its layer moves at every width.

    Attributes:
        role: "input", "hidden", "output" or "fixed" by which of its fans grow with the width;
            "vector" for biases and scales.
        start: measured exponent by which its start is to be multiplied, $n^{\text{start}}$.
        rate: measured exponent by which its learning rate is to be multiplied.
        own: measured exponent of its layer's update when it moves alone; 0 is wanted.
    """

    role: str
    start: float
    rate: float
    own: float

    @property
    def mending(self) -> tuple[float, float]:
        """The exponents of start and rate as multiples of 1/2; NaN where the measurement lies
        between two.
        """
        return to_halves(self.start), to_halves(self.rate)

    @property
    def verdict(self) -> str:
        start, rate = self.mending
        if self.role == "fixed":
            return "does not grow with the width: nothing to fix"
        if not math.isfinite(self.own):
            return "does not move"
        if math.isnan(start) or math.isnan(rate):
            return f"undecided: start x width^{self.start:.2f}, rate x width^{self.rate:.2f}"
        if start == rate == 0:
            return "maximal update: already moves at every width"
        changes = [f"{what} x width^{x:g}" for what, x in (("start", start), ("rate", rate)) if x]
        return f"to fix: {', '.join(changes)}"


def to_halves(exponent: float) -> float:
    """The nearest multiple of 1/2, as theory's exponents are; NaN where none is near."""
    if not math.isfinite(exponent) or abs(2 * exponent - round(2 * exponent)) > 2 * UNCLEAR:
        return math.nan
    return round(2 * exponent) / 2 + 0.0


@dataclass(frozen=True)
class CoordinateCheck:
    """Root mean squares over coordinates, inputs and seeds, for each layer along the widths.

    Attributes:
        initial: size of the initial activations, by layer.
        updates: size of their change after `steps` steps.
        slopes: of log(update) on log(width), by layer; 0 means features move at every width.
        errors: standard error of each slope, from the scatter of the points around the line.
        intervals: 95 % confidence interval of each slope, from the scatter between seeds (Student's
            t); NaN for one seed.
        predicted: slopes that theory predicts, by layer; empty where it says nothing of the
            network.
        sizes: of modules of PyTorch, mean of |h| by layer, (width, step) from before the first step
            to after the last; what microsoft/mup plots.
        scalings: of modules of PyTorch, `ArrayScaling` of every array: a verdict, and the exponents
            that would mend it.
    """

    widths: tuple[int, ...]
    steps: int
    rate: float
    initial: dict[str, np.ndarray]
    updates: dict[str, np.ndarray]
    slopes: dict[str, float]
    errors: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    predicted: dict[str, float]
    sizes: dict[str, np.ndarray] = field(default_factory=dict)
    scalings: dict[str, ArrayScaling] = field(default_factory=dict)

    def size_slopes(self, step: int = -1) -> dict[str, float]:
        """Slopes of log(mean of |h|) on log(width) before step number `step` from 0; -1 is after
        the last one.
        """
        return {name: slope_of(self.widths, sizes[:, step]) for name, sizes in self.sizes.items()}

    @property
    def verdicts(self) -> dict[str, str]:
        """For every predicted slope: 'confirmed', 'refuted' (the interval misses it by more than
        0.1), or 'undecided' (too few seeds to say).
        """
        said = {}
        for name, expected in self.predicted.items():
            low, high = self.intervals[name]
            if low > expected + MARGIN or high < expected - MARGIN:
                said[name] = "refuted"
            elif abs(self.slopes[name] - expected) <= MARGIN and high - low < 4 * MARGIN:
                said[name] = "confirmed"
            else:
                said[name] = "undecided"
        return said

    def __str__(self) -> str:
        lines = [
            f"coordinate check: {counted(self.steps, 'step')} at rate {self.rate:g}, widths "
            f"{', '.join(map(str, self.widths))}"
        ]
        verdicts = self.verdicts
        for name, slope in self.slopes.items():
            sizes = ", ".join(f"{value:.3g}" for value in self.updates[name])
            theory = ""
            if name in verdicts:
                low, high = self.intervals[name]
                theory = (
                    f"; predicted {self.predicted[name]:g}, interval [{low:.2f}, {high:.2f}]: "
                    f"{verdicts[name]}"
                )
            lines.append(
                f"  {name}: updates {sizes}; width^{slope:.2f} ± {self.errors[name]:.2f}: "
                f"{_reading(slope)}{theory}"
            )
        lines += [f"  {name} ({s.role}): {s.verdict}" for name, s in self.scalings.items()]
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
            "intervals": {name: list(ends) for name, ends in self.intervals.items()},
            "predicted": self.predicted,
            "sizes": {name: values.tolist() for name, values in self.sizes.items()},
            "scalings": {name: s._asdict() for name, s in self.scalings.items()},
        }

    def figure(self) -> FigureSpec:
        """Size of the initial activations and of their updates, against the width."""
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
                ("initial activations", self.initial),
                (f"their change after {counted(self.steps, 'step')}", self.updates),
            )
        ]
        slopes = ", ".join(f"{name}: {slope:.2f}" for name, slope in self.slopes.items())
        return FigureSpec(
            "Coordinate check", panels, columns=2, caption=f"Slopes of the updates: {slopes}."
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
    dynamics=None,
    optimiser=None,
    loss=None,
) -> CoordinateCheck:
    """Trains networks of several widths for a few steps and measures how their activations move.

    Args:
        constructor: `constructor(key, width)` gives a wideflow model, or a pair `(apply, params)`
            with `apply(params, inputs)` on a batch; `constructor(width)` a `torch.nn.Module`, drawn
            from PyTorch's own random numbers.
        widths: at least two.
        inputs, targets: a batch and what is to be fitted, by half the mean of squares.
        activations: `activations(model_or_params, inputs)` gives a dictionary of arrays, one a
            layer; default: pre-activations (for `Shallow` and, layer by layer, for `Deep`),
            outputs, and for `Deep` the tangent kernel, whose change is relative.
        rate: of gradient descent, the same at every width; wideflow models add their own neuron
            factor, others get none.
        steps, seeds: how many steps, and over how many draws the squares are averaged.
        dynamics: instead of gradient descent at `rate`, for instance `Optax(optax.adam(1e-3))`;
            wideflow models only.
        optimiser: of modules, a class such as `torch.optim.Adam`, taken at `rate`, or a function
            `module -> optimiser`; default `torch.optim.SGD`.
        loss: of modules, `loss(outputs, targets)` instead of half the mean of squares.

    Modules of PyTorch get more: the sizes that microsoft/mup plots, and for every array a verdict
    with the exponents of the width that would mend it (see `CoordinateCheck.scalings`).
    """
    check_callable("constructor", constructor, "a function of (key, width)")
    check_kind("widths", widths, (Sequence, np.ndarray), "a list of widths")
    widths = tuple(np.asarray(real_values("widths", widths, "(width)")).tolist())
    if len(set(widths)) < 2:
        raise ValueError(f"`widths` must hold at least two different widths, got {widths}.")
    for width in widths:
        check_count("widths", width)
    check_count("steps", steps)
    check_count("seeds", seeds)
    check_positive("rate", rate)
    if _takes_width_alone(constructor):
        if dynamics is not None or activations is not None:
            raise ValueError(
                "`dynamics` and `activations` are for functions of JAX; give modules of PyTorch "
                "an `optimiser`."
            )
        return _check_modules(
            constructor, widths, inputs, targets, rate, steps, seeds, key, optimiser, loss
        )
    if optimiser is not None or loss is not None:
        raise ValueError(
            "`optimiser` and `loss` are for modules of PyTorch, whose `constructor` takes the "
            "width alone."
        )
    data, key = Dataset(inputs, targets, "batch"), as_key(key)
    squares: list[list[dict]] = []
    predicted: dict[str, float] = {}
    for width in widths:
        squares.append([])
        for seed in range(seeds):
            try:
                network = constructor(named_key(key, "coordinates", seed), width)
            except TypeError as error:
                raise ValueError(
                    f"`constructor` must be a function of (key, width), but it raises: {error}."
                ) from error
            before, after = _trained(network, data, rate, steps, activations, dynamics)
            squares[-1].append(
                {name: _mean_squares(name, start, after[name]) for name, start in before.items()}
            )
            if activations is None:
                predicted = _predicted(network, dynamics)
    return _fitted(widths, steps, rate, squares, predicted)


def _takes_width_alone(constructor: Callable) -> bool:
    """Whether a function has one argument, as those that build modules of PyTorch."""
    try:
        parameters = inspect.signature(constructor).parameters.values()
    except (TypeError, ValueError):
        return False
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return False
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len([p for p in places if p.default is p.empty]) == 1


def _check_modules(constructor, widths, inputs, targets, rate, steps, seeds, key, optimiser, loss):
    if "torch" not in sys.modules:  # nobody can have built a module yet
        raise ValueError(
            "`constructor` must be a function of (key, width), or of the width that gives a "
            f"torch.nn.Module, got {constructor!r}."
        )
    from .torch.coordinates import check_modules

    rows, scalings, rate = check_modules(
        constructor,
        widths,
        inputs,
        targets,
        rate=rate,
        steps=steps,
        seeds=seeds,
        key=key,
        optimiser=optimiser,
        loss=loss,
    )
    check = _fitted(widths, steps, rate, [[m.squares for m in row] for row in rows], {})
    sizes = {
        name: np.array([np.mean([m.sizes[name] for m in row], axis=0) for row in rows])
        for name in check.updates
    }
    return dataclasses.replace(check, sizes=sizes, scalings=scalings)


def _fitted(widths, steps, rate, squares: list[list[dict]], predicted) -> CoordinateCheck:
    """Slopes from mean squares at the start and of the change, (width, seed) dictionaries by
    layer.
    """
    names = list(squares[0][0])
    # (width, seed, start or change)
    values = {n: np.array([[seed[n] for seed in row] for row in squares]) for n in names}
    sizes = {n: np.sqrt(np.mean(v, axis=1)) for n, v in values.items()}
    fits = {n: _slope(widths, size[:, 1]) for n, size in sizes.items()}
    return CoordinateCheck(
        widths,
        steps,
        rate,
        {n: size[:, 0] for n, size in sizes.items()},
        {n: size[:, 1] for n, size in sizes.items()},
        {n: fit[0] for n, fit in fits.items()},
        {n: fit[1] for n, fit in fits.items()},
        {n: _interval(widths, np.sqrt(v[:, :, 1])) for n, v in values.items()},
        predicted,
    )


def _mean_squares(name: str, start, end) -> tuple[float, float]:
    """Of the start and of the change; a kernel's change counts relative to its size."""
    start, end = np.asarray(start, float), np.asarray(end, float)
    first, moved = float(np.mean(start**2)), float(np.mean((end - start) ** 2))
    return (first, moved / first) if name == "kernel" else (first, moved)


def _predicted(network, dynamics) -> dict[str, float]:
    """What `classify` says about a `Deep` chain; nothing for other models and for one rate under
    adaptive updates.
    """
    if not isinstance(network, Deep) or any(place.role == "input" for place in network.places[1:]):
        return {}
    scheme, adaptive = network.parametrisation, getattr(dynamics, "kind", "sgd") == "adaptive"
    if scheme is None or network.layers < 2 or (adaptive and getattr(scheme, "one_rate", False)):
        return {}
    exponents = scheme if isinstance(scheme, ABC) else scheme.abc(network.layers - 1)
    return classify(exponents, [place.layer.trained for place in network.places]).slopes


def _interval(widths, values: np.ndarray) -> tuple[float, float]:
    """95 % for the mean over seeds of each seed's own slope; `values` is (width, seed)."""
    seeds = values.shape[1]
    if seeds < 2 or not np.min(values) > 0:
        return math.nan, math.nan
    slopes = [_slope(widths, values[:, k])[0] for k in range(seeds)]
    half = float(stdtrit(seeds - 1, 0.975)) * float(np.std(slopes, ddof=1)) / math.sqrt(seeds)
    return float(np.mean(slopes)) - half, float(np.mean(slopes)) + half


def _trained(network, data: Dataset, rate: float, steps: int, activations, dynamics=None):
    if isinstance(network, AbstractModel):
        moving = GradientDescent(rate) if dynamics is None else dynamics
        run = train(network, data, moving, steps=steps, loss=HalfMeanSquares(), every=steps)
        look = activations or _layers
        return look(network, data.inputs), look(run.model, data.inputs)
    if dynamics is not None:
        raise ValueError(
            "`dynamics` needs wideflow models; give the pair (apply, params) to `wideflow.wrap` "
            "in the constructor."
        )
    try:
        apply, params = network
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`constructor` must give a wideflow model or a pair (apply, params), got "
            f"{type(network).__name__}."
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
    if isinstance(model, Deep):
        return {
            **model.preactivations(inputs),
            **layers,
            "kernel": tangent_gram(model, inputs),
        }
    return (
        {"preactivations": model.preactivations(inputs), **layers}
        if isinstance(model, Shallow)
        else layers
    )


def slope_of(widths, values) -> float:
    """Of log(values) on log(widths); NaN where a value is not positive."""
    return _slope(widths, values)[0]


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


def __dir__() -> list[str]:
    return __all__  # completion shows what is this module's own
