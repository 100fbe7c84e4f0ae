"""Statistics of a genome study: allele counts, chi-squares of association, and how far each one is from significance.

Data are a matrix with a row for each person: whether the person is a case (1) or a control (0), then the number of
minor alleles (0, 1 or 2) at each place of the genome. How many cases and controls were enrolled is public: it is the
design of the study, and it is declared, never counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive, positive_integer
from mosha.core.unit import Neighbors, Unit
from mosha.exact.bounding import keep_at_most, read_rows, rows_per_unit, to_numbers
from mosha.exact.statistic import Sensitivity, Steps, root_up

__all__ = ["AlleleCounts", "AssociationScores", "ChiSquares"]

Table = NDArray[np.int64]
LARGEST_TABLES = 1 << 26
"""Chi-squares are asked of at most so many possible tables: their sensitivity is the largest step between two."""


@dataclass(frozen=True, kw_only=True)
class _OfGenomes:
    """What is counted for each of a public list of places (`snps`) in a `column`, or in data that are one.

    Methods take the `unit` whose presence is hidden, and `data`, as those of any `Statistic`.
    """

    snps: Sequence[object]
    column: str | None = None

    def __post_init__(self) -> None:
        snps = tuple(self.snps)
        if not snps or len(set(snps)) != len(snps):
            raise InvalidParameter("exact.snps_not_distinct", parameter="snps")
        object.__setattr__(self, "snps", snps)

    @property
    def labels(self) -> tuple[object, ...]:
        return tuple(self.snps)

    @np.errstate(all="ignore")
    def _count_alleles(self, data: object, unit: Unit) -> tuple[Table, Table]:
        """Minor alleles among cases and among controls; what is no genotype adds nothing."""
        values, persons = read_rows(data, unit, self.column)
        rows = to_numbers(values, width=len(self.snps) + 1)
        alleles = np.clip(np.nan_to_num(rows[:, 1:]), 0, 2).round().astype(np.int64)
        case, control = rows[:, 0] == 1, rows[:, 0] == 0
        if persons is not None:
            known = keep_at_most(rows_per_unit(unit), persons, np.column_stack([case, control, alleles]))
            case, control = case & known, control & known
        return alleles[case].sum(axis=0), alleles[control].sum(axis=0)


@dataclass(frozen=True, kw_only=True)
class AlleleCounts(_OfGenomes):
    """How many minor alleles the cases and controls have together, at each place: twice the frequency, times people.

    Guarantee:
        A row adds 0, 1 or 2 at each of M places. A unit of m rows moves each by at most 2 m, all of them by 2 m M in
        l1 and 2 m sqrt(M) in l2; upwards where it is added. Replaced, each count moves by at most 2 m, either way.

    Units:
        Alleles: every person has two.

    >>> from mosha.core.unit import Row
    >>> counts = AlleleCounts(snps=["rs1", "rs2"])
    >>> counts.evaluate([[1, 2, 0], [0, 1, 1]], Row()).tolist(), counts.sensitivity(Row()).l1
    ([3, 1], 4)
    """

    grid: ClassVar[float] = 1.0

    def sensitivity(self, unit: Unit) -> Sensitivity:
        """How far one unit moves it, in grid steps."""
        most, places = 2 * rows_per_unit(unit), len(self.snps)
        added = unit.neighbors is Neighbors.ADD_REMOVE
        span = most if added or places == 1 else 2 * most
        l2 = root_up(places * most**2)
        return Sensitivity(l0=places, l1=places * most, l2=l2, linf=most, span=span, monotone=added)

    def evaluate(self, data: object, unit: Unit) -> Steps:
        """The exact counts or sums, in grid steps: as private as the data."""
        cases, controls = self._count_alleles(data, unit)
        return cases + controls


@dataclass(frozen=True, kw_only=True)
class _OfStudies(_OfGenomes):
    """A function of each place's table (minor alleles of cases, of controls), for so many cases and controls."""

    cases: int
    controls: int

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "cases", positive_integer("cases", self.cases))
        object.__setattr__(self, "controls", positive_integer("controls", self.controls))
        if max(self.cases, self.controls) > 1 << 20:
            raise InvalidParameter("exact.study_too_large", parameter="cases", most=1 << 20)

    def _read_tables(self, data: object, unit: Unit) -> tuple[Table, Table]:
        """Both counts, clamped to what the declared numbers of people can have."""
        cases, controls = self._count_alleles(data, unit)
        return np.minimum(cases, 2 * self.cases), np.minimum(controls, 2 * self.controls)

    def _signed_root(self, x: Table, y: Table) -> NDArray[np.float64]:
        """The root of the allelic chi-square, with the sign of (frequency in cases - frequency in controls)."""
        people, minor = self.cases + self.controls, (x + y).astype(np.float64)
        apart = (x * self.controls - y * self.cases).astype(np.float64)
        spread = np.sqrt(minor * (2 * people - minor) * self.cases * self.controls / (2 * people))
        root: NDArray[np.float64] = np.divide(apart, spread, out=np.zeros_like(apart), where=spread > 0)
        return root

    def _move(self, unit: Unit, step: int) -> Sensitivity:
        """Of coordinates that one row moves by at most `step`, up or down."""
        replaced = unit.neighbors is Neighbors.REPLACE_ONE
        most, places = step * rows_per_unit(unit) * (2 if replaced else 1), len(self.snps)
        span = most if places == 1 else 2 * most
        return Sensitivity(l0=places, l1=places * most, l2=root_up(places * most**2), linf=most, span=span)


@dataclass(frozen=True, kw_only=True)
class AssociationScores(_OfStudies):
    """How many people would have to change before a place stops (or starts) to be significant.

    The score is positive where the allelic chi-square reaches `threshold`: that many people must change to bring it
    below. It is 0, -1, ... where it does not. The neighbor-distance score of Johnson and Shmatikov (2013): one person
    moves it by 1 however large the study, and so the top places can be chosen at a small epsilon.

    `snps` are the positions, `column` the one of genotypes, `cases` and `controls` how many people there are of each.
    Methods take the `unit` that is hidden and the `data`.

    Guarantee:
        Let d((x, y), (x', y')) = ceil(|x - x'| / 2) + ceil(|y - y'| / 2) for tables of minor alleles: a metric, as
        ceil((a + b) / 2) <= ceil(a / 2) + ceil(b / 2). One row moves a table by d <= 1 (it is a case or a control, and
        has at most 2 alleles), also after clamping. The distance to a fixed set of tables moves by at most d; on its
        two sides, as distance and as 1 - distance, the score moves by at most 1 where it crosses, from 1 to 0.
        Replacing is removing and adding.

    Units:
        People.

    >>> from mosha.core.unit import Row
    >>> score = AssociationScores(snps=["rs1"], cases=50, controls=50, threshold=10)
    >>> apart = [[1, 2]] * 50 + [[0, 0]] * 50
    >>> score.evaluate(apart, Row()).tolist(), score.sensitivity(Row()).linf
    ([39], 1)
    """

    threshold: float
    grid: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "threshold", positive("threshold", self.threshold))

    def sensitivity(self, unit: Unit) -> Sensitivity:
        """How far one unit moves it, in grid steps."""
        return self._move(unit, 1)

    @cached_property
    def _quiet(self) -> tuple[Table, Table]:
        """For each number of alleles in cases, the first and the last in controls that are not significant.

        For a fixed x the signed root falls in y (its slope has the sign of -(s (R - x) + N x) for s = x + y), so these
        are intervals; the score is the distance to what they say, whatever rounding did at their ends.
        """
        x = np.arange(2 * self.cases + 1)
        bar = float(np.sqrt(self.threshold))
        first = self._bisect(x, lambda y: self._signed_root(x, y) < bar)
        after = self._bisect(x, lambda y: self._signed_root(x, y) <= -bar)
        return first, after - 1

    def _bisect(self, x: Table, falls: Callable[[Table], NDArray[np.bool_]]) -> Table:
        """The least y from 0 to 2 S + 1 from which on a test holds; 2 S + 1 where it never does."""
        low, high = np.zeros_like(x), np.full_like(x, 2 * self.controls + 1)
        while np.any(low < high):
            middle = (low + high) // 2
            there = (middle > 2 * self.controls) | falls(np.minimum(middle, 2 * self.controls))
            high, low = np.where(there, middle, high), np.where(there | (low >= high), low, middle + 1)
        return low

    def evaluate(self, data: object, unit: Unit) -> Steps:
        """The exact counts or sums, in grid steps: as private as the data."""
        return np.array([self._score(int(x), int(y)) for x, y in zip(*self._read_tables(data, unit), strict=True)])

    def _score(self, x: int, y: int) -> int:
        first, last = self._quiet
        far = 4 * (self.cases + self.controls)
        across = (np.abs(np.arange(first.size) - x) + 1) // 2
        if first[x] <= y <= last[x]:
            below = np.where(first > 0, np.maximum(y - first + 1, 0), far)
            above = np.where(last < 2 * self.controls, np.maximum(last + 1 - y, 0), far)
            return 1 - int((across + (np.minimum(below, above) + 1) // 2).min())
        apart = np.where(first <= last, np.maximum(np.maximum(first - y, y - last), 0), far)
        return int((across + (apart + 1) // 2).min())


@dataclass(frozen=True, kw_only=True)
class ChiSquares(_OfStudies):
    """The allelic chi-square of association at each place, rounded to a grid of 1/1024.

    `snps` are the positions, `column` the one of genotypes, `cases` and `controls` how many people there are of each.
    Methods take the `unit` that is hidden and the `data`.

    Guarantee:
        One row moves the alleles of cases, or those of controls, by 1 or 2. The sensitivity is the largest difference
        of two rounded chi-squares that are such a move apart, over all tables that the study can have: found by going
        through them, so that it holds for what is computed. A unit of m rows makes m such moves; replaced, 2 m.

    Units:
        Chi-square with one degree of freedom; the sensitivity in steps of the grid.

    >>> from mosha.core.unit import Row
    >>> chi = ChiSquares(snps=["rs1"], cases=50, controls=50)
    >>> chi.evaluate([[1, 2]] * 50 + [[0, 0]] * 50, Row()).tolist(), chi.sensitivity(Row()).l1 / 1024
    ([204800], 7.8427734375)
    """

    grid: ClassVar[float] = 2.0**-10

    def __post_init__(self) -> None:
        super().__post_init__()
        if (2 * self.cases + 1) * (2 * self.controls + 1) > LARGEST_TABLES:
            raise InvalidParameter("exact.study_too_large", parameter="cases", most=4095)

    def sensitivity(self, unit: Unit) -> Sensitivity:
        """How far one unit moves it, in grid steps."""
        return self._move(unit, self._largest_step)

    @cached_property
    def _largest_step(self) -> int:
        y, largest = np.arange(2 * self.controls + 1), 0
        recent: list[Steps] = []
        for x in range(2 * self.cases + 1):
            row = self._round(np.full_like(y, x), y)
            others = [row[1:] - row[:-1], row[2:] - row[:-2], *(row - other for other in recent)]
            largest = max(largest, *(int(np.abs(apart).max(initial=0)) for apart in others))
            recent = [row, *recent][:2]
        return largest

    def _round(self, x: Table, y: Table) -> Steps:
        return np.rint(self._signed_root(x, y) ** 2 / self.grid).astype(np.int64)

    def evaluate(self, data: object, unit: Unit) -> Steps:
        """The exact counts or sums, in grid steps: as private as the data."""
        return self._round(*self._read_tables(data, unit))
