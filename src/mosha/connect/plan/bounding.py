"""How much one person may contribute: rules that read that person's rows alone.

Where keys are declared, nothing has to be cut: which columns no two rows of a relation share follows from its steps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from mosha.connect.language.limits import check_limit, seeds
from mosha.connect.plan.person_steps import OwnerJoin, Pick, Summary
from mosha.connect.plan.relation import Compute, Limit, PersonJoin, PublicJoin, Relation, Scan, Where
from mosha.core.errors import InvalidParameter
from mosha.core.number import positive_integer

__all__ = ["Bound", "KeyedScan", "NormBound", "Truncate", "Unbounded", "has_one_row_each", "is_known_key"]


class Bound:
    """The root of all bounding rules.

    >>> issubclass(Truncate, Bound), issubclass(NormBound, Bound)
    (True, True)
    """


@dataclass(frozen=True)
class Unbounded(Bound):
    """Every row counts in full: for the unit Row, and for relations whose stability is finite.

    >>> Unbounded()
    Unbounded()
    """


@dataclass(frozen=True)
class Truncate(Bound):
    """Keep at most `groups` groups of a person, `per_group` rows in each, `rows` rows in all, in this order.

    What stays is decided by a hash under `key`, fresh for each release: groups by the hash of (person, keys), rows by
    the hash of (person, keys, values); equal hashes are told apart by the hashed columns themselves, and rows that
    are equal in all of them contribute the same. So the outcome is a function of the key and the person's own rows.

    >>> Truncate(bytes(16), rows=5, groups=2).rows
    5
    """

    key: bytes
    rows: int | None = None
    groups: int | None = None
    per_group: int | None = None

    def __post_init__(self) -> None:
        seeds(self.key)
        for name in ("rows", "groups", "per_group"):
            if getattr(self, name) is not None:
                check_limit(name, getattr(self, name))


@dataclass(frozen=True)
class NormBound(Bound):
    """Scale each person's whole vector of contributions down to a norm of at most `limits`, in integers.

    `limits` maps a value's name to its limit B in units of the value, or a tuple of names to the limit of the first:
    the others (the followers) are scaled by the weight of the first. `fraction` = f refines the result: it comes in
    units of 2**-f of the value's unit, so that a scaled-down count keeps its fraction. The proof is in `bounding.md`.

    order=1: T = the sum of |v| over the person's rows; a row with v counts as v * B * 2**f // T (towards zero) when
             T > B, else as v * 2**f. For `Persons`, v is 1 for each group and T the number of groups.
    order=2: v is the sum over the person's rows in a group, moved into ±2**43; N is the sum of v**2 over groups, S the
             least integer with S**2 >= N; a group counts as v * B * 2**f // S (towards zero) when N > B**2, else as
             v * 2**f. From N = 2**102 on the person is left out.

    >>> NormBound(1, {("days", "stays"): 30}).leaders()
    {'days': ('days', 30), 'stays': ('days', 30)}
    """

    order: int
    limits: Mapping[str | tuple[str, ...], int]
    fraction: int = 0

    def __post_init__(self) -> None:
        if self.order not in {1, 2}:
            raise InvalidParameter("connect.norm_bound_order", parameter="order")
        if isinstance(self.fraction, bool) or not isinstance(self.fraction, int) or not 0 <= self.fraction <= 32:
            raise InvalidParameter("connect.norm_fraction", parameter="fraction")
        for limit in self.limits.values():
            if positive_integer("a limit", limit) << self.fraction >= 2**52:
                raise InvalidParameter("connect.norm_too_large")

    def leaders(self) -> dict[str, tuple[str, int]]:
        """For each value, the value whose norm decides its weight, and that one's limit."""
        found: dict[str, tuple[str, int]] = {}
        for names, limit in self.limits.items():
            for name in (names,) if isinstance(names, str) else names:
                if name in found:
                    raise InvalidParameter("connect.two_limits", value=str(name))
                found[name] = (names if isinstance(names, str) else names[0], int(limit))
        return found

    def __hash__(self) -> int:
        return hash((self.order, tuple(self.limits.items()), self.fraction))

    def __reduce__(self) -> Any:
        return type(self), (self.order, dict(self.limits), self.fraction)


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
