"""The templates of the pages, with the settings that all of them share."""

import pathlib

import jinja2

FOLDER = pathlib.Path(__file__).parent / "templates"


def templates() -> jinja2.Environment:
    """An environment that escapes by default, and in which a misspelt variable is an error."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
