"""The time left: never from compilation, right for steady work, and quick to follow a change of
pace.
"""

import io
import time

import jax
import pytest

from wideflow.runs.progress import TimeLeft, duration


def told(marks):
    """What is said after each (time, share): None, or the seconds left."""
    left, said = TimeLeft(), []
    for now, share in marks:
        left.mark(now, share)
        said.append(left.seconds(now))
    return said


def test_compile_time_is_never_extrapolated():
    # 79 s of compiling, then 200 steps of 0.3 s each: the truth is 0.3 s for every step left
    marks = [(0.0, 0.0)] + [(79 + 0.3 * k, (k + 1) / 200) for k in range(200)]
    said = told(marks)
    assert said[0] is None
    assert said[1] is None
    for k, seconds in enumerate(said[1:]):
        assert seconds is None or seconds == pytest.approx(0.3 * (199 - k), abs=1e-9)
    assert said[10] is not None


def test_a_second_compilation_is_forgotten_after_a_minute():
    # steps of 1 s, a pause of 120 s in the middle, steps of 1 s again
    marks = [(float(k), k / 1000) for k in range(1, 400)]
    marks += [(520.0 + k, (400 + k) / 1000) for k in range(200)]
    said = told(marks)
    assert said[-1] == pytest.approx(1000 - 599, rel=0.05)


def test_time_that_passes_without_news_is_counted():
    left = TimeLeft()
    for now, share in ((10.0, 0.1), (20.0, 0.2)):
        left.mark(now, share)
    assert left.seconds(20.0) == pytest.approx(80)
    assert left.seconds(50.0) == pytest.approx(50)
    assert left.seconds(500.0) == 0


def test_no_time_is_named_from_the_tiny_first_steps_of_a_flow():
    # steps that double: after 20 s a millionth is done, at a rate that would mean months
    said = told([(5.0 * k, 1e-7 * 2**k) for k in range(24)])
    assert all(seconds is None for seconds in said[:14])
    assert said[-1] == pytest.approx(11.5, rel=0.5)


def test_printed_lines_have_no_time_left_before_the_second_mark(monkeypatch):
    from wideflow.runs.progress import PrintedProgress

    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    progress = PrintedProgress(stream, every=10.0)
    for moment, done in ((79.0, 1), (89.0, 21), (99.0, 41)):
        now[0] = moment
        progress(done, 200, "loss 1")
    first, second, third = stream.getvalue().splitlines()
    assert first == "  0.5 % after 1 min 19 s: loss 1"
    assert ", 1 min 30 s left" in second  # 179 steps at 2 a second
    assert ", 1 min 20 s left" in third


def test_a_compilation_between_two_marks_is_no_work(monkeypatch):
    # A hundredth of a percent is done, then another program is compiled for a minute, then work
    # goes on at 0.1 % a second.
    from wideflow._core import compile_time
    from wideflow.runs.progress import PrintedProgress

    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(compile_time, "_spent", compile_time.Intervals())  # none before
    stream = io.StringIO()
    progress = PrintedProgress(stream, every=10.0)
    now[0] = 79.0
    progress(1, 10_000, "first")
    now[0] = 139.0  # an inner trace is part of the outer compilation, and counted once
    jax.monitoring.record_event_duration_secs("/jax/core/compile/jaxpr_trace_duration", 20.0)
    jax.monitoring.record_event_duration_secs("/jax/core/compile/backend_compile_duration", 60.0)
    now[0] = 140.0
    progress(11, 10_000, "second")
    now[0] = 160.0
    progress(211, 10_000, "third")
    _, second, third = stream.getvalue().splitlines()
    assert "left" not in second  # a second of work says nothing yet
    assert third == "  2.1 % after 2 min 40 s, 16 min 19 s left: third"  # 9789 at 10 a second


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.84, "0.8 s"), (42, "42 s"), (185, "3 min 05 s"), (7620, "2 h 07 min")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text
