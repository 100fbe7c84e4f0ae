"""Data frames, looked through before DuckDB reads them: what would make a question fail is refused at once."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from mosha.core.errors import DataError

__all__ = ["check_frame", "object_columns"]


def check_frame(frame: Any) -> None:
    """Refuse frames that can be read only once, text that is no UTF-8, and moments in different time zones."""
    kind = type(frame)
    if kind.__name__ in {"RecordBatchReader", "Scanner"}:
        raise DataError("connect.read_only_once", kind=kind.__name__)
    if kind.__module__.split(".")[0] == "pyarrow" and kind.__name__ in {"Table", "RecordBatch"}:
        _check_text(frame)
    for name, values in object_columns(frame).items():
        if len({str(value.tzinfo) for value in values if isinstance(value, datetime)}) > 1:
            raise DataError("connect.mixed_time_zones", column=str(name))


def _check_text(table: Any) -> None:
    """Arrow takes bytes for text unseen; the engine would fail at the row, and answer nothing from then on."""
    for name, values in zip(table.schema.names, table.columns, strict=True):
        if "string" in str(values.type) and not _is_valid(values):
            raise DataError("connect.text_not_utf8", column=str(name), spent="nothing")


def _is_valid(values: Any) -> bool:
    try:
        values.validate(full=True)
    except ValueError:
        return False
    return True


def object_columns(frame: Any) -> dict[str, Any]:
    """The columns of a pandas frame that may hold anything."""
    kind = type(frame)
    if kind.__module__.split(".")[0] != "pandas" or kind.__name__ != "DataFrame":
        return {}
    kinds = enumerate(frame.dtypes)
    return {str(frame.columns[i]): frame.iloc[:, i] for i, dtype in kinds if getattr(dtype, "hasobject", False)}
