"""A table where it lives, and the engine that answers questions about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlglot import exp

from mosha.connect.engines.asking import is_look
from mosha.connect.language.schema import Schema, Type
from mosha.connect.plan.aggregation import NearRanks, Norms, Question
from mosha.connect.plan.relation import Relation
from mosha.connect.plan.totals import Array, Totals, integers, object_array
from mosha.connect.sql.dialect import Dialect, Node
from mosha.connect.sql.listed_groups import FEW
from mosha.connect.sql.queries import queries, sql_of
from mosha.connect.sql.statement import Query
from mosha.core.errors import DataError
from mosha.core.fingerprint import Description, describe

__all__ = ["FRAME", "Engine", "Field", "Source", "answer", "engine_of", "explain"]


@dataclass(frozen=True)
class Field:
    """A column of a source: its public name and type, and how its raw form is read as that type.

    A `wild` REAL may be NaN, infinite or too large; a `loose` TEXT is read as a number or a date where one is needed;
    a `short` TEXT cannot be too long.
    """

    name: str
    type: Type
    read: Callable[[Node], Node] = lambda node: node
    wild: bool = False
    loose: bool = False
    short: bool = False


FRAME = "a frame"
"""What a frame is called: it has no name of its own."""


@dataclass(frozen=True, eq=False, repr=False)
class Source(ABC):
    """A table that an engine can read. `skipped` names columns whose type has no meaning here."""

    engine: Engine
    fields: tuple[Field, ...]
    skipped: tuple[str, ...] = ()

    @property
    def schema(self) -> Schema:
        loose = (field.name for field in self.fields if field.loose)
        return Schema({field.name: field.type for field in self.fields}, self.skipped, loose)

    @property
    def origin_name(self) -> str:
        """What tells this table from others, publicly: a file, the name of a table."""
        return FRAME

    def public_parts(self) -> Iterable[Description]:
        """What a fingerprint knows of a table: its public name and its columns."""
        return [self.origin_name, describe(self.schema)]

    def __repr__(self) -> str:
        """Public words alone: never the number of rows."""
        return f"{type(self).__name__}({self.origin_name}, {len(self.fields)} columns)"

    @abstractmethod
    def table(self, name: str) -> Node:
        """The table in a FROM clause, under the alias `name`."""


class Engine(ABC):
    """Where questions are answered. Only exact sums leave it: of groups, or of cells near some ranks of a group."""

    dialect: Dialect

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    def run(self, found: list[Query], question: Question) -> list[tuple[list[Array], list[Array]]]:
        """For each query its key columns and its sums, all from one state of the data."""

    def answer(self, question: Question) -> Totals:
        """The exact integers that answer a question."""
        found = queries(question, self.dialect)
        return assemble(question, found, self.run(found, question))

    def analyse(self, found: list[Query], question: Question) -> None:  # noqa: B027  (not every engine can)
        """Let the engine look at the statements, without reading a row; raises where it would not run one."""

    def look(self, question: Question) -> Totals:
        """What `answer` gives for a table without rows, after the engine has analysed what it would run."""
        found = queries(question, self.dialect)
        self.analyse(found, question)
        return assemble(question, found, [plain_columns([], question, query) for query in found])


def assemble(question: Question, found: list[Query], results: list[tuple[list[Array], list[Array]]]) -> Totals:
    """One table from the answers of all statements; that of cells near ranks has a row for each of them."""
    if isinstance(question, Norms):
        return _buckets(question, results[0])
    tables = []
    for query, (keys, sums) in zip(found, results, strict=True):
        tables.append(Totals(question.key_schema, tuple(keys), dict(zip(query.names, sums, strict=True))))
    if isinstance(question, NearRanks):
        return tables[0]
    if question.only is not None:
        tables = [table.align(question.only) for table in tables]
    elif len(tables) > 1:
        every = tuple(dict.fromkeys(key for table in tables for key, _ in table.rows()))
        tables = [table.align(every) for table in tables]
    merged = {name: column for table in tables for name, column in table.values.items()}
    names = [name for name, _ in getattr(question, "values", ())] or list(merged)
    total = tables[0]
    return Totals(total.schema, total.keys, {name: merged[name] for name in names})


def _buckets(question: Norms, result: tuple[list[Array], list[Array]]) -> Totals:
    (places,), (counts,) = result
    persons = [0] * (len(question.thresholds) + 1)
    for place, count in zip(places.tolist(), counts.tolist(), strict=True):
        persons[place] = count
    keys = object_array([*question.thresholds, None])
    return Totals(Schema({"norm": Type.INTEGER}), (keys,), {"persons": integers(persons)})


def plain_columns(rows: Sequence[Sequence[Any]], question: Question, query: Query) -> tuple[list[Array], list[Array]]:
    """Rows of an answer as key columns and sums; an engine's decimals become integers."""
    kinds = (Type.INTEGER,) if isinstance(question, Norms) else question.key_types
    columns = list(zip(*rows, strict=True)) if rows else [()] * (len(kinds) + len(query.names))
    keys = [_key_column(column, kind) for column, kind in zip(columns, kinds, strict=False)]
    sums = [integers([0 if item is None else int(item) for item in column]) for column in columns[len(kinds) :]]
    return keys, sums


def _key_column(column: Sequence[Any], kind: Type) -> Array:
    if kind.numeric and None not in column:
        return np.array(column, dtype=np.int64 if kind is Type.INTEGER else np.float64)
    return object_array(column)


def engine_of(relation: Relation) -> Engine:
    """The one engine that holds all tables of a relation."""
    engines = {id(source.engine): source.engine for source in relation.sources}
    if len(engines) > 1:
        raise DataError("connect.different_engines")
    return next(iter(engines.values()))


def answer(question: Question) -> Totals:
    """Ask the engine where the data live. The answer is exact: as private as the data."""
    engine = engine_of(question.relation)
    return engine.look(question) if is_look() else engine.answer(question)


def explain(question: Question) -> str:
    """The SQL that answers a question; many public keys are shown as a table of their own."""
    if question.only is not None and len(question.only) > FEW:
        question = question.list_values(
            lambda _, name: exp.alias_(exp.Table(this=exp.to_identifier("public_keys")), name)
        )
    return sql_of(question, engine_of(question.relation).dialect)
