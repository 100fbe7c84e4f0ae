"""A SELECT about protected tables, answered or explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from sqlglot import exp

from mosha.connect.plan.bounding import has_one_row_each
from mosha.connect.plan.person_steps import OwnerJoin
from mosha.connect.plan.relation import list_steps
from mosha.core.errors import DataError, InvalidParameter, MoshaError, Refused, WrongUnit
from mosha.core.language import say
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.options import QuantileBars
from mosha.core.unit import Person
from mosha.tables.answer import Answer
from mosha.tables.question import Question
from mosha.tables.sql.asked_first import AskedFirst, check_any_number, find_values, replace_values
from mosha.tables.sql.parsing import check_select, open_results, parse, read_tree
from mosha.tables.sql.public_rows import PublicStatement, read_public_statement
from mosha.tables.sql.query import Statement, add_nearest, read_statement, statement
from mosha.tables.sql.scalar import name_of
from mosha.tables.sql.spellings import reading
from mosha.tables.sql.tables_in import reads_public_alone
from mosha.tables.sql.unions import United, split_union
from mosha.tables.table import Table

__all__ = ["explain", "query", "read_steps"]


@explain_wrong_calls
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
    keys: Mapping[str, object] | None = None,
    bars: QuantileBars = "values",
    tables: Mapping[str, object] | None = None,
    **named: object,
) -> Answer | str:
    """Answer a SELECT about protected tables; EXPLAIN shows what would run and its price instead.

    A SELECT about public tables alone is answered exactly: it costs nothing and needs no account.

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
        bars: of medians and percentiles: half of their price buys them in the unit of the column ("values"); in "rows"
            they cost nothing.
        tables: the tables that FROM may name, by name: for names such as rows or key, which are options here.
        named: the same, one by one: protected ones, and public ones from `mosha.tables.public_table`.

    >>> import mosha
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=2)
    >>> visits = mosha.protect({"days": [3, 5, 2]}, unit=mosha.Row(), account=account)
    >>> sql = "SELECT COUNT(*) AS n, AVG(CLAMP(days, 0, 30)) AS days FROM visits"
    >>> list(query(sql, epsilon=1, visits=visits).columns)
    ['n', 'days']
    """
    options: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho, "within": within}
    options |= {"confidence": confidence, "rows": rows, "key": key, "deadline": deadline}
    from_ = _named_tables(tables, named, options | {"ranges": ranges, "keys": keys, "bars": bars})
    if (known := _read_public(sql, from_)) is not None:
        return known.explain(statements=True) if known.explained else known.answer(deadline=deadline)
    if (steps := read_steps(sql, from_, ranges, keys, bars)) is not None:
        prices = {name: options.pop(name) for name in ("epsilon", "delta", "rho")}
        told = _say_paths(steps.list_questions(), from_)
        return told + steps.explain(prices, statements=True) if steps.explained else steps.answer(prices, **options)
    with reading():
        checked = statement(sql, from_, ranges=ranges, keys=keys, bars=bars)
    if checked.explained:
        return _say_paths([checked.question], from_) + checked.question.explain(epsilon=epsilon, delta=delta, rho=rho)
    return checked.answer(checked.question.release(**options))


@explain_wrong_calls
def explain(
    sql: str,
    /,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    keys: Mapping[str, object] | None = None,
    bars: QuantileBars = "values",
    statements: bool = False,
    tables: Mapping[str, object] | None = None,
    **named: object,
) -> str:
    """What a query does, in a few sentences, or with `statements` the bounded SQL that runs; nothing is spent.

    Takes what `query` takes, but for what concerns a payment.

    Takes what `query` takes, but for what concerns a payment: `sql`; `epsilon` (with `delta`) or `rho`; `ranges`,
    `keys`, `bars`; `tables` or `named` ones.

    >>> import mosha
    >>> visits = mosha.protect({"days": [3, 5, 2]}, unit=mosha.Row())
    >>> print(explain("SELECT COUNT(*) FROM visits", epsilon=1, visits=visits).splitlines()[2])
    Laplace noise for count(*).
    """
    options = {"epsilon": epsilon, "delta": delta, "rho": rho, "ranges": ranges, "keys": keys, "bars": bars}
    from_ = _named_tables(tables, named, options)
    if (known := _read_public(sql, from_)) is not None:
        return known.explain(statements=statements)
    if (steps := read_steps(sql, from_, ranges, keys, bars)) is not None:
        told = steps.explain({"epsilon": epsilon, "delta": delta, "rho": rho}, statements=statements)
        return _say_paths(steps.list_questions(), from_) + told
    with reading():
        checked = statement(sql, from_, ranges=ranges, keys=keys, bars=bars)
    explained = checked.question.explain(epsilon=epsilon, delta=delta, rho=rho, statements=statements)
    return _say_paths([checked.question], from_) + explained


@reading()
def read_steps(
    sql: str,
    tables: Mapping[str, object],
    ranges: Mapping[str, tuple[float, float]] | None = None,
    keys: Mapping[str, object] | None = None,
    bars: QuantileBars = "values",
) -> AskedFirst | United | None:
    """The query as several questions, where it holds numbers about all people or puts answers together; else None."""
    if not isinstance(sql, str) or sql.upper().count("SELECT") < 2:  # such a number is a SELECT within the SELECT
        return None
    if (united := _read_union(sql, tables, ranges, keys, bars)) is not None:
        return united
    try:
        select, explained = parse(sql, results=True)
        nodes = find_values(select, tables)
    except MoshaError:  # told by who reads the query whole
        return None
    if not nodes:
        return None

    def read(numbers: Sequence[float | None]) -> Statement:
        again, _ = parse(sql, results=True)
        asked = replace_values(find_values(again, tables), numbers)
        return read_statement(again, tables, ranges, keys, bars, asked=asked)

    try:
        values = tuple(_read_value(node, tables, ranges) for node in {name_of(node): node for node in nodes}.values())
        read([1.0] * len(values))
        check_any_number(read, [text for text, _ in values])
    except (Refused, DataError, WrongUnit) as refusal:
        add_nearest(refusal, sql, tables, ranges, keys)
        raise
    return AskedFirst(values, read, explained)


def _read_union(
    sql: str,
    tables: Mapping[str, object],
    ranges: Mapping[str, tuple[float, float]] | None,
    keys: Mapping[str, object] | None,
    bars: QuantileBars,
) -> United | None:
    """The query as several questions whose answers stand one below the other; None where it is no UNION ALL."""
    try:
        tree, _, explained = read_tree(sql)
    except MoshaError:  # told by who reads the query whole
        return None

    def read(select: exp.Select) -> Statement:
        checked = check_select(open_results(select), results=True)
        known = {part.name for part in checked.find_all(exp.Column, exp.Identifier)}
        own = {name: ends for name, ends in (ranges or {}).items() if name in known}
        listed = {name: each for name, each in (keys or {}).items() if name in known}
        return read_statement(checked, tables, own, listed, bars)

    try:
        return split_union(tree, read, explained=explained)
    except (Refused, DataError, WrongUnit) as refusal:
        add_nearest(refusal, sql, tables, ranges, keys)
        raise


def _read_value(
    node: exp.Subquery, tables: Mapping[str, object], ranges: Mapping[str, tuple[float, float]] | None
) -> tuple[str, Statement | PublicStatement]:
    """The text of a number about all people, and its question."""
    inside = node.this.copy()
    if reads_public_alone(inside, tables):
        free = read_public_statement(inside.sql(dialect="duckdb"), tables)
        if free is None or not all(free.relation.schema[name].numeric for name in free.columns.values()):
            raise Refused("tables.sql_different_types", text=name_of(node), spent="nothing")
        return name_of(node), free
    known = {column.name for column in inside.find_all(exp.Column)}
    own = {name: ends for name, ends in (ranges or {}).items() if name in known}
    asked = read_statement(inside, tables, own)
    if not all(isinstance(value, Real | None) for value in asked.typical.values()):
        raise Refused("tables.sql_different_types", text=name_of(node), spent="nothing")
    return name_of(node), asked


def _say_paths(questions: Sequence[Question], tables: Mapping[str, object]) -> str:
    """How each row of a database finds its person, and what one person may contribute, in sentences."""
    read = {id(step) for question in questions for step in list_steps(question.relation)}
    lines = []
    for name, table in tables.items():
        if not isinstance(table, Table) or not table.links.path or id(table.relation) not in read:
            continue
        unit = table.unit
        assert isinstance(unit, Person)
        rows = 1 if all(has_one_row_each(question.relation) for question in questions) else unit.at_most
        code = "tables.explained_path" if rows is None else "tables.explained_path_at_most"
        limit = {} if rows is None else {"rows": rows}
        lines.append(f"-- {say(code, table=name, person=unit.column, path=table.links.path, **limit)}\n")
        if isinstance(table.relation, OwnerJoin):
            shared = f"tables.explained_owner_{table.relation.several}"
            lines.append(f"-- {say(shared, table=name, person=unit.column)}\n")
    return "".join(lines)


@reading()
def _read_public(sql: str, tables: Mapping[str, object]) -> PublicStatement | None:
    """The query, where all tables of it are public; among protected ones alone there is nothing to look for."""
    return None if all(isinstance(table, Table) for table in tables.values()) else read_public_statement(sql, tables)


def _named_tables(tables: object, named: Mapping[str, object], options: Mapping[str, object]) -> dict[str, Any]:
    """All tables by their names; one that was given under the name of an option is told where it goes."""
    clash = next((name for name, value in {**options, "tables": tables}.items() if isinstance(value, Table)), None)
    if clash is not None:
        raise InvalidParameter("tables.option_not_table", parameter=clash, spent="nothing")
    if tables is not None and not isinstance(tables, Mapping):
        raise InvalidParameter("tables.tables_by_name", parameter="tables", spent="nothing")
    if twice := sorted(set(tables or {}) & set(named)):
        raise InvalidParameter("tables.table_twice", table=twice[0], spent="nothing")
    return {**(tables or {}), **named}
