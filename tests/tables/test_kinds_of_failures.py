"""Whatever makes an engine fail in a paid step, the analyst reads the same, and nothing of the reason."""

import io
import traceback
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import mosha
from mosha import errors
from mosha.connect.engines.duckdb import DuckDB

SECRET = "row 17 holds 'Anna'"
REASONS = [
    duckdb.OutOfMemoryException,
    duckdb.ConversionException,
    duckdb.IOException,
    duckdb.InternalException,
    duckdb.InterruptException,
    MemoryError,
    RuntimeError,
    RecursionError,
    OSError,
    UnicodeDecodeError,
]


def failing(reason: Any) -> Any:
    def run(_: Any) -> None:
        try:
            raise ValueError(SECRET)
        except ValueError:
            if reason is UnicodeDecodeError:
                raise reason("utf-8", SECRET.encode(), 0, 1, SECRET) from None
            raise reason(SECRET)  # noqa: B904  (a context that must not leave)

    return run


def told(reason: Any) -> tuple[Any, ...]:
    """All that leaves: the type, the words, and what hangs on the error."""
    account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=9)
    table = mosha.protect(pa.table({"days": [1, 2]}), unit=mosha.Row(), account=account, engine=DuckDB())
    table.relation.sources[0].engine._plans.run = failing(reason)  # type: ignore[attr-defined]
    with pytest.raises(errors.MoshaError) as caught:
        table.count().release(epsilon=1)
    error = caught.value
    assert error.__cause__ is error.__context__ is None
    shown = io.StringIO()
    traceback.print_exception(error, file=shown)
    assert SECRET not in shown.getvalue()
    return type(error), str(error), vars(error), account.spent, account.failures


def test_every_failure_of_an_engine_reads_the_same() -> None:
    first, *others = map(told, REASONS)
    assert first[0] is errors.DataError
    assert all(other == first for other in others)
