"""One open tab: its place, its worker, its plots."""

import asyncio
import functools
import json
from typing import Any

from bokeh.document import Document
from bokeh.models import Column, InlineStyleSheet

from ..figures import FigureSpec
from ..report.interactive import chips, plots, refresh, same_marks
from ..report.tex import as_text
from ..runs.json_encoding import plain
from .channel import Talk
from .links import Place, place
from .messages import Event, Figure, Job, Progress, State, Taken, Verdicts
from .uploads import Uploads
from .workers import Worker, Workers

PACES = {"slow": 0.25, "normal": 0.06, "fast": 0.0}
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


class Tab:
    """What the page asks is carried out here; nothing in it computes."""

    def __init__(
        self, code: str, document: Document, start: Place, uploads: Uploads, workers: Workers
    ):
        self.code, self.document, self.uploads, self.workers = code, document, uploads, workers
        self.place, self.pace = start, PACES["normal"]
        self.worker: Worker | None = None
        self.state = State("ready")
        self.waiting: dict[str, list[asyncio.Future]] = {}
        self.count = 0
        self.drawn: list = []
        self.talk = Talk(name="talk")
        sheet = InlineStyleSheet(css=GRID)
        self.grid = Column(
            children=[], name="grid", sizing_mode="stretch_width", stylesheets=[sheet]
        )
        document.add_root(self.talk)
        document.add_root(self.grid)
        self.talk.on_change("asked", lambda _, __, text: self.asked(text))
        document.on_session_destroyed(lambda _: self.close())

    def tell(self, **what: Any) -> None:
        """Says something to the page; the count makes equal messages differ."""
        self.count += 1
        self.talk.told = json.dumps(plain({"count": self.count, **what}, spelt=False))

    def asked(self, text: str) -> None:
        """Carries out what the page asks; what is wrong with it is told, and nothing else happens."""
        try:
            order = json.loads(text)
            word = str(order["do"])
            act = {
                "choose": self.choose, "start": self.start, "pause": self.pause, "resume": self.resume,
                "reset": self.reset, "seen": self.seen, "pace": self.set_pace,
            }[word]  # fmt: skip
            act(order)
        except (json.JSONDecodeError, KeyError, TypeError):
            self.tell(trouble="The page asked for something that is not known here.")
        except ValueError as error:
            self.tell(trouble=str(error))

    def choose(self, order: dict) -> None:
        texts = {str(name): str(value) for name, value in order["place"].items()}
        self.place = place(texts, self.uploads)
        self.tell(home=self.home(), trouble="")

    def home(self) -> dict[str, str]:
        """What can be taken along of the place."""
        return {
            "link": self.place.link(),
            "command": self.place.command(),
            "lines": self.place.lines(),
        }

    def start(self, order: dict) -> None:
        self.choose(order)
        self.stop()
        self.worker = self.workers.take()
        self.state = State("running", "starting")
        self.tell(state=self.state.name, sentence=self.state.sentence, fresh=True)
        job = Job(self.place.scene.name, self.place.changes, self.place.seed, self.pace)
        self.worker.begin(job, functools.partial(self.hear, self.worker))

    def pause(self, order: dict) -> None:
        if self.worker is not None:
            self.worker.order("pause")

    def resume(self, order: dict) -> None:
        if self.worker is not None:
            self.worker.order("resume")

    def seen(self, order: dict) -> None:
        if self.worker is not None:
            self.worker.order("seen")

    def set_pace(self, order: dict) -> None:
        if order["pace"] not in PACES:
            raise ValueError(f"`pace` must be one of {', '.join(PACES)}.")
        self.pace = PACES[order["pace"]]
        if self.worker is not None:
            self.worker.order("pace", self.pace)

    def reset(self, order: dict) -> None:
        self.stop()
        self.state = State("ready")
        self.drawn, self.grid.children = [], []
        self.tell(state="ready", sentence="", fresh=True)

    def stop(self) -> None:
        """Ends the worker; whoever waits for a file of it is told."""
        if self.worker is not None:
            worker, self.worker = self.worker, None
            self.workers.give_back(worker)
        for waiting in self.waiting.values():
            for future in waiting:
                if not future.done():
                    future.set_result(Taken("", trouble="The run was reset."))
        self.waiting = {}

    def close(self) -> None:
        self.stop()

    def hear(self, worker: Worker, message: Any) -> None:
        """Called from the thread that listens to `worker`; it is heard in the page's own loop."""
        if worker is self.worker:
            act = functools.partial(self.heard, worker, message)
            self.document.add_next_tick_callback(act)

    def heard(self, worker: Worker, message: Any) -> None:
        if worker is not self.worker:
            return  # of a run that was reset meanwhile
        match message:
            case Figure():
                self.draw(message.spec)
                self.tell(
                    drawn=True, dial=message.dial, time=message.time, step=message.step,
                    caption=as_text(message.spec.caption), legend=[vars(c) for c in chips(message.spec)],
                )  # fmt: skip
            case Progress():
                self.tell(progress=message.share, what=message.what)
            case State(name="unjudged"):
                self.tell(verdicts={"headline": message.sentence, "rows": [], "numbers": []})
            case State():
                self.state = message
                own = self.uploads.found.get(str(self.place.choices.get("data")))
                sentence = own.named(message.sentence) if own else message.sentence
                self.tell(state=message.name, sentence=sentence)
            case Event():
                self.tell(event=vars(message))
            case Verdicts():
                self.tell(verdicts=vars(message))
            case Taken():
                for future in self.waiting.pop(message.kind, []):
                    if not future.done():
                        future.set_result(message)

    def draw(self, spec: FigureSpec) -> None:
        """New numbers into the plots, or new plots where the figure has other panels."""
        if self.drawn and same_marks(self.drawn, spec):
            refresh(self.drawn, spec)
        else:
            self.drawn = plots(spec, "lab")
            if len(self.drawn) % 3 == 1:  # in three columns the last row would hold one plot alone
                ends = ("large", "whole") if spec.panels[0].one_unit else ("broad", "broad")
                for plot, size in zip((self.drawn[0], self.drawn[-1]), ends):
                    plot.css_classes = [size]
            self.grid.css_classes = [f"c{min(spec.columns, 3)}"]
            self.grid.children = self.drawn

    async def take(self, kind: str) -> Taken:
        """A file of the run as it stands, made by the worker."""
        if self.worker is None:
            return Taken(kind, trouble="Nothing has been recorded yet. Press start first.")
        future = asyncio.get_running_loop().create_future()
        self.waiting.setdefault(kind, []).append(future)
        if len(self.waiting[kind]) == 1:
            self.worker.order("take", kind)
        return await asyncio.wait_for(future, 60.0)
