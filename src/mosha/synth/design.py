"""What the stages of a synthetic table measure, decided by public numbers and by what earlier stages released.

Columns stand three times on one list of axes: with all their cells (column i), in groups for all pairs (d + i) and in
finer groups for the few pairs that depend most on each other (2 d + i). Nothing here reads the data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mosha.synth.axis import Axis, Reals, flat_axis
from mosha.synth.columns import CodedColumn, Wholes
from mosha.synth.mixture import PairTarget, shrink_towards_independence
from mosha.synth.oneways import clean_counts, group_cells
from mosha.synth.residuals import Measured, Term

__all__ = [
    "MOST_GROUPS",
    "STAGES",
    "Choice",
    "Design",
    "Method",
    "axes_of",
    "clean_oneways",
    "combine",
    "design_fine",
    "design_oneways",
    "design_pairs",
    "pair_targets",
    "stages_of",
]

Choice = Literal["automatic", "independent", "selected pairs", "all pairs"]
"""What a caller may ask for."""

STAGES = {"one-ways": 0.15, "pairs": 0.70, "fine": 0.10, "look": 0.05}
"""What each stage has of the squared mu."""

SELECTED = {"one-ways": 0.15, "pairs": 0.40, "fine": 0.40, "look": 0.05}
"""The same where a caller asks for selected pairs."""

MOST_GROUPS = 128
ROUGH, ROUGHEST, ROUGH_FINE = 0.2, 0.35, 1.2
"""Groups are made so fine that the noise of a pair table is about this large a share of all rows."""

MANY_GROUPS, MOST_FINER = (12, 24), 2.0
"""From the first number of groups on columns are cut finer, by this factor at the second: the fit shares strength."""

FEWEST = 3
ONE_WAY_WEIGHT, PAIR_WEIGHT = 1.4, 0.3
"""What errors of one-ways and of pairs do to a pair table of the model, fitted to three public tables."""

STRONG, MOST_STRONG, FEW_GROUPS = 0.2, 0.03, 6
"""Pairs that are at least so far from independence are measured again in finer groups; at most this share of all.

Where pairs have fewer groups than `FEW_GROUPS`, the budget is better spent on measuring all of them once more."""

LEAST_SHARE = 1e-5
Method = Literal["independent", "selected pairs", "all pairs"]
"""What the rule chose."""


@dataclass(frozen=True, eq=False)
class Design:
    """The terms of a stage with their shares, and the groups of every column that its axes have."""

    axes: tuple[Axis, ...]
    shares: Mapping[Term, float]
    groups: tuple[Wholes, ...]
    fine: tuple[Wholes, ...]
    method: Method

    @property
    def columns(self) -> int:
        return len(self.groups)

    def cells(self, number: int, cells: Sequence[Wholes]) -> Wholes:
        """The cells of the rows in the axis of this number, from those in all columns."""
        place = number % self.columns
        if number < self.columns:
            return cells[place]
        return np.asarray((self.groups if number < 2 * self.columns else self.fine)[place][cells[place]], np.int64)


def axes_of(columns: Sequence[CodedColumn], groups: Sequence[Wholes], fine: Sequence[Wholes]) -> tuple[Axis, ...]:
    grouped = [flat_axis(int(numbers.max()) + 1) for numbers in (*groups, *fine)]
    return (*(flat_axis(column.size) for column in columns), *grouped)


def _one_group_each(columns: Sequence[CodedColumn]) -> tuple[Wholes, ...]:
    return tuple(np.zeros(column.size, np.int64) for column in columns)


def design_oneways(columns: Sequence[CodedColumn]) -> Design:
    """The first stage: the total and every column by all its cells, larger columns a little more accurately."""
    whole = _one_group_each(columns)
    return Design(axes_of(columns, whole, whole), _oneway_shares(columns, 1.0), whole, whole, "independent")


def _oneway_shares(columns: Sequence[CodedColumn], part: float) -> dict[Term, float]:
    """Deviations inverse to the cube root of the number of cells: the least sum of absolute errors."""
    raw = {((i, 1),): (1 - 1 / c.size) * c.size ** (2 / 3) for i, c in enumerate(columns) if c.size > 1}
    total = sum(raw.values()) or 1.0
    shares: dict[Term, float] = {(): 0.01 * part}
    shares.update({term: 0.99 * part * share / total for term, share in raw.items()})
    return {term: max(share, LEAST_SHARE) for term, share in shares.items()}


def clean_oneways(columns: Sequence[CodedColumn], measured: Measured) -> tuple[float, list[Reals]]:
    """The noisy number of rows, at least 1, and the shares of all cells of every column."""
    total = max(1.0, float(measured.residuals[()]))
    found = []
    for place, column in enumerate(columns):
        deviation = measured.deviations.get(((place, 1),), 0.0)
        counts = measured.residuals.get(((place, 1),), np.zeros(column.size)) + total / column.size
        clean = clean_counts(counts, deviation, ordered=column.is_ordered, known=column.known_cells)
        found.append(clean / clean.sum() if clean.sum() > 0 else np.full(column.size, 1 / column.size))
    return total, found


def _split(shares: Sequence[Reals], total: float, multiplier: float) -> float:
    """What part of all stages one-ways should have: where the errors of both together are smallest.

    `multiplier` is that of the whole budget. An error of one-ways falls with the root of their part; that of pairs,
    whose groups grow finer as the noise falls, with its sixth root.
    """
    sizes = np.array([len(s) for s in shares], np.float64)
    noise = multiplier * math.sqrt(float((sizes ** (2 / 3)).sum())) / np.cbrt(sizes)
    present = np.array([np.count_nonzero(s * total > n) for s, n in zip(shares, noise, strict=True)])
    single = ONE_WAY_WEIGHT * float(np.mean(np.minimum(0.4 * present * noise / total, 0.5)))
    pairs = len(shares) * (len(shares) - 1) / 2
    double = PAIR_WEIGHT * np.cbrt(multiplier * math.sqrt(0.8 * max(pairs, 1)) / total)
    parts = np.linspace(0.15, 0.85, 71)
    costs = single / np.sqrt(parts) + double / (1 - parts) ** (1 / 6)
    return float(parts[int(np.argmin(costs))])


def stages_of(choice: Choice) -> Mapping[str, float]:
    """What each stage has of the squared mu: fixed by what the caller asks for, before anything is measured."""
    return SELECTED if choice == "selected pairs" else STAGES


def _count_groups(choice: Choice, total: float, deviation: float) -> int:
    """How many groups a column may have in pair tables; 0 where noise would drown them."""
    most = math.floor(math.sqrt(ROUGH * total / (0.4 * deviation)))
    few, many = MANY_GROUPS
    most = math.floor(most * (1 + (MOST_FINER - 1) * min(1.0, max(0.0, (most - few) / (many - few)))))
    if choice in {"all pairs", "selected pairs"}:
        return max(most, 2)
    if most < FEWEST <= math.sqrt(ROUGHEST * total / (0.4 * deviation)):
        most = FEWEST
    return most if most >= FEWEST else 0


def design_pairs(
    columns: Sequence[CodedColumn], measured: Measured, multiplier: float, *, method: Choice = "automatic"
) -> Design:
    """The second stage: all pairs in groups, and one-ways once more, each with what helps most.

    Args:
        columns: the columns with their cells.
        measured: what the first stage released, in units of the counts.
        multiplier: of the whole budget, times what one unit counts for.
        method: "independent" measures one-ways alone; "automatic" decides.
    """
    total, shares = clean_oneways(columns, measured)
    part, stages = _split(shares, total, multiplier), stages_of(method)
    here = stages["pairs"]
    for_pairs = min(1.0, max(0.0, 1 - part - stages["look"] - stages["fine"]) / here)
    if method in {"all pairs", "selected pairs"}:
        for_pairs = max(for_pairs, 0.5)
    pairs = len(columns) * (len(columns) - 1) / 2
    deviation = multiplier / math.sqrt(max(for_pairs * here, 1e-9)) * math.sqrt(0.8 * max(pairs, 1))
    most = 0 if len(columns) < 2 or method == "independent" else _count_groups(method, total, deviation)
    whole = _one_group_each(columns)
    if not most:
        return Design(axes_of(columns, whole, whole), _oneway_shares(columns, 1.0), whole, whole, "independent")
    groups = tuple(
        group_cells(s * total, min(most, MOST_GROUPS), ordered=c.is_ordered, hierarchy=_hierarchy(c))
        for s, c in zip(shares, columns, strict=True)
    )
    axes = axes_of(columns, groups, whole)
    raw = _pair_shares(
        axes, [(len(columns) + a, len(columns) + b) for a, b in itertools.combinations(range(len(columns)), 2)]
    )
    found = _oneway_shares(columns, 1 - for_pairs)
    found.update({term: for_pairs * share for term, share in raw.items()})
    return Design(axes, found, groups, whole, "selected pairs" if method == "selected pairs" else "all pairs")


def _hierarchy(column: CodedColumn) -> Wholes | None:
    return None if column.groups is None else np.asarray(column.groups, np.int64)


def _pair_shares(axes: Sequence[Axis], pairs: Sequence[tuple[int, int]]) -> dict[Term, float]:
    """Larger tables a little more accurately: deviations inverse to the cube root of their number of cells."""
    raw = {}
    for a, b in pairs:
        if axes[a].size > 1 and axes[b].size > 1:
            cells = axes[a].size * axes[b].size
            raw[((a, 1), (b, 1))] = (1 - 1 / axes[a].size) * (1 - 1 / axes[b].size) * cells ** (2 / 3)
    total = sum(raw.values()) or 1.0
    return {term: max(share / total, LEAST_SHARE) for term, share in raw.items()}


def pair_targets(design: Design, measured: Measured, total: float, level: int) -> list[PairTarget]:
    """The residuals of pairs as shares of all rows; level 1: in groups, 2: in finer groups."""
    first, after = level * design.columns, (level + 1) * design.columns
    return [
        PairTarget(term[0][0] - first, term[1][0] - first, table / total, measured.deviations[term] / total)
        for term, table in measured.residuals.items()
        if len(term) == 2 and first <= term[0][0] < after
    ]


def design_fine(columns: Sequence[CodedColumn], design: Design, measured: Measured, multiplier: float) -> Design:
    """The third stage: the pairs that depend most on each other in finer groups; else the second stage once more."""
    if design.method == "independent":
        return design
    total, shares = clean_oneways(columns, measured)
    coarse = _choose_pairs(design, measured, total, shares)
    if not coarse:
        return design
    stages = stages_of("selected pairs" if design.method == "selected pairs" else "automatic")
    deviation = multiplier / math.sqrt(stages["fine"]) * math.sqrt(0.9 * len(coarse))
    finest = min(MOST_GROUPS, max(FEWEST, math.floor(math.sqrt(ROUGH_FINE * total / (0.4 * deviation)))))
    fine = []
    for place, (column, share) in enumerate(zip(columns, shares, strict=True)):
        numbers = design.groups[place]
        if any(place in pair for pair in coarse):
            finer = group_cells(share * total, finest, ordered=column.is_ordered)
            if finer.max() > numbers.max():
                numbers = np.unique(numbers * (1 << 20) + finer, return_inverse=True)[1].reshape(-1)
        fine.append(np.asarray(numbers, np.int64))
    axes = axes_of(columns, design.groups, fine)
    shift = 2 * len(columns)
    terms = _pair_shares(axes, [(a + shift, b + shift) for a, b in coarse])
    return Design(axes, terms, design.groups, tuple(fine), design.method)


def _choose_pairs(design: Design, measured: Measured, total: float, shares: Sequence[Reals]) -> list[tuple[int, int]]:
    """The pairs to be measured in finer groups: the farthest from independence, by what was released already."""
    selected = design.method == "selected pairs"
    if not selected and max(int(groups.max()) + 1 for groups in design.groups) < FEW_GROUPS:
        return []
    grouped = [np.asarray(np.bincount(g, s), np.float64) for g, s in zip(design.groups, shares, strict=True)]
    strength = {}
    for target in pair_targets(design, measured, total, 1):
        excess = shrink_towards_independence(target, grouped)[1]
        strength[target.first, target.second] = 0.5 * float(np.abs(excess).sum())
    most = design.columns - 1 if selected else max(1, math.ceil(MOST_STRONG * len(strength)))
    least = 0.0 if selected else STRONG
    chosen = [pair for pair in sorted(strength, key=lambda pair: -strength[pair])[:most] if strength[pair] > least]
    return [(a, b) for a, b in chosen if _is_merged(design, a) or _is_merged(design, b)]


def _is_merged(design: Design, place: int) -> bool:
    return int(design.groups[place].max()) + 1 < len(design.groups[place])


def combine(first: Measured, second: Measured) -> Measured:
    """Two measurements of the same terms as one, each weighed by its accuracy; terms of one alone stay as they are."""
    residuals, deviations = dict(first.residuals), dict(first.deviations)
    for term, table in second.residuals.items():
        other = second.deviations[term]
        if term in residuals:
            mine = deviations[term]
            weight = mine**-2 / (mine**-2 + other**-2)
            residuals[term] = weight * residuals[term] + (1 - weight) * table
            deviations[term] = (mine**-2 + other**-2) ** -0.5
        else:
            residuals[term], deviations[term] = table, other
    axes = second.axes if len(second.axes) >= len(first.axes) else first.axes
    return Measured(axes, residuals, deviations)
