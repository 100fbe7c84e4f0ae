"""Expressions on synthetic rows: the engine computes them as it would on real ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mosha.connect import Aggregation, Rows, Unbounded, answer, col, private, source
from mosha.connect.language.expression import Expression
from mosha.connect.language.schema import Type
from mosha.core.language import phrase
from mosha.core.names.extras import load_guest
from mosha.synth.measuring.columns import CodedColumn

__all__ = ["arrow_table", "evaluate"]

ROW = "mosha_row"
_ARROW = {
    Type.INTEGER: "int64", Type.REAL: "float64", Type.BOOLEAN: "bool", Type.TEXT: "string", Type.DATE: "date32",
    Type.TIMESTAMP: "timestamp[us]", Type.INSTANT: "timestamp[us, tz=UTC]",
}  # fmt: skip


def arrow_table(found: Mapping[str, object], columns: Sequence[CodedColumn]) -> Any:
    """Rows as an Arrow table with the types of the private one."""
    arrow = load_guest("pyarrow", extra="arrow", needed_for=phrase("synth.expressions"))
    kinds = {column.name: column.kind for column in columns}

    def array(name: str, values: Any) -> Any:
        values = list(values)
        if name not in kinds:
            return arrow.array(values)
        if kinds[name] in {Type.TIMESTAMP, Type.INSTANT}:
            zone = "UTC" if kinds[name] is Type.INSTANT else None
            return arrow.array(values, arrow.timestamp("us", tz=zone))
        return arrow.array(values, _ARROW[kinds[name]])

    return arrow.table({name: array(name, values) for name, values in found.items()})


def evaluate(expression: Expression, found: Mapping[str, object], columns: Sequence[CodedColumn]) -> Any:
    """The value of an expression in every row."""
    arrow = load_guest("pyarrow", extra="arrow", needed_for=phrase("synth.expressions"))
    rows = arrow_table(found, columns)
    rows = rows.append_column(ROW, arrow.array(range(rows.num_rows), "int64"))
    question = Aggregation(
        private(source(rows)), ((ROW, col(ROW)), ("value", expression)), (("rows", Rows()),), bound=Unbounded()
    )
    totals = answer(question)
    values = np.empty(rows.num_rows, object)
    values[np.asarray(totals.keys[0], np.int64)] = totals.keys[1].tolist()
    return values
