"""Who pays: the accounts that a release charges, and how a parent counts blocks that share nobody.

Names are paths: `visits/zhang` is a child of `visits`. A release on some accounts is paid by each of them and by
each of their ancestors, once, at the price of that account's own rule; and by the population that its unit names,
wherever the account lies in the tree. A parent that declares `disjoint_blocks`
promises that every unit lies in at most one of its blocks, and counts the dearest block instead of their sum.
The proof is in `payers.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.unit import Neighbors, Row, Unit
from mosha.ledger.terms.terms import LONGEST, Terms

__all__ = ["Payer", "ancestry", "check_disjoint", "join_name", "payers", "paying_for"]


@dataclass(frozen=True)
class Payer:
    """One account that pays for a release: with all it has, or with some lanes (disjoint blocks) of a family."""

    terms: Terms
    family: str = ""
    lanes: tuple[str, ...] = ()


def join_name(parent: str | None, name: Any) -> str:
    """The full name of an account.

    >>> join_name("visits", "zhang")
    'visits/zhang'
    """
    full = name if parent is None else f"{parent}/{name}"
    if not isinstance(name, str) or len(full) > LONGEST or not all(map(_is_segment, name.split("/"))):
        raise InvalidParameter("ledger.bad_account_name", parameter="name", longest=LONGEST)
    return full


def _is_segment(text: str) -> bool:
    return text.isprintable() and text == text.strip() != ""


def ancestry(name: str) -> list[str]:
    """The account and all above it, the root first.

    >>> ancestry("hospital/visits/zhang")
    ['hospital', 'hospital/visits', 'hospital/visits/zhang']
    """
    segments = name.split("/")
    return ["/".join(segments[: depth + 1]) for depth in range(len(segments))]


def check_disjoint(unit: Unit) -> None:
    """Refuse to call blocks disjoint where one unit can lie in two of them."""
    if unit.neighbors is not Neighbors.ADD_REMOVE:
        raise InvalidParameter("ledger.disjoint_replaced", parameter="disjoint_blocks")
    if isinstance(unit, Row) and unit.at_most > 1:
        raise InvalidParameter("ledger.disjoint_rows", parameter="disjoint_blocks")


def payers(leaves: Iterable[str], terms: Mapping[str, Terms]) -> tuple[Payer, ...]:
    """Every account that pays for a release on `leaves`, in the order of their names.

    Guarantee:
        For every account and every unit, what the account counts for that unit is at least the price of all
        releases that touched the unit's data (see `payers.md`).
    """
    above = {leaf: paying_for(leaf, terms) for leaf in sorted(set(leaves))}
    everyone = sorted({name for names in above.values() for name in names})
    return tuple(_payer(name, [leaf for leaf in above if name in above[leaf]], terms) for name in everyone)


def paying_for(leaf: str, terms: Mapping[str, Terms]) -> set[str]:
    """The account, all above it, and its population."""
    population = terms[leaf].unit.of
    return {*ancestry(leaf)} | ({population} if population is not None else set())


def _payer(name: str, beneath: list[str], terms: Mapping[str, Terms]) -> Payer:
    lanes = {_lane(name, leaf, terms) for leaf in beneath}
    families = {lane.rpartition("/")[0] for lane in lanes}
    if "" in lanes or len(families) > 1:
        return Payer(terms[name])
    return Payer(terms[name], families.pop(), tuple(sorted(lanes)))


def _lane(name: str, leaf: str, terms: Mapping[str, Terms]) -> str:
    """The topmost disjoint block between `name` and `leaf`, or "" where there is none.

    All of the path lies beneath a population that is not on it.
    """
    path = ancestry(leaf)
    beneath = path[path.index(name) :] if name in path else path
    for parent, child in pairwise(beneath):
        if terms[parent].disjoint_blocks and terms[child].block:
            return child
    return ""
