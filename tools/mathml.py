"""MkDocs hook: formulas become MathML when the page is built, so the book needs no script and no
network.

The Markdown extension `arithmatex` finds the formulas, in pages and in docstrings, and keeps
Markdown's hands off them.
"""

import functools
import html as entities
import re

from latex2mathml.converter import convert

_FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL
)  # \(...\) inline, \[...\] displayed


def on_page_content(html, **_):
    return _FORMULA.sub(_mathml, html)


def _mathml(found: re.Match) -> str:
    tex = entities.unescape(found.group(2)).strip()
    if found.group(1) == "div":  # a box of its own, which scrolls on a narrow screen
        return f'<div class="formula">{_converted(tex, "block")}</div>'
    return _converted(tex, "inline")


_MISSED = {
    r"\|": "‖",
    r"\{": "{",
    r"\}": "}",
    r"\arg": "arg",
}  # what the converter leaves as source


@functools.cache
def _converted(tex: str, display: str) -> str:
    mathml = convert(tex, display=display)
    for source, sign in _MISSED.items():
        mathml = mathml.replace(f">{source}<", f">{sign}<")
    return mathml
