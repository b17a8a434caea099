"""`wideflow lab`: the interactive page on this machine."""

import pathlib
from typing import TYPE_CHECKING, Annotated

import typer

from ..runs.failures import OK, usage_errors
from .options import DebugOption

if TYPE_CHECKING:
    from ..lab.workers import Workers

PortOption = Annotated[
    int, typer.Option(help="The port to listen on; 0 picks a free one.", min=0, max=65535)
]
StateArgument = Annotated[
    str,
    typer.Argument(
        help="What to open: a saved run (run.nc), the folder of a phase plane, or the part of an "
        "earlier address from scene= on.",
        show_default=False,
    ),
]
OpenOption = Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")]


def lab(
    state: StateArgument = "",
    port: PortOption = 0,
    open_: OpenOption = True,
    debug: DebugOption = False,
) -> int:
    """Open the interactive page: choose data, width and scaling, and watch a network train.

    The server listens on the loopback address only, and requires the token in the printed
    address. Ctrl-C ends it.
    """
    from .._core.precision import jax_flag
    from ..lab.workers import Workers
    from .work import keep_compiled_programs

    with usage_errors():  # before any process is started
        plane = _plane(state)
        query = "scene=plane" if plane else _query(state)
    keep_compiled_programs()
    workers = Workers(jax_flag("jax_compilation_cache_dir"))
    workers.warm()  # it reads its libraries while this process reads those of the page
    try:
        return _served(workers, plane, query, port, open_)
    finally:
        workers.end()


def _served(
    workers: "Workers", plane: pathlib.Path | None, query: str, port: int, open_: bool
) -> int:
    import webbrowser

    from ..lab.server import run_lab

    def opened(address: str) -> None:
        address += f"&{query}" if query else ""
        print(f"The lab is open at {address}", flush=True)
        print("Ctrl-C ends it.", flush=True)
        if open_:
            webbrowser.open(address)

    with usage_errors():
        run_lab(workers, port, opened, plane)
    return OK


def _plane(state: str) -> pathlib.Path | None:
    """The folder of a phase plane, read once so that a wrong one is refused here."""
    folder = pathlib.Path(state)
    if not state or not folder.is_dir():
        return None
    from ..lab.plane import plane_at

    plane_at(folder.resolve())
    return folder.resolve()


def _query(state: str) -> str:
    """The settings that `state` names, as they stand in an address, without its token."""
    if not state:
        return ""
    if not state.endswith(".nc"):
        return _settings(state)
    from ..lab.links import saved_link
    from ..runs.records import read_record

    path = pathlib.Path(state)
    if not path.is_file():
        raise ValueError(f"`state` must be a saved run, but there is no file {state}.")
    return saved_link(read_record(path))


def _settings(state: str) -> str:
    """The part of an address behind its question mark and token, once the page could read it."""
    from urllib.parse import parse_qsl, urlencode

    from .._core.errors import did_you_mean
    from ..lab.links import KNOWN, place
    from ..lab.uploads import Uploads

    try:
        pairs = parse_qsl(
            state.rpartition("?")[2].lstrip("&"), keep_blank_values=True, strict_parsing=True
        )
    except ValueError as error:
        raise ValueError(
            "`state` must be the folder of a phase plane, a saved run (run.nc) or settings such as "
            f"scene=free&width=200, got {state[:80]!r}."
        ) from error
    settings = dict(pairs)
    if len(settings) < len(pairs):
        raise ValueError(f"`state` names a setting twice, got {state[:80]!r}. Name each once.")
    for name in settings:
        if name not in KNOWN:
            raise ValueError(
                f"`state` names {name[:40]!r}, which the page has not.{did_you_mean(name, KNOWN)} "
                f"It has {', '.join(KNOWN)}."
            )
    uploads = Uploads()
    try:
        place(settings, uploads)
    finally:
        uploads.end()
    return urlencode({name: value for name, value in pairs if name != "token"})
