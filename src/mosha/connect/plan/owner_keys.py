"""The foreign key in the place of the person: a plan whose owners are looked up by whoever reads its rows."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

from mosha.connect.language.expression import Column
from mosha.connect.language.schema import Type
from mosha.connect.plan.aggregation import Question
from mosha.connect.plan.person_steps import OwnerJoin, Pick
from mosha.connect.plan.relation import Compute, PublicJoin, Relation, Scan, Where
from mosha.core.errors import DataError

__all__ = ["OwnerKeys", "split_owners"]


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
    below = question.relation
    while isinstance(below, (Where, Compute, Pick, PublicJoin)):
        below = below.left if isinstance(below, PublicJoin) else below.parent
    if not isinstance(below, OwnerJoin) or below.several != "nobody" or not isinstance(below.left, Scan):
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
