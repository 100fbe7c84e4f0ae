"""Statistics of Parquet files say nothing of NaN; no guard against it may be optimised away for that."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mosha.connect import Aggregation, Clamped, Rows, Unbounded, answer, col, private, source


@pytest.fixture
def table(tmp_path: Path) -> Any:
    pq.write_table(pa.table({"x": [1.5, float("nan"), 2.0, 20.0]}), tmp_path / "t.parquet")
    return private(source(tmp_path / "t.parquet"))


def total(relation: Any, value: Any) -> Any:
    found = answer(Aggregation(relation, {}, {"n": value}, bound=Unbounded())).to_dict()
    return found[()][0]


def test_nan_is_missing_in_sums_filters_and_keys_whatever_the_file_says_of_its_range(table: Any) -> None:
    assert total(table, Clamped(col("x"), (0, 30), exponent=1)) == 47
    assert total(table, Clamped(col("x") + 1.0, (0, 30), exponent=1)) == 53
    assert total(table.where(col("x") > 0), Rows()) == 3
    assert total(table.where(col("x") <= 20), Rows()) == 3
    assert total(table.where(col("x").is_null()), Rows()) == 1
    keys = answer(Aggregation(table, {"x": col("x")}, {"n": Rows()}, bound=Unbounded())).to_dict()
    assert keys == {(1.5,): (1,), (2.0,): (1,), (20.0,): (1,), (None,): (1,)}
