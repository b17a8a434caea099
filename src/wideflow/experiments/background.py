"""Predictions that are computed in a thread beside a run, so that its first steps do not wait for
them.
"""

import dataclasses
import threading
from collections.abc import Callable, Sequence

import xarray as xr

from .._core.precision import double
from ..training.session import Session

AWAITED = "awaited_predictions"
"""Attribute of a table that is shown before all predictions are there: how many are still to
come.
"""
HEARTBEAT = 0.1  # seconds between two looks at a run that is to be left

Part = Callable[[], xr.Dataset]


class Predictions:
    """Variables of a table that arrive part by part.

    Nothing is computed before the first record has been shown. Whoever shows no records gets all of
    them at the end, in the same thread.

    Args:
        beginning: variables that the table has from its first record on; those that are predicted
            are NaN.
        parts: compute the predictions, the quick ones first.
    """

    def __init__(self, beginning: xr.Dataset, parts: Sequence[Part]):
        self.known, self.parts, self.left = beginning, parts, len(parts)
        self.thread: threading.Thread | None = None
        self.trouble: BaseException | None = None
        self.abandoned = False

    def watched(self, session: Session) -> Session:
        """The session with every table as far as it is known; the first record sets the thread
        going.
        """
        if session.on_record is None:
            return session
        show = session.on_record

        def on_record(so_far) -> None:
            try:
                show(lambda: self.joined(so_far()))
                if self.thread is None:
                    self.thread = threading.Thread(target=self._compute, daemon=True)
                    self.thread.start()
            except BaseException:  # the run is left, and with it what is not computed yet
                self.abandoned = True
                raise

        return dataclasses.replace(session, on_record=on_record)

    def joined(self, table: xr.Dataset) -> xr.Dataset:
        """The table with what is known now."""
        # in this order: a part that comes between is counted as missing
        left, known = self.left, self.known
        table = table.assign(known.data_vars)
        return table.assign_attrs({AWAITED: left}) if left else table

    def complete(self, table: xr.Dataset, session: Session) -> xr.Dataset:
        """The table with all predictions, waited for; the session's progress may end the waiting by
        raising.
        """
        if self.thread is None:
            self._compute()
        try:
            while self.thread is not None and self.thread.is_alive():
                self.thread.join(HEARTBEAT)
                session(1.0, 1.0, "the limits' predictions")
        except BaseException:
            self.abandoned = True
            raise
        if self.trouble is not None:
            raise self.trouble
        return self.joined(table)

    def _compute(self) -> None:
        try:
            for part in self.parts:
                if self.abandoned:
                    return
                self.known = self.known.assign(double(part)().data_vars)
                self.left -= 1
        except BaseException as error:
            self.trouble = error
