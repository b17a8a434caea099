"""Griffe extension: in docstrings, doctests are shown as code and displayed formulas as paragraphs,
wherever they stand.
"""

import re

import griffe

_DOCTEST = re.compile(r"^([ ]*)(>>> .*?)(?=\n\s*\n|\Z)", re.DOTALL | re.MULTILINE)
_DISPLAY = re.compile(r"^(.*?)\$\$(.+?)\$\$([.,;:]?)[ ]*", re.DOTALL | re.MULTILINE)


class Docstrings(griffe.Extension):
    def on_object(self, *, obj, **_):
        if obj.docstring is not None:
            obj.docstring.value = shown(obj.docstring.value)


def shown(text: str) -> str:
    text = _DOCTEST.sub(lambda match: "{0}```pycon\n{0}{1}\n{0}```".format(*match.groups()), text)
    return _DISPLAY.sub(_paragraph, text)


def _paragraph(match: re.Match) -> str:
    """The formula between empty lines, at the indentation of the line that held it; the mark behind
    it goes inside.
    """
    before, formula, mark = match.groups()
    indent = re.match(r"[ ]*", before.rpartition("\n")[2]).group(0)
    return f"{before.rstrip()}\n\n{indent}$${formula}{mark}$$\n\n{indent}"
