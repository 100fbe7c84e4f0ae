"""A SELECT about protected tables, answered or explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mosha.connect.plan.relation import list_steps
from mosha.core.errors import InvalidParameter
from mosha.core.language import say
from mosha.core.unit import Person
from mosha.tables.answer import Answer
from mosha.tables.question import Question
from mosha.tables.sql.query import statement
from mosha.tables.table import Table

__all__ = ["explain", "query"]


def query(
    sql: str,
    /,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    within: float | None = None,
    confidence: float | None = None,
    rows: float | None = None,
    key: str | None = None,
    deadline: float | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    keys: Mapping[str, Any] | None = None,
    bars: str = "rows",
    tables: Mapping[str, Any] | None = None,
    **named: Any,
) -> Answer | str:
    """Answer a SELECT about protected tables; EXPLAIN shows what would run and its price instead.

    Args:
        sql: one SELECT.
        epsilon: the price, or one of
        rho: the price in zero-concentrated differential privacy, or
        within: how wide the widest error bar may be, with `confidence` (and `rows`, a guess of the rows in a group).
        delta: allows Gaussian noise and groups that come from the data.
        confidence: with `within`.
        rows: with `within`.
        key: makes a retry free.
        deadline: after so many seconds the engine breaks off.
        ranges: the declared (low, high) of columns, in place of CLAMP(column, low, high).
        keys: the public groups of columns, in place of WHERE column IN (...); "from_data" for a column whose groups are
            to come from the data although they are declared.
        bars: "values" buys error bars of medians and percentiles in the unit of their column, with half of their price;
            in "rows" they cost nothing.
        tables: the tables that FROM may name, by name: for names such as rows or key, which are options here.
        named: the same, one by one: protected ones, and public ones from `mosha.tables.public_table`.
    """
    options: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho, "within": within}
    options |= {"confidence": confidence, "rows": rows, "key": key, "deadline": deadline}
    from_ = _named_tables(tables, named, options | {"ranges": ranges, "keys": keys, "bars": bars})
    checked = statement(sql, from_, ranges=ranges, keys=keys, bars=bars)
    if checked.explained:
        return _say_paths(checked.question, from_) + checked.question.explain(epsilon=epsilon, delta=delta, rho=rho)
    return checked.answer(checked.question.release(**options))


def explain(
    sql: str,
    /,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    keys: Mapping[str, Any] | None = None,
    bars: str = "rows",
    statements: bool = False,
    tables: Mapping[str, Any] | None = None,
    **named: Any,
) -> str:
    """What a query does, in a few sentences, or with `statements` the bounded SQL that runs; nothing is spent.

    Takes what `query` takes, but for what concerns a payment.
    """
    options = {"epsilon": epsilon, "delta": delta, "rho": rho, "ranges": ranges, "keys": keys, "bars": bars}
    from_ = _named_tables(tables, named, options)
    checked = statement(sql, from_, ranges=ranges, keys=keys, bars=bars)
    explained = checked.question.explain(epsilon=epsilon, delta=delta, rho=rho, statements=statements)
    return _say_paths(checked.question, from_) + explained


def _say_paths(question: Question, tables: Mapping[str, Any]) -> str:
    """How each row of a database finds its person, and what one person may contribute, in sentences."""
    read = {id(step) for step in list_steps(question.relation)}
    lines = []
    for name, table in tables.items():
        if not isinstance(table, Table) or not table.links.path or id(table.relation) not in read:
            continue
        unit = table.unit
        assert isinstance(unit, Person)
        code = "tables.explained_path" if unit.at_most is None else "tables.explained_path_at_most"
        limit = {} if unit.at_most is None else {"rows": unit.at_most}
        lines.append(f"-- {say(code, table=name, person=unit.column, path=table.links.path, **limit)}\n")
    return "".join(lines)


def _named_tables(tables: Any, named: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """All tables by their names; one that was given under the name of an option is told where it goes."""
    clash = next((name for name, value in {**options, "tables": tables}.items() if isinstance(value, Table)), None)
    if clash is not None:
        raise InvalidParameter("tables.option_not_table", parameter=clash, spent="nothing")
    if tables is not None and not isinstance(tables, Mapping):
        raise InvalidParameter("tables.tables_by_name", parameter="tables", spent="nothing")
    if twice := sorted(set(tables or {}) & set(named)):
        raise InvalidParameter("tables.table_twice", table=twice[0], spent="nothing")
    return {**(tables or {}), **named}
