"""The statements that `certify` evaluates. One file and one registration add another.

A statement is a theorem with what a certificate says of it: in a few words what it promises, and
under which names the theorem keeps the numbers that are shown (the required width, the promised
rate). A user's own theorem, whose parameters bear the names of `on_case`, is added by

    from wideflow.certify import Statement, register
    register(Statement(MyTheorem, about="..."))
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
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
        mean, embedded_mean: spectra of the mean tangent Gram matrix (`limits.mean_ntk`) on the
            inputs and on the embedded inputs, computed once for all statements; None where they are
            not known.
    """

    model: Any
    data: Dataset
    failure_probability: float
    table: Any = None
    trained: Any = None
    interval: tuple[float, float] | None = None
    mean: Spectrum | None = None
    embedded_mean: Spectrum | None = None


Judge = Callable[[Case], Verdict]


def on_case(theorem: type[AbstractTheorem], **options) -> Judge:
    """Judges a case by `theorem`, each of whose parameters is the part of the case of that name.

    Args:
        theorem: takes some of `start` (the network at time zero), `data`, `table` and `model` (the
            recorded run and the network after it, None before training), `failure_probability`,
            `interval`, `mean` and `embedded_mean`.
        options: what else it takes, the same on every case.
    """
    named = list(inspect.signature(_method(theorem)).parameters.items())
    parameters = dict(named[1:])  # without `self`
    known = {"start", *(field.name for field in fields(Case))} - {"trained"}
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in known | set(options):
            raise ValueError(
                f"`theorem` must take parts of a case by name, but {theorem.__name__} takes "
                f"`{name}`. A case has "
                f"{', '.join(sorted(known))}; for anything else give the `Statement` a `judge` "
                "of its own."
            )

    def judge(case: Case) -> Verdict:
        parts = {field.name: getattr(case, field.name) for field in fields(case)}
        parts |= {"start": case.model, "model": case.trained}
        taken = {name: parts[name] for name in parameters if name in known}
        return theorem()(**taken, **options)

    return judge


def _required(theorem: type[AbstractTheorem]) -> set[str]:
    """The parameters without a default."""
    parameters = inspect.signature(_method(theorem)).parameters.values()
    return {p.name for p in parameters if p.default is p.empty} - {"self"}


def _method(theorem: type[AbstractTheorem]) -> Callable:
    return getattr(theorem, "evaluate", theorem.__call__)


@dataclass(frozen=True)
class Statement:
    """A theorem as `certify` sees it.

    Attributes:
        theorem: its class, whose docstring is the statement and which carries the citation.
        judge: gives the verdict on a case; by default `on_case(theorem)`.
        about: the promise, in a few words.
        run: whether it needs a trained run: "never", "maybe" (says more with one) or "always".
        required, rate: names, among the verdict's numbers, of the required width and of the
            guaranteed decay rate of the loss.
        bounds: names of further promised bounds worth showing.
    """

    theorem: type[AbstractTheorem]
    judge: Judge | None = None
    about: str = ""
    run: str = NEVER
    required: str = ""
    rate: str = ""
    bounds: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        citation = self.theorem.citation
        return f"{citation.key} {citation.locator}"

    def __post_init__(self):
        if self.judge is None:
            wanted = _required(self.theorem) & {"table", "model"}
            if self.run == NEVER and wanted:
                raise ValueError(
                    f"`run` must be 'always', as {self.theorem.__name__} takes "
                    f"`{min(wanted)}`, which a certificate without training does not have."
                )
            object.__setattr__(self, "judge", on_case(self.theorem))

    def verdict(self, case: Case) -> Verdict:
        assert self.judge is not None
        return self.judge(case)


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
