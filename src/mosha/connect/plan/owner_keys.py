"""The foreign key in the place of the person: plans whose owners are looked up by whoever reads their rows."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

from mosha.connect.language.expression import Column
from mosha.connect.language.schema import Type
from mosha.connect.plan.aggregation import Question
from mosha.connect.plan.person_steps import OwnerJoin, Pick
from mosha.connect.plan.relation import Compute, Limit, PersonJoin, PublicJoin, Relation, Scan, Where
from mosha.core.errors import DataError

__all__ = ["KeyJoin", "OwnerKeys", "find_key_join", "split_owners"]


@dataclass(frozen=True)
class OwnerKeys:
    """`question` has a foreign key in the place of the person; `owners` lists whose each value of that key is.

    Guarantee:
        `paths.md`, *Looked up*: the rows of `question`, each given to the one owner that `owners` has for its key and
        dropped where there is none or more than one, are the rows of the question that was split.
    """

    question: Question
    owners: Question


def split_owners(question: Question) -> OwnerKeys | None:
    """The question in two parts, where its rows pass one by one from an owner join on a single whole number."""
    below = _find_owner_join(question.relation)
    if below is None:
        return None
    [(key, target), *more] = below.on
    if more or below.left.schema[key] is not Type.INTEGER:
        return None
    changed = copy.copy(question)
    try:
        object.__setattr__(changed, "relation", _put_key(question.relation, below, key))
        changed.__post_init__()
    except DataError:  # a step or a value reads the person, or calls another column like the key
        return None
    return OwnerKeys(changed, Question(below.right, ((target, Column(target)),)))


@dataclass(frozen=True)
class KeyJoin:
    """A join of persons as a join of keys: `owned` without its owners beside `named`, which has the person.

    Guarantee:
        `paths.md`, *Joined once*: where no key repeats in `table`, the rows are those of the join of persons.
    """

    table: Scan
    keys: tuple[str, ...]
    owned: Relation
    named: Relation
    owned_left: bool


def find_key_join(relation: PersonJoin) -> KeyJoin | None:
    """How a join can do without owners: it compares a foreign key with the very rows that say whose it is."""
    for owned_left in (True, False):
        owned, named = (relation.left, relation.right) if owned_left else (relation.right, relation.left)
        join = _find_owner_join(owned)
        if join is None or relation.how != "inner" or not isinstance(join.right, Scan):
            continue
        pairs = [pair if owned_left else pair[::-1] for pair in relation.also]
        found = [(_trace(owned, a), _trace(named, b)) for a, b in pairs]
        if any(((join.left, key), (join.right, target)) not in found for key, target in join.on):
            continue
        try:
            apart = _put_key(owned, join, join.on[0][0])
        except DataError:  # a step reads the person
            continue
        if all(name in apart.schema for name, _ in pairs):
            return KeyJoin(join.right, tuple(target for _, target in join.on), apart, named, owned_left)
    return None


def _find_owner_join(relation: Relation) -> OwnerJoin | None:
    """The owner join of a table as it is, from which rows pass one by one."""
    while isinstance(relation, (Where, Compute, Pick, PublicJoin)):
        relation = relation.left if isinstance(relation, PublicJoin) else relation.parent
    plain = isinstance(relation, OwnerJoin) and relation.several == "nobody" and isinstance(relation.left, Scan)
    return relation if isinstance(relation, OwnerJoin) and plain else None


def _trace(relation: Relation, name: str) -> tuple[Scan, str] | None:
    """The table that a column comes from as it is, whose rows have the same person (or none, beside owners)."""
    while not isinstance(relation, Scan):
        if isinstance(relation, Pick):
            name, relation = relation.columns[name], relation.parent
        elif isinstance(relation, (Where, Limit)) or (isinstance(relation, Compute) and relation.name != name):
            relation = relation.parent
        elif isinstance(relation, (PublicJoin, PersonJoin, OwnerJoin)) and name in relation.left.schema:
            relation = relation.left
        elif isinstance(relation, PersonJoin) and relation.how == "inner":
            relation = relation.right
        else:
            return None
    return relation, name


def _put_key(relation: Relation, join: OwnerJoin, key: str) -> Relation:
    """The same steps over the left side of the join alone, whose rows are those of a key and not of a person."""
    if isinstance(relation, OwnerJoin):
        assert isinstance(relation.left, Scan)
        return replace(relation.left, person=key)
    if isinstance(relation, PublicJoin):
        return replace(relation, left=_put_key(relation.left, join, key))
    assert isinstance(relation, (Where, Compute, Pick))
    below = _put_key(relation.parent, join, key)
    if not isinstance(relation, Pick):
        return replace(relation, parent=below)
    assert below.person is not None
    columns = {new: old for new, old in relation.columns.items() if old != relation.parent.person}
    if below.person not in columns.values():
        columns[relation.person or join.name] = below.person
    return Pick(below, columns)
