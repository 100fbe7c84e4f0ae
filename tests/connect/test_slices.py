"""Slices of persons: a question in parts has the integers of the question in one piece."""

import random
from typing import Any, NoReturn

import pyarrow as pa
import pytest

from mosha.connect import (
    Aggregation,
    Clamped,
    Distinct,
    NormBound,
    Norms,
    Persons,
    Rows,
    Truncate,
    answer,
    col,
    private,
)
from mosha.connect.engines.duckdb import DuckDB
from mosha.connect.engines.duckdb_plans import MOST_SLICES, OutOfMemory, in_slices, slices_for
from mosha.connect.engines.source import Engine
from mosha.connect.plan.source import Totals, integers
from mosha.core.errors import DataError, Unbounded

VALUES = {"n": Rows(), "s": Clamped(col("v"), (-40, 100), exponent=4), "k": Rows(col("v"))}
BOUNDS = [
    NormBound(1, {("n", "s", "k"): 5}, 4),
    NormBound(2, {"n": 3, "s": 2000, "k": 2}, 7),
    Truncate(bytes(range(16)), groups=3, per_group=2),
    Truncate(bytes(range(16)), rows=4),
]


def people(persons: Any) -> Any:
    rows = random.Random(persons[0] is None)
    who = [rows.choice(persons) for _ in range(900)]
    group = [rows.choice(["a", "b", "ä", None]) for _ in who]
    value = [rows.choice([None, float("nan"), -50.0, 0.0, 12.5, 99.96875]) for _ in who]
    return pa.table({"u": pa.array(who), "g": group, "v": pa.array(value, pa.float64())})


NUMBERS, NAMES = people([None, *range(-50, 90)]), people([f"person {i}" for i in range(140)] + ["", None])


def in_parts(question: Any, count: Any) -> Any:
    engine = question.relation.source.engine
    return in_slices(question, count, lambda part: Engine.answer(engine, part))


@pytest.mark.parametrize("bound", BOUNDS, ids=["order 1", "order 2", "groups", "rows"])
@pytest.mark.parametrize("frame", [NUMBERS, NAMES], ids=["numbers", "names"])
def test_slices_add_up_to_the_whole(frame: Any, bound: Any) -> None:
    relation = private(DuckDB().frame(frame), person="u")
    for keys, only in (({}, None), ({"g": col("g")}, None), ({"g": col("g")}, [("b",), ("absent",), (None,)])):
        question = Aggregation(relation, keys, VALUES, bound=bound, only=only)
        whole = answer(question)
        for count in (2, 8):
            parts = in_parts(question, count)
            assert parts.to_dict() == whole.to_dict()
            assert parts.schema == whole.schema
            if only is not None:
                assert [key for key, _ in parts.rows()] == [key for key, _ in whole.rows()]


def test_counts_of_persons_and_histograms_of_norms_are_sliced_too() -> None:
    relation = private(DuckDB().frame(NUMBERS), person="u")
    counted = Aggregation(
        relation, {"g": col("g")}, {"n": Rows(), "p": Persons()}, bound=NormBound(1, {"n": 4, "p": 2})
    )
    questions = [counted] + [Norms(relation, {}, value=Rows(), order=order, thresholds=(1, 4, 9)) for order in (1, 2)]  # type: ignore[arg-type, misc]
    for question in questions:
        assert in_parts(question, 16).to_dict() == answer(question).to_dict()


def test_every_person_is_in_one_slice() -> None:
    relation = private(DuckDB().frame(NUMBERS), person="u")
    question = Aggregation(relation, {"u": col("u")}, {"n": Rows()}, bound=NormBound(1, {"n": 1000}))
    slices = [Engine.answer(relation.source.engine, question.take_slice(i, 4)).to_dict() for i in range(4)]  # type: ignore[arg-type]
    assert all(slices)
    assert sum(map(len, slices)) == len(set().union(*slices)) == 140


def test_sums_beyond_64_bits_add_up() -> None:
    question = Aggregation(private(DuckDB().frame(NUMBERS), person="u"), {}, VALUES, bound=BOUNDS[0])
    part = Totals(question.key_schema, (), {"s": integers([2**62 + 1])})
    assert in_slices(question, 8, lambda _: part).to_dict() == {(): (2**65 + 8,)}


def test_too_little_memory_doubles_the_slices_and_gives_up_in_the_end() -> None:
    relation = private(DuckDB().frame(NUMBERS), person="u")
    question = Aggregation(relation, {"g": col("g")}, VALUES, bound=BOUNDS[1])
    tried = []

    def narrow(part: Any, most: Any) -> Any:
        count = 1 if part.part is None else part.part[1]
        tried.append(count)
        if count <= most:
            raise OutOfMemory("full")
        return Engine.answer(relation.source.engine, part)  # type: ignore[arg-type]

    assert in_slices(question, 1, lambda part: narrow(part, 4)).to_dict() == answer(question).to_dict()
    assert tried == [1, 2, 4] + [8] * 8
    tried.clear()
    with pytest.raises(OutOfMemory):
        in_slices(question, 1, lambda part: narrow(part, MOST_SLICES))
    assert tried[-1] == MOST_SLICES


def test_what_is_no_sum_over_persons_is_never_sliced() -> None:
    engine = DuckDB()
    relation = private(engine.frame(NUMBERS), person="u")
    question = Distinct(relation, {}, of=col("v"), at_most=2, key=bytes(16))  # type: ignore[arg-type]
    assert slices_for(question, 10**9, 10**6) == 1

    def full(part: Any) -> NoReturn:
        assert part.part is None
        raise OutOfMemory("full")

    with pytest.raises(OutOfMemory):
        in_slices(question, 1, full)


def test_a_relation_without_persons_has_no_slices() -> None:
    relation = private(DuckDB().frame(NUMBERS))
    with pytest.raises(Unbounded):
        Distinct(relation, {}, of=col("v"), at_most=2, key=bytes(16)).take_slice(0, 2)  # type: ignore[arg-type]


def test_the_number_of_slices_is_told_by_public_sizes() -> None:
    question = Aggregation(private(DuckDB().frame(NUMBERS), person="u"), {}, VALUES, bound=BOUNDS[0])
    assert slices_for(question, None, 10**6) == 1
    assert slices_for(question, 1000, 10**6) == 1
    counts = [slices_for(question, 10**power, 10**7) for power in range(4, 13)]
    assert counts == sorted(counts)
    assert counts[-1] == MOST_SLICES


def test_the_error_that_leaves_the_engine_does_not_tell_which_trouble_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = DuckDB()
    question = Aggregation(private(engine.frame(NUMBERS), person="u"), {}, VALUES, bound=BOUNDS[0])
    monkeypatch.setattr(engine, "_answer", lambda _: (_ for _ in ()).throw(OutOfMemory("full")))
    with pytest.raises(DataError) as caught:
        answer(question)
    assert type(caught.value) is DataError
    assert caught.value.__context__ is None
