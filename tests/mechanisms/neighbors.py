"""Neighboring data sets by the thousand, and how far a statistic moves between them."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mosha.core.unit import Neighbors, Person
from mosha.mechanisms import Sensitivity

VALUES = [0.0, 1.0, -1.0, 2.5, 10.0, -10.0, 1e9, -1e9, float("nan"), float("inf"), -float("inf"), 0.1, 7.0]


def random_person(rng: Any, rows: Any, values: Any) -> list[Any]:
    """At least one row, now and then more than are allowed."""
    return [values[rng.integers(len(values))] for _ in range(rng.integers(1, rows + 3))]


def random_neighbors(rng: Any, unit: Any, values: Any = VALUES) -> Any:
    """Two data sets that differ in one unit, as `unit` says."""
    rows = unit.at_most
    bounded = isinstance(unit, Person)  # a person may own more rows than are kept; a Row promises that nobody does
    people = [random_person(rng, rows, values)[: None if bounded else rows] for _ in range(rng.integers(1, 5))]
    changed = list(people)
    where = int(rng.integers(len(people)))
    if unit.neighbors is Neighbors.ADD_REMOVE:
        del changed[where]
    else:
        changed[where] = random_person(rng, rows, values)[: None if bounded else rows]
    names = list(range(len(people)))
    others = names[:where] + names[where + (unit.neighbors is Neighbors.ADD_REMOVE) :]
    pair = (flat(names, people, bounded), flat(others, changed, bounded))
    return pair if rng.integers(2) else pair[::-1]


def flat(names: Any, people: Any, bounded: Any) -> Any:
    values = [value for rows in people for value in rows]
    owners = [name for name, rows in zip(names, people, strict=True) for _ in rows]
    return (owners, values) if bounded else values


def breaks(statistic: Any, unit: Any, first: Any, second: Any, claimed: Sensitivity) -> Any:
    """Whether the two data sets move the statistic further than is claimed."""
    moved = statistic.evaluate(first, unit) - statistic.evaluate(second, unit)
    sizes = [int(x) for x in moved]
    span = max(0, *sizes) - min(0, *sizes)
    return (
        sum(x != 0 for x in sizes) > claimed.l0
        or sum(map(abs, sizes)) > claimed.l1
        or math.sqrt(sum(x * x for x in sizes)) > claimed.l2 * (1 + 1e-12)
        or max(map(abs, sizes)) > claimed.linf
        or span > claimed.span
        or (claimed.monotone and min(sizes) < 0 < max(sizes))
    )


def some_pair_breaks(statistic: Any, unit: Any, claimed: Any, rounds: Any = 400, values: Any = VALUES) -> bool:
    """Whether any of many random neighbors moves the statistic further than is claimed."""
    rng = np.random.default_rng()
    return any(breaks(statistic, unit, *random_neighbors(rng, unit, values), claimed) for _ in range(rounds))  # type: ignore[call-arg]


def all_neighbors(unit: Any, values: Any) -> Iterator[Any]:
    """Every pair of data sets in which one unit, with rows out of `values`, is added or replaced beside another one."""
    bounded, other = isinstance(unit, Person), [values[0]]
    owned = [list(rows) for i in range(1, unit.at_most + 1) for rows in itertools.product(values, repeat=i)]
    for rows in owned:
        first = flat(["x", "y"], [other, rows], bounded)
        if unit.neighbors is Neighbors.ADD_REMOVE:
            yield first, flat(["x"], [other], bounded)
        else:
            yield from ((first, flat(["x", "y"], [other, more], bounded)) for more in owned)


def any_pair_breaks(statistic: Any, unit: Any, claimed: Any, values: Any) -> bool:
    """Whether any of all small neighbors moves the statistic further than is claimed."""
    return any(breaks(statistic, unit, *pair, claimed) for pair in all_neighbors(unit, values))  # type: ignore[call-arg]
