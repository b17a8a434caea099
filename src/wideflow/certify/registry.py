"""The statements that `certify` evaluates. One file and one registration add another.

A statement wraps a theorem object: it knows how to call it on a `Case` and under which names the theorem keeps the numbers that the certificate
shows (the required width, the promised rate). A user's own theorem is added by

    from wideflow.certify import Statement, register
    register(Statement(MyTheorem, lambda case: MyTheorem()(case.model, case.data), about="..."))
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..data.dataset import Dataset
from ..limits.kernels import Spectrum
from ..papers import papers
from ..theorems.base import AbstractTheorem, Verdict

NEVER, MAYBE, ALWAYS = "never", "maybe", "always"


@dataclass(frozen=True)
class Case:
    """What a statement is judged on.

    Attributes:
        model: the network at time zero.
        data: its dataset.
        failure_probability: the probability of failure that is allowed.
        table, trained: the recorded run and the network after it; None before training.
        interval: the interval of active pre-activations (chen2022).
        mean, embedded_mean: spectra of the mean tangent Gram matrix (`limits.mean_ntk`) on the inputs and on the embedded inputs, computed once for
            all statements; None where they are not known.
    """

    model: Any
    data: Dataset
    failure_probability: float
    table: Any = None
    trained: Any = None
    interval: tuple[float, float] | None = None
    mean: Spectrum | None = None
    embedded_mean: Spectrum | None = None


@dataclass(frozen=True)
class Statement:
    """A theorem as `certify` sees it.

    Attributes:
        theorem: its class, whose docstring is the statement and which carries the citation.
        judge: gives the verdict on a case.
        about: the promise, in a few words.
        run: whether it needs a trained run: "never", "maybe" (says more with one) or "always".
        required, rate: names, among the verdict's numbers, of the required width and of the guaranteed decay rate of the loss.
        bounds: names of further promised bounds worth showing.
    """

    theorem: type[AbstractTheorem]
    judge: Callable[[Case], Verdict]
    about: str
    run: str = NEVER
    required: str = ""
    rate: str = ""
    bounds: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        citation = self.theorem.citation
        return f"{citation.key} {citation.locator}"


_REGISTERED: list[Statement] = []  # what users add; the papers' own come from their folders


@functools.cache
def _of_papers() -> tuple[Statement, ...]:
    modules = [paper.module("certificate") for paper in papers().values()]
    return tuple(s for module in modules if module is not None for s in module.STATEMENTS)


def register(*statements: Statement) -> None:
    """Adds statements to every later certificate."""
    for statement in statements:
        if any(known.theorem is statement.theorem for known in (*_of_papers(), *_REGISTERED)):
            raise ValueError(
                f"`{statement.theorem.__name__}` of {statement.name!r} is registered already."
            )
        _REGISTERED.append(statement)


def statements() -> tuple[Statement, ...]:
    """The papers' statements in the papers' order, then what was registered."""
    return (*_of_papers(), *_REGISTERED)
