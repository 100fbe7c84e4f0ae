"""Steps over whole sets of rows that keep whose a row is: owners through a key, summaries, unions, picked columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

from mosha.connect.language.checking import check_step, join_types, type_of
from mosha.connect.language.expression import Column, Expression
from mosha.connect.language.schema import Schema, Type
from mosha.connect.plan.relation import Relation, Stability
from mosha.connect.plan.source import Source
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.language import phrase

__all__ = ["NOT_CHANGED", "OwnerJoin", "Pick", "SeveralOwners", "Summary", "SummaryColumn", "SummaryKind", "Union"]

SeveralOwners = Literal["nobody", "each"]
"""Whose a row is that several people own: nobody's (it counts nowhere), or each one's (it counts for each)."""

SummaryKind = Literal["count", "distinct", "sum", "mean", "least", "greatest"]

NOT_CHANGED = Stability(0, 0)
"""The stability of public rows: nobody changes them."""


@dataclass(frozen=True, eq=False)
class OwnerJoin(Relation):
    """The rows of a table that does not name the person, beside the person who owns the row that they refer to.

    `on` pairs columns of `left` with the key of `right`; `name` is what the person's column is called afterwards. The
    key is not believed to be unique: a key that rows of several people share is treated as `several` says.

    Guarantee:
        `paths.md`: all rows of person p come from rows that hang on p.
    """

    left: Relation
    right: Relation
    on: tuple[tuple[str, str], ...]
    name: str
    several: SeveralOwners = "nobody"

    def __post_init__(self) -> None:
        check_step(self, self.left, self.right)
        if self.right.person is None or self.left.person is not None or self.left.stability == NOT_CHANGED:
            raise DataError("connect.owner_needs_person")
        if self.several not in get_args(SeveralOwners):
            raise InvalidParameter("connect.several_owners", parameter="several", options=list(get_args(SeveralOwners)))
        if not self.on:
            raise InvalidParameter("connect.join_needs_columns", parameter="on")
        for left, right in self.on:
            kinds = self.left.schema[left], self.right.schema[right]
            if kinds[0] is not kinds[1] or kinds[0] is Type.REAL:  # a coarser equality would give a row two owners
                raise DataError("connect.owner_key_type", left=left, right=right, kinds=[str(kind) for kind in kinds])
        if self.name in self.left.schema:
            raise DataError("connect.join_same_columns", columns=[repr(self.name)])
        if self.right.schema[self.right.person] is Type.BOOLEAN:
            raise DataError("connect.person_type", column=self.right.person, kind=str(Type.BOOLEAN))

    @property
    def person(self) -> str:  # type: ignore[override]
        return self.name

    @cached_property
    def schema(self) -> Schema:  # type: ignore[override]
        left = self.left.schema
        assert self.right.person is not None
        return Schema({**left, self.name: self.right.schema[self.right.person]}, loose=left.loose)

    @property
    def stability(self) -> Stability:  # type: ignore[override]
        return Stability(None, None)

    @property
    def sources(self) -> tuple[Source, ...]:  # type: ignore[override]
        return self.left.sources + self.right.sources


@dataclass(frozen=True, eq=False)
class Pick(Relation):
    """Some columns of a relation, each under a name of its own: {new name: old name}. The person stays."""

    parent: Relation
    columns: Mapping[str, str]

    def __post_init__(self) -> None:
        check_step(self, self.parent)
        for new, old in self.columns.items():
            Column(new)
            self.parent.schema[old]
        if self.parent.person is not None and self.parent.person not in self.columns.values():
            raise DataError("connect.person_dropped", column=self.parent.person)

    @cached_property
    def person(self) -> str | None:  # type: ignore[override]
        return next((new for new, old in self.columns.items() if old == self.parent.person), None)

    @cached_property
    def schema(self) -> Schema:  # type: ignore[override]
        below = self.parent.schema
        loose = (new for new, old in self.columns.items() if old in below.loose)
        return Schema({new: below[old] for new, old in self.columns.items()}, loose=loose)

    @property
    def stability(self) -> Stability:  # type: ignore[override]
        return self.parent.stability

    @property
    def sources(self) -> tuple[Source, ...]:  # type: ignore[override]
        return self.parent.sources


@dataclass(frozen=True)
class SummaryColumn:
    """What is said of each group of a summary: `of` is None for a count of rows."""

    kind: SummaryKind
    of: Expression | None = None

    def find_type(self, schema: Schema) -> Type:
        """The type of the result; refused where the engines would not agree about it."""
        if self.kind not in get_args(SummaryKind) or (self.of is None and self.kind != "count"):
            raise InvalidParameter("connect.summary_kind", parameter="kind", options=list(get_args(SummaryKind)))
        kind = Type.INTEGER if self.of is None else type_of(self.of, schema)
        if self.kind in {"count", "distinct"}:
            return Type.INTEGER
        if self.kind in {"least", "greatest"}:
            if kind is Type.BOOLEAN:
                raise DataError("connect.booleans_have_no_order")
            return kind
        if not kind.numeric:
            raise DataError(
                "connect.operator_needs", operator=self.kind, what=phrase("connect.numbers"), kind=str(kind)
            )
        return Type.REAL if self.kind == "mean" else kind


@dataclass(frozen=True, eq=False)
class Summary(Relation):
    """One row for each group of `keys`, among which the person is, with exact counts, sums and extremes of its rows.

    Guarantee:
        The person is a key, so a group holds rows of one person and its summary depends on that person's rows alone.
        Sums are exact: reals are rounded to multiples of 2**-20 within ±2**30 first, so no order of rows can show. A
        summary of a public relation is public.
    """

    parent: Relation
    keys: tuple[str, ...]
    columns: Mapping[str, SummaryColumn] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_step(self, self.parent)
        if self.parent.stability != NOT_CHANGED and (self.parent.person is None or self.parent.person not in self.keys):
            raise DataError("connect.summary_needs_person")
        for name, asked in self.columns.items():
            Column(name)
            if name in self.keys:
                raise DataError("connect.join_same_columns", columns=[repr(name)])
            asked.find_type(self.parent.schema)

    @cached_property
    def schema(self) -> Schema:  # type: ignore[override]
        below = self.parent.schema
        found = {name: asked.find_type(below) for name, asked in self.columns.items()}
        return Schema({**{name: below[name] for name in self.keys}, **found}, loose=below.loose & set(self.keys))

    @property
    def person(self) -> str | None:  # type: ignore[override]
        return self.parent.person

    @property
    def stability(self) -> Stability:  # type: ignore[override]
        below = self.parent.stability
        return below if below == NOT_CHANGED else Stability(None, below.per_person)

    @property
    def sources(self) -> tuple[Source, ...]:  # type: ignore[override]
        return self.parent.sources


@dataclass(frozen=True, eq=False)
class Union(Relation):
    """The rows of two relations with the same columns, one after the other; equal rows stay apart.

    Guarantee:
        A row of the result is a row of one side and belongs to the same person as there. A row or a person that changes
        both sides changes the sum of what it changes in each.
    """

    left: Relation
    right: Relation

    def __post_init__(self) -> None:
        check_step(self, self.left, self.right)
        if self.left.person != self.right.person or list(self.left.schema) != list(self.right.schema):
            raise DataError("connect.union_of_different_columns")
        public = [side.stability == NOT_CHANGED for side in (self.left, self.right)]
        if public[0] != public[1]:
            raise DataError("connect.union_of_different_columns")
        for name in self.left.schema:
            join_types([self.left.schema[name], self.right.schema[name]], "connect.where_union_column", column=name)

    @cached_property
    def schema(self) -> Schema:  # type: ignore[override]
        left, right = self.left.schema, self.right.schema
        return Schema({name: join_types([left[name], right[name]], "connect.where_union") for name in left})

    @property
    def person(self) -> str | None:  # type: ignore[override]
        return self.left.person

    @property
    def stability(self) -> Stability:  # type: ignore[override]
        pairs = [
            (getattr(self.left.stability, name), getattr(self.right.stability, name))
            for name in ("per_row", "per_person")
        ]
        return Stability(*(None if None in pair else sum(pair) for pair in pairs))

    @property
    def sources(self) -> tuple[Source, ...]:  # type: ignore[override]
        return self.left.sources + self.right.sources
