"""A report to begin with: a template for a kind of house, or what a declaration allows to ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal, get_args

from mosha.core.errors import InvalidParameter
from mosha.core.language import Language, current_language, read_language, say
from mosha.tables.declaration import Declaration

__all__ = ["TEMPLATES", "Template", "draft_report"]

Template = Literal["hospital", "school", "city", "telemetry"]
TEMPLATES: tuple[Template, ...] = get_args(Template)
"""The names of the templates that a report can be drafted from."""
_FOLDER = Path(__file__).parent / "templates"
MOST_QUESTIONS = 8


def draft_report(
    *,
    template: Template | None = None,
    data: str = "",
    declared: Declaration | None = None,
    title: str = "",
    ledger: str | None = None,
    account: str | None = None,
    encoding: str | None = None,
    lang: Language | None = None,
) -> str:
    """The text of a YAML file: a template as it is, or questions about what a declaration declares.

    Args:
        template: "hospital", "school", "city" or "telemetry"; each says which columns it needs.
        data: the path of the data, as it is to stand in the file.
        declared: what is publicly known about them; nothing is read from rows.
        title: of the report.
        ledger: the book that pays, as it is to stand in the file; one beside the data where it is left out.
        account: who pays; an account named like the report where it is left out.
        encoding: of a CSV file that is not UTF-8.
        lang: "en" or "zh", of a template; the chosen language where it is left out.

    >>> draft_report(template="hospital").splitlines()[0][:1]
    '#'
    """
    if template is not None:
        if template not in TEMPLATES:
            raise InvalidParameter("core.unknown_option", parameter="template", options=list(TEMPLATES))
        language = current_language() if lang is None else read_language(lang)
        return (_FOLDER / f"{template}{'.zh' if language == 'zh' else ''}.yaml").read_text(encoding="utf-8")
    if declared is None or declared.unit is None:
        raise InvalidParameter("reports.draft_needs_unit", parameter="schema", spent="nothing")
    name = Path(data).name.split(".")[0] or "data"
    table = name if name.isidentifier() else "data"
    lines = [
        f"title: {_quote(title or name.replace('_', ' ').capitalize())}",
        "period: month",
        "budget: {epsilon: 1.0, delta: 1.0e-6}",
        f"ledger: {_quote(ledger or f'{name}.privacy.db')}",
        *([f"account: {_quote(account)}"] if account else []),
        f"limit: {{epsilon: 3, delta: 1.0e-5}}  # {say('reports.draft_limit')}",
        "data:",
        f"  {table}: {{path: {_quote(data)}{f', encoding: {_quote(encoding)}' if encoding else ''}}}",
        "questions:",
        *_list_questions(table, declared),
    ]
    return "\n".join(lines) + "\n"


def _list_questions(table: str, declared: Declaration) -> list[str]:
    """Lines of YAML: a count, a count by each column with keys, a mean of each column with a range."""
    keyed, ranged = list(declared.keys), list(declared.ranges)
    lines = ["  total:", _write_sql("COUNT(*) AS rows_in_all", table), "    within: 50"]
    for name in keyed[:MOST_QUESTIONS]:
        lines += [f"  by_{_slug(name)}:", _write_sql("COUNT(*) AS count", table, by=name)]
    for name in ranged[:MOST_QUESTIONS]:
        asked = _write_sql(f"AVG({_quote_name(name)}) AS mean", table, by=keyed[0] if keyed else None)
        lines += [f"  mean_{_slug(name)}:", asked, f"    rows: 1000  # {say('reports.draft_rows')}"]
    return lines


def _write_sql(aggregate: str, table: str, *, by: str | None = None) -> str:
    first = [] if by is None else [_quote_name(by)]
    words = ["SELECT", ", ".join([*first, aggregate]), "FROM", table, *(["GROUP BY", *first] if first else [])]
    return f"    sql: {_quote(' '.join(words))}"


def _slug(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name.lower())


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _quote_name(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else '"' + name.replace('"', '""') + '"'
