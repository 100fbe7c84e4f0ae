"""A name means what DuckDB takes it for, or the query is refused: never something else in silence."""

from typing import Any

import duckdb
import pyarrow as pa
import pytest

import mosha
from mosha import errors

ROWS = {"id": list(range(60)), "i": [1, 2, 3] * 20, "x": [1.0, 4.0, None, 9.0] * 15, "t": ["a", "A", "b"] * 20}
PUBLIC = {"i": [1, 2], "z": [5, 6]}

SAME = [
    "SELECT i AS k, -COUNT(*) AS i FROM v WHERE i IN (1, 2) AND (i = 2 OR x > 0) GROUP BY i ORDER BY i LIMIT 1",
    "SELECT COUNT(*) AS n FROM v WHERE i IN (1, 2) GROUP BY i ORDER BY n",
    "WITH w AS (SELECT i + 1 AS i FROM v) SELECT COUNT(*) AS n FROM W WHERE i > 2",
    "WITH v AS (SELECT i + 1 AS i FROM v) SELECT COUNT(*) AS n FROM v WHERE i > 2",
    'WITH "V" AS (SELECT i + 1 AS i FROM v) SELECT COUNT(*) AS n FROM V WHERE i > 2',
    'WITH "V" AS (SELECT i + 1 AS i FROM v) SELECT COUNT(*) AS n FROM v WHERE i > 2',
    "SELECT COUNT(*) AS n FROM v LEFT JOIN p ON v.i = p.i WHERE p.z IS NULL",
    "SELECT COUNT(*) AS n FROM v JOIN p ON v.i = p.i WHERE p.i = 2",
    "SELECT COUNT(*) AS n FROM v LEFT JOIN p USING (i) WHERE i = 3",
    "SELECT COUNT(*) AS n FROM (SELECT * FROM v LEFT JOIN p USING (i)) AS s WHERE i = 3",
    "SELECT COUNT(*) AS n FROM (SELECT i AS x, x AS i FROM v) AS s WHERE x > 1",
    "SELECT COUNT(*) AS n FROM v LEFT JOIN p ON v.i = p.i WHERE p.i IS NULL",
    "SELECT COUNT(p.i) AS n FROM v LEFT JOIN p ON v.i = p.i",
]
REFUSED = [
    "SELECT COUNT(*) AS n FROM (SELECT *, i + 1 AS i FROM v) AS s WHERE i > 2",
    "SELECT COUNT(*) AS n FROM (SELECT i + 1 AS I, * FROM v) AS s WHERE i > 2",
    "SELECT COUNT(*) AS n FROM (SELECT i AS a, x AS A FROM v) AS s WHERE a > 2",
    "WITH s AS (SELECT i FROM v), S AS (SELECT x AS i FROM v) SELECT COUNT(*) AS n FROM s WHERE i > 2",
    'SELECT COUNT(*) AS n FROM v AS a JOIN p AS "A" ON a.i = "A".i WHERE A.i = 1',
    "SELECT UPPER(t) AS T, COUNT(*) AS n FROM v WHERE UPPER(t) IN ('A', 'B') GROUP BY T",
    "SELECT COUNT(*) AS n FROM v FETCH FIRST 10 PERCENT ROWS ONLY",
    "SELECT COUNT(*) AS n FROM v FETCH FIRST 1 ROW WITH TIES",
]


@pytest.fixture
def tables() -> dict[str, Any]:
    account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), rho=1e9, delta=1e-3)
    return {
        "v": mosha.protect(pa.table(ROWS), unit=mosha.Row(), account=account),
        "p": mosha.tables.public_table(pa.table(PUBLIC)),
    }


@pytest.mark.parametrize("sql", SAME)
def test_names_mean_what_duckdb_takes_them_for(tables: Any, sql: Any) -> None:
    connection = duckdb.connect()
    connection.register("v", pa.table(ROWS))
    connection.register("p", pa.table(PUBLIC))
    noisy = [[round(value) for value in row.values()] for row in mosha.query(sql, rho=1e6, **tables)]  # type: ignore[union-attr]
    assert noisy == [list(row) for row in connection.execute(sql).fetchall()]


@pytest.mark.parametrize("sql", REFUSED)
def test_names_that_may_mean_two_things_are_refused_unpaid(tables: Any, sql: Any) -> None:
    with pytest.raises(errors.MoshaError):
        mosha.query(sql, rho=1e6, **tables)
    assert tables["v"].account.spent == tables["v"].account.failures == 0


def test_a_table_is_the_one_of_exactly_that_name_before_one_in_other_letters(tables: Any) -> None:
    given = {"V": tables["v"].where(mosha.col("i") > 2), "v": tables["v"]}
    [(small,), (large,)] = (
        [round(row["n"]) for row in mosha.query(f"SELECT COUNT(*) AS n FROM {name}", rho=1e6, tables=given)]  # type: ignore[arg-type, index]
        for name in ("V", "v")
    )
    assert (small, large) == (20, 60)
    given = {"Ab": tables["v"], "aB": tables["v"]}
    with pytest.raises(errors.DataError, match="may be any of"):
        mosha.query("SELECT COUNT(*) AS n FROM ab", rho=1e6, tables=given)
