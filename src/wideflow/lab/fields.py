"""The settings of free play that the page offers, each with its bounds; nothing else can be set
from it.
"""

import math
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import check_between, check_choice

ACTIVATIONS = ("relu", "tanh", "erf", "gelu", "softplus", "sigmoid", "sin")


@dataclass(frozen=True)
class Field:
    """A choice, a whole number or a number, as a label and an input of the page."""

    name: str
    label: str
    kind: str  # "choice", "whole", "number", "text"
    low: float = -math.inf
    high: float = math.inf
    options: tuple[str, ...] = field(default=())
    # which data or dynamics it is for, a word of `kinds`; elsewhere it is hidden and left out
    only: str = ""

    def value(self, text: str) -> Any:
        """The value that `text` spells, checked."""
        if self.kind == "choice":
            check_choice(self.name, text, self.options)
            return text
        if self.kind == "text":
            if len(text) > 100:
                raise ValueError(
                    f"`{self.name}` must have at most 100 characters, got {len(text)}."
                )
            return text
        try:
            number = int(text) if self.kind == "whole" else float(text)
        except ValueError as error:
            what = "a whole number" if self.kind == "whole" else "a number"
            raise ValueError(f"`{self.name}` must be {what}, got {text[:40]!r}.") from error
        check_between(self.name, number, self.low, self.high)
        return number


FIELDS = {
    f.name: f
    for f in (
        Field("data", "Data", "text"),
        Field("samples", "Samples", "whole", 2, 500, only="generated"),
        Field("features", "Inputs", "whole", 1, 200, only="wide"),
        Field("noise", "Noise", "number", 0, 5, only="noisy"),
        Field("frequency", "Frequency", "number", 0.1, 10, only="wave"),
        Field("amplitude", "Amplitude", "number", 0.01, 10, only="wave"),
        Field("rows", "Most rows", "whole", 2, 500, only="table"),
        Field("target", "Target column", "text", only="upload"),
        Field("positive", "Class against the rest", "text", only="upload"),
        Field("depth", "Hidden layers", "whole", 1, 8),
        Field("width", "Width", "whole", 1, 8192),
        Field("scaling", "Scaling", "text"),
        Field("activation", "Activation", "choice", options=ACTIVATIONS),
        Field("deviation", "Spread of the initial weights", "number", 0.01, 100),
        Field("dynamics", "Dynamics", "choice", options=("descent", "flow", "momentum", "adam")),
        Field("rate", "Rate", "number", 1e-6, 1e4, only="steps"),
        Field("steps", "Steps", "whole", 1, 1_000_000, only="steps"),
        Field("time", "Until time", "number", 1e-3, 1e8, only="flow"),
    )
}


def kinds(data: str, dynamics: str) -> set[str]:
    """What the data and the dynamics are, in the words of `Field.only`; the page's script says the
    same.
    """
    table = data.startswith(("uci:", "upload:"))
    conditions = {
        "generated": not table,
        "wide": not table and not data.startswith("wave"),
        "noisy": not table and data != "random-labels",
        "table": table,
        "upload": data.startswith("upload:"),
        "wave": data.startswith("wave"),
        "steps": dynamics != "flow",
        "flow": dynamics == "flow",
    }
    return {word for word, true in conditions.items() if true}
