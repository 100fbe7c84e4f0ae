"""The answers of one period: found by name, shown, and written as a page, a PDF, Markdown, data or a notebook."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from mosha.core.errors import InvalidParameter
from mosha.core.language import Language, phrase, say
from mosha.core.names.extras import load_guest
from mosha.core.showing import MISSING, Card, Shown
from mosha.files.atomic import replace_file
from mosha.reports.content import Content
from mosha.reports.markdown import write_markdown
from mosha.reports.notebook import write_notebook
from mosha.reports.page import write_page
from mosha.reports.printing import print_page
from mosha.tables import Answer

__all__ = ["Edition", "Ending"]

Ending = Literal["html", "pdf", "md", "csv", "parquet", "ipynb", "json"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Edition(Shown, Content):
    """A report of one period. Everything made of it is free.

    Made by `Report.run`: `title`, `period`, `language`, the `sections` and how the budget was `split`. Methods take
    a language `lang` and the `confidence` of error bars.

    Guarantee:
        Post-processing of what was paid for.

    >>> import mosha
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1)
    >>> visits = mosha.protect({"ward": ["A", "B", "A"]}, unit=mosha.Row(), account=account)
    >>> edition = mosha.Report("Visits", epsilon=1).add("all", visits.count()).run()
    >>> edition.to_markdown().splitlines()[0]
    '# Visits'
    """

    def __repr__(self) -> str:
        return f"Edition({self.title!r}, {self.period.label}, {len(self.sections)} answers)"

    def __getitem__(self, name: str) -> Answer:
        for section in self.sections:
            if section.part.name == name:
                if section.waits:
                    raise InvalidParameter("reports.part_waits", part=name)
                if section.answer is None:
                    raise InvalidParameter("reports.part_broke", part=name)
                return section.answer
        names = [section.part.name for section in self.sections]
        raise InvalidParameter("reports.unknown_part", part=str(name), parts=names)

    def make_card(self) -> Card:
        facts = [(s.part.heading, MISSING if s.answer is None else repr(s.answer)[7:-1]) for s in self.sections]
        notes = [str(receipt) for receipt in self.receipts]
        return Card(title=f"{self.title}, {self.period.label}", facts=facts, notes=notes)

    def _repr_html_(self) -> str:
        """In a notebook: the card, and beneath it every answer."""
        answers = [section.answer for section in self.sections if section.answer is not None]
        return super()._repr_html_() + "".join(answer._repr_html_() for answer in answers)

    def to_html(self, lang: Language | None = None) -> str:
        """One page without a script, light and dark, that prints well; pictures where the extra `plot` is there."""
        return write_page(self, lang or self.language)

    def to_markdown(self, lang: Language | None = None) -> str:
        """Headings, tables with error bars, and what was promised."""
        return write_markdown(self, lang or self.language)

    def to_notebook(self, lang: Language | None = None) -> dict[str, Any]:
        """A Jupyter notebook (nbformat 4) with its output in it."""
        return write_notebook(self, lang or self.language)

    def to_table(self, confidence: float = 0.95) -> dict[str, list[Any]]:
        """All numbers in one long table: part, aggregate, group, value, error and what the error is counted in."""
        table: dict[str, list[Any]] = {n: [] for n in ("part", "aggregate", "group", "value", "error", "error_in")}
        for section in self.sections:
            if section.answer is not None:
                for row in _list_numbers(section.part.name, section.answer, confidence):
                    for name, value in zip(table, row, strict=True):
                        table[name].append(value)
        return table

    def to_dict(self) -> dict[str, Any]:
        """Plain data: every answer with its bars, and the receipts."""
        answers = {s.part.name: None if s.answer is None else s.answer.to_dict() for s in self.sections}
        return {"title": self.title, "period": self.period.label, "answers": answers}

    def save(self, path: str | os.PathLike[str], *, lang: Language | None = None, bom: bool = True) -> Path:
        """Write a file, whose ending says what it is: .html, .pdf, .md, .csv, .parquet, .ipynb or .json.

        Args:
            path: where.
            lang: "en" or "zh"; the language of the report where it is left out.
            bom: whether a CSV file begins with a mark of its encoding, without which Excel shows Chinese names wrong.
        """
        place = Path(path)
        ending = place.suffix.lower().removeprefix(".")
        if ending not in get_args(Ending):
            endings = [f".{known}" for known in get_args(Ending)]
            raise InvalidParameter("reports.unknown_ending", parameter="path", endings=endings)
        if ending == "parquet":
            arrow = load_guest("pyarrow", extra="arrow", needed_for=phrase("reports.parquet"))
            load_guest("pyarrow.parquet", extra="arrow", needed_for=phrase("reports.parquet")).write_table(
                arrow.table(self.to_table()), place
            )
            return place
        if ending == "pdf":
            print_page(self.to_html(lang), place)
            return place
        replace_file(place, [self._write(ending, lang).encode("utf-8-sig" if bom and ending == "csv" else "utf-8")])
        place.chmod(0o644)  # what is published may be read
        return place

    def _write(self, ending: str, lang: Language | None) -> str:
        if ending == "html":
            return self.to_html(lang)
        if ending == "md":
            return self.to_markdown(lang)
        if ending == "csv":
            return _write_csv(self.to_table())
        data = self.to_notebook(lang) if ending == "ipynb" else self.to_dict()
        return json.dumps(data, ensure_ascii=False, indent=1, default=str) + "\n"


def _write_csv(table: dict[str, list[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    return text.getvalue()


def _list_numbers(name: str, answer: Answer, confidence: float) -> Iterator[tuple[Any, ...]]:
    table, bars = answer.table, answer.error(confidence)
    for column in answer.columns:
        unit = say("reports.error_in_rows", "en") if column in answer.in_rows else ""
        for i, value in enumerate(table[column]):
            group = "; ".join(f"{key}={table[key][i]}" for key in answer.keys)
            yield name, column, group, _as_float(value), _as_float(bars[column][i]), unit


def _as_float(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]  # told by what it raises
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
