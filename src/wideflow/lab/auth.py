"""Access control: only this machine's own page, with the token of its address, is served; all else
gets 403.
"""

import hmac
from urllib.parse import parse_qs, urlsplit

from tornado.httputil import HTTPMessageDelegate, HTTPServerRequest
from tornado.routing import Router
from tornado.web import Application, RequestHandler

LOOPBACK = ("127.0.0.1", "localhost")
OPEN = (
    "/static/js/"  # Bokeh's own scripts, which hold no secret and are asked for without the token
)


class Gate(Router):
    """Stands before the application: checks host, origin and token of every request, pages and
    sockets alike.

    The host is checked because a foreign name may point to this machine; the origin because a
    foreign page may send requests from the user's own browser.
    """

    def __init__(self, inside: Application, token: str):
        self.inside, self.token, self.port = inside, token, 0

    def find_handler(self, request: HTTPServerRequest, **more) -> HTTPMessageDelegate | None:
        refusal = self.refusal(request)
        if not refusal:
            return self.inside.find_handler(request, **more)
        return Application([(r".*", Refuse, {"sentence": refusal})]).find_handler(request, **more)

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(f"{name}:{self.port}" for name in LOOPBACK)

    def refusal(self, request: HTTPServerRequest) -> str:
        """Why the request is refused; empty if it is not."""
        if request.headers.get("Host", "").lower() not in self.hosts:
            return "this server answers on the loopback address only."
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc.lower() not in self.hosts:
            return "requests from other pages are refused."
        if request.path.startswith(OPEN):
            return ""
        # compared in constant time, so that the answer's delay tells nothing of the token
        tokens = parse_qs(request.query).get("token", [""])
        if len(tokens) != 1 or not hmac.compare_digest(tokens[0].encode(), self.token.encode()):
            return "the token in the address is wrong. Use the address that `wideflow lab` printed."
        return ""


class Refuse(RequestHandler):
    """403 and the reason."""

    def initialize(self, sentence: str) -> None:
        self.sentence = sentence

    def prepare(self) -> None:
        self.set_status(403)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"Refused: {self.sentence}\n")
