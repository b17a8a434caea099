"""A spare process: what it rehearses, how a tab takes a rehearsal over, and how one that is not
wanted is left.
"""

import multiprocessing
import threading

import pytest

from wideflow.figures import FigureSpec
from wideflow.lab import rehearsal, runner
from wideflow.lab.messages import Figure, Job, Order, State
from wideflow.lab.scenes import FREE, scenes
from wideflow.lab.worker import NextJob, Rehearsed, Show

MINE = Job(FREE, {"width": 8}, 3, held=True)
DRAWN = Figure(FigureSpec("T", []), None, 0.0, 0)


@pytest.fixture
def ends():
    """Both ends of a pipe: the tab's and the worker's."""
    ours, theirs = multiprocessing.Pipe()
    yield ours, theirs
    ours.close()
    theirs.close()


def rehearsing(theirs, job: Job = MINE) -> Show:
    show = Show(theirs, job, threading.Lock(), mute=True)
    show.figure(lambda: DRAWN)
    return show


def heard(ours) -> list:
    messages = []
    while ours.poll(0):
        messages.append(ours.recv())
    return messages


def test_every_scene_is_rehearsed_and_the_first_one_is_waited_at():
    jobs = rehearsal.jobs()
    assert [job.scene for job in jobs] == [FREE, *(name for name in scenes() if name != FREE), FREE]
    assert all(job.held for job in jobs)
    assert [job.stays for job in jobs] == [False] * len(scenes()) + [True]


def test_a_lab_may_rehearse_some_tours_alone():
    assert [job.scene for job in rehearsal.jobs(["tour-li2020"])] == [FREE, "tour-li2020", FREE]
    assert [(job.scene, job.stays) for job in rehearsal.jobs([])] == [(FREE, False), (FREE, True)]


def test_a_rehearsal_says_nothing_and_ends_when_all_is_compiled(ends):
    ours, theirs = ends
    show, parts = rehearsing(theirs), [True, True, False]
    with pytest.raises(Rehearsed):
        show.hold(lambda: parts.pop(0))  # predictions are compiled too
    assert parts == []
    assert heard(ours) == []


def test_a_tab_that_asks_for_the_same_run_takes_it_over_as_it_stands(ends):
    ours, theirs = ends
    show = rehearsing(theirs, Job(FREE, {"width": 8}, 3, held=True, stays=True))
    ours.send(Job(FREE, {"width": 8}, 3, pace=0.5, held=True, number=7))
    ours.send(Order("go"))
    show.hold()  # returns: nothing was begun anew
    assert [(7, DRAWN), (7, State("ready")), (7, State("running"))] == heard(ours)
    assert show.pace == 0.5


def test_a_start_that_is_pressed_before_the_page_was_ready_does_not_wait(ends):
    ours, theirs = ends
    show = rehearsing(theirs)
    ours.send(Job(FREE, {"width": 8}, 3, held=False, number=7))
    show.listen()
    show.hold()
    assert heard(ours) == [(7, DRAWN)]


@pytest.mark.parametrize(
    "asked", [Job(FREE, {"width": 9}, 3), Job(FREE, {"width": 8}, 4), Job("tour-li2020", {}, 3)]
)
def test_another_run_ends_a_rehearsal(ends, asked):
    ours, theirs = ends
    show = rehearsing(theirs)
    ours.send(asked)
    with pytest.raises(NextJob) as coming:
        show.listen()
    assert coming.value.job == asked


def test_a_run_that_a_tab_watches_is_begun_anew_by_the_same_settings(ends):
    ours, theirs = ends
    show = Show(theirs, MINE, threading.Lock())
    ours.send(MINE)
    with pytest.raises(NextJob):
        show.listen()


def test_a_rehearsal_that_fails_is_left_and_a_tab_is_told(ends):
    ours, theirs = ends
    broken = Job(FREE, {"width": -1}, 0, held=True)
    with pytest.raises(Rehearsed):
        runner.perform(broken, rehearsing(theirs, broken))
    assert heard(ours) == []
    ours.send(MINE)
    assert runner.perform(broken, Show(theirs, broken, threading.Lock())) == MINE
    ((_, told),) = heard(ours)
    assert told.name == "failed"
    assert "`width`" in told.sentence


def test_a_start_that_is_heard_during_a_compilation_is_not_waited_for_again(ends):
    ours, theirs = ends
    show = Show(theirs, MINE, threading.Lock())

    def refresh() -> bool:
        ours.send(Order("go"))
        show.listen()  # as after every compilation
        return False

    holding = threading.Thread(target=show.hold, args=(refresh,), daemon=True)
    holding.start()
    holding.join(10.0)
    assert not holding.is_alive()
    assert [message for _, message in heard(ours)] == [State("ready"), State("running")]
