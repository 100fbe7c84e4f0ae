"""Columns of a table picked, left out and renamed, and the names of two sides of a join kept apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mosha.connect.plan.person_steps import Pick
from mosha.connect.plan.relation import Relation
from mosha.core.errors import DataError
from mosha.tables.declaration import Declaration

__all__ = ["add_suffix", "drop_columns", "rename_columns", "rename_declared", "select_columns"]


def select_columns(relation: Relation, names: Iterable[str]) -> Relation:
    """Some columns alone; the one that says whose a row is always stays."""
    chosen = dict.fromkeys(names)
    for name in chosen:
        relation.schema[name]
    person = [relation.person] if relation.person is not None and relation.person not in chosen else []
    return Pick(relation, {name: name for name in [*person, *chosen]})


def drop_columns(relation: Relation, names: Iterable[str]) -> Relation:
    """All columns but some."""
    gone = dict.fromkeys(names)
    for name in gone:
        relation.schema[name]
    return Pick(relation, {name: name for name in relation.schema if name not in gone})


def rename_columns(relation: Relation, names: Mapping[str, str]) -> Relation:
    """The same columns, some under another name: {old: new}."""
    for old in names:
        relation.schema[old]
    if relation.person in names:
        raise DataError("connect.person_renamed", column=str(relation.person), spent="nothing")
    new = [names.get(name, name) for name in relation.schema]
    if len(set(new)) < len(new):
        twice = sorted({name for name in new if new.count(name) > 1})
        raise DataError("connect.rename_same_name", columns=twice, spent="nothing")
    return Pick(relation, {names.get(name, name): name for name in relation.schema})


def add_suffix(left: Relation, right: Relation, joined: Iterable[str], suffix: str | None) -> Relation:
    """The right side, with `suffix` behind those of its names that the left side has too (but for what is joined)."""
    if suffix is None:
        return right
    both = set(left.schema) & set(right.schema) - set(joined) - {right.person}
    return rename_columns(right, {name: f"{name}{suffix}" for name in sorted(both)}) if both else right


def rename_declared(declared: Declaration, names: Mapping[str, str], kept: Iterable[str]) -> Declaration:
    """What is declared of columns, under their new names; of columns that are gone nothing."""
    there = set(kept)

    def move(said: Mapping[str, object]) -> dict[str, object]:
        return {names.get(name, name): value for name, value in said.items() if names.get(name, name) in there}

    return Declaration(declared.unit, move(declared.types), move(declared.ranges), move(declared.keys))  # type: ignore[arg-type]
