"""An edition as one HTML page: no script, nothing from anywhere else; light, dark and on paper."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import Any

from mosha._version import __version__
from mosha.core.errors import MissingExtra
from mosha.core.language import Language, say
from mosha.ledger.publishing.page import STYLE
from mosha.pictures.figure import use_style
from mosha.reports.content import Content, Section
from mosha.reports.markdown import list_cells
from mosha.reports.parts import TOTAL
from mosha.reports.promise import describe_promise

__all__ = ["draw_section", "write_page"]

MOST_ROWS = 200
SHORT = 16
"""A table of so many lines is not torn by the end of a page."""

MORE_STYLE = """
.picture { display: block; max-width: 100%; margin: .6rem 0 1rem; border-radius: .35rem; }
.notes { color: var(--dim); font-size: .9rem; padding-left: 1.1rem; }
.picture, tr, .short { break-inside: avoid; } h2, .picture { break-after: avoid; }
nav ol { columns: 2; padding-left: 1.2rem; } nav a { color: var(--fill); }
@page { size: A4; margin: 18mm 16mm; }
@media (prefers-color-scheme: dark) { .picture { filter: invert(.92) hue-rotate(180deg); } }
@media print { .picture { filter: none; max-height: 110mm; } nav { display: none; } }
"""


def write_page(edition: Content, lang: Language) -> str:
    """The whole page."""
    body = [
        f"<h1>{escape(edition.title)}</h1>",
        f'<p class="dim">{escape(edition.period.label)}</p>',
        _write_promise(edition, lang),
        _write_contents(edition),
        *(_write_section(section, place, lang) for place, section in enumerate(edition.sections)),
        _write_reading(lang),
        f"<footer>{escape(say('reports.made_by', lang, version=__version__))}</footer>",
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    tag = "zh-Hans" if lang == "zh" else "en"
    lines = "\n".join(body)
    return (
        f'<!doctype html>\n<html lang="{tag}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(edition.title)}</title>\n<style>{STYLE}{MORE_STYLE}</style>\n"
        f"</head>\n<body>\n<main>\n{lines}\n</main>\n</body>\n</html>\n"
    )


def _write_promise(edition: Content, lang: Language) -> str:
    first, *rest = describe_promise(edition, lang) or [""]
    paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in rest)
    heading = escape(say("reports.promise_heading", lang))
    return (
        f'<section class="promise"><h2 style="margin-top:0">{heading}</h2><strong>{escape(first)}</strong>'
        f"{paragraphs}</section>"
    )


def _write_reading(lang: Language) -> str:
    heading, text = say("reports.reading_heading", lang), say("reports.reading", lang)
    return f"<section><h2>{escape(heading)}</h2><p>{escape(text)}</p></section>"


def _write_contents(edition: Content) -> str:
    if len(edition.sections) < 3:
        return ""
    listed = (f'<li><a href="#part-{i}">{escape(s.part.heading)}</a></li>' for i, s in enumerate(edition.sections))
    return f"<nav><ol>{''.join(listed)}</ol></nav>"


def _write_section(section: Section, place: int, lang: Language) -> str:
    head = f"<h2>{escape(section.part.heading)}</h2>"
    head += f"<p>{escape(section.part.text)}</p>" if section.part.text else ""
    if section.answer is None:
        return f'<section class="part" id="part-{place}">{head}<p>{escape(section.say_missing(lang))}</p></section>'
    notes = "".join(f"<li>{escape(note)}</li>" for note in section.answer.read_notes(lang))
    listed = f'<ul class="notes">{notes}</ul>' if notes else ""
    return (
        f'<section class="part" id="part-{place}">{head}{_embed_picture(section, lang)}'
        f"{_write_table(section, lang)}{listed}</section>"
    )


def _embed_picture(section: Section, lang: Language) -> str:
    drawn = draw_section(section, lang, kind="svg")
    if drawn is None:
        return ""
    encoded = base64.b64encode(drawn).decode()
    text = escape(section.part.heading, quote=True)
    return f'<img class="picture" alt="{text}" src="data:image/svg+xml;base64,{encoded}">'


def draw_section(section: Section, lang: Language, *, kind: str) -> bytes | None:
    """The picture of an answer with more than one number; None where nothing can be drawn."""
    answer = section.read_answer(lang)
    if answer is None or len(answer) < 2:
        return None
    shown = answer.having(lambda row: TOTAL not in [row[key] for key in answer.keys])  # totals would drown their parts
    try:
        figure: Any = (shown if len(shown) > 1 else answer).plot(lang=lang)
    except MissingExtra:
        return None
    buffer = io.BytesIO()
    with use_style():
        figure.savefig(buffer, format=kind, dpi=144, facecolor="white")
    return buffer.getvalue()


def _write_table(section: Section, lang: Language) -> str:
    heads, lines, numbers = list_cells(section, lang)

    def mark(place: int) -> str:
        return ' class="number"' if place >= numbers else ""

    head = "".join(f"<th{mark(i)}>{escape(text)}</th>" for i, text in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(f"<td{mark(i)}>{escape(cell)}</td>" for i, cell in enumerate(line)) + "</tr>"
        for line in lines[:MOST_ROWS]
    )
    rest = len(lines) - MOST_ROWS
    more = f'<p class="dim">{escape(say("reports.more_rows", lang, count=f"{rest:,}"))}</p>' if rest > 0 else ""
    short = " short" if len(lines) <= SHORT else ""
    return f'<div class="wide{short}"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{more}'
