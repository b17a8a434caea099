"""What a spare process does until a tab takes it: it runs the first steps of every scene, so that
their programs are compiled.
"""

from collections.abc import Callable, Sequence

from . import runner
from .links import place
from .messages import Job
from .scenes import FREE, scenes
from .uploads import Uploads
from .worker import Rehearsed, Show


def jobs(tours: Sequence[str] | None = None) -> list[Job]:
    """Free play, which most tabs open with; then the tours of these names, None for all; then free
    play again, where the process waits.
    """
    uploads = Uploads()
    names = [name for name in scenes() if name != FREE] if tours is None else tours
    begins = {name: place({"scene": name}, uploads) for name in (FREE, *names)}
    uploads.end()
    held = {name: Job(name, at.changes, at.seed, held=True) for name, at in begins.items()}
    first = begins[FREE]
    return [*held.values(), Job(FREE, first.changes, first.seed, held=True, stays=True)]


def rehearse(show: Callable[[Job, bool], Show], tours: Sequence[str] | None = None) -> Job:
    """Goes through the `jobs` of these tours, and gives the first job that a tab asks for; it may
    come at any moment.
    """
    for job in jobs(tours):
        try:
            return runner.perform(job, show(job, True))
        except Rehearsed:
            continue
    raise AssertionError("the last rehearsal stays")
