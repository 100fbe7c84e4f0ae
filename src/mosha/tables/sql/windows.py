"""Window functions over results: ranks, shares and running totals of numbers that are noisy already, and so free.

A window stands in SELECT or ORDER BY of a query that groups. It looks at the groups that HAVING leaves, never at rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Real
from typing import Any

from sqlglot import exp

from mosha.core.errors import Refused
from mosha.tables.functions.constants import constant, name_of
from mosha.tables.functions.result_functions import order_of, sort_rows
from mosha.tables.sql.output import Interval, check, rehearse, settle

__all__ = [
    "ResultWindow",
    "check_windows",
    "find_windows",
    "is_over_results",
    "open_aliases",
    "placeholder",
    "rehearse_windows",
    "take_windows",
]

MOST_PLACES = 10**6
Known = Mapping[str, Interval]
RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.PercentRank, exp.CumeDist)
TOTALS = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count)
NEIGHBORS = (exp.Lag, exp.Lead)
ENDS = (exp.FirstValue, exp.LastValue)
Frame = tuple[int | None, int | None]
"""From which place before or after a result to which one; None is the first or the last of all."""


@dataclass(frozen=True, eq=False)
class ResultWindow:
    """One window function: what it computes, within which groups of results, and in which order."""

    text: str
    function: exp.Expression
    partition: tuple[exp.Expression, ...]
    order: tuple[tuple[exp.Expression, bool, bool], ...]
    frame: Frame | None = None

    @cached_property
    def place(self) -> str:
        """The text of the column that stands for it in the query."""
        return name_of(placeholder(self.text))

    @property
    def argument(self) -> exp.Expression | None:
        """What is summed up or taken; None where results are counted or ranked."""
        inner = None if isinstance(self.function, RANKS) else self.function.this
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


def open_aliases(select: exp.Select, find: Callable[[exp.Column], str | None]) -> exp.Select:
    """What stands for an item of SELECT inside of OVER (...), where no column has that name, as the item itself."""
    items = {item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    for window in select.find_all(exp.Window):
        for column in [part for part in window.find_all(exp.Column) if not part.table and find(part) is None]:
            item = items.get(column.name.lower())
            if item is not None and item.find(exp.Window) is None:
                column.replace(exp.Paren(this=item.copy()) if isinstance(item, exp.Binary) else item.copy())
    return select


def take_windows(select: exp.Select) -> list[ResultWindow]:
    """The windows of a query; in their places stand columns that have their text for a name."""
    found: dict[str, ResultWindow] = {}
    for window in list(select.find_all(exp.Window)):
        function, order = window.this, window.args.get("order")
        known = isinstance(function, RANKS + TOTALS + NEIGHBORS + ENDS) and not window.args.get("alias")
        if not known or function.args.get("expressions"):
            raise Refused("tables.sql_window_unknown", text=name_of(window), spent="nothing")
        frame = _read_frame(window)
        ordered = tuple(
            (each.this, bool(each.args.get("desc")), bool(each.args.get("nulls_first")))
            for each in (order.expressions if order else ())
        )
        if not ordered and not (isinstance(function, TOTALS) and frame is None):
            raise Refused("tables.sql_window_order", text=name_of(window), spent="nothing")
        text = name_of(window)
        found[text] = ResultWindow(text, function, tuple(window.args.get("partition_by") or ()), ordered, frame)
        window.replace(placeholder(text))
    return list(found.values())


def _read_frame(window: exp.Window) -> Frame | None:
    """Where the frame of a window begins and ends; None for the common one, which ends with the peers of a result."""
    spec, function = window.args.get("spec"), window.this
    if isinstance(function, NEIGHBORS):
        places = _read_whole(function.args.get("offset"), window, 1)
        frame: Frame = (-places, -places) if isinstance(function, exp.Lag) else (places, places)
        if spec is None and function.args.get("default") is None:
            return frame
    elif isinstance(function, exp.Ntile):
        parts = _read_whole(function.this, window, 0)
        if spec is None and parts:
            return parts, None
    elif spec is None:
        return None
    elif not isinstance(function, RANKS):
        sides = [_read_side(spec, side, window) for side in ("start", "end")]
        kind = str(spec.args.get("kind")).upper()
        if kind == "ROWS" and (None in sides or sides[0] <= sides[1]):  # type: ignore[operator]
            return sides[0], sides[1]
        if kind == "RANGE" and sides == [None, 0]:
            return None
        if kind == "RANGE" and sides == [None, None]:
            return None, None
    raise Refused("tables.sql_window_unknown", text=name_of(window), spent="nothing")


def _read_side(spec: exp.Expr, side: str, window: exp.Window) -> int | None:
    """How many places after a result its frame begins or ends; None where it has no such end."""
    said, way = spec.args.get(side), str(spec.args.get(f"{side}_side") or "").upper()
    if said is None or said == "CURRENT ROW":
        return 0
    if isinstance(said, str) and said.upper() == "UNBOUNDED":
        if way == ("PRECEDING" if side == "start" else "FOLLOWING"):
            return None
    elif isinstance(said, exp.Expression):
        places = _read_whole(said, window, 0)
        return -places if way == "PRECEDING" else places
    raise Refused("tables.sql_window_unknown", text=name_of(window), spent="nothing")


def _read_whole(node: exp.Expression | None, window: exp.Window, common: int) -> int:
    value = common if node is None else constant(node)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_PLACES:
        return value
    raise Refused("tables.sql_window_unknown", text=name_of(window), spent="nothing")


def placeholder(text: str) -> exp.Column:
    """What stands for a window in the query."""
    return exp.Column(this=exp.Identifier(this=text, quoted=True))


def check_windows(windows: Sequence[ResultWindow], known: set[str]) -> set[str]:
    """Refuse what a window could not read; the texts of the columns that stand for windows."""
    for window in windows:
        for node in window.list_parts():
            check(node, known)
    return {window.place for window in windows}


def rehearse_windows(windows: Sequence[ResultWindow], known: Known) -> dict[str, Interval]:
    """Evaluate what windows read on made-up values; made-up values of the windows themselves."""
    found: dict[str, Interval] = {}
    for window in windows:
        for node in window.list_parts():
            rehearse(node, known)
        value = 1.0 if window.argument is None else settle(window.argument, known)[0]
        if isinstance(window.function, exp.Sum | exp.Avg) and not isinstance(value, Real | None):
            raise Refused("tables.sql_different_types", text=window.text)
        taken = isinstance(window.function, (*NEIGHBORS, *ENDS, exp.Min, exp.Max))
        found[window.place] = (value if taken else 1.0,) * 3
    return found


def find_windows(
    windows: Sequence[ResultWindow], rows: Sequence[Known], kept: Sequence[int]
) -> list[dict[str, Interval]]:
    """For each row what its windows are, by the text that stands for them; nothing for rows that HAVING left out."""
    texts = [window.place for window in windows]
    found: list[dict[str, Interval]] = [dict.fromkeys(texts, (None, None, None)) for _ in rows]
    for window, text in zip(windows, texts, strict=True):
        parts: dict[tuple[object, ...], list[int]] = {}
        for i in kept:
            parts.setdefault(tuple(settle(node, rows[i])[0] for node in window.partition), []).append(i)
        for members in parts.values():
            for i, interval in _evaluate_part(window, rows, members):
                found[i][text] = interval
    return found


def _evaluate_part(window: ResultWindow, rows: Sequence[Known], members: list[int]) -> Iterator[tuple[int, Interval]]:
    """The window in each result of one part; results that are equal in the order are peers."""
    values = {i: tuple(settle(node, rows[i])[0] for node, *_ in window.order) for i in members}
    order = list(members)
    for place, (_, descending, nulls_first) in reversed(list(enumerate(window.order))):
        taken = {i: value[place] for i, value in values.items()}
        order = sort_rows(order, taken.__getitem__, descending=descending, nulls_first=nulls_first)
    if isinstance(window.function, RANKS):
        yield from _rank_part(window, order, values)
        return
    ends = [settle(node, rows[i]) for i in members for node, *_ in window.order]
    noisy = any(low != high for _, low, high in ends)  # other noise, other neighbors: no bar says which
    before = 0
    for place, i in enumerate(order):
        if place == 0 or values[i] != values[order[place - 1]]:
            before = place
        if window.frame is not None:
            start, end = window.frame
            first = 0 if start is None else max(0, place + start)
            seen = order[first : None if end is None else max(first, place + end + 1)]
        elif window.order:
            seen = order[:before] + [j for j in order if values[j] == values[i]]
        else:
            seen = order
        found = _total(window, [rows[j] for j in seen])
        blurred = noisy and (window.frame is not None or isinstance(window.function, ENDS)) and found[0] is not None
        yield i, (_rank(found[0]) if blurred else found)


def _rank_part(
    window: ResultWindow, order: list[int], values: Mapping[int, tuple[object, ...]]
) -> Iterator[tuple[int, Interval]]:
    """The place of each result among those of its part, counted in one way or another."""
    size, before, peers = len(order), 0, 0
    for place, i in enumerate(order):
        if place == 0 or values[i] != values[order[place - 1]]:
            before, peers = place, peers + 1
        match window.function:
            case exp.RowNumber():
                found: float = place + 1
            case exp.Rank():
                found = before + 1
            case exp.DenseRank():
                found = peers
            case exp.PercentRank():
                found = before / (size - 1) if size > 1 else 0.0
            case exp.CumeDist():
                found = (before + sum(values[j] == values[i] for j in order)) / size
            case _:
                found = _find_tile(place, size, (window.frame or (1, None))[0] or 1)
        yield i, _rank(found)


def _find_tile(place: int, size: int, tiles: int) -> int:
    """NTILE: the first parts have one result more, where they cannot all be equal."""
    small, larger = divmod(size, tiles)
    edge = larger * (small + 1)
    return place // (small + 1) + 1 if place < edge else larger + (place - edge) // small + 1


def _rank(value: Any) -> Interval:
    """A rank follows from noisy numbers, and no bar says by how much it may be off."""
    return value, math.nan, math.nan


def _add_up(values: Sequence[Any]) -> float:
    """The sum of what are numbers; NaN where infinite ones cancel."""
    try:
        return math.fsum(value for value in values if isinstance(value, Real))
    except (ValueError, OverflowError):
        return math.nan


_TOGETHER: Mapping[type[exp.Expression], Callable[[Sequence[Any]], Any]] = {
    exp.Sum: _add_up,
    exp.Avg: lambda values: _add_up(values) / len(values),
    exp.Min: partial(min, key=order_of),
    exp.Max: partial(max, key=order_of),
}


def _total(window: ResultWindow, rows: Sequence[Known]) -> Interval:
    argument = window.argument
    if argument is None:
        return len(rows), len(rows), len(rows)
    if isinstance(window.function, NEIGHBORS + ENDS):
        return settle(argument, rows[-isinstance(window.function, exp.LastValue)]) if rows else (None, None, None)
    found = [interval for row in rows if (interval := settle(argument, row))[0] is not None]
    if isinstance(window.function, exp.Count):
        return len(found), len(found), len(found)
    if not found:
        return None, None, None
    together = _TOGETHER[type(window.function)]
    value, low, high = (together([interval[end] for interval in found]) for end in range(3))
    return value, low, high
