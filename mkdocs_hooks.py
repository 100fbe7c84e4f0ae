"""Formulas of the documentation become MathML while it is built: browsers show them without a script or a request."""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">(\\\(|\\\[)(.*?)(\\\)|\\\])</\1>', re.DOTALL)


def on_page_content(content: str, **_: object) -> str:
    """Replace every formula of a page by its MathML."""
    return _FORMULA.sub(_typeset, content)


def _typeset(found: re.Match[str]) -> str:
    block = found[1] == "div"
    return convert(html.unescape(found[3]).strip(), display="block" if block else "inline")
