"""The lab's server: on the loopback address alone, behind a token that is new at every start."""

import asyncio
import logging
import pathlib
import secrets
import signal
import socket
from dataclasses import dataclass, field

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.document import Document
from bokeh.resources import Resources
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop

from .auth import LOOPBACK, Gate
from .handlers import Alive, Leave, Take, Upload
from .page import furnish
from .tab import Tab
from .uploads import LIMIT, Uploads
from .workers import Workers

ADDRESS = LOOPBACK[0]
MOST_BODY = 8 * LIMIT  # a larger body is cut off; up to here it is read past and answered
# milliseconds after which a tab that is not connected is taken for closed (chosen): on a busy
# machine a browser takes ten seconds and more to connect, and then would meet another tab than its
# page was built for. A page that is closed says so at once (`Leave`).
GONE = 30_000


class PlotsAlone(BokehTornado):
    """Bokeh's application whose pages load the script of plots, and not those of widgets, tables,
    WebGL and formulas: three of four megabytes.
    """

    def resources(self, absolute_url: str | bool | None = None) -> Resources:
        return BokehTornado.resources(self, absolute_url).clone(components=["bokeh"])


@dataclass
class Lab:
    """A running server. `address` is what the user opens; `close` ends everything, workers
    included.
    """

    token: str
    port: int
    server: BaseServer
    workers: Workers
    uploads: Uploads
    tabs: dict[str, Tab] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"http://{ADDRESS}:{self.port}/?token={self.token}"

    def close(self) -> None:
        for tab in list(self.tabs.values()):
            tab.close()
        self.workers.end()
        self.uploads.end()
        self.server.stop(wait=False)


def open_lab(workers: Workers, port: int = 0, plane: pathlib.Path | None = None) -> Lab:
    """Listens on the loopback address; `port` 0 takes a free one. The current event loop must be
    run by the caller.

    `plane` is a folder of `wideflow phase`, which the page then offers as a map.

    Raises:
        ValueError: the port is taken.
    """
    token, tabs = secrets.token_urlsafe(24), {}  # 192 bits
    uploads = Uploads(plane)

    def build(document: Document) -> None:
        code = secrets.token_hex(8)
        tabs[code] = furnish(document, code, uploads, workers)
        document.on_session_destroyed(lambda _: tabs.pop(code, None))

    try:
        listening = socket.create_server((ADDRESS, port))
    except (OSError, OverflowError) as error:
        uploads.end()
        raise ValueError(
            f"`port` {port} cannot be listened on: {error}. Choose another one, or 0 for a free "
            "one."
        ) from error
    listening.setblocking(False)
    port = listening.getsockname()[1]
    tornado = PlotsAlone(
        {"/": Application(FunctionHandler(build))},
        extra_websocket_origins=[f"{name}:{port}" for name in LOOPBACK],
        extra_patterns=[
            (r"/upload", Upload, {"uploads": uploads}),
            (r"/take/(figure|table)", Take, {"tabs": tabs}),
            (r"/leave", Leave, {"tabs": tabs}),
            (r"/alive", Alive, {"tabs": tabs}),
        ],
        sign_sessions=True,
        secret_key=secrets.token_bytes(32),
        check_unused_sessions_milliseconds=500,
        unused_session_lifetime_milliseconds=GONE,
        use_index=False,
        websocket_max_message_size_bytes=2**20,  # the page sends settings; files go over HTTP
    )
    gate = Gate(tornado, token)
    gate.port = port
    http = HTTPServer(gate, max_body_size=MOST_BODY)
    http.add_sockets([listening])
    server = BaseServer(IOLoop.current(), tornado, http)
    server.start()
    workers.warm()
    return Lab(token, port, server, workers, uploads, tabs)


def run_lab(workers: Workers, port: int, opened, plane: pathlib.Path | None = None) -> None:
    """Serves until Ctrl-C; calls `opened(address)` when the page can be opened."""
    for name in ("bokeh", "tornado"):
        logging.getLogger(name).setLevel(logging.ERROR)

    async def serve() -> None:
        lab, ended = open_lab(workers, port, plane), asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        try:
            opened(lab.address)
            await ended.wait()
        finally:
            lab.close()

    asyncio.run(serve())
