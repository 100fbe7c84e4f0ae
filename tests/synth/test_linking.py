"""Persons and their rows: one person counts for one in all, and synthetic rows belong to synthetic persons."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mosha
from mosha import col
from mosha.core.errors import InvalidParameter, MoshaError
from mosha.synth.measuring.counting import FRACTION, count_cells, reach_of

UNIT = mosha.Person("who")
PERSONS = {"keys": {"sex": ["F", "M"]}, "between": {"age": (0, 79)}, "bins": {"age": 4}, "nulls": []}
ROWS = {"keys": {"ward": ["A", "B", "C"]}, "between": {"days": (0, 9)}, "nulls": []}


def make_clinic(count: int = 3000) -> tuple[Any, ...]:
    """Older patients come more often, women to wards A and B, men to A and C; a third never comes."""
    generator = np.random.default_rng(3)
    sex, age = generator.integers(0, 2, count), generator.integers(0, 80, count)
    visits = np.where(generator.random(count) < 0.3, 0, generator.poisson(age / 20 + 0.3))
    who = np.repeat(np.arange(count), visits)
    ward = np.where(generator.random(len(who)) < 0.5, 0, 1 + sex[who])
    patients = {"who": np.arange(count), "sex": np.array(["F", "M"])[sex], "age": age}
    stays = {"who": who, "ward": np.array(["A", "B", "C"])[ward], "days": generator.integers(0, 10, len(who))}
    return pa.table(patients), pa.table(stays)


@pytest.fixture(scope="module")
def clinic() -> Any:
    return make_clinic()


def ask(patients: Any, stays: Any, *, at_most: Any = 8, persons: Any = PERSONS, rows: Any = ROWS) -> Any:
    account = mosha.Ledger.memory().account("clinic", unit=UNIT, epsilon=10, delta=1e-4)
    one, two = (mosha.protect(table, unit=UNIT, account=account) for table in (patients, stays))
    return one.synthesize(**persons).link(two.synthesize(**rows), at_most=at_most)


@pytest.fixture(scope="module")
def made(clinic: Any) -> Any:
    return ask(*clinic).release(epsilon=9, delta=1e-6)


def cells_of(question: Any) -> Any:
    counted = count_cells(question.whole.relation, UNIT, question.whole.columns)
    return Counter({tuple(int(c[i]) for c in counted.cells): int(w) for i, w in enumerate(counted.weights)})


ODD = {
    "one row each": (1, 1),
    "no row": (1, 0),
    "many rows": (1, 50),
    "several times a person": (3, 7),
    "rows of nobody": (0, 9),
}


@pytest.mark.parametrize("how", ODD)
def test_a_person_with_all_rows_of_both_tables_counts_for_one_at_most(how: Any, clinic: Any) -> None:
    """Exact counts with a person and without: they differ by at most the reach, in the sum of absolute values."""
    times, visits = ODD[how]
    patients, stays = (table.slice(0, 40) for table in clinic)
    more = pa.table({"who": [99_999] * times, "sex": ["F"] * times, "age": list(range(times))}, patients.schema)
    rows = {"who": [99_999] * visits, "ward": list("ABC" * 20)[:visits], "days": [n % 10 for n in range(visits)]}
    rows = pa.table(rows, stays.schema)
    with_it = ask(pa.concat_tables([patients, more]), pa.concat_tables([stays, rows]))
    one, two = cells_of(with_it), cells_of(ask(patients, stays))
    moved = sum(abs(one[cell] - two[cell]) for cell in one.keys() | two.keys())
    reach, _ = reach_of(UNIT, with_it.whole.relation)
    assert reach == 1 << FRACTION
    assert moved <= reach
    if times:
        assert moved > 0.99 * reach  # power: nearly all of it is there


def test_rows_of_a_person_who_is_in_no_first_table_count_nowhere(clinic: Any) -> None:
    patients, stays = clinic
    stranger = pa.table({"who": [99_999], "ward": ["A"], "days": [1]}, stays.schema)
    assert cells_of(ask(patients, stays)) == cells_of(ask(patients, pa.concat_tables([stays, stranger])))


def test_synthetic_rows_belong_to_synthetic_persons(made: Any) -> None:
    persons, rows = made.sample(400)
    assert persons["who"] == list(range(1, 401))
    assert set(rows["who"]) <= set(persons["who"])
    assert max(Counter(rows["who"]).values()) <= 8
    assert list(persons) == ["who", "sex", "age"]
    assert list(rows) == ["who", "ward", "days"]
    assert made.sample(400) == (persons, rows)
    assert made.sample(400, seed=1) != (persons, rows)


def shares(persons: Any, rows: Any, of: Any) -> dict[Any, Any]:
    """The share of all rows by a column of their person and their own ward."""
    known = dict(zip(persons["who"], persons[of], strict=True))
    found = Counter((known[who], ward) for who, ward in zip(rows["who"], rows["ward"], strict=True))
    return {pair: count / len(rows["who"]) for pair, count in found.items()}


def test_both_tables_go_together_as_the_private_ones_do(made: Any, clinic: Any) -> None:
    """At epsilon 9 the noise of these counts is far below the bars, which a table without the link misses."""
    (persons, rows), (patients, stays) = made.tables, (table.to_pydict() for table in clinic)
    truth, found = shares(patients, stays, "sex"), shares(persons, rows, "sex")
    apart = 0.5 * sum(abs(truth.get(pair, 0) - found.get(pair, 0)) for pair in truth.keys() | found.keys())
    assert apart < 0.08
    shuffled = dict(rows, who=np.random.default_rng(0).permutation(rows["who"]).tolist())
    unlinked = shares(persons, shuffled, "sex")
    assert 0.5 * sum(abs(truth.get(p, 0) - unlinked.get(p, 0)) for p in truth.keys() | unlinked.keys()) > 0.15
    numbers, real = (Counter(table["who"]) for table in (rows, stays))
    for low, high in ((0, 40), (40, 80)):
        mine, theirs = (
            np.mean(
                [min(8, count[who]) for who, age in zip(table["who"], table["age"], strict=True) if low <= age < high]
            )
            for table, count in ((persons, numbers), (patients, real))
        )
        assert abs(mine - theirs) < 0.3
    nobody = sum(who not in real for who in patients["who"])
    assert abs(made.count(rows_per_person=0).value - nobody) < 60


def test_conditions_derived_columns_and_chosen_persons(clinic: Any) -> None:
    rows = ROWS | {"derived": {"long": col("days") > 6}, "never": [(col("ward") == "A") & (col("days") > 7)]}
    persons = PERSONS | {"derived": {"old": col("age") >= 60}, "never": [(col("sex") == "M") & (col("age") < 20)]}
    made = ask(*clinic, persons=persons, rows=rows).release(epsilon=9, delta=1e-6)
    one, two = made.sample(500)
    assert not any(ward == "A" and days > 7 for ward, days in zip(two["ward"], two["days"], strict=True))
    assert two["long"] == [days > 6 for days in two["days"]]
    assert one["old"] == [age >= 60 for age in one["age"]]
    assert not any(sex == "M" and age < 20 for sex, age in zip(one["sex"], one["age"], strict=True))
    assert set(made.given(sex="F").sample(50)[0]["sex"]) == {"F"}
    assert made.given(rows_per_person=0).sample(5)[1] == {"who": [], "ward": [], "days": [], "long": []}
    with pytest.raises(InvalidParameter):
        made.given(ward="A")


def test_values_of_the_second_table_may_come_from_the_data(clinic: Any) -> None:
    made = ask(*clinic, rows=ROWS | {"keys": {"ward": "from_data"}}).release(epsilon=9, delta=1e-6)
    assert set(made.sample(300)[1]["ward"]) >= {"A", "B", "C"}


def test_files_are_labelled_and_a_key_finds_the_same_tables(clinic: Any, tmp_path: Path) -> None:
    question = ask(*clinic)
    one, two = (question.release(epsilon=2, delta=1e-6, key="clinic") for _ in range(2))
    assert one.tables == two.tables
    first, second = one.save(tmp_path / "patients.csv", tmp_path / "stays.parquet")
    assert first.read_text(encoding="utf-8").startswith("# synthetic table")
    assert b"mosha.synthetic" in pq.read_schema(second).metadata
    assert pq.read_table(second).num_rows == len(one.tables[1]["who"])
    assert "rows" in str(one.report())


def test_a_second_table_without_rows_or_a_first_without_persons_is_answered(clinic: Any) -> None:
    patients, stays = clinic
    made = ask(patients, stays.slice(0, 0)).release(epsilon=9, delta=1e-6)
    assert len(made.sample(100)[1]["who"]) < 30
    assert ask(patients.slice(0, 0), stays).release(epsilon=9, delta=1e-6).sample(3)[0]["who"] == [1, 2, 3]


def wrong_calls(patients: Any, stays: Any) -> dict[str, Any]:
    account = mosha.Ledger.memory().account("clinic", unit=UNIT, epsilon=10, delta=1e-4)
    other = mosha.Ledger.memory().account("clinic", unit=UNIT, epsilon=10, delta=1e-4)
    persons = mosha.protect(patients, unit=UNIT, account=account).synthesize(**PERSONS)
    rows = mosha.protect(stays, unit=UNIT, account=account).synthesize(**ROWS)
    elsewhere = mosha.protect(stays, unit=UNIT, account=other).synthesize(**ROWS)
    plain = mosha.protect(stays.drop_columns("who"), unit=mosha.Row()).synthesize(**ROWS)
    return {
        "rows that are no question": lambda: persons.link(stays, at_most=3),
        "a first table of rows": lambda: plain.link(rows, at_most=3),
        "a second table of rows": lambda: persons.link(plain, at_most=3),
        "two accounts": lambda: persons.link(elsewhere, at_most=3),
        "columns with one name": lambda: persons.link(persons, at_most=3),
        "a count with the name of a column": lambda: persons.link(rows, at_most=3, count="ward"),
        "no rows at all": lambda: persons.link(rows, at_most=0),
        "too many rows": lambda: persons.link(rows, at_most=10**6),
    }


@pytest.mark.parametrize("what", sorted(wrong_calls(*make_clinic(10))))
def test_wrong_links_are_refused_before_anything_is_paid(what: Any, clinic: Any) -> None:
    with pytest.raises(MoshaError) as caught:
        wrong_calls(*clinic)[what]()
    assert caught.value.code
