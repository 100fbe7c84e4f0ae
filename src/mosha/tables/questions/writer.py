"""Questions written as plain data (see `reader` for their form)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mosha.connect.language.expression import Column, Expression
from mosha.connect.language.plain_data import Plain, write_expression
from mosha.connect.plan.relation import Compute, PersonJoin, PublicJoin, Relation, Scan, Where
from mosha.core.errors import InvalidParameter
from mosha.tables.parts.additive import Aggregate, Count, CountPersons, Distinct, DistinctSum, Mean, Sum
from mosha.tables.parts.bounded_number import AUTOMATIC, Measured
from mosha.tables.parts.correlations import Correlation
from mosha.tables.parts.key_values import to_plain
from mosha.tables.parts.quantiles import Quantile
from mosha.tables.parts.spreads import Covariance, StandardDeviation
from mosha.tables.questions.reader import ALONE, FROM_DATA, VERSION, ProtectedTable

__all__ = ["write_question"]


def write_question(
    relation: Relation,
    *,
    by: Mapping[str, Expression],
    only: Sequence[tuple[object, ...]] | None,
    listed: Sequence[tuple[str, Sequence[object]]],
    aggregates: Mapping[str, Aggregate],
    weights: Mapping[str, float],
    top: int | None,
    tables: Mapping[str, ProtectedTable[object] | Relation] | None,
    sets: Sequence[Sequence[str]] = (),
) -> dict[str, Plain]:
    """The plain data that `read_question` reads as the same question."""
    data: dict[str, Plain] = {
        "question": "tables",
        "version": VERSION,
        **_write_rows(relation, _Names(relation, tables)),
    }
    if by:
        data["group_by"] = [_write_key(name, expression) for name, expression in by.items()]
        some: Plain = {name: to_plain(values) for name, values in listed} or FROM_DATA
        data["keys"] = some if only is None else [to_plain(row) for row in only]
    data["aggregates"] = [{"name": name, **_write_aggregate(asked)} for name, asked in aggregates.items()]
    if weights:
        data["weights"] = dict(sorted(weights.items()))
    if top is not None:
        data["top"] = top
    if sets:
        data["sets"] = [list(kept) for kept in sets]
    return data


class _Names:
    """What the tables of a plan are called: as they were given, or numbered from left to right."""

    def __init__(self, relation: Relation, tables: Mapping[str, ProtectedTable[object] | Relation] | None) -> None:
        if tables is None:
            scans = dict.fromkeys(_list_scans(relation))
            self._names = {scan: ALONE if not i else f"{ALONE}_{i + 1}" for i, scan in enumerate(scans)}
        else:
            relations = {
                name: table if isinstance(table, Relation) else table.relation for name, table in tables.items()
            }
            self._names = {below: name for name, below in relations.items()}

    def find(self, relation: Relation) -> str | None:
        return self._names.get(relation)


def _list_scans(relation: Relation) -> list[Relation]:
    below = [getattr(relation, name) for name in ("parent", "left", "right") if hasattr(relation, name)]
    return [scan for part in below for scan in _list_scans(part)] if below else [relation]


def _write_rows(relation: Relation, names: _Names) -> dict[str, Plain]:
    """The table that a plan begins with, and the steps over it."""
    steps: list[Plain] = []
    while (name := names.find(relation)) is None:
        if isinstance(relation, Where):
            steps.append({"where": write_expression(relation.predicate)})
            relation = relation.parent
        elif isinstance(relation, Compute):
            steps.append({"compute": relation.name, "as": write_expression(relation.expression)})
            relation = relation.parent
        elif isinstance(relation, PublicJoin):
            on: list[Plain] = [list(pair) for pair in relation.on]
            right = _write_rows(relation.right, names)
            steps.append({"join_public": right, "on": on, "at_most": relation.at_most, "how": relation.how})
            relation = relation.left
        elif isinstance(relation, PersonJoin):
            also: list[Plain] = [list(pair) for pair in relation.also]
            steps.append({"join": _write_rows(relation.right, names), "also": also, "how": relation.how})
            relation = relation.left
        elif isinstance(relation, Scan):
            raise InvalidParameter("tables.table_not_given", parameter="tables")
        else:
            raise InvalidParameter("tables.no_json_form", step=type(relation).__name__)
    return {"table": name, "steps": steps[::-1]}


def _write_key(name: str, expression: Expression) -> Plain:
    if isinstance(expression, Column) and expression.name == name:
        return name
    return {"name": name, "of": write_expression(expression)}


def _write_column(of: Expression, *, by_name: bool = True) -> Plain:
    if isinstance(of, Column) and by_name:
        return of.name
    written = write_expression(of)
    return {"value": written} if isinstance(written, str) else written


def _write_aggregate(asked: Aggregate) -> dict[str, Plain]:
    write = _WRITERS.get(type(asked))
    if write is None:
        raise InvalidParameter("tables.no_json_form", step=type(asked).__name__)
    return write(asked)


def _write_count(asked: Count) -> dict[str, Plain]:
    return {"kind": "count"} | ({} if asked.of is None else {"column": _write_column(asked.of)})


def _write_covariance(asked: Covariance) -> dict[str, Plain]:
    return _write_measured("variance", asked.first) if asked.given is None else _write_pair("covariance", asked)


def _write_quantile(asked: Quantile) -> dict[str, Plain]:
    bars = "values" if asked.in_values else "rows"
    return _write_measured("quantile", asked.measured) | {"at": float(asked.at), "bars": bars}


def _write_measured(kind: str, measured: Measured) -> dict[str, Plain]:
    named = isinstance(measured.of, Column) and measured.name == f"{kind}({measured.of.name!r})"
    between: Plain = AUTOMATIC if measured.bounds is None else list(measured.bounds)
    return {"kind": kind, "column": _write_column(measured.of, by_name=named), "between": between}


def _write_pair(kind: str, asked: Covariance) -> dict[str, Plain]:
    first, second = (_write_measured(kind, measured) for measured in (asked.first, asked.second))
    return {
        "kind": kind, "columns": [first["column"], second["column"]], "between": [first["between"], second["between"]],
    }  # fmt: skip


_WRITERS: dict[type[Aggregate], Callable[[Any], dict[str, Plain]]] = {
    Count: _write_count,
    CountPersons: lambda _: {"kind": "persons"},
    Distinct: lambda asked: {"kind": "distinct", "column": _write_column(asked.of)},
    DistinctSum: lambda asked: _write_measured("distinct_sum", asked.measured),
    Sum: lambda asked: _write_measured("sum", asked.measured),
    Mean: lambda asked: _write_measured("mean", asked.measured),
    Covariance: _write_covariance,
    StandardDeviation: lambda asked: _write_measured("variance", asked.variance.first) | {"kind": "standard_deviation"},
    Correlation: lambda asked: _write_pair("correlation", asked.parts[0]),
    Quantile: _write_quantile,
}
