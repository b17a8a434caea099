"""Griffe extension: doctests in docstrings are shown as code, wherever they stand."""

import re

import griffe

_BLOCK = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.DOTALL | re.MULTILINE)


class Doctests(griffe.Extension):
    def on_object(self, *, obj, **_):
        if obj.docstring is not None:
            obj.docstring.value = _BLOCK.sub(
                lambda found: f"```pycon\n{found.group(0)}\n```", obj.docstring.value
            )
