"""Where a running computation leaves its checkpoints: a journal opened around it.

`train` knows only this interface; `wideflow.runs.journal` keeps the files.
"""

import abc
import contextlib
import contextvars

import numpy as np

from .ambient import holding

Arrays = dict[str, np.ndarray]


class AbstractJournal(abc.ABC):
    """Keeps named arrays under a fingerprint of the computation that made them."""

    @abc.abstractmethod
    def begun(self) -> bool:
        """Whether anything is kept; where nothing is, no fingerprint need be taken to look for it."""

    @abc.abstractmethod
    def due(self, *, force: bool = False) -> bool:
        """Whether `save` would keep a checkpoint now; where not, none need be put together."""

    @abc.abstractmethod
    def load(self, fingerprint: str) -> Arrays | None:
        """The last checkpoint of this computation, or None."""

    @abc.abstractmethod
    def save(self, fingerprint: str, arrays: Arrays, *, force: bool = False) -> None:
        """Keeps a checkpoint; may skip it when the last one is recent, unless `force`."""


_current: contextvars.ContextVar[AbstractJournal | None] = contextvars.ContextVar(
    "journal", default=None
)


def current_journal() -> AbstractJournal | None:
    return _current.get()


def journal_open(
    journal: AbstractJournal | None,
) -> contextlib.AbstractContextManager[AbstractJournal | None]:
    """Computations inside the block checkpoint into `journal`."""
    return holding(_current, journal)
