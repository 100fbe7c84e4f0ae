"""Tables whose names are options can be asked, and explain takes what query takes."""

from typing import Any

import duckdb
import pyarrow as pa
import pytest

import mosha
from mosha import errors


@pytest.fixture
def table() -> Any:
    account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=9)
    data = pa.table({"days": [1, 2] * 50, "ward": ["A", "B"] * 50})
    return mosha.protect(data, unit=mosha.Row(), account=account)


@pytest.mark.parametrize(
    "name", ["rows", "keys", "key", "delta", "epsilon", "tables", "bars", "sql", "deadline", "within"]
)
def test_a_table_may_have_the_name_of_an_option(table: Any, name: str) -> None:
    answer = mosha.query(f'SELECT COUNT(*) FROM "{name}"', tables={name: table}, epsilon=0.1, statements=True)
    assert answer.receipt.cost == pytest.approx(0.1)  # type: ignore[union-attr]
    assert "SELECT" in mosha.sql.explain(
        f'SELECT COUNT(*) FROM "{name}"', tables={name: table}, epsilon=0.1, statements=True
    )


@pytest.mark.parametrize("name", ["rows", "keys", "key", "bars", "tables", "deadline", "within"])
def test_a_table_in_the_place_of_an_option_is_told_where_it_goes(table: Any, name: str) -> None:
    with pytest.raises(errors.InvalidParameter, match=rf"tables=\{{'{name}': \.\.\.\}}"):
        mosha.query(f'SELECT COUNT(*) FROM "{name}"', **{"epsilon": 0.1, name: table})
    assert table.account.spent == 0


def test_a_table_given_twice_and_tables_that_are_none_are_refused(table: Any) -> None:
    with pytest.raises(errors.InvalidParameter, match="given twice"):
        mosha.query("SELECT COUNT(*) FROM t", epsilon=0.1, t=table, tables={"t": table})
    with pytest.raises(errors.InvalidParameter, match="names tables"):
        mosha.query("SELECT COUNT(*) FROM t", epsilon=0.1, t=table, tables=[table])  # type: ignore[arg-type]


def test_explain_takes_keys_ranges_and_bars_as_query_does(table: Any) -> None:
    options: dict[str, Any] = {
        "keys": {"ward": ["A", "B"]},
        "ranges": {"days": (0, 30)},
        "bars": "values",
        "epsilon": 0.5,
    }
    asked = "SELECT ward, MEDIAN(days) FROM t GROUP BY ward"
    assert "Exponential" in mosha.sql.explain(asked, t=table, statements=True, **options)
    assert mosha.query(asked, t=table, **options).rows == (("A",), ("B",))  # type: ignore[union-attr]


def test_a_query_may_have_a_deadline(table: Any) -> None:
    assert mosha.query("SELECT COUNT(*) FROM t", t=table, epsilon=0.1, deadline=60).rows == ((),)  # type: ignore[union-attr]
    with pytest.raises(errors.InvalidParameter):
        mosha.query("SELECT COUNT(*) FROM t", t=table, epsilon=0.1, deadline=-1)


def test_a_stored_table_is_named_with_its_schema_too(tmp_path: Any) -> None:
    place = str(tmp_path / "shop.duckdb")
    with duckdb.connect(place) as shop:
        shop.execute("CREATE TABLE visits AS SELECT 'A' AS ward FROM range(50)")
    account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=9)
    visits = mosha.protect(place, table="visits", unit=mosha.Row(), account=account)
    sql = "SELECT main.visits.ward, COUNT(*) AS n FROM {} WHERE ward = 'A' GROUP BY main.visits.ward"
    assert mosha.query(sql.format("main.visits"), visits=visits, epsilon=1).table["ward"] == ["A"]  # type: ignore[union-attr]
    with pytest.raises(errors.Refused) as refusal:
        mosha.query("SELECT COUNT(*) FROM other.visits", visits=visits, epsilon=1)
    assert refusal.value.nearest == "SELECT COUNT(*) FROM visits"
