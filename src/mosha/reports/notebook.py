"""An edition as a Jupyter notebook: code that finds the answers again, with their tables and pictures in it."""

from __future__ import annotations

import base64
from typing import Any

from mosha.core.language import Language, keep_language, say, set_language
from mosha.reports.content import Content, Section
from mosha.reports.page import draw_section
from mosha.reports.promise import describe_promise

__all__ = ["write_notebook"]


def write_notebook(edition: Content, lang: Language) -> dict[str, Any]:
    """Plain data in the form of nbformat 4."""
    opening = f'import mosha\n\nedition = mosha.Report.read("report.yaml").show(on="{edition.period.label}")'
    cells = [_make_text(f"# {edition.title}\n\n{edition.period.label}", 0), _make_code(opening, [], 1)]
    with keep_language():
        set_language(lang)
        for section in edition.sections:
            heading = f"## {section.part.heading}\n\n{section.part.text}".rstrip()
            cells.append(_make_text(heading, len(cells)))
            cells.append(_make_code(f'edition["{section.part.name}"]', _list_outputs(section, lang), len(cells)))
    promise = "\n\n".join([f"## {say('reports.promise_heading', lang)}", *describe_promise(edition, lang)])
    cells.append(_make_text(promise, len(cells)))
    reading = f"## {say('reports.reading_heading', lang)}\n\n{say('reports.reading', lang)}"
    cells.append(_make_text(reading, len(cells)))
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def _list_outputs(section: Section, lang: Language) -> list[dict[str, object]]:
    answer = section.read_answer(lang)
    if answer is None:
        return []
    card = answer.make_card()
    shown = {"text/html": card.write_html(), "text/plain": card.write_text()}
    outputs: list[dict[str, object]] = [{"output_type": "display_data", "metadata": {}, "data": shown}]
    picture = draw_section(section, lang, kind="png")
    if picture is not None:
        data = {"image/png": base64.b64encode(picture).decode()}
        outputs.append({"output_type": "display_data", "metadata": {}, "data": data})
    return outputs


def _make_text(text: str, number: int) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": f"cell-{number}", "metadata": {}, "source": text}


def _make_code(text: str, outputs: list[dict[str, object]], number: int) -> dict[str, Any]:
    cell = {"cell_type": "code", "id": f"cell-{number}", "metadata": {}, "source": text, "outputs": outputs}
    return cell | {"execution_count": None}
