"""What an experiment declares: settings in sizes, a run, a figure, and the claims it checks."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import xarray as xr

from .._core.annotations import check_fields
from .._core.errors import check_choice
from .._core.renamed import renamed
from .._core.types import Key
from ..figures import FigureSpec
from ..training.session import Session

SIZES = ("smoke", "default", "paper")


@dataclass(frozen=True)
class Claim:
    """A number against what the paper (or the specification) says about it.

    Give `expected` with `tolerance` (absolute, or relative with `relative=True`), and/or `at_least`
    and `at_most`, or `holds`. `expected_to_hold=False` declares a claim of the paper that does not
    reproduce: it is shown as such and does not fail the run, but it must not come out true
    unnoticed. `published` is the paper's own number, shown beside ours.

    Args:
        text: the statement, in one line.
        value: the measured number; NaN where `holds` alone decides.
        note: what a reader should know beside the numbers.
    """

    text: str
    value: float | int = math.nan
    expected: float | int | None = None
    tolerance: float | int | None = None
    relative: bool = False
    at_least: float | int | None = None
    at_most: float | int | None = None
    holds: bool | None = None
    expected_to_hold: bool = True
    published: float | int | None = None
    note: str = ""

    def __post_init__(self):
        check_fields(self)
        if self.tolerance is not None and self.tolerance < 0:
            raise ValueError(
                f"`tolerance` of claim {self.text!r} must not be negative, got {self.tolerance}."
            )
        low, high = self.at_least, self.at_most
        if low is not None and high is not None and low > high:
            raise ValueError(
                f"`at_least` of claim {self.text!r} must not exceed `at_most`, got {low} and "
                f"{high}."
            )

    @property
    def satisfied(self) -> bool:
        """Whether the statement is true of this run; NaN is never satisfied."""
        checks: list[bool] = []
        if self.holds is not None:
            checks.append(bool(self.holds))
        if self.expected is not None:
            allowed = (self.tolerance or 0.0) * (abs(self.expected) if self.relative else 1.0)
            checks.append(abs(self.value - self.expected) <= allowed)
        if self.at_least is not None:
            checks.append(self.value >= self.at_least)
        if self.at_most is not None:
            checks.append(self.value <= self.at_most)
        if not checks:
            raise ValueError(f"claim {self.text!r} states nothing to check.")
        return all(checks)

    @property
    def verdict(self) -> str:
        """'holds', 'FAILS', or 'does not reproduce (declared)'."""
        if self.expected_to_hold:
            return "holds" if self.satisfied else "FAILS"
        return (
            "FAILS: declared as not reproducing, but it holds"
            if self.satisfied
            else "does not reproduce (declared)"
        )

    @property
    def ok(self) -> bool:
        """Whether the claim holds, or is declared not to and does not."""
        return self.satisfied if self.expected_to_hold else not self.satisfied

    @property
    def bound(self) -> str:
        """The bound on the value, as text, in four digits.

        >>> paper = 0.00076
        >>> Claim("drift", 0.001, at_least=paper / 3.5, at_most=3.5 * paper, published=paper).bound
        'within a factor 3.5 of 0.00076'
        >>> Claim("loss", 0.01, at_least=0.004321, at_most=0.05).bound
        '0.004321 to 0.05'
        """
        parts = []
        if self.expected is not None:
            unit = (
                f" (±{100 * (self.tolerance or 0):.3g} %)"
                if self.relative
                else f" ± {self.tolerance or 0:.3g}"
            )
            parts.append(f"{self.expected:.6g}{unit}")
        if self.at_least is not None and self.at_most is not None:
            parts.append(self._between(self.at_least, self.at_most))
        elif self.at_least is not None:
            parts.append(f"≥ {_short(self.at_least)}")
        elif self.at_most is not None:
            parts.append(f"≤ {_short(self.at_most)}")
        if self.holds is not None:
            parts.append("true")
        return ", ".join(parts)

    def _between(self, low: float | int, high: float | int) -> str:
        """A range; where the published number is its geometric middle, the factor on either
        side.
        """
        centre = self.published
        if centre is not None and 0 < low < centre < high:
            factor = high / centre
            if math.isclose(factor, centre / low, rel_tol=1e-3):
                return f"within a factor {factor:.3g} of {_short(centre)}"
        return f"{_short(low)} to {_short(high)}"

    @property
    def acceptable(self) -> bool:
        """The old name of `ok`."""
        return self.ok

    @property
    def reproduces(self) -> bool:
        """The old name of `expected_to_hold`."""
        return self.expected_to_hold


Claim.__init__ = renamed(reproduces="expected_to_hold")(Claim.__init__)


def _short(number: float | int) -> str:
    """Four digits; whole numbers below a million in full."""
    if float(number).is_integer() and abs(number) < 1e6:
        return f"{number:.0f}"
    return f"{number:.4g}"


@dataclass(frozen=True)
class Experiment:
    """An experiment; `run(settings, key, session)` fills a table, `draw` and `claims` read nothing
    else.

    The `Session` carries checkpoints, progress and the wish for a flow: hand it on to every
    `train`.

    `claims_from_size` is the smallest size at which the claims are checked; a smaller run shows
    their numbers unjudged.

    Args:
        name: what users type after `wideflow run`.
        paper: the bib key.
        title: one line that says what is seen.
        figure: what it reproduces, for instance "Figure 2".
        settings: the sizes "smoke", "default" and "paper", each an instance of one frozen
            dataclass.
        needs_data: names of the data files without which it cannot run.
    """

    name: str
    paper: str
    title: str
    figure: str
    settings: Mapping[str, Any]
    run: Callable[[Any, Key, Session], xr.Dataset]
    draw: Callable[[xr.Dataset], FigureSpec]
    claims: Callable[[xr.Dataset], tuple[Claim, ...]]
    needs_data: tuple[str, ...] = ()
    claims_from_size: str = "smoke"

    def __post_init__(self):
        if set(self.settings) != set(SIZES):
            raise ValueError(f"experiment {self.name!r} must have settings for {SIZES}.")
        check_choice("claims_from_size", self.claims_from_size, SIZES)
        kinds = {type(settings) for settings in self.settings.values()}
        if len(kinds) != 1 or not dataclasses.is_dataclass(kinds.pop()):
            raise ValueError(
                f"the settings of experiment {self.name!r} must be one frozen dataclass."
            )

    def is_large_enough(self, size: str) -> bool:
        """Whether a run of that size is large enough for the claims."""
        return SIZES.index(size) >= SIZES.index(self.claims_from_size)

    asks = is_large_enough  # its name before 0.2.0

    @property
    def summary(self) -> str:
        return f"{self.title} ({self.paper}, {self.figure})"


Experiment.__init__ = renamed(asks_from="claims_from_size")(Experiment.__init__)
