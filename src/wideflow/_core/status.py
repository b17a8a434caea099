"""Why a run stopped: a value with its sentence, never an exception and never a silent NaN."""

import enum


class Status(enum.Enum):
    """How a run ended."""

    FINISHED = "finished: all steps were taken"
    BELOW = "converged: the loss fell below `stop_below`"
    STATIONARY = "converged: the vector field vanished to the solver's tolerance"
    DIVERGED = "diverged: the loss is not finite or grew beyond the limit"
    STALLED = "stalled: the solver could not reach the next time within its limits"
    INTERRUPTED = "interrupted: stopped from outside; what was recorded is kept"

    @property
    def sentence(self) -> str:
        return self.value

    @property
    def good(self) -> bool:
        """Whether the last state may be read as the result of the dynamics."""
        return self in (Status.FINISHED, Status.BELOW, Status.STATIONARY)
