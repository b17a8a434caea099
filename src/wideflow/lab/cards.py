"""A card's text as HTML: paragraphs, lists, emphasis, code and formulas of Markdown, everything
else spelt out.
"""

import html
import re

from ..report.tex import as_text

INLINE = (
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"<strong>\1</strong>"),
    (re.compile(r"\*([^*]+)\*"), r"<em>\1</em>"),
)


def as_html(text: str) -> str:
    """`text` with its Markdown turned into tags; tags of its own are shown as they are written.

    >>> as_html("Loss **falls** where $a < b$.")
    '<p>Loss <strong>falls</strong> where a &lt; b.</p>'
    """
    blocks = [block.strip() for block in re.split(r"\n\s*\n", text.strip())]
    return "".join(_block(block) for block in blocks if block)


def _block(block: str) -> str:
    lines = [line.strip() for line in block.splitlines()]
    if all(line.startswith(("- ", "* ")) for line in lines):
        return "<ul>" + "".join(f"<li>{_inline(line[2:])}</li>" for line in lines) + "</ul>"
    return f"<p>{_inline(' '.join(lines))}</p>"


def _inline(text: str) -> str:
    markup = html.escape(as_text(text), quote=False)
    for pattern, replacement in INLINE:
        markup = pattern.sub(replacement, markup)
    return markup
