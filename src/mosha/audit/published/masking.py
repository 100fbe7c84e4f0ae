"""The baseline: masking and generalisation until a table is k-anonymous, to be compared with a private release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosha.audit.published.k_anonymity import Anonymity, Exposed, anonymity, background_attack, homogeneity_attack
from mosha.audit.published.table import Columns, classes, columns, pick
from mosha.audit.reporting.report import Report
from mosha.core.errors import InvalidParameter
from mosha.core.language import say
from mosha.core.number import positive, positive_integer
from mosha.core.unit import Row

__all__ = ["Comparison", "compare", "generalize", "mask", "suppress"]


def mask(column: Sequence[object] | NDArray[np.generic], *, keep: int) -> NDArray[np.str_]:
    """The texts of `column` with all but the first `keep` characters hidden.

    >>> mask(["13053", "14850"], keep=2).tolist()
    ['13***', '14***']
    """
    if isinstance(keep, bool) or not isinstance(keep, int) or keep < 0:
        raise InvalidParameter("audit.bad_keep", parameter="keep")
    texts = [str(value) for value in column]
    return np.array([text[:keep] + "*" * max(0, len(text) - keep) for text in texts])


def generalize(table: object, **widths: float) -> Columns:
    """Columns of `table`, named in `widths`, as the intervals they lie in: `generalize(table, age=10)` gives 30-39.

    >>> generalize({"age": [34, 39, 41]}, age=10)["age"].tolist()
    ['[30, 40)', '[30, 40)', '[40, 50)']
    """
    found = columns(table, needs=list(widths))
    for name, width in widths.items():
        if found[name].dtype.kind not in "iuf":
            raise InvalidParameter("audit.no_numbers", column=name)
        step = positive(f"the width of {name!r}", width)
        lows = np.floor(found[name].astype(np.float64) / step) * step
        found[name] = np.array([f"[{low:g}, {low + step:g})" for low in lows])
    return found


def suppress(table: object, *, quasi: Sequence[str], k: int) -> Columns:
    """The `table` without the rows whose class (equal in all columns of `quasi`) has fewer than `k`.

    >>> suppress({"age": [30, 30, 61]}, quasi=["age"], k=2)["age"].tolist()
    [30, 30]
    """
    found = columns(table, needs=list(quasi))
    group = classes(found, quasi)
    return pick(found, np.bincount(group)[group] >= positive_integer("k", k))


@dataclass(frozen=True)
class Comparison(Report):
    """One table, released twice: generalised to k-anonymity, and as private counts.

    Fields:
        before, after: the figures of the table as it is and as it would be released.
        suppressed: rows that had to go.
        attacks: what is left open after all.
        epsilon: what the private counts cost; `error` is their error bar (95%), `typical` the rows of a typical cell.
    """

    before: Anonymity
    after: Anonymity
    suppressed: int
    attacks: tuple[Exposed, ...]
    epsilon: float
    error: float
    typical: float

    def __str__(self) -> str:
        lines = [
            say("audit.table_before", before=str(self.before)),
            say("audit.table_after", after=str(self.after), suppressed=self.suppressed),
            *(f"  {attack}" for attack in self.attacks),
            say("audit.private_counts", epsilon=self.epsilon, error=self.error, typical=self.typical),
            "  " + say("audit.private_odds", odds=float(np.exp(self.epsilon))),
        ]
        return "\n".join(lines)


def compare(
    table: object,
    *,
    quasi: Sequence[str],
    sensitive: str,
    k: int,
    epsilon: float,
    widths: Mapping[str, float] | None = None,
    keep: Mapping[str, int] | None = None,
) -> Comparison:
    """Anonymise a table the old way and show what that leaves open, beside the error of counts under epsilon.

    Nothing is released: the figures describe the table to its owner, and the error bar of the private counts
    depends on epsilon alone.

    Args:
        table: a mapping of columns or a data frame; one row a person.
        quasi: the columns an outsider may know.
        sensitive: the column that is nobody's business.
        k: the class size to reach.
        epsilon: the price of the private counts of quasi-identifiers by sensitive value.
        widths: numeric columns and the width of their intervals.
        keep: text columns and how many characters of them stay.

    >>> table = {"zip": ["101", "102", "201", "202"], "ill": ["flu", "flu", "cold", "flu"]}
    >>> type(compare(table, quasi=["zip"], sensitive="ill", k=2, epsilon=1, keep={"zip": 1})).__name__
    'Comparison'
    """
    from mosha.mechanisms import Count, laplace  # noqa: PLC0415  (loaded when it is needed)

    found = columns(table, needs=[*quasi, sensitive])
    coarse = generalize(found, **dict(widths or {}))
    for name, characters in (keep or {}).items():
        coarse[name] = mask(columns(coarse, needs=[name])[name], keep=characters)
    released = suppress(coarse, quasi=quasi, k=k)
    if not len(released[sensitive]):
        raise InvalidParameter("audit.no_large_class", parameter="k")
    cells = classes(coarse, [*quasi, sensitive])
    return Comparison(
        before=anonymity(found, quasi=quasi, sensitive=sensitive),
        after=anonymity(released, quasi=quasi, sensitive=sensitive),
        suppressed=len(cells) - len(released[sensitive]),
        attacks=(
            homogeneity_attack(released, quasi=quasi, sensitive=sensitive),
            background_attack(released, quasi=quasi, sensitive=sensitive),
        ),
        epsilon=epsilon,
        error=float(laplace(Count(), unit=Row(), epsilon=epsilon).forecast(0.95)),
        typical=float(np.median(np.bincount(cells))),
    )
