"""One lab for all tests, and a browser; for those of its start and end a lab as a user starts
it.
"""

import contextlib
import io
import pathlib
import re
import signal
import subprocess
import sys

import psutil
import pytest
import xarray as xr

PATIENCE = 240.0  # seconds: the tests' own processes may be the least of many


AS_A_USER = ["-m", "wideflow", "lab", "--no-open"]
# Its spares rehearse free play alone: the tours take each of them 12 to 15 seconds of a core, and
# most tests open none. Tours are of their smoke size.
SMALL_TOURS = [
    "-c",
    """
import dataclasses, jax
from wideflow.lab.links import Place
from wideflow.lab.server import run_lab
from wideflow.lab.workers import Workers

own_changes = Place.changes.fget
def changes(place):
    smoke = dataclasses.asdict(place.scene.experiment.settings["smoke"]) if place.scene.steps else {}
    return {**own_changes(place), **smoke}
Place.changes = property(changes)

workers = Workers(jax.config.jax_compilation_cache_dir, rehearsed=())
run_lab(workers, 0, lambda address: print(address, flush=True))
""",
]


class Server:
    """A running lab, by default `wideflow lab`."""

    def __init__(self, *options: str, program=AS_A_USER):
        command = [sys.executable, *program, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = re.search(r"http\S+", self.process.stdout.readline())[0]
        self.base, self.token = self.address.split("/?token=")

    def workers(self) -> set[int]:
        """The processes that compute for it, by number: the children of the one that imports for
        all of them.
        """
        pids = set()
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.Error):  # it is just ending
                if any("forkserver" in word for word in child.cmdline()):
                    pids |= {worker.pid for worker in child.children()}
        return pids

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(20)


@pytest.fixture(scope="session")
def server():
    running = Server(program=SMALL_TOURS)
    yield running
    running.end()


@pytest.fixture
def own_server():
    """A server for one test, which may end it."""
    running = Server()
    yield running
    running.process.kill()


class Page:
    """A tab of the lab, with what it said and asked for."""

    def __init__(self, browser, server, query="", **context):
        self.context = browser.new_context(
            viewport=context.pop("viewport", {"width": 1400, "height": 900}),
            accept_downloads=True,
            bypass_csp=context.pop("bypass_csp", True),
            **context,
        )
        self.context.set_default_timeout(1000 * PATIENCE)
        self.tab = self.context.new_page()
        self.said, self.requests = [], []
        self.tab.on("console", lambda m: self.said.append((m.type, m.text)))
        self.tab.on("pageerror", lambda e: self.said.append(("error", str(e))))
        self.tab.on("request", lambda r: self.requests.append(r.url))
        self.tab.goto(server.address + (f"&{query}" if query else ""))
        self.tab.wait_for_selector("body[data-connected]")

    def wait(self, condition: str, seconds: float = PATIENCE):
        return self.tab.wait_for_function(condition, timeout=1000 * seconds, polling=50)

    def prepared(self, seconds: float = PATIENCE) -> None:
        """Waits until the first picture is there and everything is compiled."""
        self.tab.wait_for_selector("body[data-prepared]", timeout=1000 * seconds)

    def begins_anew(self, act) -> None:
        """Does `act()`, and waits until the page has been told of a new run."""
        last = self.tab.evaluate("window.lab.messages.at(-1)?.count ?? 0")
        act()
        self.wait(f"window.lab.messages.some(t => t.fresh && t.count > {last})")

    def since_fresh(self, condition: str, seconds: float = PATIENCE) -> None:
        """Waits until one of the messages since the last new start fulfils the condition on `t`."""
        last = "window.lab.messages.slice(window.lab.messages.findLastIndex(t => t.fresh))"
        self.wait(f"{last}.some(t => {condition})", seconds)

    def state(self, *names: str, seconds: float = PATIENCE) -> None:
        self.tab.wait_for_selector(
            ", ".join(f"#state.{name}" for name in names), timeout=1000 * seconds
        )

    def curve(self, title: str, number: int = 0) -> list[float]:
        """The heights of a curve in the panel of that title, as the browser holds them."""
        return self.tab.evaluate(CURVE, [title, number])

    def trouble(self) -> str:
        return self.tab.inner_text("#trouble") if self.tab.is_visible("#trouble") else ""

    def troubles(self) -> list[tuple[str, str]]:
        """What the browser's console had to complain about; a panel without numbers yet is no
        trouble.
        """
        waiting = ("data value for log axis", "could not set initial ranges")
        bad = [line for line in self.said if line[0] in ("error", "warning")]
        return [line for line in bad if not any(words in line[1] for words in waiting)]

    def download(self, button: str) -> bytes:
        with self.tab.expect_download() as coming:
            self.tab.click(button)
        return pathlib.Path(coming.value.path()).read_bytes()

    def table(self) -> xr.Dataset:
        """The table as it is taken home."""
        with xr.open_dataset(io.BytesIO(self.download("#take-table")), engine="h5netcdf") as opened:
            return opened.load()

    def close(self):
        self.context.close()


CURVE = """([title, number]) => {
  const plots = Bokeh.documents.flatMap((doc) => doc.get_model_by_name("grid").children);
  const plot = plots.find((m) => m.title.text === title);
  return plot ? [...plot.renderers[number].data_source.data.true_y] : [];
}"""


@pytest.fixture
def open_page(browser, server):
    """Opens tabs, and closes them after the test."""
    opened = []

    def opening(query="", of=None, **context):
        opened.append(Page(browser, of or server, query, **context))
        return opened[-1]

    yield opening
    for page in opened:
        page.close()
