"""What happens while the documentation is built.

Formulas become MathML, which browsers show without a script or a request, lines of Chinese are joined without a blank,
and the page about proofs lists those that stand beside the code.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

from latex2mathml.converter import convert

# A formula, and a mark of Chinese that may not stand alone at the beginning of a line.
_FORMULA = re.compile(
    r'<(span|div) class="arithmatex">(\\\(|\\\[)(.*?)(\\\)|\\\])</\1>([\u3001\u3002\uff01\uff09\uff0c\uff1a\uff1b]?)',
    re.DOTALL,
)

# Code as it stands, or the end of a line between two signs of Chinese, which would show as a blank.
_LINE = re.compile(
    r"(<pre.*?</pre>)|(?<=[\u3001-\u303f\u4e00-\u9fff\uff01-\uffef])\n *(?=[\u3001-\u303f\u4e00-\u9fff\uff01-\uffef])",
    re.DOTALL,
)

# The sign is raised by itself: as an exponent it floats above the line where a browser has no font for formulas.
_PRIME = re.compile(r"<msup>(<mi>[^<]*</mi>)<mi>&#x02032;</mi></msup>")

_PACKAGE = Path(__file__).parent / "src" / "mosha"
_STAMP = re.compile(r"^\*Proves `mosha\.[\w.]+:(\w+)`", re.MULTILINE)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put the list of all proofs where a page asks for it."""
    return markdown.replace("<!-- every proof -->", list_proofs()) if "<!-- every proof -->" in markdown else markdown


def list_proofs() -> str:
    """The lines of a table: what is proved, the file, the code that carries its stamp."""
    lines = []
    for path in sorted(_PACKAGE.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        title = text.splitlines()[0].removeprefix("# ").removeprefix("Proof: ")
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(_STAMP.findall(text)))
        lines.append(f"| {title[0].upper()}{title[1:]} | `{path.relative_to(_PACKAGE).as_posix()}` | {names} |")
    return "\n".join(lines)


def on_page_content(content: str, **_: object) -> str:
    """Replace every formula of a page by its MathML, and join lines of Chinese, which has no blanks."""
    return _LINE.sub(lambda found: found[1] or "", _FORMULA.sub(_typeset, content))


def _typeset(found: re.Match[str]) -> str:
    block = found[1] == "div"
    formula = convert(html.unescape(found[3]).strip(), display="block" if block else "inline")
    formula = _PRIME.sub(r"<mrow>\1<mtext>&#x2032;</mtext></mrow>", formula)
    if block:
        return f'<div style="overflow-x: auto">{formula}</div>{found[5]}'  # narrow screens scroll it
    return f'<span style="white-space: nowrap">{formula}{found[5]}</span>' if found[5] else formula
