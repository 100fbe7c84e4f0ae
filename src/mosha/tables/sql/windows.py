"""Window functions over results: ranks, shares and running totals of numbers that are noisy already, and so free.

A window stands in SELECT or ORDER BY of a query that groups. It looks at the groups that HAVING leaves, never at rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from mosha.core.errors import Refused
from mosha.tables.functions.constants import name_of
from mosha.tables.sql.output import Interval, check, evaluate, rehearse

__all__ = [
    "ResultWindow",
    "check_windows",
    "find_windows",
    "is_over_results",
    "placeholder",
    "rehearse_windows",
    "take_windows",
]

Known = Mapping[str, Interval]
RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)
TOTALS = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count)


@dataclass(frozen=True, eq=False)
class ResultWindow:
    """One window function: what it computes, within which groups of results, and in which order."""

    text: str
    function: exp.Expression
    partition: tuple[exp.Expression, ...]
    order: tuple[tuple[exp.Expression, bool, bool], ...]

    @property
    def argument(self) -> exp.Expression | None:
        """What is summed up; None where results are counted or ranked."""
        inner = self.function.this if isinstance(self.function, TOTALS) else None
        return None if isinstance(inner, exp.Star) else inner

    def list_parts(self) -> Iterator[exp.Expression]:
        """The expressions over results that it reads."""
        if self.argument is not None:
            yield self.argument
        yield from self.partition
        yield from (node for node, *_ in self.order)


def is_over_results(window: exp.Window, select: exp.Select) -> bool:
    """Whether a window stands where it sees results: in SELECT or ORDER BY of the query itself, which groups."""
    if window.find_ancestor(exp.Select) is not select or select.parent is not None or not select.args.get("group"):
        return False
    return window.find_ancestor(exp.Where, exp.Having, exp.Group, exp.Window) is None


def take_windows(select: exp.Select) -> list[ResultWindow]:
    """The windows of a query; in their places stand columns that have their text for a name."""
    found: dict[str, ResultWindow] = {}
    for window in list(select.find_all(exp.Window)):
        function, order = window.this, window.args.get("order")
        known = isinstance(function, RANKS + TOTALS) and not window.args.get("spec") and not window.args.get("alias")
        if not known or function.args.get("expressions"):
            raise Refused("tables.sql_window_unknown", text=name_of(window), spent="nothing")
        ordered = tuple(
            (each.this, bool(each.args.get("desc")), bool(each.args.get("nulls_first")))
            for each in (order.expressions if order else ())
        )
        if isinstance(function, RANKS) and not ordered:
            raise Refused("tables.sql_window_order", text=name_of(window), spent="nothing")
        text = name_of(window)
        found[text] = ResultWindow(text, function, tuple(window.args.get("partition_by") or ()), ordered)
        window.replace(placeholder(text))
    return list(found.values())


def placeholder(text: str) -> exp.Column:
    """What stands for a window in the query."""
    return exp.Column(this=exp.Identifier(this=text, quoted=True))


def check_windows(windows: Sequence[ResultWindow], known: set[str]) -> set[str]:
    """Refuse what a window could not read; the texts of the columns that stand for windows."""
    for window in windows:
        for node in window.list_parts():
            check(node, known)
    return {name_of(placeholder(window.text)) for window in windows}


def rehearse_windows(windows: Sequence[ResultWindow], known: Known) -> dict[str, Interval]:
    """Evaluate what windows read on made-up values; made-up values of the windows themselves."""
    for window in windows:
        for node in window.list_parts():
            rehearse(node, known)
    return {name_of(placeholder(window.text)): (1.0, 1.0, 1.0) for window in windows}


def find_windows(
    windows: Sequence[ResultWindow], rows: Sequence[Known], kept: Sequence[int]
) -> list[dict[str, Interval]]:
    """For each row what its windows are, by the text that stands for them; nothing for rows that HAVING left out."""
    texts = [name_of(placeholder(window.text)) for window in windows]
    found: list[dict[str, Interval]] = [dict.fromkeys(texts, (None, None, None)) for _ in rows]
    for window, text in zip(windows, texts, strict=True):
        parts: dict[tuple[object, ...], list[int]] = {}
        for i in kept:
            parts.setdefault(tuple(evaluate(node, rows[i])[0] for node in window.partition), []).append(i)
        for members in parts.values():
            for i, interval in _evaluate_part(window, rows, members):
                found[i][text] = interval
    return found


def _evaluate_part(window: ResultWindow, rows: Sequence[Known], members: list[int]) -> Iterator[tuple[int, Interval]]:
    """The window in each result of one part; results that are equal in the order are peers."""
    values = {i: tuple(evaluate(node, rows[i])[0] for node, *_ in window.order) for i in members}
    order = list(members)
    for place, (_, descending, nulls_first) in reversed(list(enumerate(window.order))):
        there = [i for i in order if values[i][place] is not None]
        there.sort(key=lambda i: values[i][place], reverse=descending)
        missing = [i for i in order if values[i][place] is None]
        order = missing + there if nulls_first else there + missing
    if isinstance(window.function, exp.RowNumber):
        yield from ((i, _rank(place + 1)) for place, i in enumerate(order))
        return
    before = peers = 0
    for place, i in enumerate(order):
        if place == 0 or values[i] != values[order[place - 1]]:
            before, peers = place, peers + 1
        if isinstance(window.function, exp.Rank):
            yield i, _rank(before + 1)
        elif isinstance(window.function, exp.DenseRank):
            yield i, _rank(peers)
        else:
            seen = order if not window.order else order[:before] + [j for j in order if values[j] == values[i]]
            yield i, _total(window, [rows[j] for j in seen])


def _rank(value: int) -> Interval:
    """A rank follows from noisy numbers, and no bar says by how much it may be off."""
    return value, math.nan, math.nan


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


_TOGETHER: Mapping[type[exp.Expression], Callable[[Sequence[float]], float]] = {
    exp.Sum: math.fsum,
    exp.Avg: _mean,
    exp.Min: min,
    exp.Max: max,
}


def _total(window: ResultWindow, rows: Sequence[Known]) -> Interval:
    argument = window.argument
    if argument is None:
        return len(rows), len(rows), len(rows)
    found = [interval for row in rows if (interval := evaluate(argument, row))[0] is not None]
    if isinstance(window.function, exp.Count):
        return len(found), len(found), len(found)
    if not found:
        return None, None, None
    together = _TOGETHER[type(window.function)]
    value, low, high = (together([interval[end] for interval in found]) for end in range(3))
    return value, low, high
