"""The certificate: everything `certify` found, as text, as a dictionary and as a figure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._core.counted import counted
from ..figures import FigureSpec
from ..observables.regime import RICH, Regime
from ..theorems.base import Outcome
from .checks import Check
from .drawing import draw
from .grams import GramReport
from .laziness import Laziness
from .promises import Followed, Promise
from .timing import Timing

ORDER = (Outcome.VIOLATED, Outcome.HOLDS, Outcome.VACUOUS, Outcome.NOT_APPLICABLE)


@dataclass(frozen=True)
class Certificate:
    """What theory says about a network on a dataset. `print(certificate)` shows it; `.to_dict()`
    has every number; `.figure()` draws it.

    Attributes:
        subject: of what: data, network, scaling, width.
        notes: what was done to the data and what the reader must know.
        checks: of the dataset.
        mean: spectrum of the mean Gram matrix; its smallest eigenvalue is kappa_n. None for
            networks without one.
        own: spectrum of the tangent Gram matrix of the network as given.
        promises: the statements, judged.
        later: names of statements that only a trained run can judge.
        timing: predicted times to reach a loss.
        laziness: how lazy the network is, and would be at other widths and gammas.
        followed: the run, where there was one.
        coupling: eigenvalues of the matrix by which the mean Gram matrix is multiplied (Kronecker)
            for several outputs; None for one.
    """

    subject: dict[str, str | int | float]
    notes: tuple[str, ...]
    checks: tuple[Check, ...]
    mean: GramReport | None
    own: GramReport
    promises: tuple[Promise, ...]
    later: tuple[str, ...]
    timing: Timing
    laziness: Laziness
    followed: Followed | None = None
    coupling: np.ndarray | None = None

    def count(self, outcome: Outcome) -> int:
        return sum(promise.outcome is outcome for promise in self.promises)

    @property
    def ordered(self) -> tuple[Promise, ...]:
        """Violated first, then what holds, what is vacuous, what does not apply."""
        return tuple(sorted(self.promises, key=lambda promise: ORDER.index(promise.outcome)))

    @property
    def telling(self) -> tuple[Promise, ...]:
        """The statements that say something: all but those that do not apply and ask for no width
        either.
        """
        return tuple(
            p
            for p in self.ordered
            if p.outcome is not Outcome.NOT_APPLICABLE or math.isfinite(p.required)
        )

    @property
    def silent(self) -> tuple[tuple[str, str], ...]:
        """The others: (statements, the reason they share)."""
        groups: dict[str, list[str]] = {}
        for promise in self.ordered:
            if promise not in self.telling:
                groups.setdefault(promise.message, []).append(promise.name)
        return tuple((", ".join(names), reason) for reason, names in groups.items())

    @property
    def headline(self) -> str:
        """One sentence; the regime is the measured one where there was a run, else the predicted
        one.
        """
        if self.followed is not None:
            regime, how = self.followed.regime, "measured on the run"
        else:
            regime, how = self.laziness.here, "predicted"
        return (
            f"{self.counted}; the network is {regime.verdict} (laziness index {regime.index:.2f}, "
            f"{how})"
        )

    @property
    def counted(self) -> str:
        """How many statements there are of each outcome."""
        words = {  # of one, of several
            Outcome.HOLDS: ("holds", "hold"),
            Outcome.VIOLATED: ("is violated", "are violated"),
            Outcome.VACUOUS: ("is vacuous", "are vacuous"),
            Outcome.NOT_APPLICABLE: ("does not apply", "do not apply"),
        }
        numbers = [(self.count(outcome), words[outcome]) for outcome in ORDER]
        counts = ", ".join(f"{n} {several if n > 1 else one}" for n, (one, several) in numbers if n)
        return f"{counted(len(self.promises), 'statement')}: {counts}"

    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """The numbers beside the theorems: (what, value, meaning)."""
        rows = []
        if self.mean is not None:
            rows += [
                (
                    "kappa_n (smallest eigenvalue of the mean Gram)",
                    self.mean.smallest_text(),
                    "promised rates are gamma kappa_n / 2; it enters every required width",
                ),
                (
                    "condition number of the mean Gram",
                    self.mean.condition_text(),
                    "ratio of the fastest to the slowest mode",
                ),
                (
                    "effective rank of the mean Gram",
                    f"{self.mean.effective_rank:.4g}",
                    "(trace)^2 / sum of squares: directions that carry the kernel",
                ),
            ]
        if self.coupling is not None:
            rows.append(
                (
                    "coupling of the outputs",
                    f"{self.coupling[0]:.4g} to {self.coupling[-1]:.4g}",
                    "the mean Gram over all outputs is the one above times a matrix with these "
                    "eigenvalues; all 1 if the outputs do not interact",
                )
            )
        rows += [
            (
                "gap of this network's Gram",
                self.own.smallest_text(),
                "the loss now falls at least at twice this rate",
            ),
            ("condition number of this network's Gram", self.own.condition_text(), ""),
            (
                "predicted laziness index",
                f"{self.laziness.here.index:.3f} ({self.laziness.here.verdict})",
                _regime_sentence(self.laziness),
            ),
        ]
        rows += [
            (
                f"predicted time to {share:g} of the initial loss",
                _time(time),
                _trust(time, regime, span),
            )
            for share, time, regime, span in zip(
                self.timing.shares, self.timing.times, self.laziness.path, self.laziness.spans
            )
        ]
        return tuple(rows)

    def __str__(self) -> str:
        lines = ["Certificate", *(f"  {name}: {value}" for name, value in self.subject.items())]
        lines += [f"  note: {note}" for note in self.notes]
        lines += [
            "",
            "Data",
            *columns([(c.verdict, c.name, c.found, c.meaning) for c in self.checks]),
        ]
        lines += ["", "Numbers", *columns(self.rows())]
        lines += [
            "",
            "Along the width: " + _along("m", self.laziness.widths, self.laziness.along_width),
        ]
        if self.laziness.gammas:
            lines += [
                "Along gamma: " + _along("gamma", self.laziness.gammas, self.laziness.along_gamma)
            ]
        lines += [
            "",
            "Theorems",
            *columns(
                [
                    (p.outcome.name, p.name, p.width_text(), p.rate_text(), p.message)
                    for p in self.telling
                ]
            ),
        ]
        lines += [
            "",
            "Do not apply here",
            *(f"  {names}: {reason}" for names, reason in self.silent),
        ]
        if self.later:
            lines += [
                f"  {len(self.later)} more can be judged on a run (train=True): "
                f"{', '.join(self.later)}"
            ]
        if self.followed is not None:
            lines += ["", "What happened", *columns(self.followed.rows())]
        return "\n".join([*lines, "", self.headline])

    def to_dict(self) -> dict:
        """Everything, in plain Python types."""
        return {
            "subject": dict(self.subject),
            "headline": self.headline,
            "notes": list(self.notes),
            "checks": [vars(check) for check in self.checks],
            "mean_gram": None if self.mean is None else self.mean.to_dict(),
            "own_gram": self.own.to_dict(),
            "laziness": self.laziness.to_dict(),
            "timing": self.timing.to_dict(),
            "output_coupling": None if self.coupling is None else self.coupling.tolist(),
            "theorems": [promise.to_dict() for promise in self.promises],
            "judged_on_a_run": list(self.later),
            "run": None if self.followed is None else self.followed.to_dict(),
        }

    def figure(self) -> FigureSpec:
        """Spectrum, predicted loss (with the run's), laziness along width and gamma, required
        widths.
        """
        return draw(self)


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned text, the last column free."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    return [
        "  " + "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths)), row[-1]]).rstrip()
        for row in rows
    ]


def _time(time: float) -> str:
    return f"{time:.4g}" if math.isfinite(time) else "never"


def _trust(time: float, regime: Regime, span: tuple[float, float]) -> str:
    """What a predicted time is worth, from how far the lazy path contradicts itself there."""
    if not math.isfinite(time):
        return "the rest of the loss lies in unresolved modes"
    low, high = span
    if not (regime.richness <= RICH and high < math.inf):
        return (
            f"linearised dynamics, not to be trusted here: its path is {regime.richness:.0%} off "
            "the network itself; "
            "`train=True` measures it"
        )
    return (
        f"linearised dynamics with this network's Gram; training itself between {low * time:.3g} "
        f"and {high * time:.3g} (estimated)"
    )


def _along(name: str, places, regimes) -> str:
    return (
        ", ".join(f"{name} = {place}: {regime.index:.2f}" for place, regime in zip(places, regimes))
        or "not for this model"
    )


def _regime_sentence(laziness: Laziness) -> str:
    here = laziness.here
    text = (
        f"at half of the loss the lazy path changes the kernel by {here.kernel_change:.1%} of "
        f"itself and is {here.linearisation_gap:.1%} off its own outputs"
    )
    if math.isfinite(laziness.slope):
        text += f"; the change goes like width^{laziness.slope:.2f}"
    return text
