"""UNION of answers, with or without ALL: each part is a question of its own, their answers stand below each other.

Guarantee:
    Each part is a release, and pays its share: together they cost what an account charges for all of them. Putting
    answers together, sorting and cutting them is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sqlglot import exp

from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter, Refused
from mosha.core.language import say
from mosha.tables.answer import Answer
from mosha.tables.functions.result_functions import check_alike, sort_rows
from mosha.tables.question import Question
from mosha.tables.questions.look import look
from mosha.tables.sql.asked_first import Prices, add_receipts, check_room, split_prices
from mosha.tables.sql.output import count_limit
from mosha.tables.sql.query import Statement
from mosha.tables.sql.scalar import constant, name_of

__all__ = ["United", "split_union"]

Order = tuple[str, bool, bool]
"""A column of the answer, whether it descends, and whether missing values come first."""


@dataclass(frozen=True, eq=False)
class United:
    """Questions whose answers are put together, and what is done with all of their rows.

    Fields:
        parts: the questions, each with what is made of its answer.
        order, offset, limit: which rows are shown, and in which order.
        explained: whether EXPLAIN stood before it.
        distinct: whether equal rows are shown once, as UNION without ALL does.
    """

    parts: tuple[Statement, ...]
    order: tuple[Order, ...] = ()
    offset: int = 0
    limit: int | None = None
    explained: bool = False
    distinct: bool = False

    def __post_init__(self) -> None:
        sizes = {len(part.items) for part in self.parts}
        kinds = [{_find_kind(part, place) for part in self.parts} for place in range(min(sizes))]
        if len(sizes) != 1 or any({"key", "number"} <= kind for kind in kinds):
            raise Refused("tables.sql_union_shapes", spent="nothing")
        for place, (title, _) in enumerate(self.parts[0].items):
            check_alike((part.typical.get(part.items[place][0]) for part in self.parts), title)

    def answer(self, prices: Prices, **options: Any) -> Answer:
        """Pay for every part, each with the same share of the price, and put their rows together."""
        if options.pop("within", None) is not None:
            raise Refused("tables.sql_within_of_several", spent="nothing")
        key = options.pop("key", None)
        share = split_prices(prices, len(self.parts))
        for part in self.parts:
            check_room(part.question, prices)
            plan = part.question.plan_release(Budget(**share))
            look(plan.frame, plan.selection, plan.parts)  # what cannot be asked last is told before the first is paid
        found = []
        for place, part in enumerate(self.parts, start=1):
            named = None if key is None else f"{key} (part {place})"
            found.append(part.answer(part.question.release(**share, **options, key=named)))
        return self._put_together(found)

    def list_questions(self) -> list[Question]:
        return [part.question for part in self.parts]

    def explain(self, prices: Prices, *, statements: bool = False) -> str:
        """What each part does, with its share of the price."""
        share = split_prices(prices, len(self.parts))
        told = [part.question.explain(**share, statements=statements) for part in self.parts]
        head = say("tables.explained_union", parts=len(told))
        return "\n\n".join([f"-- {head}" if statements else head, *told])

    def _put_together(self, found: Sequence[Answer]) -> Answer:
        titles = [name for name, _ in self.parts[0].items]
        names = [[name for name, _ in part.items] for part in self.parts]
        tables = [answer.exact.table for answer in found]
        columns = {
            title: [value for table, own in zip(tables, names, strict=True) for value in table[own[place]]]
            for place, title in enumerate(titles)
        }
        keys = tuple(t for place, t in enumerate(titles) if all(_find_kind(p, place) != "number" for p in self.parts))
        size = len(columns[titles[0]])

        def list_in_all(kind: str) -> tuple[str, ...]:
            return tuple(
                title
                for place, title in enumerate(titles)
                if all(own[place] in getattr(answer, kind) for answer, own in zip(found, names, strict=True))
            )

        def errors(level: float) -> dict[str, Any]:
            bars = [answer.error(level) for answer in found]
            return {
                title: np.array([bar for table, own in zip(bars, names, strict=True) for bar in table[own[place]]])
                for place, title in enumerate(titles)
                if title not in keys
            }

        return Answer(
            keys=keys,
            rows=tuple(tuple(columns[title][place] for title in keys) for place in range(size)),
            columns={title: np.array(columns[title], object) for title in titles if title not in keys},
            receipt=add_receipts(found),
            notes=tuple(dict.fromkeys(note for answer in found for note in answer.notes)),
            errors=errors,
            kept=tuple(self._sort(columns, size)[self.offset :][: self.limit]),
            in_rows=list_in_all("in_rows"),
            whole=list_in_all("whole"),
            estimated=tuple(t for place, t in enumerate(titles) if any(
                own[place] in answer.estimated for answer, own in zip(found, names, strict=True))),
        )  # fmt: skip

    def _sort(self, columns: Mapping[str, Sequence[Any]], size: int) -> list[int]:
        kept = list(range(size))
        if self.distinct:
            kept = list({tuple(column[i] for column in columns.values()): i for i in reversed(kept)}.values())[::-1]
        for name, descending, nulls_first in reversed(self.order):
            kept = sort_rows(kept, columns[name].__getitem__, descending=descending, nulls_first=nulls_first)
        return kept


def _find_kind(part: Statement, place: int) -> str:
    """Whether a column is a key, a number, or a constant, which may stand beside either."""
    _, node = part.items[place]
    if name_of(node) in part.keys:
        return "key"
    return "constant" if isinstance(node, exp.Literal) and node.is_string else "number"


def split_union(tree: exp.Expr, read: Callable[[exp.Select], Statement], *, explained: bool) -> United | None:
    """The parts of UNION, each read by itself; None for any other query."""
    if not isinstance(tree, exp.Union):
        return None
    distinct = bool(tree.args.get("distinct"))
    selects: list[exp.Select] = []
    waiting: list[exp.Expr] = [tree]
    while waiting:
        node = waiting.pop().unnest()
        if isinstance(node, exp.Union) and bool(node.args.get("distinct")) is distinct:
            if node is not tree and any(node.args.get(part) for part in ("order", "limit", "offset", "with_")):
                return None
            waiting += [node.expression, node.this]
        elif isinstance(node, exp.Select):
            selects.append(node.copy())
        else:
            return None
    for select in selects:
        if (common := tree.args.get("with_")) is not None:
            own = select.args["with_"].expressions if select.args.get("with_") else []
            select.set("with_", exp.With(expressions=[*(one.copy() for one in common.expressions), *own]))
    parts = tuple(map(read, selects))
    order = tree.args.get("order")
    titles = [name for name, _ in parts[0].items]
    ordered = tuple(map(partial(_read_order, titles=titles), order.expressions if order else ()))
    limits = [count_limit(tree, part) for part in ("limit", "offset")]
    return United(parts, ordered, limits[1] or 0, limits[0], explained, distinct)


def _read_order(node: exp.Expr, titles: Sequence[str]) -> Order:
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        place = constant(inner)
        if not isinstance(place, int) or not 1 <= place <= len(titles):
            raise InvalidParameter("tables.sql_column_number", number=str(inner.this))
        name = titles[place - 1]
    else:
        name = inner.name if isinstance(inner, exp.Column) else name_of(inner).lower()
    if name not in titles:
        raise Refused("tables.sql_union_order", text=name_of(inner), columns=list(titles), spent="nothing")
    return name, bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
