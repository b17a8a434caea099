r"""What infinite width says of a deep network's loss, for the dashed curve beside a run.

Under NTK parametrisation the tangent kernel stands still, and the residual follows
$\dot r = -\Theta^\infty r$ from the outputs that this network starts with. Under mean field and
maximal update, which are one and the same network, features move, and the field theory
(bordelon2022) says how: by Monte Carlo, with its standard error. Its cost grows with the square of
samples times steps, so that a longer run is followed for its beginning alone, in steps as large as
stability allows.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import xarray as xr

from .._core.activations import Activation
from .._core.architecture import alternating
from .._core.randomness import named_key
from ..data.dataset import Dataset
from ..limits.feature_learning import field_theory
from ..limits.infinite_width.architecture_kernels import kernels
from ..limits.linearised import linearised
from ..models.deep import Deep
from ..observables.kernels import tangent_gram

RICH = ("mean-field", "maximal-update")
MOST_ROWS = 420  # samples times steps of the field theory: 16 CPU seconds, 12 of them to compile
LEAST_STEPS = 8  # fewer show nothing
# of the stability limit 2/lambda_max: a step of the field theory where the run has smaller ones
SHARE = 0.25
REPEATS = 3  # of the field theory; standard errors need two (chosen)
SEEN = 0.05  # of the run: a shorter beginning cannot be seen in the picture
NAMES = ("limit_loss", "limit_low", "limit_high")


@dataclass(frozen=True)
class Theory:
    """A prediction of the loss at infinite width.

    Attributes:
        times: at which it is known.
        note: what the panel says of it.
        compute: gives loss, lower and upper end of its band (two standard errors) and, where the
            kernel stands still, its spectrum.
        eigenvalues: of that spectrum, 0 where there is none.
    """

    times: np.ndarray
    note: str
    compute: Callable[[], dict]
    eigenvalues: int = 0

    def awaited(self) -> xr.Dataset:
        """The variables without numbers, so that figures keep their marks."""
        return self._dataset(self._unknown(), self.note)

    def predict(self) -> xr.Dataset:
        """The variables; where the theory refuses what it is given, its reason stands in place of
        the note.
        """
        try:
            return self._dataset(self.compute(), self.note)
        except ValueError as error:
            return self._dataset(self._unknown(), f"infinite width: {error}")

    def _unknown(self) -> dict:
        empty = dict.fromkeys(NAMES, np.full(len(self.times), np.nan))
        return empty | {"limit_spectrum": np.full(self.eigenvalues, np.nan)}

    def _dataset(self, values: dict, note: str) -> xr.Dataset:
        known: dict[str, tuple] = {
            name: ("limit_ahead", np.asarray(values[name])) for name in NAMES
        }
        known["limit_time"] = ("limit_ahead", self.times, {"note": note})
        if self.eigenvalues:
            known["limit_spectrum"] = ("eigenvalue", np.asarray(values["limit_spectrum"]))
        return xr.Dataset(known)


def deep_theory(
    network: Deep, training: Dataset, times: np.ndarray, rate: float | None, factor: float, key
) -> Theory | None:
    """The theory of the network's parametrisation, None where there is none.

    Args:
        times: of the run's records. rate: of descent, None for the flow.
        factor: of the loss, relative to the half sum of squares.
    """
    name = getattr(network.parametrisation, "name", "")
    if name == "ntk":
        note = "infinite width: the kernel of the limit, from this network's start"
        flow = lambda: _kernel_flow(network, training, times, rate, factor)
        return Theory(times, note, flow, len(training))
    return _field(network, training, times, rate, factor, key) if name in RICH else None


def _kernel_flow(network, training, times, rate, factor) -> dict:
    gram = np.asarray(kernels(network.architecture).ntk(training.inputs))
    start = network.outputs(training.inputs)
    path = linearised(factor * gram, training.targets, times, start=start, rate=rate)
    loss = factor * np.asarray(path.losses)
    return {
        "limit_loss": loss,
        "limit_low": loss,
        "limit_high": loss,
        "limit_spectrum": np.linalg.eigvalsh(gram),
    }


def _field(network, training, times, rate, factor, key) -> Theory | None:
    shape = perceptron(network)
    if shape is None:
        return None
    depth, act, scale = shape
    samples, end = len(training), float(times[-1])
    most = MOST_ROWS // samples - 1
    if most < LEAST_STEPS:
        note = (
            f"infinite width is too expensive for {samples} samples: at most "
            f"{MOST_ROWS // (LEAST_STEPS + 1)}"
        )
        return Theory(np.zeros(1), note, lambda: dict.fromkeys(NAMES, np.full(1, np.nan)))
    if rate is not None and end <= rate * (most + 0.5):
        step = float(rate)
    else:
        step = _long_step(network, training, rate, factor)
    steps = min(most, max(1, math.ceil(end / step - 1e-9)))
    grid = step * np.arange(steps + 1)

    def compute() -> dict:
        rows = 4 * samples * (steps + 1)
        path = field_theory(
            named_key(key, "field theory"),
            scale * np.asarray(training.inputs),
            training.targets,
            depth,
            activation=act,
            rate=factor * step,
            steps=steps,
            samples=max(1024, rows),
            repeats=REPEATS,
        )
        loss, error = (factor * np.asarray(values) for values in (path.losses, path.losses_error))
        return {"limit_loss": loss, "limit_low": loss - 2 * error, "limit_high": loss + 2 * error}

    return Theory(grid, _field_note(grid[-1], end, rate), compute)


def _field_note(until: float, end: float, rate: float | None) -> str:
    if until >= end * (1 - 1e-9):
        return "infinite width: field theory, with two standard errors"
    shorter = "" if rate is None else f"; {max(1, int(until / rate))} steps show all of it"
    if until < SEEN * end:
        return f"infinite width is affordable up to time {until:.2g} alone{shorter}"
    return f"infinite width: field theory up to time {until:.2g}, too expensive beyond"


def _long_step(network, training, rate: float | None, factor: float) -> float:
    """As many of the run's steps together as stay at `SHARE` of the stability limit, at least
    one.
    """
    top = float(np.linalg.eigvalsh(np.asarray(tangent_gram(network, training.inputs)))[-1])
    stable = SHARE * 2 / (factor * top)
    return stable if rate is None else rate * max(1, int(stable / rate))


def perceptron(network: Deep) -> tuple[int, Activation, float] | None:
    r"""Depth, activation and $\sigma_w$ of a plain perceptron as the field theory has it, None for
    other networks.

    $h^{l+1} = \sigma_wW\phi(h^l)/\sqrt N$ with unit normal $W$ is the theory's network with the
    activation $\sigma_w\phi$ on inputs $\sigma_wx$.
    """
    dense, between = alternating(network.architecture) or ([], [])
    if not all(one.bias_std is None for one in dense):
        return None
    scales = {one.weight_std for one in dense}
    kinds = {one.activation for one in between}
    if len(scales) != 1 or len(kinds) != 1 or dense[-1].width != 1:
        return None
    scale = float(scales.pop())
    return len(between), scaled(kinds.pop(), scale), scale


@functools.lru_cache(maxsize=16)
def scaled(act: Activation, factor: float) -> Activation:
    r"""$c\,\phi$; the same object every time, so that programs compiled for it are found again."""
    if factor == 1.0:
        return act
    times = lambda function: lambda z: factor * function(z)
    return dataclasses.replace(
        act,
        name=f"{factor:g} {act.name}",
        value=times(act.value),
        slope=times(act.slope),
        bend=times(act.bend),
        lipschitz=factor * act.lipschitz,
        curvature=factor * act.curvature,
        interval_slope=factor * act.interval_slope,
        at_kink=factor * act.at_kink,
        switch=False,
        parameters=(*act.parameters, factor),
    )
