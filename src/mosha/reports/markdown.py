"""An edition as Markdown: tables with error bars, what was promised, and how to read a noisy number."""

from __future__ import annotations

from mosha._version import __version__
from mosha.core.language import Language, say
from mosha.core.showing import Bar, escape_markdown
from mosha.reports.content import Content, Section
from mosha.reports.promise import describe_promise
from mosha.tables.showing import make_answer_card

__all__ = ["list_cells", "write_markdown"]


def write_markdown(edition: Content, lang: Language) -> str:
    """The whole text."""
    parts = [f"# {edition.title}", edition.period.label]
    for section in edition.sections:
        parts += _write_section(section, lang)
    parts += [f"## {say('reports.promise_heading', lang)}", *describe_promise(edition, lang)]
    parts += [f"## {say('reports.reading_heading', lang)}", say("reports.reading", lang)]
    parts.append(f"*{say('reports.made_by', lang, version=__version__)}*")
    return "\n\n".join(part for part in parts if part) + "\n"


def _write_section(section: Section, lang: Language) -> list[str]:
    head = [f"## {section.part.heading}", section.part.text]
    if section.answer is None:
        return [*head, section.say_missing(lang)]
    heads, lines, numbers = list_cells(section, lang)
    rule = [":--" if place < numbers else "--:" for place in range(len(heads))]
    table = [heads, rule, *([escape_markdown(cell) for cell in line] for line in lines)]
    notes = [f"- {note}" for note in section.answer.read_notes(lang)]
    return [*head, "\n".join(f"| {' | '.join(line)} |" for line in table), "\n".join(notes)]


def list_cells(section: Section, lang: Language) -> tuple[list[str], list[list[str]], int]:
    """The table of an answer as text, all its lines: heads, lines, and how many of the first columns are keys."""
    answer = section.read_answer(lang)
    assert answer is not None
    card = make_answer_card(answer)
    if not card.lines:
        return list(card.heads), [], card.numbers
    drawn = [isinstance(cell, Bar) for cell in card.lines[0]]
    heads = [head for head, picture in zip(card.heads, drawn, strict=False) if not picture]
    return heads, [[cell for cell in line if isinstance(cell, str)] for line in card.lines], card.numbers
