"""A small table, every kind of question, numbers that can be checked by hand."""

from pathlib import Path
from typing import Any

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
    Unbounded,
    answer,
    col,
    private,
    source,
)

KEY = bytes(range(16))


@pytest.fixture
def visits(tmp_path: Path) -> Any:
    path = tmp_path / "visits.csv"
    rows = ["patient,ward,days", "1,A,3", "1,A,5", "1,B,2", "2,A,40", "3,C,", ",A,7"]
    path.write_text("\n".join(rows) + "\n")
    return private(source(path), person="patient")


def ask(relation: Any, values: Any, bound: Any) -> Any:
    return answer(Aggregation(relation, {"ward": col("ward")}, values, bound=bound)).to_dict()


DAYS = Clamped(col("days"), (0, 30), exponent=0)


def test_without_a_bound_every_row_of_a_person_counts(visits: Any) -> None:
    assert ask(visits, {"n": Rows(), "days": DAYS}, Unbounded()) == {("A",): (3, 38), ("B",): (1, 2), ("C",): (1, 0)}


def test_a_count_of_known_values_leaves_missing_ones_out(visits: Any) -> None:
    assert ask(visits, {"n": Rows(of=col("days"))}, Unbounded())[("C",)] == (0,)


def test_an_order_1_bound_scales_all_rows_of_a_person_alike(visits: Any) -> None:
    found = ask(visits, {"n": Rows(), "days": DAYS}, NormBound(1, {"n": 2, "days": 5}, fraction=4))
    assert found[("B",)] == (2 * 16 // 3, 2 * 5 * 16 // 10)
    assert found[("A",)] == (2 * (32 // 3) + 16, 3 * 80 // 10 + 5 * 80 // 10 + 30 * 80 // 30)


def test_an_order_2_bound_scales_the_vector_over_groups(visits: Any) -> None:
    found = ask(visits, {"n": Rows()}, NormBound(2, {"n": 1}, fraction=10))
    assert found == {("A",): (2 * 1024 // 3 + 1024,), ("B",): (1024 // 3,), ("C",): (1024,)}  # ceil(sqrt(5)) = 3


def test_persons_are_counted_once_in_a_group(visits: Any) -> None:
    found = ask(visits, {"people": Persons()}, Truncate(KEY, groups=9))
    assert found == {("A",): (2,), ("B",): (1,), ("C",): (1,)}


def test_truncation_keeps_at_most_so_many_groups_and_rows(visits: Any) -> None:
    one_group = ask(visits, {"people": Persons()}, Truncate(KEY, groups=1))
    assert sum(count for (count,) in one_group.values()) == 3
    one_row = ask(visits, {"n": Rows(), "days": DAYS}, Truncate(KEY, rows=1))
    assert sum(count for count, _ in one_row.values()) == 3


def test_distinct_values_are_counted_once(visits: Any) -> None:
    found = answer(Distinct(visits, {"ward": col("ward")}, of=col("days"), at_most=9, key=KEY)).to_dict()  # type: ignore[arg-type]
    assert found == {("A",): (3,), ("B",): (1,)}


def test_every_person_is_in_one_bucket_of_norms(visits: Any) -> None:
    found = answer(Norms(visits, {}, value=Rows(), order=1, thresholds=(1, 2, 4)))  # type: ignore[arg-type]
    assert found["persons"].tolist() == [2, 0, 1, 0]
