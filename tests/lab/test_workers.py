"""A worker whose process does not start, or has ended: whoever waits for it is told."""

import pytest

from wideflow.lab import workers
from wideflow.lab.messages import Job, State
from wideflow.lab.scenes import FREE
from wideflow.lab.workers import Worker

JOB = Job(FREE, {}, 0, number=4)
ENDED = State("failed", "The process of this run has ended. Start again.")


@pytest.fixture
def broken(monkeypatch) -> Worker:
    """A worker for which the system has no process."""

    def start(self):
        raise OSError("no process")

    monkeypatch.setattr(workers.CONTEXT.Process, "start", start)
    worker = Worker(None)
    assert worker.over.wait(10.0)
    return worker


def test_a_process_that_does_not_start_is_told(broken):
    messages = []
    assert not broken.alive
    broken.begin(JOB, lambda *message: messages.append(message))
    assert messages == [(JOB.number, ENDED)]
    broken.end()


def test_it_is_replaced(broken, monkeypatch):
    monkeypatch.setattr(workers, "Worker", lambda *_: "another")
    crew = workers.Workers()
    crew.spare = broken
    crew.warm()
    assert crew.spare == "another"
