"""Random tables with every kind of bad value, neighbors of them, and random questions about them."""

from __future__ import annotations

import math
import random
from datetime import date, datetime
from typing import Any

import pyarrow as pa

import mosha
from mosha.connect import Type, lit, when
from mosha.core.budget import Budget
from mosha.tables import aggregates as ask
from mosha.tables.aggregates import quantile
from tests.connect.grower import BOOL, CLOCK, DATE, REAL, TEXT, WHOLE, Grower

COLUMNS = {
    "who": WHOLE, "ward": TEXT, "cat": WHOLE, "i": WHOLE, "j": WHOLE, "x": REAL, "y": REAL,
    "b": BOOL, "c": BOOL, "t": TEXT, "s": TEXT, "d": DATE, "e": DATE, "w": CLOCK,
}  # fmt: skip
BESIDE = {"who": WHOLE, "kind": TEXT, "size": REAL}
PUBLIC = {"cat": WHOLE, "label": TEXT, "factor": REAL}
PUBLIC_ROWS = [
    (0, "x", 1.0),
    (1, "y", 2.0),
    (1, "z", -3.0),
    (2, "p", 4.5),
    (2, "q", math.nan),
    (2, "r", 1e9),
    (None, "n", 0.0),
]

REALS = [
    None,
    math.nan,
    math.inf,
    -math.inf,
    -1e300,
    -1e9,
    1e9,
    -3.0,
    -0.0,
    0.0,
    5e-324,
    7.5,
    30.0,
    31.0,
    2.0**500,
    0.5,
    2.5,
]
WHOLES = [None, 0, 1, -1, 2, 3, 7, 30, 31, -5, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
TEXTS = [None, "", "a", "A", "aab", " b ", "é", "12", "-7.5", "2024-02-29", "x'; --", "\U0001f600"]
DATES = [None, date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(2001, 7, 9)]
CLOCKS = [
    None,
    datetime(2024, 2, 29, 23, 59, 59, 999999),
    datetime(1, 1, 1),
    datetime(1969, 12, 31, 23),
    datetime(2020, 5, 5),
]
NEARBY = [datetime(2020, 5, 5, microsecond=1), datetime(2024, 2, 29, 23, 59, 59, 999999)]

UNITS = [
    mosha.Row(),
    mosha.Row(at_most=3),
    mosha.Row(neighbors="replace-one"),  # type: ignore[arg-type]
    mosha.Row(at_most=2, neighbors="replace-one"),  # type: ignore[arg-type]
    mosha.Person("who", at_most=1),
    mosha.Person("who", at_most=2),
    mosha.Person("who", at_most=3, neighbors="replace-one"),  # type: ignore[arg-type]
    mosha.Person("who"),
    mosha.Person("who", neighbors="replace-one"),  # type: ignore[arg-type]
    mosha.Person("who", groups=2, per_group=3),
    mosha.Person("who", groups=1, per_group=2, at_most=1),
    mosha.Person("who", groups=2, per_group=1, neighbors="replace-one"),  # type: ignore[arg-type]
    mosha.Person("who", total=2.5),
    mosha.Person("who", groups=2),
    mosha.Person("who", at_most=4, groups=2, per_group=3),
    mosha.Person("who", at_most=5, groups=5),
]
BUDGETS = [
    Budget(epsilon=1.0),
    Budget(rho=0.5),
    Budget(epsilon=1.0, delta=1e-5),
    Budget(epsilon=100.0),
    Budget(rho=9.0),
]
RANGES = [(0, 30), (-5, 5), (0.5, 7.25), (1e10, 2e10), (-1e-3, 1e-3), (0, 2.0**50), (10, 11), (-(2.0**40), 3)]

CONSTANTS = {
    WHOLE: [0, 1, -1, 2, 3, 30, 2**53 - 1, 2**53 + 1, 2**62, 0.5, 1.0],
    REAL: [-3.0, 0.0, 0.5, 5e-324, 2.5, 7.5, 30, 1e9, 2.0**53],
    TEXT: ["", "a", "A", "aab", " b ", "é", "12", "\U0001f600", "a "],
    DATE: [date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(2001, 7, 9), date(2001, 7, 10)],
    CLOCK: [datetime(2024, 2, 29), datetime(1, 1, 1), datetime(1969, 12, 31, 23), datetime(2020, 5, 5), *NEARBY],
}
"""What values are cut apart at."""
OF_KIND = {WHOLE: ["cat", "i", "j"], REAL: ["x", "y"], TEXT: ["ward", "t", "s"], DATE: ["d", "e"], CLOCK: ["w"]}

CASES = 0.25
"""How often cases are asked about, unless told otherwise."""

OFTEN = [mosha.col("cat").is_null(), mosha.col("c"), mosha.col("cat") < 2, ~mosha.col("c")]
"""Conditions that many rows meet: a question that drops all rows compares nothing."""


def one_row(g: Any, person: Any, wards: Any) -> tuple[Any, ...]:
    return (
        person, g.choice(wards), g.choice([0, 0, 1, 2, 3, None]), g.choice(WHOLES), g.choice(WHOLES), g.choice(REALS),
        g.choice(REALS), g.choice([True, False, None]), g.choice([True, False]), g.choice(TEXTS), g.choice(TEXTS),
        g.choice(DATES), g.choice(DATES), g.choice(CLOCKS),
    )  # fmt: skip


def rows_of(g: Any, person: Any) -> Any:
    wards = g.choice([["A"], ["A", "B", "C"], ["A", "B", None, "Z"], list("ABCDEFGHIJ")])
    rows = [one_row(g, person, wards) for _ in range(g.choice([1, 1, 2, 3, 5, 20]))]
    return rows + rows[:1] * g.choice([0, 0, 1, 4])


def beside_of(g: Any, person: Any) -> list[Any]:
    return [(person, g.choice(["k1", "k2", None]), g.choice(REALS)) for _ in range(g.choice([0, 1, 4]))]


def neighbors(g: Any, unit: Any) -> Any:
    """Two pairs of a table and one that can be joined to it: a unit is added, or replaced by another."""
    others = [row for person in range(6) for row in rows_of(g, person)]
    others += [one_row(g, None, ["A"]) for _ in range(g.choice([0, 0, 3]))]
    beside = [row for person in [0, 1, 2, 3, None] for row in beside_of(g, person)]
    if g.random() < 0.1:
        others, beside = [], []
    own, extra = [rows_of(g, 99), rows_of(g, 99)], [beside_of(g, 99), beside_of(g, 99)]
    if isinstance(unit, mosha.Row):
        size = g.randrange(1, unit.at_most + 1)
        own, extra = [rows[:size] for rows in own], [[], []]
        shortest = min(map(len, own))
        own = [rows[:shortest] for rows in own]
    if unit.neighbors != "replace-one":
        own[1], extra[1] = [], []
    tables = []
    for mine, more in zip(own, extra, strict=True):
        rows, joined = others + mine, beside + more
        g.shuffle(rows)
        g.shuffle(joined)
        tables.append((rows, joined))
    return tables


class Planner:
    """A random question; the same seed asks the same of every table.

    Expressions are at most `depth` deep; without `large`, moments of many groups are left out, which take long.
    """

    def __init__(self, seed: Any, depth: Any = 2, *, large: bool = True, cases: Any = CASES) -> None:
        self.g, self.depth, self.large, self.share = random.Random(seed), depth, large, cases
        self.grower = Grower(self.g.random())
        self.numbers = ["cat", "i", "j", "x", "y"]

    def grow(self, kind: Any) -> Any:
        return self.grower.grow(kind, self.g.randrange(self.depth + 1))

    def number(self) -> Any:
        return self.grow(self.g.choice([WHOLE, REAL]))

    def between(self) -> Any:
        return "automatic" if self.g.random() < 0.2 else self.g.choice(RANGES)

    def question(self, table: Any, beside: Any, public: Any) -> Any:
        g = self.g
        for _ in range(g.choice([0, 1, 1, 2])):
            step = g.random()
            if step < 0.4:
                table = table.where(self.grow(BOOL) | g.choice(OFTEN))
            elif step < 0.7:
                table = table.compute(**{f"c{len(self.numbers)}": self.number()})
                self.numbers.append(f"c{len(self.numbers)}")
            elif step < 0.85 and "label" not in table.schema:
                table = table.join_public(public, on="cat", at_most=g.choice([1, 2]), how=g.choice(["inner", "left"]))
            elif beside is not None and "kind" not in table.schema:
                table = table.join(beside, how=g.choice(["inner", "left"]))
        if g.random() < 0.06:
            return table.top("cat", k=g.choice([1, 2]), candidates=[0, 1, 2, 3])
        grouped = self.grouped(table)
        many = len(getattr(grouped, "keys", ())) > 1 or len(getattr(grouped, "only", None) or ()) > 8
        moments = self.large or not many
        asked = {f"a{i}": self.aggregate(table.unit, moments=moments) for i in range(g.choice([1, 1, 2, 3]))}
        return grouped.aggregate(**(self.cases() if g.random() < self.share else asked))

    def cases(self) -> dict[Any, Any]:
        """Counts and sums of cases that exclude one another, by their text or as it happens."""
        g = self.g
        if g.random() < 0.5:
            first = self.grow(BOOL)
            conditions = [first, g.choice([~first, self.grow(BOOL) & ~first, self.grow(BOOL)])]
        else:
            conditions = self.split(g.choice([2, 3, 5]))
        return {f"a{i}": self.case(condition) for i, condition in enumerate(conditions)}

    def split(self, number: Any) -> Any:
        """So many conditions about one value, most of which exclude one another; what rows often hold is cut apart."""
        g, kind = self.g, self.g.choice([WHOLE, REAL, TEXT, DATE, CLOCK])
        of = self.grow(kind) if g.random() < 0.5 else mosha.col(g.choice(OF_KIND[kind]))
        constants: list[Any] = g.sample(CONSTANTS[kind], number + 1)  # type: ignore[arg-type]
        low, high = sorted(constants[:2])
        made = [of == constants[i] for i in range(number - 2)]
        made += g.choice(
            [
                [of < low, of >= high],
                [of <= low, lit(low) < of],
                [of.is_null(), ~of.is_null()],
                [of.is_in(low, high), ~of.is_in(low, high)],
                [of.is_in(*constants[2:]), (of == low) | (of == high)],
                [of.between(low, high), (of < low) | (of > high)],
                [of == low, of != low],
            ]
        )
        return g.sample(made, len(made))

    def case(self, condition: Any) -> Any:
        """A count or a sum that is not zero where a condition holds, and sometimes elsewhere."""
        g, number, between = self.g, self.number(), self.g.choice(RANGES)
        kinds = [
            lambda: ask.sum(when(condition, 1).else_(0), between=(0, 1)),
            lambda: ask.sum(condition.cast(WHOLE), between=(0, 1)),
            lambda: ask.sum(number * when(condition, 1).else_(0), between=between),
            lambda: ask.sum(when(condition, number), between=between),
            lambda: ask.sum(when(condition, number).else_(0), between=between),
            lambda: ask.count(when(condition, 1)),
            lambda: ask.count(condition),
        ]
        return g.choices(kinds, [4, 2, 2, 2, 2, 3, 0.3])[0]()

    def grouped(self, table: Any) -> Any:
        g, choice = self.g, self.g.random()
        if choice < 0.3:
            return table
        if choice < 0.45:
            return table.group_by("ward", keys=g.choice([["A", "B", "C"], ["A", None, "nope"]]))
        if choice < 0.55:
            return table.group_by("cat", keys=g.choice([[0, 1, 2], [0, 2, None], list(range(30))]))
        if choice < 0.68:
            kind = g.choice([WHOLE, TEXT, BOOL, DATE])
            lists = {
                WHOLE: [0, 1, 2, 30, None],
                TEXT: ["a", "A", "é", "", None],
                BOOL: [True, False, None],
                DATE: DATES,
            }
            return table.group_by(k=self.grow(kind), keys=lists[kind])
        if choice < 0.85:
            return table.group_by(*g.choice([["ward"], ["cat"], ["ward", "cat"]]))
        return table.group_by("ward", k=self.grow(WHOLE), keys={"ward": ["A", "B", None], "k": [0, 1, 2]})

    def aggregate(self, unit: Any, *, moments: Any) -> Any:
        g = self.g
        kinds = [
            ask.count,
            lambda: ask.count(self.grow(g.choice([WHOLE, REAL, TEXT, DATE, BOOL]))),
            lambda: ask.sum(self.number(), between=self.between()),
            lambda: ask.mean(self.number(), between=self.between()),
            lambda: ask.variance(self.number(), between=g.choice(RANGES)),
            lambda: ask.covariance([self.column(), self.column()], between=[g.choice(RANGES), g.choice(RANGES)]),
            lambda: ask.correlation([self.column(), self.column()], between=[g.choice(RANGES), g.choice(RANGES)]),
            lambda: ask.persons() if isinstance(unit, mosha.Person) else ask.count(),
            lambda: ask.distinct(self.grow(g.choice([WHOLE, REAL, TEXT, DATE, BOOL, CLOCK]))),
            self.quantile,
        ]  # fmt: skip
        return g.choice(kinds if moments else kinds[:4] + kinds[7:])()

    def quantile(self) -> Any:
        at, bars = self.g.choice([0, 0.01, 0.25, 0.5, 1 / 3, 0.9, 1]), self.g.choice(["rows", "values"])
        return quantile(self.number(), at, between=self.between(), bars=bars)  # type: ignore[arg-type]

    def column(self) -> Any:
        return self.g.choice(self.numbers)


def with_delta(budget: Any) -> Any:
    """The same budget with a delta, which groups from data cost."""
    return Budget(epsilon=budget.epsilon, delta=1e-5, rho=budget.rho)


def arrow(columns: Any, rows: Any) -> Any:
    kinds = {
        Type.INTEGER: pa.int64(), Type.REAL: pa.float64(), Type.BOOLEAN: pa.bool_(), Type.TEXT: pa.string(),
        Type.DATE: pa.date32(), Type.TIMESTAMP: pa.timestamp("us"),
    }  # fmt: skip
    listed = list(zip(*rows, strict=True)) or [()] * len(columns)
    return pa.table({n: pa.array(c, kinds[k]) for (n, k), c in zip(columns.items(), listed, strict=True)})
