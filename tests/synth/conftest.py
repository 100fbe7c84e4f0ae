"""Servers that are shared by the tests of all engines, and small tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from tests.postgres import postgres_server as postgres_server  # noqa: PLC0414
from tests.spark import spark_session as spark_session  # noqa: PLC0414


@pytest.fixture
def account(tmp_path: Path) -> Any:
    ledger = mosha.Ledger(tmp_path / "book.db")
    return ledger.account("rows", unit=mosha.Row(), epsilon=50, delta=1e-5)


@pytest.fixture
def people(tmp_path: Path) -> Any:
    ledger = mosha.Ledger(tmp_path / "people.db")
    return ledger.account("people", unit=mosha.Person("who"), epsilon=50, delta=1e-5)


def make_rows(count: int = 2000) -> Any:
    """Rows in which job follows sex, and income follows both."""
    generator = np.random.default_rng()
    sex = generator.integers(0, 2, count)
    job = (sex + generator.integers(0, 2, count)) % 3
    income = np.clip(job * 20 + sex * 10 + generator.normal(20, 8, count), 0, 99)
    return pa.table(
        {
            "who": pa.array([f"p{i // 2}" for i in range(count)]),
            "sex": pa.array(np.array(["F", "M"])[sex]),
            "job": pa.array(job.astype(np.int64)),
            "income": pa.array([None if i % 50 == 0 else float(x) for i, x in enumerate(income)]),
        }
    )


@pytest.fixture
def rows() -> Any:
    return make_rows()
