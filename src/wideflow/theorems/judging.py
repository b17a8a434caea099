"""`judge`: every statement about a training, on one run; `records` is what they need to have been
recorded.
"""

import inspect
import math
from dataclasses import dataclass

from ..papers import papers
from ..training.run import Run
from .base import Outcome, Verdict
from .of_runs import AbstractRunTheorem, check_single

ORDER = (Outcome.VIOLATED, Outcome.HOLDS, Outcome.VACUOUS, Outcome.NOT_APPLICABLE)


@dataclass(frozen=True)
class Judgement:
    """The verdicts on a run by the statement's name, violated ones first; `print` shows them as a
    table.

    Attributes:
        verdicts: one `Verdict` for each statement that was judged.
    """

    verdicts: dict[str, Verdict]

    def __getitem__(self, name: str) -> Verdict:
        if name not in self.verdicts:
            near = [other for other in self.verdicts if other.endswith(str(name))]
            raise KeyError(
                f"no statement {name!r} was judged; "
                + (f"write {' or '.join(map(repr, near))}" if near else f"{list(self.verdicts)}")
            )
        return self.verdicts[name]

    def __iter__(self):
        return iter(self.verdicts.items())

    def __len__(self) -> int:
        return len(self.verdicts)

    def __str__(self) -> str:
        width = max(map(len, self.verdicts), default=0)
        return "\n".join(
            f"{name:<{width}}  {verdict.outcome.value:<14}  {verdict.message}"
            for name, verdict in self.verdicts.items()
        )


def run_theorems() -> dict[str, AbstractRunTheorem]:
    """Every statement about a training, by paper and place, in the papers' order."""
    theorems: dict[str, AbstractRunTheorem] = {}
    for paper in papers().values():
        module = paper.module("theorems")
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, AbstractRunTheorem) and kind is not AbstractRunTheorem:
                theorems[f"{kind.citation.key} {kind.citation.locator}"] = kind()
    return theorems


def judge(run: Run) -> Judgement:
    """Every statement of the papers that speaks of a training, judged on `run`.

    Train with `record=wf.theorems.records()` so that the run has what they need; a statement whose
    records are missing says which. For a run of several networks judge `run.member(i)`. A run on
    an exact population takes no such records, as they read training points.

    Args:
        run: what `train` returned, of one network.
    """
    if not isinstance(run, Run):
        raise ValueError(f"`run` must be what `train` returns, got {type(run).__name__}.")
    check_single(run)
    verdicts = {name: _verdict(theorem, run) for name, theorem in run_theorems().items()}
    ordered = sorted(verdicts.items(), key=lambda pair: ORDER.index(pair[1].outcome))
    return Judgement(dict(ordered))


def records() -> tuple:
    """The observables that the statements about a training need, for `train(record=...)`."""
    observables = {}
    for paper in papers().values():
        module = paper.module("theorems")
        own = getattr(module, "RECORD", None) or getattr(module, "record", tuple)()
        observables |= {observable.name: observable for observable in own}
    return tuple(observables.values())


def _verdict(theorem: AbstractRunTheorem, run: Run) -> Verdict:
    try:
        return theorem(run)
    except ValueError as error:  # its own words: another model, a missing record
        return Verdict(Outcome.NOT_APPLICABLE, math.nan, str(error).rstrip("."))
