"""Counts and sums of cases that exclude one another share one noise: found by the text, true of every row."""

import itertools
import random
from datetime import date
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import mosha
from fuzz import _noise_inputs as noise_inputs
from mosha.connect import col, private, source, when
from mosha.connect.engines.source import answer
from mosha.connect.language.exclusive import MOST_CLAUSES, are_exclusive
from mosha.connect.language.expression import lit, null
from mosha.connect.language.value import Clamped, Rows
from mosha.connect.plan.aggregation import Aggregation
from mosha.connect.plan.bounding import Unbounded
from mosha.core.budget import Budget
from mosha.tables.aggregates import count, mean
from mosha.tables.aggregates import sum as total
from tests.searches import draw_seeds

T, N, X, D, B = col("t"), col("n"), col("x"), col("d"), col("b")
UNKNOWN = [float("nan"), float("inf"), -float("inf")]
"""Numbers that are missing on every engine."""
VALUES = {
    "t": [None, "", "a", "A", "a ", "b", "é"],
    "n": [None, -1, 0, 1, 2, 2**53, 2**53 + 1, 2**62],
    "x": [None, -1.0, 0.0, 0.5, 1.0, 2.0, float(2**53), 1e100, *UNKNOWN],
    "d": [None, date(2023, 12, 31), date(2024, 1, 1), date(2024, 2, 29)],
    "b": [None, True, False],
}


def one(condition: Any, value: Any = 1, rest: Any = 0) -> Any:
    return Clamped(when(condition, value).else_(rest), (0, 5), exponent=0)


EXCLUSIVE = [
    [one(T == "a"), one(T == "b"), one(T.is_in("A", "é"))],
    [one((T == "a") | (T == "b")), one((T != "a") & (T != "b"))],
    [one(~((T == "a") | (N > 2))), one((N > 2) | (T == "a"))],
    [one(N < 1), one((N >= 1) & (N < 2)), one(N >= 2), one(N.is_null())],
    [one(lit(1) > N), one(N >= 1)],
    [one(date(2024, 1, 1) > D), one(date(2024, 1, 1) <= D, X)],
    [one(B), one(~B)],
    [one(col("m") > N), one(col("m") <= N)],
    [one(T.like("a%")), one(~T.like("a%"))],
    [Rows(when(T == "a", 1).else_(null("integer"))), Rows(when(T == "b", N).else_(null("integer")))],
    [one(T == "a"), Clamped(N * when(T == "b", 1).else_(0), (-5, 5), exponent=2)],
    [Clamped((T == "a").cast("integer"), (0, 1), exponent=0), one(T != "a")],
    [one(N.is_null()), one(~N.is_null())],
    [one(lit(True) == B), one(lit(False) == B)],
]
NOT_EXCLUSIVE = [
    [one(T == "a"), one(T == "a")],
    [one(T == "a"), one(N == 1)],
    [one(N <= 1), one(N >= 1)],
    [one(N < 2**53 + 1), one(X >= 2**53 + 1)],
    [one(N != 1), one(N != 2)],
    [one(T == "a"), Rows()],
    [one(T == "a"), one(T == "b", rest=1)],
    [one(T == "a"), Clamped(when(T == "b", 1).else_(0), (1, 5), exponent=0)],  # 0 counts as 1
    [one(T == "a"), Clamped(when(T == "b", 1).else_(0), (0, 5), exponent=0, center=2)],
    [Rows(when(T == "a", 1).else_(0)), Rows(when(T == "b", 1).else_(0))],  # 0 is a value
    [one(B), one(~B.is_null())],
    [one(N > 2**60), one(N < 2.0**60)],  # compared as doubles
    [one(T.concat(lit("it's")) == "a"), one(T.concat(col("it's")) == "b")],  # a text and a column of that name
    [one(col("w") == pd.Timestamp(2024, 1, 1, nanosecond=n)) for n in (1, 2)],  # one moment on every engine
]


@pytest.mark.parametrize("values", EXCLUSIVE)
def test_cases_that_exclude_one_another_are_found(values: Any) -> None:
    assert are_exclusive(values)


@pytest.mark.parametrize("values", NOT_EXCLUSIVE)
def test_cases_that_may_meet_are_not_taken_for_exclusive(values: Any) -> None:
    assert not are_exclusive(values)


def test_constants_that_an_engine_takes_for_one_move_no_more_than_was_charged() -> None:
    """Moments in nanoseconds were different in the text and equal in the statement: each row counted for both."""
    moments = [pd.Timestamp(1000 + n) for n in range(5)]  # of the first microsecond of 1970

    def ask(rows: Any) -> Any:
        table = mosha.protect(pa.table({"w": pa.array([1] * rows, pa.timestamp("us"))}), unit=mosha.Row())
        cases = [total(when(col("w") == moment, 1).else_(0), between=(0, 1)) for moment in moments]
        return table.aggregate(**{f"a{i}": case for i, case in enumerate(cases)})

    def run(question: Any, listener: Any) -> Any:
        return noise_inputs.run(question, Budget(epsilon=1), bytes(32), listener)

    used, *_ = noise_inputs.compare(ask(3), ask(2), run, 1)
    assert max(used.values()) <= 1 + noise_inputs.SLACK


def test_a_missing_time_of_pandas_is_no_constant() -> None:
    with pytest.raises(mosha.errors.InvalidParameter):
        lit(pd.NaT)


def test_a_condition_of_very_many_cases_excludes_nothing() -> None:
    wide = one(_all((T == "a") | (i == N) for i in range(7)))
    assert MOST_CLAUSES < 2**7
    assert not are_exclusive([wide, one((T == "b") & (N == 9))])


def _all(conditions: Any) -> Any:
    first, *others = conditions
    for condition in others:
        first = first & condition
    return first


def grow(g: Any, depth: Any) -> Any:
    """A random condition about the columns, with constants that rows have."""
    if depth and g.random() < 0.7:
        kind = g.randrange(3)
        if kind == 0:
            return ~grow(g, depth - 1)
        left, right = grow(g, depth - 1), grow(g, depth - 1)
        return left & right if kind == 1 else left | right
    name = g.choice([*VALUES, "t", "n", "n"])
    column, constants = col(name), [value for value in VALUES[name] if value not in (None, *UNKNOWN)]  # type: ignore[attr-defined]
    if g.random() < 0.1:
        return column.is_null()
    if g.random() < 0.2:
        return column.is_in(*g.sample(constants, g.randrange(1, len(constants))))
    constant = lit(g.choice(constants))
    if name == "b":
        return g.choice([column, column == constant, column != constant])
    pairs = [column == constant, column != constant, column < constant, column <= constant, column > constant]
    return g.choice([*pairs, column >= constant, constant < column, constant >= column])


@pytest.fixture(scope="module")
def rows() -> Any:
    g = random.Random(3)
    listed: Any = [[g.choice(values) for values in VALUES.values()] for _ in range(3000)]  # type: ignore[arg-type]
    columns = dict(zip(VALUES, map(list, zip(*listed, strict=True)), strict=True))
    return private(source(pa.table({**columns, "d": pa.array(columns["d"], pa.date32())})))


def test_no_row_has_two_values_that_are_said_to_exclude_one_another(rows: Any) -> None:
    found = 0
    for seed in itertools.islice(draw_seeds("exclusive cases"), 250):
        g = random.Random(seed)
        first = grow(g, 2)
        second = g.choice([~first, grow(g, 2) & ~first, grow(g, 2)])
        if are_exclusive([one(first), one(second)]):
            found += 1
            both = Aggregation(rows.where(first & second), (), (("n", Rows()),), bound=Unbounded())
            assert sum(number for _, (number,) in answer(both).rows()) == 0, (seed, first, second)
    assert found > 50  # of those that are a negation, nearly all


def shop(**unit: Any) -> Any:
    table = {"who": [1, 1, 2, 3], "t": ["a", "b", "a", None], "n": [1, 2, 3, 4]}
    return mosha.protect(pa.table(table), unit=mosha.Person("who", **unit))


PIVOT = {
    "a": total(when(T == "a", 1).else_(0), between=(0, 1)),
    "b": count(when(T == "b", 1)),
    "c": total(when(T == "c", N).else_(0), between=(0, 5)),
}


def test_columns_of_a_pivot_have_the_noise_that_one_of_them_alone_has() -> None:
    budget = Budget(epsilon=1)
    alone, together = shop(at_most=3).aggregate(a=PIVOT["a"]), shop(at_most=3).aggregate(**PIVOT)
    (part,), (single,) = together.parts(budget), alone.parts(budget)
    assert part.noise.shared
    assert part.noise.deviation(3) == pytest.approx(single.noise.deviation(3), rel=1e-6)
    assert mosha.accounting.epsilon(part.event, 0) == pytest.approx(1)
    beside = shop(at_most=3).aggregate(**PIVOT, m=mean(N, between=(0, 5)))
    assert not any(part.noise.shared for part in beside.parts(budget))


@pytest.mark.parametrize("others", [{"between": "automatic"}, {"between": (1, 5)}])
def test_a_range_without_zero_or_yet_to_be_bought_excludes_nothing(others: Any) -> None:
    asked = shop(at_most=3).aggregate(a=PIVOT["a"], c=total(when(T == "c", N).else_(0), **others))
    assert not any(part.noise.shared for part in asked.parts(Budget(epsilon=1)))


@pytest.mark.parametrize(("cases", "shared"), [(2, False), (3, False), (4, True)])
def test_a_row_that_is_replaced_moves_two_cases(cases: int, shared: bool) -> None:
    table = mosha.protect(pa.table({"n": [1, 2]}), unit=mosha.Row(neighbors="replace-one"))  # type: ignore[arg-type]
    asked = {f"a{i}": total(when(i == N, 1).else_(0), between=(0, 1)) for i in range(cases)}
    (part,) = table.aggregate(**asked).parts(Budget(epsilon=1))
    assert part.noise.shared is shared  # type: ignore[attr-defined]
    reach = part.reach(table.aggregate(**asked).frame, None)  # type: ignore[attr-defined]
    assert reach == [value.magnitude * (2 if shared else 1) for value in part.values.values()]  # type: ignore[attr-defined]  # noqa: PD011  (no frame)


def test_sql_writes_pivots_and_all_of_them_are_close() -> None:
    paying = mosha.Ledger.memory().account("a", unit=mosha.Person("who", at_most=1), epsilon=1e4, delta=1e-5)
    many = pa.table({"who": range(9000), "t": ["a", "b", "c"] * 3000})
    text = (
        "SELECT SUM(CASE WHEN t = 'a' THEN 1 ELSE 0 END) AS a, COUNT(CASE WHEN t = 'b' THEN 1 END) AS b, "
        "SUM(CASE WHEN t NOT IN ('a', 'b') THEN 1 ELSE 0 END) AS c FROM v"
    )
    answered = mosha.query(text, v=mosha.protect(many, unit=mosha.Person("who", at_most=1), account=paying), epsilon=10)
    (row,) = answered  # type: ignore[str-unpack]
    assert all(abs(number - 3000) < 10 for number in row.values())  # type: ignore[union-attr]  # noise of scale 0.1: off by 10 with e^-100
