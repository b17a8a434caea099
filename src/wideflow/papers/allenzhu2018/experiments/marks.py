"""How this folder's figures show what was measured: a point at each width, joined by a line."""

from ....figures import Line, Numbers, Points


def measured(x: Numbers, y: Numbers, label: str, *, dash: str = "solid") -> list[Line | Points]:
    """A line with its points, under one colour and one legend entry."""
    return [Line(x, y, label, dash=dash), Points(x, y, group=label)]


def guide(x: Numbers, start: float | int, power: float | int, label: str) -> Line:
    """A dotted power law through `start` at the first `x`."""
    x = [float(value) for value in x]
    return Line(x, [start * (value / x[0]) ** power for value in x], label, dash="dotted")
