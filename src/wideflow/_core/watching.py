"""Who looks on while a computation runs: a watcher opened around it.

`train` shows the watcher what it has recorded so far; the lab's page draws it. A watcher that waits
pauses the run, and one that raises ends it.
"""

import contextlib
import contextvars
from collections.abc import Callable, Iterator

import xarray as xr

from .ambient import holding

Watcher = Callable[[Callable[[], xr.Dataset]], None]
"""Called at every record with a function that builds the table of all records so far."""

_current: contextvars.ContextVar[Watcher | None] = contextvars.ContextVar("watcher", default=None)


def current_watcher() -> Watcher | None:
    return _current.get()


def watched_by(watcher: Watcher | None) -> contextlib.AbstractContextManager[Watcher | None]:
    """Every `train` inside the block shows its records to `watcher` as they are made."""
    return holding(_current, watcher)


@contextlib.contextmanager
def shown_with(more: xr.Dataset) -> Iterator[None]:
    """Whoever watches inside the block sees `more` in every table, for instance predictions that were known before."""
    outer = current_watcher()
    seen = lambda so_far: outer and outer(lambda: so_far().assign(more.data_vars))
    with watched_by(seen if outer is not None else None):
        yield
