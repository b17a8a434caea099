"""Files that come in and go out over HTTP: a user's table, and what is taken home of a run."""

import asyncio
from collections.abc import Mapping

from tornado.web import RequestHandler, stream_request_body

from .tab import Tab
from .uploads import LIMIT, Uploads, too_large

ENDINGS = {"figure": ("png", "image/png"), "table": ("nc", "application/x-netcdf")}


@stream_request_body
class Upload(RequestHandler):
    """Takes the body of a POST as a CSV file; what is too large is refused before it is read, and
    not kept.
    """

    def initialize(self, uploads: Uploads) -> None:
        self.uploads, self.parts, self.size = uploads, [], 0

    def prepare(self) -> None:
        self.size = int(self.request.headers.get("Content-Length", 0))

    def data_received(self, chunk: bytes) -> None:
        if self.announced_too_large:
            return  # read past, so that the browser gets the answer, but never held
        self.parts.append(chunk)
        self.size = max(self.size, sum(map(len, self.parts)))
        if self.announced_too_large:
            self.parts = []

    @property
    def announced_too_large(self) -> bool:
        return self.size > LIMIT

    async def post(self) -> None:
        if self.announced_too_large:
            self.set_status(413)
            self.finish({"trouble": too_large(self.size)})
            return
        name = self.get_query_argument("name", "data.csv")
        loop = asyncio.get_running_loop()
        try:
            table = await loop.run_in_executor(None, self.uploads.add, b"".join(self.parts), name)
        except ValueError as error:
            self.set_status(400)
            self.finish({"trouble": str(error)})
            return
        self.finish(table.facts())


class Leave(RequestHandler):
    """The page says that it is being closed, so that its run ends at once; a tab that dies is
    noticed a little later.
    """

    def initialize(self, tabs: Mapping[str, Tab]) -> None:
        self.tabs = tabs

    def post(self) -> None:
        tab = self.tabs.get(self.get_query_argument("tab", ""))
        if tab is not None:
            tab.close()
        self.set_status(204)


class Alive(RequestHandler):
    """Answers a page whose socket is gone: 204, or 410 if its tab is not known here any more."""

    def initialize(self, tabs: Mapping[str, Tab]) -> None:
        self.tabs = tabs

    def get(self) -> None:
        self.set_status(204 if self.get_query_argument("tab", "") in self.tabs else 410)


class Take(RequestHandler):
    """Sends the figure or the table of a tab's run."""

    def initialize(self, tabs: Mapping[str, Tab]) -> None:
        self.tabs = tabs

    async def get(self, kind: str) -> None:
        tab = self.tabs.get(self.get_query_argument("tab", ""))
        if tab is None:
            self.refuse(404, "The lab no longer knows this tab. Reload the page.")
            return
        try:
            file = await tab.take(kind)
        except TimeoutError:
            self.refuse(503, "The run is busy; pause it and try again.")
            return
        if file.trouble:
            self.refuse(409, file.trouble)
            return
        ending, mime = ENDINGS[kind]
        name = f"wideflow-{tab.place.scene.name}.{ending}"
        self.set_header("Content-Type", mime)
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.finish(file.content)

    def refuse(self, status: int, sentence: str) -> None:
        self.set_status(status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(sentence)
