"""The page around the plots: its template, and what it shows before anything has run."""

import base64
import json
import pathlib

from bokeh.document import Document

from ..data.files import UCI, available
from ..experiments.training import GENERATED
from ..report.environment import templates
from ..report.tex import as_text
from . import plane
from .cards import as_html
from .fields import ACTIVATIONS, FIELDS
from .links import START, Place, place
from .panel_help import HELP
from .scenes import FREE, plane_scene, scenes
from .tab import PACES, Tab
from .uploads import LIMIT, Uploads
from .workers import Workers

HERE = pathlib.Path(__file__).parent


def furnish(document: Document, code: str, uploads: Uploads, workers: Workers) -> Tab:
    """Makes `document` the page of a new tab, at the place that its address names."""
    start, trouble = _place(document, uploads)
    tab = Tab(code, document, start, uploads, workers)
    every_scene = scenes() | ({plane.NAME: plane_scene()} if uploads.plane else {})
    document.title = "wideflow lab"
    document.config.notify_connection_status = False  # the page says it in its own words
    document.template = templates(HERE / "templates").get_template("lab.html")
    document.template_variables.update(
        scenes=every_scene,
        scene=start.scene,
        free=FREE,
        fields=FIELDS,
        generated=GENERATED,
        activations=ACTIVATIONS,
        tables=[name for name in UCI if available(name)],
        paces=list(PACES),
        limit=LIMIT,
        help=HELP,
        still=_still(start),
        points=_points(uploads) if start.scene.still else [],
        setup=json.dumps(
            {
                "tab": code,
                "scene": start.scene.name,
                "choices": _values(start),
                "seed": start.seed,
                "home": tab.home(),
                "trouble": trouble,
                "limit": LIMIT,
                "uploads": _upload(start),
                "steps": [
                    {"title": as_text(s.title), "html": as_html(s.text), "look": as_text(s.look)}
                    for s in start.scene.steps
                ],
            }
        ).replace("<", "\\u003c"),
    )
    return tab


def _place(document: Document, uploads: Uploads) -> tuple[Place, str]:
    """The place of the address; a wrong one gives the start of its scene, or of free play, and a
    sentence.
    """
    request = getattr(document.session_context, "request", None)  # a server's session has one
    arguments = request.arguments if request else {}
    query = {
        name: values[0].decode(errors="replace") for name, values in arguments.items() if values
    }
    try:
        return place(query, uploads), ""
    except ValueError as error:
        reason = str(error)
    start = {"scene": query["scene"]} if query.get("scene") in scenes() else {}
    sentence = f"The address cannot be read: {reason} The page shows its default settings instead."
    return place(start, uploads), sentence


def _still(at: Place) -> str:
    """A picture for the moment before the first one comes: of a tour its end, of free play its
    start where nothing is changed.
    """
    path = HERE / "stills" / f"{at.scene.name}.webp"
    changed = at.scene.name == FREE and at != place({}, at.uploads)
    if changed or not path.exists():
        return ""
    return f"data:image/webp;base64,{base64.b64encode(path.read_bytes()).decode()}"


def _points(uploads: Uploads) -> list[str]:
    """The points of the plane in words, by their number."""
    assert uploads.plane is not None
    phase_plane = plane.plane_at(uploads.plane)
    return [plane.describe(phase_plane, number) for number in range(len(phase_plane.places))]


def _values(at: Place) -> dict:
    """Every offered field with its value at this place."""
    if at.scene.name != FREE:
        return dict(at.choices)
    return {name: at.choices.get(name, START.get(name, "")) for name in FIELDS}


def _upload(at: Place) -> dict | None:
    code = str(at.choices.get("data", ""))
    if code not in at.uploads.tables:
        return None
    return at.uploads.tables[code].facts()
