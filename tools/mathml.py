"""MkDocs hook: formulas become MathML when the page is built, so the book needs no script and no network."""

import functools
import re

from latex2mathml.converter import convert

_CODE = re.compile(r"(<pre.*?</pre>|<code.*?</code>|<script.*?</script>)", re.DOTALL)
_DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
_INLINE = re.compile(r"(?<![\\$\w])\$(?!\s)([^$]+?)(?<!\s)\$(?![\w$])")
_KEPT = re.compile(r"\$\$.+?\$\$|(?<![\\$\w])\$(?!\s)[^$\n]+?(?<!\s)\$(?![\w$])", re.DOTALL)


def on_page_markdown(markdown, **_):
    """Keeps Markdown's hands off the formulas: underscores and asterisks in them are no emphasis."""
    parts = re.split(r"(```.*?```|`[^`]*`)", markdown, flags=re.DOTALL)
    return "".join(p if i % 2 else _KEPT.sub(_shield, p) for i, p in enumerate(parts))


def on_page_content(html, **_):
    parts = _CODE.split(html)
    return "".join(p if i % 2 else _formulas(p) for i, p in enumerate(parts))


def _shield(found):
    text = found.group(0)
    for sign in "\\_*[]<>":
        text = text.replace(sign, f"&#{ord(sign)};")
    return text


def _formulas(html: str) -> str:
    html = _DISPLAY.sub(lambda m: _mathml(_plain(m.group(1)), "block"), html)
    return _INLINE.sub(lambda m: _mathml(_plain(m.group(1)), "inline"), html)


def _plain(text: str) -> str:
    for sign in "\\_*[]<>":
        text = text.replace(f"&#{ord(sign)};", sign)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


@functools.cache
def _mathml(tex: str, display: str) -> str:
    return convert(tex.strip(), display=display)
