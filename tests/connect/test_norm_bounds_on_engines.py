"""Norm bounding in whole numbers: every engine gives the integers of the definition, and nobody exceeds the limit."""

import random
import secrets
from datetime import date, datetime
from typing import Any

import pytest

from mosha.connect import (
    Aggregation,
    Clamped,
    NormBound,
    Norms,
    Persons,
    Product,
    Rows,
    Schema,
    Type,
    Unbounded,
    answer,
    col,
    private,
)
from tests.connect.bounded import expected

SCHEMA = Schema({"who": Type.TEXT, "ward": Type.TEXT, "day": Type.DATE, "x": Type.REAL, "n": Type.INTEGER})


def people(size: int = 400, seed: Any = None) -> list[Any]:
    """Rows of a few busy and many quiet persons, some of nobody, with odd values among them."""
    pick = random.Random(seed or secrets.randbits(64))
    who = [None, *(f"p{k % 7}" for k in range(20)), *(f"q{k}" for k in range(60)), "", "é", "'"]
    reals = [None, float("nan"), float("inf"), -3.75, 0.0, 1e9, *(pick.uniform(-5, 40) for _ in range(20))]
    wards, days = ["A", "B", "C", None, "A "], [date(2024, 1, 1), date(2024, 1, 2), None]
    return [
        (pick.choice(who), pick.choice(wards), pick.choice(days), pick.choice(reals), pick.randrange(-50, 50))
        for _ in range(size)
    ]


ROWS = people()
SIGNED = Clamped(col("x"), (-3, 30), exponent=6, center=700)
COST = Clamped(col("n"), (0, 40), exponent=0)
HUGE = Clamped(col("x"), (-1000, 1000), exponent=40)
VALUES = {"rows": Rows(), "known": Rows(of=col("x")), "x": SIGNED, "n": COST, "square": Product(COST, COST)}
BOTH = {"ward": col("ward"), "day": col("day")}


def limits(scale: Any) -> dict[str, Any]:
    return {"rows": 2 * scale, "known": scale, "x": 900 * scale, "n": 33 * scale, "square": 500 * scale}


QUESTIONS = {
    "no bound": lambda r: Aggregation(r, BOTH, VALUES, bound=Unbounded()),
    "no keys": lambda r: Aggregation(r, {}, VALUES, bound=NormBound(1, limits(1), fraction=3)),  # type: ignore[arg-type]
    "order 1": lambda r: Aggregation(r, BOTH, VALUES, bound=NormBound(1, limits(2), fraction=10)),  # type: ignore[arg-type]
    "order 2": lambda r: Aggregation(r, BOTH, VALUES, bound=NormBound(2, limits(1), fraction=10)),  # type: ignore[arg-type]
    "wide": lambda r: Aggregation(r, BOTH, {"x": HUGE}, bound=NormBound(1, {"x": 2**51 - 3}, fraction=0)),
    "wide order 2": lambda r: Aggregation(r, {"w": col("ward")}, {"x": HUGE}, bound=NormBound(2, {"x": 2**44 - 7})),
    "shared weight": lambda r: Aggregation(
        r, BOTH, {"rows": Rows(of=col("x")), "x": SIGNED}, bound=NormBound(1, {("rows", "x"): 3}, fraction=12)
    ),
    "shared weight, order 2": lambda r: Aggregation(
        r, BOTH, {"rows": Rows(of=col("x")), "x": SIGNED}, bound=NormBound(2, {("rows", "x"): 1}, fraction=12)
    ),
    "persons beside rows": lambda r: Aggregation(
        r, BOTH, {"rows": Rows(), "persons": Persons()}, bound=NormBound(1, {"rows": 4, "persons": 2}, fraction=8)
    ),
    "persons, order 2": lambda r: Aggregation(r, BOTH, {"persons": Persons()}, bound=NormBound(2, {"persons": 1}, 20)),
    "public keys": lambda r: Aggregation(
        r,
        {"ward": col("ward")},
        VALUES,
        bound=NormBound(1, limits(1)),  # type: ignore[arg-type]
        only=["A", None, "Z", "'; --"],
    ),
    "public pairs": lambda r: Aggregation(
        r,
        BOTH,
        {"rows": Rows(), "x": SIGNED},
        bound=NormBound(2, {"rows": 1, "x": 500}, fraction=4),
        only=[("A", date(2024, 1, 1)), (None, None), ("B", None), ("Z", date(2024, 1, 2))],
    ),
}


MANY = {
    "text": (Type.TEXT, [f"k{n}'" for n in range(40)] + ['"', "\\", "{,}", "é", ""]),
    "integer": (Type.INTEGER, [*range(-20, 20), 2**63 - 1]),
    "real": (Type.REAL, [n / 8 for n in range(-20, 20)] + [1e-30, 1e100]),
    "boolean": (Type.BOOLEAN, [True, False]),
    "date": (Type.DATE, [date(2000 + n, 1, 1 + n % 28) for n in range(40)]),
    "timestamp": (Type.TIMESTAMP, [datetime(2000 + n, 1, 1, 0, 0, 0, n) for n in range(40)]),
}


def test_many_public_keys_of_every_type_are_told_apart(place: Any) -> None:
    schema = Schema({"who": Type.INTEGER} | {name: kind for name, (kind, _) in MANY.items()})
    rows = [(n, *(random.choice([*values, None]) for _, values in MANY.values())) for n in range(60)]
    relation = private(place.load(schema, rows), person="who")
    names = list(MANY)
    wanted = [row[1:] for row in rows[::2]] + [("none", 0, 0.5, True, date(1999, 1, 1), datetime(1999, 1, 1))]
    keys = {name: col(name) for name in names}
    question = Aggregation(relation, keys, {"n": Rows()}, bound=NormBound(1, {"n": 1}), only=wanted)
    assert answer(question).to_dict() == expected(question, schema, rows)
    for name in names[:2] if place.name == "spark" else names:
        only = [*MANY[name][1], None]
        question = Aggregation(relation, {name: col(name)}, {"n": Rows()}, bound=NormBound(1, {"n": 1}), only=only)
        assert answer(question).to_dict() == expected(question, schema, rows)


@pytest.fixture(scope="module")
def relation(place: Any) -> Any:
    return private(place.load(SCHEMA, ROWS), person="who")


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_engine_gives_the_integers_of_the_definition(relation: Any, name: Any) -> None:
    question = QUESTIONS[name](relation)
    assert answer(question).to_dict() == expected(question, SCHEMA, ROWS)


@pytest.mark.parametrize("order", [1, 2])
def test_every_person_is_counted_in_the_bucket_of_their_norm(relation: Any, order: int) -> None:
    thresholds = (0, 5, 100, 700, 2000)
    found = answer(Norms(relation, BOTH, value=COST, order=order, thresholds=thresholds))  # type: ignore[arg-type]
    norms = {}
    for who in {row[0] for row in ROWS} - {None}:
        mine = [row for row in ROWS if row[0] == who]
        question = Aggregation(relation, BOTH, {"n": COST}, bound=Unbounded())
        sums = [v for (v,) in expected(question, SCHEMA, mine).values()]
        norms[who] = sum(abs(v) ** order for v in sums)
    buckets = [0] * (len(thresholds) + 1)
    for norm in norms.values():
        buckets[sum(norm > t**order for t in thresholds)] += 1
    assert found["persons"].tolist() == buckets


def test_the_order_of_rows_changes_nothing(place: Any) -> None:
    question = QUESTIONS["order 1"]
    shuffled = random.sample(ROWS, len(ROWS))
    first, second = (answer(question(private(place.load(SCHEMA, rows), person="who"))) for rows in (ROWS, shuffled))
    assert first.to_dict() == second.to_dict()


def test_an_empty_table_is_answered(place: Any) -> None:
    relation = private(place.load(SCHEMA, []), person="who")
    for name in ("order 1", "order 2"):
        assert answer(QUESTIONS[name](relation)).to_dict() == {}
    assert answer(QUESTIONS["no keys"](relation)).to_dict() == {(): (0,) * 5}
    assert set(answer(QUESTIONS["public keys"](relation)).to_dict().values()) == {(0,) * 5}
