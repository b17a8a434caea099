"""Predictions beside a run: shown as they come, complete at the end, left with the run."""

import threading

import numpy as np
import pytest
import xarray as xr

from wideflow.experiments.background import AWAITED, Predictions
from wideflow.training.session import Session

TABLE = xr.Dataset({"loss": ("step", [1.0])})
BEGINNING = xr.Dataset({"quick": ("ahead", [np.nan]), "slow": ("ahead", [np.nan])})


def part(name: str, gate: threading.Event | None = None):
    def compute() -> xr.Dataset:
        if gate is not None:
            assert gate.wait(20)
        return xr.Dataset({name: ("ahead", [2.0])})

    return compute


def test_records_are_shown_with_what_is_known_and_the_end_with_everything():
    gate, shown = threading.Event(), []
    ahead = Predictions(BEGINNING, (part("quick"), part("slow", gate)))
    session = ahead.watched(Session(on_record=lambda so_far: shown.append(so_far())))
    assert session.on_record is not None
    session.on_record(lambda: TABLE)  # before anything is computed
    while ahead.left > 1:
        pass
    session.on_record(lambda: TABLE)  # while the second part is waited for
    gate.set()
    final = ahead.complete(TABLE, Session())
    numbers = [
        (float(t.quick[0]), float(t.slow[0]), t.attrs.get(AWAITED, 0)) for t in (*shown, final)
    ]
    np.testing.assert_equal(numbers, [(np.nan, np.nan, 2), (2.0, np.nan, 1), (2.0, 2.0, 0)])


def test_without_anyone_who_watches_all_is_computed_at_the_end():
    ahead = Predictions(BEGINNING, (part("quick"), part("slow")))
    session = Session()
    assert ahead.watched(session) is session
    final = ahead.complete(TABLE, session)
    assert ahead.thread is None
    assert final.equals(xr.merge([TABLE, xr.Dataset({n: ("ahead", [2.0]) for n in BEGINNING})]))


def test_what_goes_wrong_in_the_thread_ends_the_run():
    def broken():
        raise ValueError("`width` is wrong.")

    ahead = Predictions(BEGINNING, (broken,))
    session = ahead.watched(Session(on_record=lambda so_far: None))
    assert session.on_record is not None
    session.on_record(lambda: TABLE)
    with pytest.raises(ValueError, match="`width` is wrong"):
        ahead.complete(TABLE, Session())


class Left(BaseException):
    pass


def test_a_run_that_is_left_computes_no_further_part():
    gate, begun = threading.Event(), []
    ahead = Predictions(BEGINNING, (part("quick", gate), lambda: begun.append(1)))

    def leave(*_):
        raise Left

    session = ahead.watched(Session(on_record=lambda so_far: None))
    assert session.on_record is not None
    session.on_record(lambda: TABLE)
    with pytest.raises(Left):
        ahead.complete(TABLE, Session(progress=leave))
    gate.set()
    assert ahead.thread is not None
    ahead.thread.join(20)
    assert begun == []
