"""The templates of the pages, with the settings that all of them share."""

import pathlib

import jinja2

FOLDER = pathlib.Path(__file__).parent / "templates"


def templates(*folders: pathlib.Path) -> jinja2.Environment:
    """The templates in `folders` and in the report's own.

    Values are escaped by default, and a misspelt variable is an error.
    """
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, FOLDER]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
