"""A hospital in two tables, protected and plain."""

import random
from datetime import date, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import mosha

WARDS = ["A", "B", "C"]


@pytest.fixture(scope="session")
def plain() -> dict[str, Any]:
    generator = random.Random(5)
    rows = []
    for person in range(600):
        for _ in range(generator.choice([1, 1, 2, 3])):
            day = date(2026, 1, 1) + timedelta(days=generator.randrange(300))
            days = None if generator.random() < 0.05 else generator.randrange(0, 300) / 10
            rows.append((person, generator.choice(WARDS), days, generator.randrange(18, 95), day))
    names = ["patient_id", "ward", "days", "Age", "day"]
    visits = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    people = pa.table({"patient_id": list(range(600)), "female": [i % 2 == 0 for i in range(600)]})
    wards = pa.table({"ward": WARDS, "floor": [1, 1, 2]})
    return {"visits": visits, "people": people, "wards": wards}


@pytest.fixture
def tables(plain: Any) -> dict[str, Any]:
    unit = mosha.Person("patient_id", at_most=3)
    account = mosha.Ledger.memory().account("hospital", unit=unit, rho=1e9, delta=1e-3)
    return {
        "visits": mosha.protect(plain["visits"], unit=unit, account=account),
        "people": mosha.protect(plain["people"], unit=unit, account=account),
        "wards": mosha.tables.public_table(plain["wards"]),
    }


@pytest.fixture(scope="session")
def database(plain: Any) -> Any:
    connection = duckdb.connect()
    connection.execute("CREATE MACRO clamp(x, a, b) AS CASE WHEN x IS NULL THEN NULL ELSE least(greatest(x, a), b) END")
    for name, table in plain.items():
        connection.register(name, table)
    return connection
