"""The axes of a plane: which numbers of a network vary, over which values, and how they are
written.

The values of an axis are a lattice: refinement asks for points of it alone, so that runs are found
again.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .._core.errors import (
    check_choice,
    check_count,
    check_kind,
    check_list,
    check_number,
    did_you_mean,
)


@dataclass(frozen=True)
class Quantity:
    """What may be an axis: its label, the range taken where none is given, and which numbers make
    sense.

    Attributes:
        low, high, count: the default lattice; evenly spaced in the logarithm where `log`, else as
            they are.
        least, most: the values that a network can have (both ends included).
        whole: whole numbers alone.
    """

    label: str
    low: float | int
    high: float | int
    count: int
    log: bool = True
    whole: bool = False
    least: float | int = 0.0
    most: float | int = math.inf


QUANTITIES: Mapping[str, Quantity] = {
    "richness": Quantity("richness γ₀", 0.01, 10.0, 13),
    "alpha": Quantity("output factor α", 0.1, 100.0, 13),
    "width": Quantity("width m", 16, 512, 6, whole=True, least=1),
    "share": Quantity("symmetric share γ of the nodes", 0.0, 1.0, 9, log=False, most=1.0),
    "tail": Quantity("tail α of the node weights", 0.3, 0.9, 7, log=False, least=0.01, most=0.99),
    "weight_std": Quantity("standard deviation of the initial weights", 0.1, 10.0, 13),
    "depth": Quantity("hidden layers", 1, 4, 4, log=False, whole=True, least=1),
    "rate": Quantity("rate over the stability limit 2/λ", 0.02, 1.0, 9),
}
MOST_VALUES = 65  # on one axis (chosen): noise hides what a finer lattice would show


@dataclass(frozen=True)
class Axis:
    """A quantity and its lattice.

    Attributes:
        name: one of `QUANTITIES`: richness, alpha, width, share, tail, weight_std, depth or rate.
        values: of the lattice, in increasing order; refinement asks for these alone.
    """

    name: str
    values: tuple[float | int, ...]

    def __post_init__(self):
        check_choice("axes", self.name, QUANTITIES)
        check_list("values", self.values, "numbers")
        check_count(f"values of {self.name}", len(self.values), 2, MOST_VALUES)
        quantity = QUANTITIES[self.name]
        for value in self.values:
            check_number(self.name, value)
            positive = value > 0 or not quantity.log
            if not (quantity.least <= value <= quantity.most and positive):
                above = "above 0" if quantity.log else f"at least {quantity.least:g}"
                below = "" if math.isinf(quantity.most) else f" and at most {quantity.most:g}"
                raise ValueError(f"`{self.name}` must be {above}{below}, got {value:g}.")
            if quantity.whole and value != round(value):
                raise ValueError(f"`{self.name}` must be a whole number, got {value:g}.")
        if any(b <= a for a, b in zip(self.values, self.values[1:])):
            raise ValueError(
                f"the values of `{self.name}` must increase, got "
                f"{', '.join(f'{v:g}' for v in self.values)}."
            )
        kind = int if quantity.whole else float
        object.__setattr__(self, "values", tuple(kind(value) for value in self.values))

    @property
    def label(self) -> str:
        return QUANTITIES[self.name].label

    @property
    def scale(self) -> str:
        """'log' or 'linear', of a figure's axis."""
        return "log" if QUANTITIES[self.name].log else "linear"

    @property
    def unit(self) -> np.ndarray:
        """The lattice on [0, 1], in the axis's own scale."""
        return self.position(self.values)

    def position(self, values) -> np.ndarray:
        """Where values lie: 0 at the axis's first, 1 at its last, in its own scale."""
        scaled = lambda v: (
            np.log(np.asarray(v, float)) if self.scale == "log" else np.asarray(v, float)
        )
        low, high = scaled(self.values[0]), scaled(self.values[-1])
        return np.asarray((scaled(values) - low) / (high - low))

    def setting(self, value: float | int) -> dict[str, float | int]:
        """The setting of a run that a value of this axis stands for."""
        return {"richness": 1 / value} if self.name == "alpha" else {self.name: value}


def axis_of(name: str, extent=None) -> Axis:
    """An axis from a range (low, high) or (low, high, count), from a list of more than three
    values, or as it comes.

    A tuple is a range, a list is the values themselves.

    >>> axis_of("width", (16, 64, 3)).values
    (16, 32, 64)
    """
    if name not in QUANTITIES:
        raise ValueError(
            f"`axes` must be two of {', '.join(QUANTITIES)}, got "
            f"{name!r}.{did_you_mean(name, QUANTITIES)}"
        )
    quantity = QUANTITIES[name]
    if isinstance(extent, list | np.ndarray):
        return Axis(name, tuple(extent))
    if extent is not None and not (isinstance(extent, tuple) and len(extent) in (2, 3)):
        raise ValueError(
            f"`{name}` must be a range (low, high) or (low, high, count), or a list of values, "
            f"got {extent!r}."
        )
    low, high, *rest = extent or (quantity.low, quantity.high)
    count = rest[0] if rest else quantity.count
    for end in (low, high):
        check_number(name, end)
    check_count(f"count of {name}", count, 2, MOST_VALUES)
    if not low < high or (quantity.log and low <= 0):
        raise ValueError(f"`{name}` must be a range from low to high, got ({low}, {high}).")
    values = np.geomspace(low, high, count) if quantity.log else np.linspace(low, high, count)
    values[[0, -1]] = low, high
    if quantity.whole:
        return Axis(name, tuple(sorted({round(value) for value in values})))
    # six digits are enough, and a value reads as it was run
    return Axis(name, tuple(float(f"{value:.6g}") for value in values))


def parse_axis(text: str) -> Axis:
    """An axis from shell text: 'richness', 'richness=0.01:10', 'richness=0.01:10:13' or
    'width=64,128,256'.

    Args:
        text: a name, alone or with a range or values.

    >>> parse_axis("depth=1,2,3")
    Axis(name='depth', values=(1, 2, 3))
    """
    check_kind("text", text, str, "text such as 'width=64,128,256'")
    name, sign, rest = text.partition("=")
    name = name.strip()
    if not sign:
        return axis_of(name)
    try:
        if ":" in rest:
            low, high, *count = rest.split(":")
            return axis_of(name, (float(low), float(high), *(int(part) for part in count)))
        return axis_of(name, [float(part) for part in rest.split(",")])
    except ValueError as error:
        if "could not convert" in str(error) or "invalid literal" in str(error):
            raise ValueError(
                "`--axis` takes NAME=LOW:HIGH, NAME=LOW:HIGH:COUNT or NAME=V1,V2,..., got "
                f"{text!r}."
            ) from error
        raise


def plane_of(axes: Sequence[str] | Mapping[str, object]) -> tuple[Axis, Axis]:
    """The two axes of a plane from names, or from names with their ranges."""
    named = axes if isinstance(axes, Mapping) else dict.fromkeys(axes)
    pair = tuple(
        extent if isinstance(extent, Axis) else axis_of(name, extent)
        for name, extent in named.items()
    )
    if len(pair) != 2:
        raise ValueError(
            f"`axes` must be two of {', '.join(QUANTITIES)}, got "
            f"{', '.join(map(str, named)) or 'none'}."
        )
    if {axis.name for axis in pair} == {"alpha", "richness"}:
        raise ValueError("`axes` must differ, but richness is 1 / alpha. Take one of the two.")
    return pair
