"""Cells of a grid near some ranks of each group, found where the rows are: what comes back does not grow with them."""

from __future__ import annotations

from sqlglot import exp

from mosha.connect.language.value import Rows
from mosha.connect.plan.aggregation import NearRanks
from mosha.connect.plan.bounding import NormBound
from mosha.connect.sql.dialect import Dialect, Node, binary, column, number
from mosha.connect.sql.norms import row_norms
from mosha.connect.sql.rows import subquery
from mosha.connect.sql.statement import Query, alias, all_of, any_of, contributions, copies, key_columns, select

__all__ = ["near_ranks"]

NAMES = ("cell", "rows", "upto", "total")


def near_ranks(question: NearRanks, dialect: Dialect) -> Query:
    """One statement: weights by cell, running totals in each group, and the cells near the ranks."""
    keys = key_columns(question)
    cells, cell = _count_cells(question, dialect)
    named = [*copies(keys), alias(cell, "cell"), alias(dialect.widen(column("s0")), "rows")]
    filled = binary(exp.GT, column("s0"), number(0))
    weighed = select(named, subquery(cells, "cells"), where=filled)
    upto = _running(dialect.sum(column("rows"), None), keys, exp.Order(expressions=[column("cell")]))
    total = _running(dialect.sum(column("rows"), None), keys)
    ranked = select(
        [*copies(keys), column("cell"), column("rows"), alias(upto, "upto"), alias(total, "total")],
        subquery(weighed, "weighed"),
    )
    found = [alias(column(name), f"s{i}") for i, name in enumerate(NAMES)]
    near = any_of([_is_near(top, bottom, reach, dialect) for top, bottom, reach in question.near])
    return Query(select([*copies(keys), *found], subquery(ranked, "ranked"), where=near), NAMES)


def _count_cells(question: NearRanks, dialect: Dialect) -> tuple[exp.Select, Node]:
    """The weight s0 of each group's cells, and the column that holds the cell."""
    if isinstance(question.bound, NormBound):
        return row_norms(question, [("rows", Rows())], question.bound, dialect, [question.cell]).statement, column("v1")
    keys = [*key_columns(question), column("v0")]
    counted = alias(exp.Count(this=exp.Star()), "s0")
    rows = subquery(contributions(question, [question.cell], dialect), "rows")
    return select([*keys, counted], rows, group=copies(keys)), column("v0")


def _running(total: Node, keys: list[Node], order: exp.Order | None = None) -> Node:
    """A sum over the rows of a group, or over those up to this one."""
    frame = exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW")
    over = {"partition_by": copies(keys)} | ({} if order is None else {"order": order, "spec": frame})
    return exp.Window(this=total, **over)


def _is_near(top: int, bottom: int, reach: int, dialect: Dialect) -> Node:
    """Whether the ranks of a cell come within reach / bottom of the share top / bottom of its group."""
    share, whole, away = (dialect.widen(number(n)) for n in (top, bottom, reach))
    target = binary(exp.Mul, share, column("total"))
    last = binary(exp.Mul, whole, column("upto"))
    first = binary(exp.Mul, whole.copy(), binary(exp.Sub, column("upto"), column("rows")))
    return all_of(
        [
            binary(exp.GTE, last, binary(exp.Sub, target, away)),
            binary(exp.LTE, first, binary(exp.Add, target.copy(), away.copy())),
        ]
    )
