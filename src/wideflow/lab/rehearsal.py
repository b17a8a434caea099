"""What a spare process does until a tab takes it: it runs the first steps of every scene, so that their programs are compiled."""

from collections.abc import Callable

from . import runner
from .links import place
from .messages import Job
from .scenes import FREE, scenes
from .uploads import Uploads
from .worker import Rehearsed, Show


def jobs() -> list[Job]:
    """Free play, which most tabs open with; then the tours; then free play again, where the process waits."""
    uploads = Uploads()
    begins = {name: place({"scene": name}, uploads) for name in scenes()}
    uploads.end()
    held = {name: Job(name, at.changes, at.seed, held=True) for name, at in begins.items()}
    tours = [job for name, job in held.items() if name != FREE]
    first = begins[FREE]
    return [held[FREE], *tours, Job(FREE, first.changes, first.seed, held=True, stays=True)]


def rehearse(show: Callable[[Job, bool], Show]) -> Job:
    """Goes through `jobs`, and gives the first job that a tab asks for; it may come at any moment."""
    for job in jobs():
        try:
            return runner.perform(job, show(job, True))
        except Rehearsed:
            continue
    raise AssertionError("the last rehearsal stays")
