"""What a query knows while its tables are put together: rows, the names of their columns, and whose they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from sqlglot import exp

from mosha.connect.language.expression import Expression
from mosha.connect.language.schema import Schema
from mosha.connect.plan.person_steps import Pick
from mosha.connect.plan.relation import Relation
from mosha.core.errors import DataError
from mosha.tables.declaration import Declaration
from mosha.tables.links import Links
from mosha.tables.sql.scalar import Refused, name_of
from mosha.tables.table import Table

__all__ = ["PERSON", "Piece", "Scope", "check_new", "find_place", "normalize_columns"]

Names = Mapping[str, Mapping[str, str]]
PERSON = "the person"
"""The key that the person's own column holds (see `Links.implied`)."""


@dataclass(frozen=True, eq=False)
class Scope:
    """Rows and the names that a query knows their columns by: {alias: {column: name in the plan}}.

    Fields:
        base: a protected table among those behind the rows, with their unit and account; None for public rows.
        declared: what is known of the columns, by their names in the plan.
        implied: columns that imply the person (`Links`), by their names in the plan.
        persons: columns that hold the person in every row.
        said: the ranges of computed values that a condition says, by how the plan writes the value.
        own: columns of USING that an outer table has for itself, missing where it has no row: f.id, where id alone is
            that of the rows that lead.
    """

    relation: Relation
    names: Names
    base: Table | None
    declared: Declaration = field(default_factory=Declaration)
    implied: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    persons: frozenset[str] = frozenset()
    said: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    own: Names = field(default_factory=dict)

    @property
    def names_behind_aliases(self) -> Names:
        """The columns of each table, as they are named behind its alias."""
        return {
            **self.names,
            **{alias: {**self.names[alias], **columns} for alias, columns in self.own.items() if alias in self.names},
        }

    @property
    def schema(self) -> Schema:
        """The types of the columns, by their names in the plan."""
        return self.relation.schema

    @property
    def table(self) -> Table:
        """The rows as a protected table."""
        assert self.base is not None
        return replace(self.base, relation=self.relation, declared=self.declared, links=Links())

    def __call__(self, node: exp.Column) -> str:
        """The name in the plan; unquoted names are found whatever their case."""
        wanted = node.name
        places = [find_place(node, self.names_behind_aliases)] if node.table else list(self.names.values())
        exact = {columns[wanted] for columns in places if wanted in columns}
        if not exact and not getattr(node.this, "quoted", False):
            folded = wanted.lower()
            exact = {plan for columns in places for name, plan in columns.items() if name.lower() == folded}
        if len(exact) == 1:
            return exact.pop()
        if exact:
            raise DataError("tables.sql_column_ambiguous", column=wanted)
        known = [repr(name) for columns in places for name in columns]
        if close := get_close_matches(repr(wanted), known, n=2, cutoff=0.7):
            raise DataError("connect.misspelled_column", column=wanted, close=close, columns=known)
        raise DataError("connect.no_column", column=wanted, columns=known)

    def find(self, node: exp.Column) -> str | None:
        """The name in the plan, or None where there is no such column, or more than one."""
        try:
            return self(node)
        except (DataError, Refused):
            return None

    def where(self, predicate: Expression) -> Scope:
        return replace(self, relation=self.relation.where(predicate))

    def compute(self, columns: Mapping[str, Expression]) -> Scope:
        """More columns, under names that the plan does not have yet."""
        return replace(self, relation=self.relation.compute(columns)) if columns else self

    def under(self, alias: str) -> Scope:
        """The same rows as one table of that name."""
        names = {alias: dict(pair for part in self.names.values() for pair in part.items())}
        return replace(self, names=names, own={})

    def visible(self) -> dict[str, str]:
        """What * stands for: each column once."""
        found: dict[str, str] = {}
        for columns in self.names.values():
            for name, plan in columns.items():
                if found.setdefault(name, plan) != plan:
                    raise Refused("tables.sql_star_ambiguous", column=name, spent="nothing")
        return found

    def rename(self, taken: Iterable[str], alias: str) -> Scope:
        """The same rows, their columns under names that are not among those taken; what no query names is dropped."""
        used = set(taken)
        seen = {plan for place in (self.names, self.own) for columns in place.values() for plan in columns.values()}
        seen |= {name for names in self.implied for name in names} | set(self.persons)
        seen |= {self.relation.person} if self.relation.person is not None else set()
        new: dict[str, str] = {}
        for name in self.schema:
            if name in seen:
                new[name] = _find_free(name, alias, used | set(new.values()))
        names, own = (
            {place: {c: new[plan] for c, plan in columns.items()} for place, columns in known.items()}
            for known in (self.names, self.own)
        )
        return replace(
            self,
            relation=Pick(self.relation, {fresh: old for old, fresh in new.items()}),
            names=names,
            declared=self.declared.rename(new),
            implied={tuple(new[name] for name in key): tag for key, tag in self.implied.items()},
            persons=frozenset(new[name] for name in self.persons),
            said={},
            own=own,
        )

    def implies(self, columns: Iterable[str]) -> set[str]:
        """The keys whose columns are all among these."""
        there = set(columns)
        return {tag for key, tag in self.implied.items() if there.issuperset(key)}


def _find_free(name: str, alias: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    found, number = f"{alias}.{name}", 1
    while found in taken:
        number += 1
        found = f"{alias}.{name}.{number}"
    return found


def find_place(node: exp.Column, names: Names) -> Mapping[str, str]:
    """The columns of the table that a column names, by its alias or by its schema and its name."""
    said = ".".join(
        part.name for part in (node.args.get("catalog"), node.args.get("db"), node.args.get("table")) if part
    )
    for name, columns in names.items():
        if name.lower() == said.lower():
            return columns
    if node.args.get("db"):  # the table's own name, where the query gave it no other
        for name, columns in names.items():
            if name.lower() == node.table.lower():
                return columns
        raise Refused("tables.sql_column_name", text=name_of(node))
    for name, columns in names.items():
        if name.lower().rpartition(".")[2] == said.lower():
            return columns
    raise DataError("tables.sql_no_alias", table=node.table)


def check_new(name: str, taken: Iterable[str], code: str) -> None:
    """Refuse a name that is taken, whatever the case of its letters: it would mean the one or the other."""
    if name.lower() in {other.lower() for other in taken}:
        raise Refused(code, name=name, spent="nothing")


def normalize_columns(select: exp.Select, scope: Scope) -> None:
    """Write every column of items, GROUP BY, HAVING and ORDER BY in one way: equal ones have equal texts."""
    shown = [*select.expressions, *(select.args.get(part) for part in ("group", "having", "order"))]
    spelled: dict[str, exp.Column] = {}
    for node in [column for part in shown if part is not None for column in part.find_all(exp.Column)]:
        if isinstance(node.this, exp.Star) or (plan := scope.find(node)) is None:
            continue
        if plan not in spelled:
            alone = exp.Column(this=node.this.copy())
            spelled[plan] = alone if scope.find(alone) == plan else node.copy()
        if node != spelled[plan]:
            node.replace(spelled[plan].copy())


@dataclass(frozen=True, eq=False)
class Piece:
    """One table of FROM: what it is called, its rows, and the conditions of its own where it is an outer one.

    With `several` it stands for two tables, whose columns keep their aliases.
    """

    alias: str
    scope: Scope
    outer: bool = False
    on: tuple[exp.Expression, ...] = ()
    using: tuple[str, ...] = ()
    text: str = ""
    cross: bool = False
    several: bool = False

    def name_scope(self) -> Piece:
        """The piece whose columns are those of its alias, unless it stands for several tables."""
        return self if self.several else replace(self, scope=self.scope.under(self.alias))
