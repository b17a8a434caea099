"""One open tab: its place, its runs, its plots."""

import asyncio
import functools
import itertools
import json
from dataclasses import dataclass, field
from typing import Any

from bokeh.document import Document
from bokeh.events import Tap
from bokeh.models import Column, CustomAction, CustomJS, InlineStyleSheet

from ..figures import FigureSpec
from ..report.interactive import chips, plots, refresh, same_marks
from ..report.style import entry
from ..report.tex import as_text
from ..runs.json_encoding import plain
from . import plane
from .channel import Talk
from .links import Place, place
from .messages import Event, Figure, Job, Progress, State, Taken, Verdicts
from .overlay import beside, fitting
from .panel_help import HELP
from .uploads import Uploads
from .workers import Worker, Workers

PACES = {"slow": 0.25, "normal": 0.06, "fast": 0.0}
LAZY_SIDE, RICH_SIDE = "ntk", "mean-field"  # the scalings of "lazy against rich"
EARLIER = "the run before"
UNDISTURBED = 5.0  # seconds that a tab has the machine before the next spare starts (chosen)
NAMES = {LAZY_SIDE: "NTK", RICH_SIDE: "mean field"}
GRID = """
:host { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 330px), 1fr)); gap: 14px 18px; width: 100%; }
:host > * { min-width: 0; }
.looked-at { outline: 3px solid #E69F00; outline-offset: 3px; border-radius: 6px; }
@media (min-width: 1360px) {
  :host(.c2) { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  :host(.c3) { grid-template-columns: repeat(3, minmax(0, 1fr)); }
  :host(.c3) > .broad { grid-column: span 2; }
  :host(.c3) > .large { grid-column: span 2; grid-row: span 2; }
  :host(.c3) > .whole { grid-column: 1 / -1; }
}
"""


@dataclass
class Live:
    """A run that a worker computes for a tab.

    Attributes:
        figure: the last one that came.
        held: it waits at its first record for the user to press start.
    """

    worker: Worker
    job: Job
    place: Place
    figure: Figure | None = None
    held: bool = False
    moved: bool = False  # whether a record after the first has been shown
    waiting: dict[str, list[asyncio.Future]] = field(default_factory=dict)


class Tab:
    """What the page asks is carried out here; nothing in it computes.

    There is at most one run, or two of them beside each other: `rival` is trained together with the
    tab's own, and laid over it.
    """

    def __init__(
        self, code: str, document: Document, start: Place, uploads: Uploads, workers: Workers
    ):
        self.code, self.document, self.uploads, self.workers = code, document, uploads, workers
        self.place, self.pace = start, PACES["normal"]
        self.run: Live | None = None
        self.rival: Live | None = None
        self.earlier: FigureSpec | None = None  # of the run before, drawn in grey
        self.state = "ready"
        self.numbers, self.count = itertools.count(1), 0
        self.drawn: list = []
        self.talk = Talk(name="talk")
        sheet = InlineStyleSheet(css=GRID)
        self.grid = Column(
            children=[], name="grid", sizing_mode="stretch_width", stylesheets=[sheet]
        )
        document.add_root(self.talk)
        document.add_root(self.grid)
        self.talk.on_change("request", lambda _, __, text: self.receive(text))
        document.on_session_destroyed(lambda _: self.close())

    def tell(self, **what: Any) -> None:
        """Says something to the page; the count makes equal messages differ."""
        self.count += 1
        self.talk.update(message=json.dumps(plain({"count": self.count, **what}, spelt=False)))

    def receive(self, text: str) -> None:
        """Carries out what the page asks; what is wrong with it is told, and nothing else
        happens.
        """
        try:
            order = json.loads(text)
            word = str(order["do"])
            act = {
                "choose": self.choose,
                "start": self.start,
                "compare": self.compare,
                "pause": self.pause,
                "resume": self.resume,
                "reset": self.reset,
                "seen": self.seen,
                "pace": self.set_pace,
            }[word]
            act(order)
        except (json.JSONDecodeError, KeyError, TypeError):
            self.tell(trouble="The page sent a request that the lab does not know.")
        except ValueError as error:
            self.tell(trouble=str(error))

    # what the page asks

    def choose(self, order: dict) -> None:
        """New settings act at once: they show their start, or where a run is on they start a new
        one, over the one before in grey.
        """
        before = self.place
        self._go_to(order)
        if self.run is not None and self.place == before:
            return
        if self.place.scene.still:
            self._begin(held=False)
        elif self.state == "ready":
            self._begin(held=True)
        else:
            self._restart()

    def tapped(self, event: Tap) -> None:
        """A click on a map chooses the point beside it."""
        if self.uploads.plane is None or event.x is None or event.y is None:
            return
        point = plane.nearest(plane.plane_at(self.uploads.plane), event.x, event.y)
        self.choose({"place": {"scene": plane.NAME, "point": point}})
        self.tell(point=point)

    def start(self, order: dict) -> None:
        before = self.place
        self._go_to(order)
        if self.run is not None and self.run.held and self.place == before:
            self.run.held = False
            self.run.worker.order("pace", self.pace)
            self.run.worker.order("go")
            self._set("running", "")
        else:
            self._restart()

    def compare(self, order: dict) -> None:
        """Trains the same network under both scalings at once."""
        places = [{**order["place"], "scaling": scaling} for scaling in (LAZY_SIDE, RICH_SIDE)]
        lazy = place({str(n): str(v) for n, v in places[0].items()}, self.uploads)
        self._go_to({"place": places[1]})
        self.earlier = None
        self._begin(held=False)
        self.rival = self._live(lazy, held=False)

    def reset(self, order: dict) -> None:
        """Back to the start of the present settings, without the runs before."""
        self.earlier = None
        self._set("ready", "")
        self._begin(held=True)

    def pause(self, order: dict) -> None:
        self._order("pause")

    def resume(self, order: dict) -> None:
        self._order("resume")

    def seen(self, order: dict) -> None:
        self._order("seen")

    def set_pace(self, order: dict) -> None:
        if order["pace"] not in PACES:
            raise ValueError(f"`pace` must be one of {', '.join(PACES)}.")
        self.pace = PACES[order["pace"]]
        self._order("pace", self.pace)

    # the runs

    @property
    def runs(self) -> list[Live]:
        return [run for run in (self.run, self.rival) if run is not None]

    def _order(self, word: str, value: Any = None) -> None:
        for run in self.runs:
            run.worker.order(word, value)

    def _go_to(self, order: dict) -> None:
        texts = {str(name): str(value) for name, value in order["place"].items()}
        self.place = place(texts, self.uploads)
        self.tell(home=self.home(), trouble="")

    def _restart(self) -> None:
        """A new run of the present settings; the curves of the one before stay, in grey."""
        run = self.run
        if run is not None and run.figure is not None and run.moved:
            self.earlier = run.figure.spec
        self._begin(held=False)

    def _begin(self, *, held: bool) -> None:
        """Hands the present settings to the tab's worker, which leaves what it is at."""
        self._end(self.rival)
        self.rival = None
        self._set(
            "ready" if held else "running", "being prepared" if held else "starting", fresh=True
        )
        self.run = self._live(self.place, held=held, worker=self.run.worker if self.run else None)

    def _live(self, where: Place, *, held: bool, worker: Worker | None = None) -> Live:
        if self.run is not None and worker is self.run.worker:
            self._answer_waiting(self.run)
        if worker is None or not worker.alive:
            worker = self.workers.take()
        job = Job(where.scene.name, where.changes, where.seed, self.pace, held, next(self.numbers))
        worker.begin(job, self.hear)
        return Live(worker, job, where, held=held)

    def _set(self, state: str, sentence: str, **more: Any) -> None:
        self.state = state
        self.tell(state=state, sentence=sentence, **more)

    def home(self) -> dict[str, str]:
        """What can be taken along of the place."""
        return {
            "link": self.place.link(),
            "command": self.place.command(),
            "lines": self.place.lines(),
        }

    def _end(self, run: Live | None) -> None:
        """Ends a run's worker; whoever waits for a file of it is told."""
        if run is not None:
            self.workers.give_back(run.worker)
            self._answer_waiting(run)

    def _answer_waiting(self, run: Live) -> None:
        for future in itertools.chain(*run.waiting.values()):
            if not future.done():
                future.set_result(Taken("", trouble="The run was reset."))
        run.waiting = {}

    def close(self) -> None:
        for run in self.runs:
            self._end(run)
        self.run = self.rival = None

    # what the workers say

    def hear(self, number: int, message: Any) -> None:
        """Called from the thread that listens to a worker; it is heard in the page's own loop."""
        self.document.add_next_tick_callback(functools.partial(self.heard, number, message))

    def heard(self, number: int, message: Any) -> None:
        run = next((run for run in self.runs if run.job.number == number), None)
        if run is None:
            return  # of a run that has been left
        match message:
            case Figure():
                run.figure, run.moved = message, run.moved or message.step > 0
                self.draw(run)
            case Taken():
                for future in run.waiting.pop(message.kind, []):
                    if not future.done():
                        future.set_result(message)
            case _ if run is self.run:
                self.heard_of_own(run, message)

    def heard_of_own(self, run: Live, message: Any) -> None:
        match message:
            case Progress():
                if not run.held:
                    self.tell(progress=message.share, what=message.what)
            case State(name="unjudged"):
                self.tell(
                    verdicts={"headline": message.sentence, "rows": [], "silent": [], "numbers": []}
                )
            case State(name="preparing"):
                pass  # said already
            case State(name="ready"):
                self.tell(prepared=True)
                asyncio.get_running_loop().call_later(UNDISTURBED, self.workers.warm)
            case State():
                own = self.uploads.tables.get(str(run.place.choices.get("data")))
                sentence = own.named(message.sentence) if own else message.sentence
                run.held = (
                    run.held and message.name != "failed"
                )  # what failed does not wait for a start
                self._set(message.name, sentence)
            case Event():
                self.tell(event=vars(message))
            case Verdicts():
                self.tell(verdicts=vars(message))

    # the picture

    def draw(self, sender: Live) -> None:
        """New numbers into the plots, or new plots where the figure has other panels."""
        if self.run is None or self.run.figure is None:  # the rival was quicker
            sender.worker.order("seen")
            return
        now, rival = self.run.figure, self.rival.figure if self.rival else None
        spec = self.composed(now.spec, rival)
        if self.drawn and same_marks(self.drawn, spec) and same_names(self.drawn, spec):
            refresh(self.drawn, spec)
        else:
            self.drawn = plots(spec, "lab")
            for plot in self.drawn:
                if self.place.scene.still and plot.title.text in plane.MAPS.values():
                    plot.on_event(Tap, self.tapped)
                if explained := HELP.get(plot.title.text):
                    plot.add_tools(_question_mark(plot.title.text, explained))
            sizes = fitting(len(self.drawn), spec.panels[0].one_unit)
            for plot, size in zip((self.drawn[0], self.drawn[-1]), sizes):
                plot.css_classes = [size] if size else []
            self.grid.css_classes = [f"c{min(spec.columns, 3)}"]
            self.grid.children = self.drawn
        self.tell(
            drawn=True,
            dial=now.dial,
            rival=rival and rival.dial,
            time=now.time,
            step=now.step,
            warning=now.warning,
            caption=as_text(now.spec.caption),
            legend=[vars(c) for c in chips(spec)],
        )

    def composed(self, spec: FigureSpec, rival: Figure | None) -> FigureSpec:
        """The tab's own figure with the rival's curves, or those of the run before in grey."""
        if self.rival is not None:
            spec = beside(spec, rival.spec if rival else spec, NAMES[LAZY_SIDE], muted=False)
        if self.earlier is not None:
            spec = beside(spec, self.earlier, EARLIER, muted=True)
        return spec

    async def take(self, kind: str) -> Taken:
        """A file of the run as it stands, made by the worker."""
        if self.run is None or self.run.held:
            return Taken(kind, trouble="Nothing has been recorded yet. Press Start first.")
        run, future = self.run, asyncio.get_running_loop().create_future()
        run.waiting.setdefault(kind, []).append(future)
        if len(run.waiting[kind]) == 1:
            run.worker.order("take", kind)
        return await asyncio.wait_for(future, 60.0)  # seconds (chosen); a step may compile


def _question_mark(title: str, explained: str) -> CustomAction:
    """A "?" above the panel: the sentence when one points at it, the list of all panels when one
    presses it.
    """
    code = """
const guide = document.getElementById("guide");
guide.open = true;
[...guide.querySelectorAll("[data-panel]")].find((one) => one.dataset.panel === title)?.scrollIntoView({ block: "center" });
"""
    press = CustomJS(args={"title": title}, code=code)
    return CustomAction(icon="help", description=explained, callback=press)


def same_names(drawn: list, spec: FigureSpec) -> bool:
    """Whether the plots' marks carry the names of `spec`'s, so that colours and legends stay
    right.
    """
    tags = [[renderer.tags for renderer in plot.renderers] for plot in drawn]
    names = {str(tag[0]).partition("/")[2] for plot in tags for tag in plot if tag}
    return names == {as_text(entry(mark)) for panel in spec.panels for mark in panel.marks}
