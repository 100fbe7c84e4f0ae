"""Columns of which no two rows of a relation have the same values, as far as steps and declarations tell."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mosha.connect.plan.person_steps import OwnerJoin, Pick, Summary
from mosha.connect.plan.relation import Compute, Limit, PersonJoin, PublicJoin, Relation, Scan, Where

__all__ = ["KeyedScan", "has_one_row_each", "is_known_key"]


@dataclass(frozen=True, eq=False)
class KeyedScan(Scan):
    """A table whose primary key is declared: the columns of `key`. No row is read to see whether that is true."""

    key: tuple[str, ...] = ()


def has_one_row_each(relation: Relation) -> bool:
    """Whether every person has at most one row, if declared keys are what they are said to be.

    Nothing that is promised hangs on it: it chooses how many rows of one person are counted, a public number that is
    enforced as one that somebody declares is. With a key that repeats, more than one row of a person is cut.

    >>> from mosha.connect import private, source
    >>> people = source({"id": [1, 2], "born": [1990, 1985]})
    >>> has_one_row_each(private(people, person="id")), has_one_row_each(KeyedScan(people, "id", key=("id",)))
    (False, True)
    """
    return relation.person is not None and is_known_key(relation, {relation.person})


def is_known_key(relation: Relation, names: Collection[str]) -> bool:
    """Whether no two rows agree in all columns of `names`, if declared keys are what they are said to be.

    A join keeps a key of its left side where each row of it meets one row at most: the columns that are compared hold
    a key of the right side. A summary has one row for each value of its keys.
    """
    if isinstance(relation, PublicJoin | PersonJoin):
        cut = isinstance(relation, PublicJoin) and relation.at_most == 1
        met_once = cut or is_known_key(relation.right, {right for _, right in relation.on})
        return met_once and is_known_key(relation.left, set(names) & set(relation.left.schema))
    match relation:
        case KeyedScan():
            return bool(relation.key) and set(relation.key) <= set(names)
        case Summary():
            return set(relation.keys) <= set(names)
        case Where() | Limit():
            below: tuple[Relation, Collection[str]] = relation.parent, names
        case Compute():
            below = relation.parent, set(names) - {relation.name}
        case Pick():
            below = relation.parent, {old for new, old in relation.columns.items() if new in names}
        case OwnerJoin(several="nobody"):
            below = relation.left, set(names) - {relation.name}
        case _:
            return False
    return is_known_key(*below)
