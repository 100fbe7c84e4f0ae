"""The form for people without SQL: what was chosen in it as SQL, and simple SQL as what would be chosen in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from mosha.core.language import phrase
from mosha.server.errors import BadRequest

if TYPE_CHECKING:
    from mosha.server.pages.site import Visit

__all__ = ["MEASURES", "TESTS", "Built", "build_sql", "read_back"]

MEASURES = ("count", "people", "average", "sum", "median")
TESTS = {"is": "=", "is_not": "<>", "at_least": ">=", "at_most": "<=", "above": ">", "below": "<"}
_FUNCTIONS = {"average": "AVG", "sum": "SUM", "median": "MEDIAN"}
_CONDITIONS = 3


@dataclass(frozen=True)
class Built:
    """What is chosen in the form: one measure of one column, by groups, under conditions."""

    measure: str = "count"
    column: str = ""
    by: tuple[str, ...] = ()
    where: tuple[tuple[str, str, str], ...] = ()

    @classmethod
    def of(cls, visit: Visit, columns: Sequence[dict[str, Any]]) -> Built:
        """What was typed; where nothing was, an average by the first groups there are: a first question that works."""
        numeric = [column["name"] for column in columns if "between" in column]
        grouping = [column["name"] for column in columns if "keys" in column]
        if not visit.all_of("measure"):
            return cls("average" if numeric else "count", numeric[0] if numeric else "", tuple(grouping[:1]))
        names = {column["name"] for column in columns}
        rows = zip(visit.all_of("column_of"), visit.all_of("test"), visit.all_of("value"), strict=False)
        where = [(c, test, value.strip()) for c, test, value in rows if c in names and test in TESTS]
        measure = visit.read_field("measure")
        return cls(
            measure if measure in MEASURES else "count",
            visit.read_field("column") if visit.read_field("column") in names else "",
            tuple(name for name in visit.all_of("by") if name in grouping),
            tuple(where[:_CONDITIONS]),
        )

    @property
    def conditions(self) -> list[tuple[str, str, str]]:
        """The conditions, and one empty row for the next."""
        return [*self.where, ("", "is", "")][:_CONDITIONS]


def _quote(name: str) -> str:
    """A name as SQL has it: bare where that is plain, else in double quotes."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'


def _literal(value: str, column: dict[str, Any]) -> str:
    """A value as SQL has it; refused where the column cannot hold it, for then it would only be paid for."""
    kind, name, listed = column.get("type", "text"), column["name"], column.get("keys")
    if not value:
        raise BadRequest("server.field_missing", parameter=f"where.{name}")
    if listed and value not in map(str, listed):
        expected = phrase("server.either", parts=[str(key) for key in listed[:20]])
        raise BadRequest("server.field_wrong", parameter=f"where.{name}", expected=expected)
    if kind in ("integer", "real", "decimal"):
        if not re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", value):
            raise BadRequest("server.field_wrong", parameter=f"where.{name}", expected=phrase("server.a_number"))
        return value
    if kind == "boolean":
        return "TRUE" if value.lower() in ("true", "1", "yes") else "FALSE"
    if kind in ("date", "timestamp"):
        try:
            (date if kind == "date" else datetime).fromisoformat(value)
        except ValueError:
            raise BadRequest("server.field_wrong", parameter=f"where.{name}", expected=phrase("server.a_day")) from None
    text = "'" + value.replace("'", "''") + "'"
    return f"DATE {text}" if kind == "date" else text


def build_sql(table: str, built: Built, columns: Sequence[dict[str, Any]]) -> str:
    """The question as SQL."""
    known = {column["name"]: column for column in columns}
    person = next((column["name"] for column in columns if column.get("unit")), None)
    if built.measure in _FUNCTIONS:
        if not built.column:
            raise BadRequest("server.field_missing", parameter="column")
        measured = f"{_FUNCTIONS[built.measure]}({_quote(built.column)}) AS {_quote(f'{built.measure}_{built.column}')}"
    elif built.measure == "people" and person:
        measured = f"COUNT(DISTINCT {_quote(person)}) AS people"
    else:
        measured = "COUNT(*) AS n"
    lines = ["SELECT " + ", ".join([*map(_quote, built.by), measured]), f"FROM {_quote(table)}"]
    tests = [f"{_quote(name)} {TESTS[test]} {_literal(value, known[name])}" for name, test, value in built.where]
    if tests:
        lines.append("WHERE " + " AND ".join(tests))
    if built.by:
        lines.append("GROUP BY " + ", ".join(map(_quote, built.by)))
    return "\n".join(lines)


_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_QUESTION = re.compile(
    rf"\s*SELECT\s+(?P<keys>(?:{_NAME}\s*,\s*)*)(?P<function>COUNT|AVG|SUM|MEDIAN)\s*\(\s*(?P<of>\*|DISTINCT\s+{_NAME}"
    rf"|{_NAME})\s*\)(?:\s+AS\s+{_NAME})?\s+FROM\s+{_NAME}(?:\s+WHERE\s+(?P<where>.+?))?"
    rf"(?:\s+GROUP\s+BY\s+(?P<by>{_NAME}(?:\s*,\s*{_NAME})*))?\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_TEST = re.compile(rf"\s*(?P<name>{_NAME})\s*(?P<test>>=|<=|<>|=|>|<)\s*(?:DATE\s+)?(?P<value>'[^']*'|-?[0-9.]+)\s*")


def read_back(sql: str, columns: Sequence[dict[str, object]]) -> Built | None:
    """The form that says the same as a simple question; None where the form has no words for it."""
    found = _QUESTION.fullmatch(sql) if len(sql) < 2000 else None
    if found is None:
        return None
    names = {column["name"] for column in columns}
    by = tuple(part.strip() for part in (found["by"] or "").split(",") if part.strip())
    if tuple(part.strip() for part in found["keys"].split(",") if part.strip()) != by or not names.issuperset(by):
        return None
    words = {sign: word for word, sign in TESTS.items()}
    where = []
    for part in re.split(r"\s+AND\s+", found["where"] or "", flags=re.IGNORECASE):
        test = _TEST.fullmatch(part)
        if part.strip() and (test is None or test["name"] not in names):
            return None
        if test is not None:
            where.append((test["name"], words[test["test"]], test["value"].strip("'")))
    function, of = found["function"].upper(), found["of"]
    if len(where) > _CONDITIONS:
        return None
    if function == "COUNT":
        return Built("count" if of == "*" else "people", "", by, tuple(where)) if of == "*" or " " in of else None
    measure = next(word for word, name in _FUNCTIONS.items() if name == function)
    return Built(measure, of, by, tuple(where)) if of in names else None
