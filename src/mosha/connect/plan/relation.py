"""The logical plan: tables on their way to a question, each step knowing its columns and its stability."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from mosha.connect.language.checking import check_step, join_types, type_of
from mosha.connect.language.expression import Column, Expression, as_expression
from mosha.connect.language.limits import check_limit, seeds
from mosha.connect.language.schema import Columned, Schema, Type
from mosha.connect.plan.source import Source
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.options import JoinName

__all__ = [
    "BoundedJoin",
    "Compute",
    "Limit",
    "PersonJoin",
    "PublicJoin",
    "Relation",
    "Scan",
    "Stability",
    "Where",
    "private",
    "public",
]


@dataclass(frozen=True)
class Stability:
    """How many rows of a relation change when the data change in one unit; None for any number.

    `per_row` is for one row of one private table, `per_person` for all rows of one person. Public tables never change.

    >>> Stability(per_row=1, per_person=None).times(2)
    Stability(per_row=2, per_person=None)
    """

    per_row: int | None
    per_person: int | None

    def times(self, factor: int) -> Stability:
        """As many rows, each of them `factor` times."""
        return Stability(*(None if n is None else n * factor for n in (self.per_row, self.per_person)))


class Relation(Columned):
    """Rows with a public schema. `person` names the column that says whose a row is, and is never redefined.

    Guarantee:
        While `person` is not None, a row with person p depends on p's own rows (and public tables) alone: steps that
        look at one row keep this, public joins add only public facts, joins of private tables keep it because they
        match equal persons. A join on anything else gives up `person` and bounds `stability` instead.

    >>> from mosha.connect import col, private, source
    >>> visits = private(source({"who": [1, 1, 2], "days": [3, 5, 2]}), person="who")
    >>> list(visits.where(col("days") > 2).compute(weeks=col("days") / 7).schema)
    ['who', 'days', 'weeks']
    """

    schema: Schema
    stability: Stability
    person: str | None
    sources: tuple[Source, ...]

    def where(self, predicate: Expression) -> Where:
        """The rows for which `predicate` is true (neither false nor NULL)."""
        return Where(self, predicate)

    def compute(self, columns: Mapping[str, object] | None = None, /, **named: object) -> Relation:
        """More `columns` (by name in a mapping, or `named`), each computed from those before it."""
        relation: Relation = self
        for name, expression in {**(columns or {}), **named}.items():
            relation = Compute(relation, name, as_expression(expression))
        return relation

    def join_public(
        self, other: Relation, on: str | Mapping[str, str], *, at_most: int | None = 1, how: JoinName = "inner"
    ) -> PublicJoin:
        """Rows beside at most `at_most` (None: all) rows of the public `other` that match `on`, `how` as in SQL."""
        return PublicJoin(self, other, _pairs(on), at_most, how)

    def join_person(
        self, other: Relation, *, also: Mapping[str, str] | None = None, how: JoinName = "inner"
    ) -> PersonJoin:
        """The rows of the same person in the private `other` (and equal in the columns of `also`), `how` as in SQL."""
        return PersonJoin(self, other, tuple((also or {}).items()), how)

    def join_bounded(
        self, other: Relation, on: str | Mapping[str, str], *, at_most: tuple[int, int], key: bytes
    ) -> BoundedJoin:
        """Other private joins: of each key of `on`, `at_most` rows here and in `other`, picked by a hash with `key`."""
        return BoundedJoin(self, other, _pairs(on), at_most, key)

    def limit_rows(self, rows: int, *, key: bytes) -> Limit:
        """At most so many `rows` of each person, picked by a hash with `key`."""
        return Limit(self, rows, key)


def _pairs(on: str | Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    if not on:
        raise InvalidParameter("connect.join_needs_columns", parameter="on")
    return ((on, on),) if isinstance(on, str) else tuple(on.items())


@dataclass(frozen=True, eq=False, repr=False)
class Scan(Relation):
    """A table as it is; `private=False` says that it is no secret."""

    source: Source
    person: str | None = None
    private: bool = True

    def __post_init__(self) -> None:
        if self.person is not None:
            kind = self.source.schema[self.person]
            if kind in {Type.REAL, Type.TIMESTAMP, Type.INSTANT}:  # which are read to 53 bits and to microseconds
                raise DataError("connect.person_type", column=self.person, kind=str(kind))
            object.__setattr__(self, "source", self.source.identify((self.person,)))

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        return self.source.schema

    @property
    def stability(self) -> Stability:  # type: ignore[override]
        return Stability(1, None) if self.private else Stability(0, 0)

    @property
    def sources(self) -> tuple[Source, ...]:  # type: ignore[override]
        return (self.source,)


class _Step(Relation):
    """A step over one relation."""

    parent: Relation

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        return self.parent.schema

    @property
    def stability(self) -> Stability:  # type: ignore[override]
        return self.parent.stability

    @property
    def person(self) -> str | None:  # type: ignore[override]
        return self.parent.person

    @property
    def sources(self) -> tuple[Source, ...]:  # type: ignore[override]
        return self.parent.sources


@dataclass(frozen=True, eq=False)
class Where(_Step):
    """The rows for which `predicate` is true."""

    parent: Relation
    predicate: Expression

    def __post_init__(self) -> None:
        check_step(self, self.parent)
        if type_of(self.predicate, self.parent.schema) is not Type.BOOLEAN:
            raise DataError("connect.where_needs_condition")


@dataclass(frozen=True, eq=False)
class Compute(_Step):
    """One more column, or another meaning for an old one."""

    parent: Relation
    name: str
    expression: Expression

    def __post_init__(self) -> None:
        check_step(self, self.parent)
        Column(self.name)
        if self.name == self.parent.person:
            raise DataError("connect.person_column_computed", column=self.name)
        type_of(self.expression, self.parent.schema)

    @cached_property
    def schema(self) -> Schema:  # type: ignore[override]
        parent = self.parent.schema
        return Schema({**parent, self.name: type_of(self.expression, parent)}, loose=parent.loose - {self.name})


@dataclass(frozen=True, eq=False)
class Limit(_Step):
    """At most `rows` rows of each person, by keyed hash of the whole row.

    Guarantee:
        Which rows stay is decided within one person's rows, so `person` is kept and at most `rows` rows change with a
        person. A row more or less of a person moves at most one other row in or out: per_row doubles.
    """

    parent: Relation
    rows: int
    key: bytes

    def __post_init__(self) -> None:
        check_step(self, self.parent)
        check_limit("rows", self.rows)
        seeds(self.key)
        if self.parent.person is None:
            raise DataError("connect.limit_needs_person")

    @property
    def stability(self) -> Stability:  # type: ignore[override]
        return Stability(self.parent.stability.times(2).per_row, self.rows)


class _Join(Relation):
    """Two relations side by side; columns that are joined under one name appear once."""

    left: Relation
    right: Relation
    on: tuple[tuple[str, str], ...]

    @property
    def sources(self) -> tuple[Source, ...]:  # type: ignore[override]
        return self.left.sources + self.right.sources

    @cached_property
    def right_columns(self) -> tuple[str, ...]:
        """The right side's columns that the join adds."""
        return tuple(name for name in self.right.schema if (name, name) not in self.on)

    @cached_property
    def schema(self) -> Schema:  # type: ignore[override]
        left, right = self.left.schema, self.right.schema
        added = {name: right[name] for name in self.right_columns}
        return Schema({**left, **added}, loose=left.loose | (right.loose & set(added)))

    def _check(self) -> None:
        check_step(self, self.left, self.right)
        for left, right in self.on:
            join_types([self.left.schema[left], self.right.schema[right]], "connect.where_join_on", column=left)
        both = sorted(set(self.left.schema) & set(self.right_columns))
        if both:
            raise DataError("connect.join_same_columns", columns=[repr(name) for name in both])


@dataclass(frozen=True, eq=False)
class PublicJoin(_Join):
    """A private relation beside a public one.

    Guarantee:
        The public side is cut to `at_most` rows for each key, in the type in which the join compares keys, by a rule
        that reads public rows alone: one private row becomes at most `at_most` rows (for how="left" at least one), all
        of the same person. With `at_most` None nothing is cut, and only bounding by person can follow.
    """

    left: Relation
    right: Relation
    on: tuple[tuple[str, str], ...]
    at_most: int | None = 1
    how: JoinName = "inner"

    def __post_init__(self) -> None:
        if self.at_most is not None:
            check_limit("at_most", self.at_most)
        if self.how not in {"inner", "left"}:
            raise InvalidParameter("connect.join_kind", parameter="how")
        if self.right.stability != Stability(0, 0):
            raise DataError("connect.join_private_right")
        self._check()

    @property
    def person(self) -> str | None:  # type: ignore[override]
        return self.left.person

    @property
    def stability(self) -> Stability:  # type: ignore[override]
        if self.at_most is None and self.left.stability != Stability(0, 0):
            return Stability(None, None)
        return self.left.stability.times(self.at_most or 1)


@dataclass(frozen=True, eq=False)
class PersonJoin(_Join):
    """Two private relations of the same persons.

    Guarantee:
        Rows meet only where their persons are equal, so all rows of person p in the result come from p's rows on
        both sides: at most their product.
    """

    left: Relation
    right: Relation
    also: tuple[tuple[str, str], ...] = ()
    how: JoinName = "inner"

    def __post_init__(self) -> None:
        if self.how not in {"inner", "left"}:
            raise InvalidParameter("connect.join_kind", parameter="how")
        if self.left.person is None or self.right.person is None:
            raise DataError("connect.join_needs_person")
        self._check()

    @property
    def on(self) -> tuple[tuple[str, str], ...]:  # type: ignore[override]
        assert self.left.person is not None
        assert self.right.person is not None
        return ((self.left.person, self.right.person), *self.also)

    @property
    def person(self) -> str | None:  # type: ignore[override]
        return self.left.person

    @property
    def stability(self) -> Stability:  # type: ignore[override]
        left, right = self.left.stability.per_person, self.right.stability.per_person
        return Stability(None, None if left is None or right is None else left * right)


@dataclass(frozen=True, eq=False)
class BoundedJoin(_Join):
    """Two private relations joined on any columns, each key cut to `at_most` = (left, right) rows by keyed hash.

    Guarantee:
        A row more on the left brings at most one row into the cut left side and pushes at most one out; each meets at
        most `at_most[1]` rows: 2 * at_most[1] rows change. The same holds on the right with `at_most[0]`. Changing L
        left and R right rows one after the other changes at most 2 * (at_most[1] * L + at_most[0] * R) rows, also
        when both sides read one table.
    """

    left: Relation
    right: Relation
    on: tuple[tuple[str, str], ...]
    at_most: tuple[int, int]
    key: bytes
    person: None = None

    def __post_init__(self) -> None:
        for limit in self.at_most:
            check_limit("at_most", limit)
        seeds(self.key)
        self._check()

    @property
    def stability(self) -> Stability:  # type: ignore[override]
        left, right = self.left.stability, self.right.stability
        return Stability(
            self._count_changed(left.per_row, right.per_row), self._count_changed(left.per_person, right.per_person)
        )

    def _count_changed(self, left: int | None, right: int | None) -> int | None:
        return None if left is None or right is None else 2 * (self.at_most[1] * left + self.at_most[0] * right)


def private(source: Source, *, person: str | None = None) -> Scan:
    """A private table at `source`; `person` names the column that says whose a row is (None: the unit is a row).

    >>> from mosha.connect import source
    >>> private(source({"who": [1, 2]}), person="who").stability
    Stability(per_row=1, per_person=None)
    """
    return Scan(source, person)


def public(source: Source) -> Scan:
    """A table at `source` that is no secret.

    >>> from mosha.connect import source
    >>> public(source({"ward": ["a", "b"]})).stability
    Stability(per_row=0, per_person=0)
    """
    return Scan(source, private=False)


def list_steps(relation: Relation) -> Iterator[Relation]:
    """A relation and everything beneath it."""
    yield relation
    for name in ("parent", "left", "right"):
        if hasattr(relation, name):
            yield from list_steps(getattr(relation, name))


def rebase(relation: Relation, data: Source) -> Relation:
    """The same plan over another private table."""
    if isinstance(relation, Scan):
        return replace(relation, source=data) if relation.private else relation
    beneath = [name for name in ("parent", "left", "right") if hasattr(relation, name)]
    return replace(relation, **{name: rebase(getattr(relation, name), data) for name in beneath})  # type: ignore[type-var]
