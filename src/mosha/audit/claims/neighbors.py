"""Where to look: pairs of neighboring data sets on which mechanisms are known to fail.

Extremes of the bounds, no data at all, ties, somebody at the limit of contributions and far beyond it, a key nobody
had before, a hub, a spike, values that are no numbers. All are made up: they hold nobody's data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive_integer, real
from mosha.core.unit import Edge, Neighbors, Node, Person, Row, Unit

__all__ = ["Proposal", "of_categories", "of_graphs", "of_numbers", "of_own_value", "of_streams"]


@dataclass(frozen=True)
class Proposal:
    """Two data sets, `first` and `second`, that differ in one unit, and `why` this pair is worth trying.

    >>> Proposal("one row less", [1, 2], [1]).why
    'one row less'
    """

    why: str
    first: Any
    second: Any

    @property
    def pair(self) -> tuple[Any, Any]:
        return self.first, self.second


def _rows_of_one(unit: Unit) -> int:
    """How many rows the odd one out brings: the most a unit is allowed."""
    return (unit.at_most or 1) if isinstance(unit, Row | Person) else 1


def _data(unit: Unit, column: str, rows: Sequence[tuple[str, object]]) -> Any:
    """Rows of (person, value) in the form the unit asks for: values, or columns with the person's."""
    if isinstance(unit, Person):
        return {unit.column: [person for person, _ in rows], column: [value for _, value in rows]}
    return [value for _, value in rows]


def _pairs(
    unit: Unit, column: str, crowd: Sequence[object], one: Sequence[object], other: Sequence[object]
) -> tuple[Any, Any]:
    """The crowd with and without the rows `one`; under replacement, with `one` and with `other`."""
    rows = [(f"p{i}", value) for i, value in enumerate(crowd)]
    without = rows if unit.neighbors is Neighbors.ADD_REMOVE else [*rows, *(("odd", value) for value in other)]
    return _data(unit, column, [*rows, *(("odd", value) for value in one)]), _data(unit, column, without)


def of_numbers(unit: Unit, *, between: tuple[float, float], column: str = "value") -> list[Proposal]:
    """Columns of numbers that a statistic clamps into `between`.

    >>> from mosha.core.unit import Row
    >>> of_numbers(Row(), between=(0, 10))[0]
    Proposal(why='one at the upper bound, nobody else', first=[10.0], second=[])
    """
    low, high = (real("between", bound) for bound in between)
    if not low < high:
        raise InvalidParameter("audit.range_reversed", parameter="between")
    most = _rows_of_one(unit)
    middle = (low + high) / 2
    cases: list[tuple[str, list[float], list[float], list[float]]] = [
        ("one at the upper bound, nobody else", [], [high] * most, [low] * most),
        ("one at the lower bound, nobody else", [], [low] * most, [high] * most),
        ("one at the upper bound in a crowd", [middle] * 8, [high] * most, [low] * most),
        ("one far beyond the bounds", [middle] * 3, [high + 1000 * (high - low)] * most, [low] * most),
        ("one that is no number", [middle] * 3, [math.nan] * most, [high] * most),
        ("one infinity", [middle] * 3, [math.inf] * most, [-math.inf] * most),
        ("a spike between two ends", [low] * 4 + [high] * 4, [high] * most, [low] * most),
    ]
    if isinstance(unit, Person) and unit.at_most is not None:
        cases.append(("a person far over the limit of contributions", [middle] * 3, [high] * 20 * most, [low] * most))
    return [Proposal(why, *_pairs(unit, column, crowd, one, other)) for why, crowd, one, other in cases]


def of_categories(
    unit: Unit, *, keys: Sequence[object], column: str = "value", unknown: object = "?"
) -> list[Proposal]:
    """Columns of keys out of a public list (give two or more), and one key that is not in it."""
    if len(keys) < 2:
        raise InvalidParameter("audit.too_few_keys", parameter="keys")
    most = _rows_of_one(unit)
    first, second = keys[0], keys[1]
    spread = [keys[i % len(keys)] for i in range(most)]
    cases: list[tuple[str, list[Any], list[Any], list[Any]]] = [
        ("the first of all", [], [first] * most, [second] * most),
        ("a key nobody had before", [first] * 5, [second] * most, [first] * most),
        ("a tie that is broken", [first, second] * 3, [first] * most, [second] * most),
        ("a tie of all keys", list(keys) * 2, [second] * most, [first] * most),
        ("a key outside the list", [first] * 3, [unknown] * most, [first] * most),
        ("one in as many groups as allowed", [first] * 3, spread, [first] * most),
    ]
    if isinstance(unit, Person) and unit.at_most is not None:
        cases.append(("a person far over the limit of contributions", [first] * 3, [second] * 20 * most, [first]))
    return [Proposal(why, *_pairs(unit, column, crowd, one, other)) for why, crowd, one, other in cases]


def of_own_value(categories: Sequence[object], *, at_most: int = 6) -> list[Proposal]:
    """Local reports: the value of a device against another one."""
    pairs = itertools.islice(itertools.combinations(categories, 2), positive_integer("at_most", at_most))
    return [Proposal(f"{one!r} against {other!r}", one, other) for one, other in pairs]


def of_streams(unit: Unit, *, horizon: int, between: tuple[float, float] = (0, 1)) -> list[Proposal]:
    """Streams of one number a step; an event differs in one step, a person in all of them."""
    horizon = positive_integer("horizon", horizon)
    low, high = (real("between", bound) for bound in between)
    still = [low] * horizon
    busy = [high] * horizon

    def spike(at: int, stream: list[float], value: float) -> list[float]:
        return [*stream[:at], value, *stream[at + 1 :]]

    if isinstance(unit, Person):
        return [Proposal("a person who is always there", busy, still)]
    places = sorted({0, horizon // 2, horizon - 1})
    return [Proposal(f"a spike at step {at + 1}", spike(at, still, high), still) for at in places] + [
        Proposal(f"a gap at step {at + 1}", spike(at, busy, low), busy) for at in places
    ]


def of_graphs(unit: Unit, *, vertices: int = 12) -> list[Proposal]:
    """Graphs as (number of vertices, edges); an edge or a vertex with its edges comes or goes."""
    n = positive_integer("vertices", vertices)
    everything = list(itertools.combinations(range(n), 2))
    star = [(0, other) for other in range(1, n)]
    ring = [(i, (i + 1) % n) for i in range(n)]
    if isinstance(unit, Edge):
        pairs = [
            ("the first edge", [(0, 1)], []),
            ("the last edge", everything, everything[1:]),
            ("an edge that closes many triangles", [(1, 2), *star, *((1, o) for o in range(3, n))], None),
            ("an edge of a ring", ring, ring[1:]),
        ]
        return [Proposal(why, (n, edges), (n, edges[1:] if rest is None else rest)) for why, edges, rest in pairs]
    if isinstance(unit, Node):
        hub = [(other, n - 1) for other in range(n - 1)]  # the last vertex, so that the others keep their numbers
        path = [(i, i + 1) for i in range(n - 2)]
        inner = list(itertools.combinations(range(n - 1), 2))
        without = {"an empty graph": [], "a path": path, "a complete graph": inner}
        return [Proposal(f"a hub in {what}", (n, rest + hub), (n - 1, rest)) for what, rest in without.items()]
    raise InvalidParameter("audit.not_a_unit_of_graphs", parameter="unit")
