"""Data frames, looked through before DuckDB reads them: what would make a question fail is refused at once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from sqlglot import exp

from mosha.connect.sql.dialect import Kind, Node, cast, column
from mosha.connect.sql.statement import alias, select
from mosha.core.errors import DataError
from mosha.core.private_log import note_privately

__all__ = ["cast_to_text", "check_frame", "object_columns", "settle_frame", "tell_state"]

T = TypeVar("T")


def check_frame(frame: object) -> None:
    """Refuse frames that can be read only once, text that is no UTF-8, and moments in different time zones."""
    kind = type(frame)
    if kind.__name__ in {"RecordBatchReader", "Scanner"}:
        raise DataError("connect.read_only_once", kind=kind.__name__)
    if kind.__module__.split(".")[0] == "pyarrow" and kind.__name__ in {"Table", "RecordBatch"}:
        _check_text(frame)
    for name, values in object_columns(frame).items():
        if len({str(value.tzinfo) for value in values if isinstance(value, datetime)}) > 1:
            raise DataError("connect.mixed_time_zones", column=str(name))


def settle_frame(frame: Any) -> tuple[Any, frozenset[str], frozenset[str]]:
    """A frame of which no row can make a question fail; its texts that come as bytes, and columns that are left out.

    A lazy frame may do anything with its rows, and is worked out once, now. Files of a Parquet data set stay where they
    are: their texts come as bytes (see `decode_bytes`), and columns that files have with other types are left out, for
    Arrow would convert them row by row. Any other data set is read now.
    """
    kind = type(frame)
    package = kind.__module__.split(".")[0]
    if package == "polars" and kind.__name__ == "LazyFrame":
        return _read_now(frame.collect), frozenset(), frozenset()
    if package != "pyarrow" or not kind.__name__.endswith("Dataset"):
        return frame, frozenset(), frozenset()
    if kind.__name__ == "FileSystemDataset" and type(frame.format).__name__ == "ParquetFileFormat":
        return _read_now(partial(_take_bytes, frame))
    table = _read_now(frame.to_table)
    _check_text(table)
    return table, frozenset(), frozenset()


def _read_now(work: Callable[[], T]) -> T:
    """What a package says of rows that it cannot read may hold data; nothing of it goes on."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001  (raised below, outside of the handler)
        note_privately("frame", error)
    raise DataError("connect.frame_unreadable", spent="nothing")


def _take_bytes(dataset: Any) -> tuple[Any, frozenset[str], frozenset[str]]:
    arrow = sys.modules["pyarrow"]
    fragments = list(dataset.get_fragments())
    kinds = {field.name: field.type for field in dataset.schema}
    files = [{field.name: field.type for field in fragment.physical_schema} for fragment in fragments]
    apart = frozenset(name for name, kind in kinds.items() if any(file.get(name, kind) != kind for file in files))
    texts = frozenset(name for name, kind in kinds.items() if _is_text(kind))
    fields = [field.with_type(arrow.binary()) if field.name in texts else field for field in dataset.schema]
    schema = arrow.schema(fields, dataset.schema.metadata)
    return type(dataset)(fragments, schema, dataset.format, dataset.filesystem), texts - apart, apart


def _is_text(kind: object) -> bool:
    return str(kind) in {"string", "large_string", "string_view"}


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


def tell_state(frame: Any) -> tuple[int | None, bool, Callable[[], str | None] | None]:
    """How many rows a frame has (None where one would have to read them), whether it is frozen, else its form.

    What may change in place (pandas, arrays) or outside (lazy frames, data sets) is not frozen.

    >>> tell_state({"x": [1, 2, 3], "y": [4, 5, 6]})[0]
    3
    """
    kind = type(frame)
    frozen = kind.__module__.split(".")[0] in {"polars", "pyarrow"} and kind.__name__ in {"DataFrame", "Table"}
    rows = next(iter(frame.values())) if isinstance(frame, dict) else frame
    return len(rows) if hasattr(rows, "__len__") else None, frozen, None if frozen else partial(_tell_columns, frame)


def _tell_columns(frame: Any) -> str | None:
    """The names and types of a pandas frame, which may change in place; None where single objects decide about them."""
    kind = type(frame)
    if kind.__module__.split(".")[0] != "pandas" or kind.__name__ != "DataFrame" or object_columns(frame):
        return None
    return repr([(str(name), str(dtype)) for name, dtype in zip(frame.columns, frame.dtypes, strict=True)])


def cast_to_text(name: str, columns: tuple[str, ...]) -> Node:
    """A registered table whose columns are texts, also where no row has a value."""
    texts = [alias(cast(column(title), Kind.TEXT), title) for title in columns]
    return exp.Subquery(this=select(texts, exp.Table(this=exp.Identifier(this=name, quoted=True))))
