"""What is asked of the data: a statistic is exact, on integers, and knows how far one unit can move it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.names.deprecation import warn_of_old_name
from mosha.core.unit import Neighbors, Unit
from mosha.exact.bounding import rows_per_unit

__all__ = [
    "RenamedMethods",
    "Sensitivity",
    "Statistic",
    "Steps",
    "check_statistic",
    "root_up",
    "sum_sensitivity",
]

Steps: TypeAlias = NDArray[np.int64]
"""Whole numbers of grid steps, each clamped to 2**60 (see `clamp_steps`)."""


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """How far one unit moves a statistic: norms of f(D) - f(D'), maximised over all neighbors D and D'.

    Units:
        Grid steps. All but `l2` are whole numbers; `l2` is rounded up.

    Fields:
        l0: how many coordinates change.
        l1, l2, linf: the norms.
        span: the length of the shortest interval that holds 0 and all coordinates of f(D) - f(D'): what a
            choice among coordinates can tell. At most 2 linf, and linf where all move the same way.
        monotone: adding a unit never lowers a coordinate, removing one never raises it.

    >>> from mosha.core.unit import Row
    >>> from mosha.exact.counts import Count
    >>> Count().sensitivity(Row(at_most=3)).l1
    3
    """

    l0: int
    l1: int
    l2: float
    linf: int
    span: int
    monotone: bool = False


@runtime_checkable
class Statistic(Protocol):
    """A function of the data with values on a public grid.

    `evaluate` gives one whole number of `data` for each coordinate, clamped to 2**60; times `grid` it is in the unit of
    the data. It is total: what the rows of one `unit` hold can never make it fail, for a failure would tell. `labels`
    names the coordinates; None stands for a single number.

    Guarantee:
        For all neighbors D, D' under `unit`, each norm of evaluate(D, unit) - evaluate(D', unit) is at most
        the one in `sensitivity(unit)`. Every class that claims to be a statistic proves this.

    >>> from mosha.exact.counts import Count
    >>> isinstance(Count(), Statistic)
    True
    """

    @property
    def grid(self) -> float: ...

    @property
    def labels(self) -> tuple[object, ...] | None: ...

    def sensitivity(self, unit: Unit) -> Sensitivity:
        """How far one unit moves the statistic, in grid steps."""
        ...

    def evaluate(self, data: object, unit: Unit) -> Steps:
        """The exact number of grid steps of each coordinate: as private as the data."""
        ...


class RenamedMethods:
    """A statistic that still answers to the names its methods had before: `exact`, now `evaluate`.

    Methods take the `unit` whose presence is hidden, and `data`: one column, or columns by name, of which `column` is
    read. `between` is the declared (low, high); vectors have so many `coordinates` and a norm of `order` 1 or 2.
    """

    _OLD: ClassVar[dict[str, str]] = {"exact": "evaluate", "local": "evaluate_with_reaches"}

    def __getattr__(self, name: str) -> Any:
        new = RenamedMethods._OLD.get(name)
        if new is None or not hasattr(type(self), new):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        warn_of_old_name(f"{type(self).__name__}.{name}", new)
        return getattr(self, new)


def _name_methods_anew(kind: type) -> None:
    """A class of a user's own, written when `evaluate` was called `exact`."""
    if hasattr(kind, "exact") and not hasattr(kind, "evaluate"):
        warn_of_old_name(f"{kind.__name__}.exact", "evaluate", depth=6)
        setattr(kind, "evaluate", kind.exact)  # noqa: B010  (a class that the type checker does not know)


def check_statistic(statistic: object) -> Statistic:
    """The statistic itself, or an error for anything else."""
    if isinstance(statistic, type):
        raise InvalidParameter("exact.class_of_statistic", parameter="statistic", kind=statistic.__name__)
    _name_methods_anew(type(statistic))
    if not isinstance(statistic, Statistic):
        name = type(statistic).__name__
        others = {"Quantile": "exact.quantile_elsewhere", "SumAndCount": "exact.sum_and_count_elsewhere"}
        raise InvalidParameter(others.get(name, "exact.not_a_statistic"), parameter="statistic", kind=name)
    return statistic


def root_up(square: int) -> float:
    """The least float that is no less than the root of `square`.

    >>> root_up(2), root_up(9)
    (1.4142135623730951, 3.0)
    """
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root


def sum_sensitivity(low: int, high: int, unit: Unit) -> Sensitivity:
    """How far one unit moves a sum of whole numbers between `low` and `high`, one for each of its rows.

    Guarantee:
        The rows of all others cancel. A unit owns i rows, and 1 <= i <= m while it is in the data, so its part
        t of the sum lies in [min(low, m low), max(high, m high)]. Added or removed: |f(D) - f(D')| = |t| <=
        m max(|low|, |high|). Replaced: both parts lie in that interval, so they differ by at most its length.
        (Not m (high - low): the other unit may own another number of rows.)

    >>> from mosha.core.unit import Row
    >>> sum_sensitivity(10, 20, Row(at_most=2)).l1, sum_sensitivity(10, 20, Row(2, neighbors="replace-one")).l1
    (40, 30)
    """
    rows = rows_per_unit(unit)
    if unit.neighbors is Neighbors.ADD_REMOVE:
        step = rows * max(abs(low), abs(high))
    else:
        step = max(high, rows * high) - min(low, rows * low)
    monotone = low >= 0 and unit.neighbors is Neighbors.ADD_REMOVE
    return Sensitivity(l0=min(1, step), l1=step, l2=root_up(step**2), linf=step, span=step, monotone=monotone)
