"""Asks for gradient flow where a computation would descend: opened around it, seen by `train`.

Inside the block full-batch descent of rate eta for k steps becomes the flow to time k eta, recorded at the same times.
"""

import contextlib
import contextvars

from .ambient import holding


class FlowWish:
    """The wish for a flow; `granted` counts the descents that became one."""

    def __init__(self):
        self.granted = 0


_current: contextvars.ContextVar[FlowWish | None] = contextvars.ContextVar("flow", default=None)


def current_flow() -> FlowWish | None:
    return _current.get()


def descent_as_flow() -> contextlib.AbstractContextManager[FlowWish]:
    """Every `train` inside the block that would descend flows."""
    return holding(_current, FlowWish())


def descent_as_it_stands() -> contextlib.AbstractContextManager[None]:
    """Every `train` inside the block does what it says: for trainings that only measure something of the one that flows."""
    return holding(_current, None)
