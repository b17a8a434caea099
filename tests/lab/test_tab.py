"""A tab's own logic, with workers that compute nothing: which runs there are, and what is drawn of
them.
"""

import json

import pytest
from bokeh.document import Document

from wideflow.experiments.training_panels import NOW
from wideflow.figures import FigureSpec, Line, Panel
from wideflow.lab.links import place
from wideflow.lab.messages import Figure, Job, State
from wideflow.lab.tab import EARLIER, Tab
from wideflow.lab.uploads import Uploads


class Idle:
    """A worker that notes what it is told."""

    def __init__(self):
        self.jobs: list[Job] = []
        self.orders: list[str] = []
        self.alive = True

    def begin(self, job, hear) -> None:
        self.jobs.append(job)

    def order(self, word, value=None) -> None:
        self.orders.append(word)


class Idlers:
    def __init__(self):
        self.given: list[Idle] = []
        self.ended: list[Idle] = []

    def take(self) -> Idle:
        self.given.append(Idle())
        return self.given[-1]

    def warm(self) -> None:
        pass

    def give_back(self, worker) -> None:
        self.ended.append(worker)


@pytest.fixture
def tab():
    uploads = Uploads()
    made = Tab("code", Document(), place({}, uploads), uploads, Idlers())
    yield made
    uploads.end()


def ask(tab, do: str, **changes) -> None:
    given = {"scene": "free", "seed": "0", **changes}
    tab.receive(json.dumps({"do": do, "place": given}))


def figure(height: float, step: int) -> Figure:
    curves = [
        Line([0, 1], [height, height], NOW),
        Line([0, 1], [9, 9], "linearised", dash="dashed"),
    ]
    panels = [Panel("Loss", "t", "l", curves), Panel("Errors", "t", "l", curves)]
    return Figure(FigureSpec("T", panels, first=(NOW,)), None, float(step), step)


def curves(tab) -> dict[str, list[float]]:
    """What the first plot shows, by name."""
    return {
        r.tags[0].removeprefix("lab/"): list(r.data_source.data["true_y"])
        for r in tab.drawn[0].renderers
    }


def told(tab) -> dict:
    return json.loads(tab.talk.message)


def test_the_page_opens_with_a_held_run_which_start_lets_go(tab):
    ask(tab, "choose")
    (worker,) = tab.workers.given
    assert worker.jobs[0].held
    tab.heard(worker.jobs[0].number, figure(1.0, 0))
    assert curves(tab)[NOW] == [1.0, 1.0]
    ask(tab, "choose")  # nothing has changed
    ask(tab, "start")
    assert len(worker.jobs) == 1
    assert worker.orders[-1] == "go"
    assert told(tab)["state"] == "running"


def test_new_settings_restart_in_the_same_worker_over_the_last_run(tab):
    ask(tab, "choose")
    ask(tab, "start")
    (worker,) = tab.workers.given
    tab.heard(1, figure(1.0, 5))
    tab.heard(1, State("finished", "finished"))
    ask(tab, "choose", scaling="ntk")
    assert [job.held for job in worker.jobs] == [True, False]
    assert worker.jobs[1].changes["scaling"] == "ntk"
    tab.heard(1, figure(7.0, 6))  # the last words of the run that was left
    assert curves(tab)[NOW] == [1.0, 1.0]
    tab.heard(2, figure(2.0, 0))
    assert curves(tab) == {EARLIER: [1.0, 1.0], NOW: [2.0, 2.0], "linearised": [9, 9]}
    tab.heard(2, figure(3.0, 1))
    assert curves(tab)[EARLIER] == [1.0, 1.0]
    tab.heard(2, State("finished", "finished"))
    tab.receive(json.dumps({"do": "reset"}))
    tab.heard(3, figure(4.0, 0))
    assert worker.jobs[2].held
    assert EARLIER not in curves(tab)
    assert tab.workers.given == [worker]


def test_before_the_first_start_new_settings_show_their_start_alone(tab):
    ask(tab, "choose")
    tab.heard(1, figure(1.0, 0))
    ask(tab, "choose", width="64")
    tab.heard(2, figure(2.0, 0))
    assert tab.workers.given[0].jobs[1].held
    assert EARLIER not in curves(tab)


def test_lazy_against_rich_are_two_workers_in_one_figure(tab):
    ask(tab, "choose", scaling="zipf:0.5,0.5")
    ask(tab, "compare", scaling="zipf:0.5,0.5")
    rich, lazy = tab.workers.given
    assert rich.jobs[-1].changes["scaling"] == "mean-field"
    assert lazy.jobs[-1].changes["scaling"] == "ntk"
    assert not rich.jobs[-1].held
    tab.heard(lazy.jobs[-1].number, figure(5.0, 1))  # quicker than the tab's own
    assert lazy.orders[-1] == "seen"
    tab.heard(rich.jobs[-1].number, figure(1.0, 1))
    assert curves(tab) == {"NTK": [5.0, 5.0], NOW: [1.0, 1.0], "linearised": [9, 9]}
    tab.receive(json.dumps({"do": "pause"}))
    assert rich.orders[-1] == lazy.orders[-1] == "pause"
    ask(tab, "start", scaling="ntk")
    assert tab.workers.ended == [lazy]
    tab.close()
    assert tab.workers.ended == [lazy, rich]


def test_a_worker_that_died_is_replaced(tab):
    ask(tab, "choose")
    tab.workers.given[0].alive = False
    tab.heard(1, State("failed", "The process of this run has ended. Start again."))
    ask(tab, "start")
    assert len(tab.workers.given) == 2
    assert not tab.workers.given[1].jobs[0].held


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "does not know"),
        ('{"do": "choose", "place": {"width": "0"}}', "`width` must lie in"),
        ('{"do": "pace", "pace": "warp"}', "`pace` must be one of"),
    ],
)
def test_what_is_asked_wrongly_is_told(tab, text, said):
    tab.receive(text)
    assert said in told(tab)["trouble"]
    assert tab.workers.given == []
