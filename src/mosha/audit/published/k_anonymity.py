"""What older promises hold: k-anonymity, l-diversity and t-closeness of a table, and the attacks they leave open.

These are properties of a table, not of the way it was made: they say nothing about the next table, nor about an
attacker who knows a little more. The report shows that on the user's own data, beside a private release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.audit.published.table import Columns, classes, columns
from mosha.audit.reporting.report import Report
from mosha.core.errors import InvalidParameter
from mosha.core.language import phrase, say
from mosha.core.number import positive_integer

__all__ = ["Anonymity", "anonymity", "background_attack", "homogeneity_attack"]


@dataclass(frozen=True)
class Anonymity(Report):
    """The figures of one table.

    Fields:
        k: the size of the smallest class of rows that agree in all quasi-identifiers.
        l: the least number of different sensitive values in a class; `entropy_l` is e^entropy of the evenest bound.
        t: the greatest distance between the sensitive column of a class and that of the table (earth mover's for
            numbers, total variation for the rest).
        alone: rows that are alone in their class.
        homogeneous: rows whose class has one sensitive value only: k-anonymous or not, their secret is public.
        likely: rows whose secret is guessed right with probability 0.9 or more from their class.
    """

    rows: int
    classes: int
    k: int
    l: int  # noqa: E741  (the name of the notion)
    entropy_l: float
    t: float
    alone: int
    homogeneous: int
    likely: int

    def __str__(self) -> str:
        return say("audit.anonymity", **vars(self))


def anonymity(table: object, *, quasi: Sequence[str], sensitive: str) -> Anonymity:
    """k-anonymity, l-diversity and t-closeness of a table, and how many secrets it gives away all the same.

    `table` has columns by name; rows equal in all columns of `quasi` are one class; `sensitive` is the secret column.

    >>> table = {"zip": [1, 1, 2, 2], "illness": ["flu", "flu", "flu", "hiv"]}
    >>> print(anonymity(table, quasi=["zip"], sensitive="illness"))
    4 rows in 2 classes: 2-anonymous, 1-diverse (entropy 1.00), 0.250-close. 0 rows are in a class of
    their own; the secret of 2 rows is certain from their class, that of 2 rows nine times in ten.
    """
    found = columns(table, needs=[*quasi, sensitive])
    group, counts = _cross(found, quasi, sensitive)
    sizes = counts.sum(axis=1)
    shares = counts / sizes[:, None]
    entropy = -np.sum(np.where(shares > 0, shares * np.log(np.where(shares > 0, shares, 1)), 0), axis=1)
    certain = (counts > 0).sum(axis=1) == 1
    return Anonymity(
        rows=len(group),
        classes=len(sizes),
        k=int(sizes.min()),
        l=int((counts > 0).sum(axis=1).min()),
        entropy_l=float(np.exp(entropy.min())),
        t=_closeness(shares, counts.sum(axis=0) / len(group), ordered=found[sensitive].dtype.kind in "iuf"),
        alone=int((sizes == 1).sum()),
        homogeneous=int(sizes[certain].sum()),
        likely=int(sizes[shares.max(axis=1) >= 0.9].sum()),
    )


def _cross(table: Columns, quasi: Sequence[str], sensitive: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The class of each row, and how often each sensitive value occurs in each class."""
    group = classes(table, quasi)
    if not len(group):
        raise InvalidParameter("audit.empty_table", parameter="table")
    secret = classes(table, [sensitive])
    counts = np.zeros((group.max() + 1, secret.max() + 1))
    np.add.at(counts, (group, secret), 1)
    return group, counts


def _closeness(shares: NDArray[np.float64], overall: NDArray[np.float64], *, ordered: bool) -> float:
    gaps = shares - overall
    if ordered and len(overall) > 1:  # earth mover's distance on ranks, in units of the whole range
        return float((np.abs(np.cumsum(gaps, axis=1)).sum(axis=1) / (len(overall) - 1)).max())
    return float((np.abs(gaps).sum(axis=1) / 2).max())


@dataclass(frozen=True)
class Exposed(Report):
    """Rows whose secret follows from the table for an attacker who knows the quasi-identifiers."""

    attack: str
    rows: tuple[int, ...]
    total: int

    @property
    def share(self) -> float:
        return len(self.rows) / self.total

    def __str__(self) -> str:
        return say("audit.exposed", attack=self.attack, rows=len(self.rows), total=self.total, share=self.share)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "share": self.share}


def homogeneity_attack(table: object, *, quasi: Sequence[str], sensitive: str) -> Exposed:
    """Whoever finds a neighbor's class finds the secret, if the whole class shares it.

    `table`, `quasi` and `sensitive` are those of `anonymity`.

    >>> table = {"zip": [1, 1, 2], "illness": ["flu", "flu", "hiv"]}
    >>> print(homogeneity_attack(table, quasi=["zip"], sensitive="illness"))
    Homogeneity: 3 of 3 rows (100.0%) give their secret away.
    """
    found = columns(table, needs=[*quasi, sensitive])
    group, counts = _cross(found, quasi, sensitive)
    certain = (counts > 0).sum(axis=1) == 1
    return Exposed(phrase("audit.homogeneity"), tuple(np.flatnonzero(certain[group]).tolist()), len(group))


def background_attack(table: object, *, quasi: Sequence[str], sensitive: str, excluded: int = 1) -> Exposed:
    """An attacker who can rule out `excluded` values of a person (not that illness, at that age) and look again.

    Which values is not known beforehand; a row counts where the right ones leave nothing but the truth.

    `table`, `quasi` and `sensitive` are those of `anonymity`.

    >>> table = {"age": [30, 30, 61, 61], "ill": ["flu", "cold", "flu", "hiv"]}
    >>> print(background_attack(table, quasi=["age"], sensitive="ill"))
    Background knowledge of 1 value: 4 of 4 rows (100.0%) give their secret away.
    """
    found = columns(table, needs=[*quasi, sensitive])
    group, counts = _cross(found, quasi, sensitive)
    few = (counts > 0).sum(axis=1) <= 1 + positive_integer("excluded", excluded)
    code = "audit.background_knowledge" if excluded == 1 else "audit.background_knowledge_of_several"
    trivial = phrase("audit.background_trivial", values=1 + excluded) if counts.shape[1] <= 1 + excluded else ""
    attack = phrase(code, excluded=excluded, trivial=trivial)
    return Exposed(attack, tuple(np.flatnonzero(few[group]).tolist()), len(group))
