"""Dashboards and data frames: DB-API 2.0, pandas and SQLAlchemy over the client."""

from typing import Any

import pandas as pd
import pytest
import sqlalchemy
from sqlalchemy import Column, Integer, MetaData, Table, Text, func, select
from sqlalchemy.dialects import registry

from mosha.client import dbapi
from mosha.core.errors import InvalidParameter

registry.register("mosha.http", "mosha.client.sqlalchemy_dialect", "PlainDialect")
SQL = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward"


@pytest.fixture(scope="module")
def connection(house: Any) -> Any:
    return dbapi.connect(str(house.client.base_url), token=house.tokens["li"], epsilon=0.01)


def test_a_refresh_within_the_window_is_free_and_the_same(house: Any, connection: Any) -> None:
    first = connection.cursor().execute(SQL).fetchall()
    spent = house.service.ledger.account("visits/li").spent_price
    for _ in range(3):
        assert connection.cursor().execute(SQL).fetchall() == first
    assert house.service.ledger.account("visits/li").spent_price == spent


def test_a_cursor_does_what_the_standard_says(connection: Any) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.InterfaceError):
        cursor.fetchone()
    cursor.execute(SQL)
    assert [column[0] for column in cursor.description] == ["ward", "n"]
    assert cursor.rowcount == 4
    assert cursor.fetchone()[0] == "cardiology"
    assert len(cursor.fetchmany(2)) == 2
    assert len(cursor.fetchall()) == 1
    assert cursor.fetchone() is None
    cursor.execute("SELECT COUNT(*) AS n FROM visits WHERE ward = ? AND days > ?", ["surgery", 3])
    assert len(list(cursor)) == 1
    with pytest.raises(dbapi.DatabaseError):
        cursor.execute("SELECT * FROM visits")
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("SELECT COUNT(*) FROM visits WHERE days > ?")


def test_a_value_cannot_leave_its_literal(connection: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT COUNT(*) AS n FROM visits WHERE ward = ?", ["x' OR '1'='1"])
    assert abs(cursor.fetchone()[0]) < 5000  # nobody is in such a ward: noise alone


@pytest.mark.parametrize("options", ["epsilon=abc", "epsiln=0.1", "epsilon=0.1&secure=no", "epsilon=0.1&epsilon=0.2"])
def test_an_address_with_a_slip_is_refused_before_anything_is_asked(house: Any, options: str) -> None:
    base = house.client.base_url
    with pytest.raises(InvalidParameter, match="address"):
        sqlalchemy.create_engine(f"mosha+http://:{house.tokens['li']}@{base.host}:{base.port}/?{options}")


def test_sqlalchemy_and_pandas_read_through_the_dialect(house: Any) -> None:
    base = house.client.base_url
    url = f"mosha+http://:{house.tokens['li']}@{base.host}:{base.port}/?epsilon=0.01"
    engine = sqlalchemy.create_engine(url)
    inspector = sqlalchemy.inspect(engine)
    assert "visits" in inspector.get_table_names()
    assert {column["name"] for column in inspector.get_columns("visits")} >= {"ward", "days"}
    visits = Table("visits", MetaData(), Column("ward", Text), Column("days", Integer))
    with engine.connect() as connection:
        frame = pd.read_sql(sqlalchemy.text(SQL), connection)
        statement = select(visits.c.ward, func.avg(visits.c.days).label("days")).group_by(visits.c.ward)
        rows = connection.execute(statement).fetchall()
    assert list(frame.columns) == ["ward", "n"]
    assert len(frame) == len(rows) == 4
