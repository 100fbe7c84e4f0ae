"""What the stages of a synthetic table measure, decided by public numbers and by what earlier stages released.

Columns stand three times on one list of axes: with all their cells (column i), in groups for all pairs (d + i) and in
finer groups for the few pairs that depend most on each other (2 d + i). Nothing here reads the data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from mosha.mechanisms.residuals.axis import Axis, Reals, flat_axis
from mosha.mechanisms.residuals.residuals import Measured, Term
from mosha.synth.measuring.columns import CodedColumn, Wholes
from mosha.synth.modelling.choosing import DENSE, Distances, Pair, choose_pairs, explained_distance, span_tree
from mosha.synth.modelling.mixture import PairTarget, shrink_towards_independence
from mosha.synth.modelling.oneways import clean_counts, find_group_error, group_cells

__all__ = [
    "MOST_GROUPS",
    "STAGES",
    "Choice",
    "Design",
    "Method",
    "axes_of",
    "clean_oneways",
    "combine",
    "design_distances",
    "design_fine",
    "design_oneways",
    "design_pairs",
    "expect_independence",
    "pair_targets",
    "read_distances",
]

Choice = Literal["automatic", "independent", "tree", "selected pairs", "all pairs"]
"""What a caller may ask for."""

STAGES = {"one-ways": 0.15, "distances": 0.04, "pairs": 0.68, "fine": 0.10, "look": 0.03}
"""What each stage has of the squared mu: fixed before anything is measured, whatever is asked for."""

FOR_TOTAL = 0.03
"""What a stage of single columns spends on the number of rows, which people look at first."""

MOST_GROUPS = 128
ROUGH, ROUGHEST, ROUGH_CHOSEN, ROUGH_FINE = 0.2, 0.35, 0.33, 1.2
"""Groups are made so fine that the noise of a pair table is about this large a share of all rows."""

MANY_GROUPS, MOST_FINER = (12, 24), 2.0
"""From the first number of groups on columns are cut finer, by this factor at the second: the fit shares strength."""

FEWEST = 3
ONE_WAY_WEIGHT, PAIR_WEIGHT = 1.4, 0.3
"""What errors of one-ways and of pairs do to a pair table of the model, fitted to three public tables."""

STRONG, MOST_STRONG, FEW_GROUPS = 0.2, 0.03, 6
"""Pairs that are at least so far from independence are measured again in finer groups; at most this share of all.
Where pairs have fewer groups than `FEW_GROUPS`, the budget is better spent on measuring all of them once more."""

MERGED = 0.6
"""A column with more groups than this share of its cells needs no finer ones: measuring all pairs again is better."""

COMPARED, MOST_DOUBT, LOST = 8, 0.2, 4.0
"""Groups of a column in which distances are taken; with more noise than this share of all rows they say nothing."""

LEAST_SHARE, FOR_TARGET = 1e-5, 10.0
"""No term has less of its stage; pairs with a declared target have so many times the share of others."""

Method = Literal["independent", "tree", "selected pairs", "all pairs"]
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

    def cells(self, number: int, cells: Mapping[int, Wholes] | Sequence[Wholes]) -> Wholes:
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
    raw: dict[Term, float] = {
        ((i, 1),): (1 - 1 / c.size) * c.size ** (2 / 3) for i, c in enumerate(columns) if c.size > 1
    }
    return _divide(raw, part)


def _divide(raw: Mapping[Term, float], part: float) -> dict[Term, float]:
    """A part of a stage for the total and for one-ways in these proportions."""
    total = sum(raw.values()) or 1.0
    shares: dict[Term, float] = {(): FOR_TOTAL * part}
    shares.update({term: (1 - FOR_TOTAL) * part * share / total for term, share in raw.items()})
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


def _split(shares: Sequence[Reals], total: float, multiplier: float, pairs: int) -> float:
    """What part of all stages one-ways should have: where the errors of both together are smallest.

    `multiplier` is that of the whole budget. An error of one-ways falls with the root of their part; that of pairs,
    whose groups grow finer as the noise falls, with its sixth root.
    """
    single = _error_of_oneways(shares, total, multiplier)
    double = PAIR_WEIGHT * np.cbrt(multiplier * math.sqrt(0.8 * max(pairs, 1)) / total)
    parts = np.linspace(0.15, 0.85, 71)
    costs = single / np.sqrt(parts) + double / (1 - parts) ** (1 / 6)
    return float(parts[int(np.argmin(costs))])


def _error_of_oneways(shares: Sequence[Reals], total: float, multiplier: float) -> float:
    """What the noise of one-ways does to a pair table where they have the whole budget, as a share of all rows."""
    sizes = np.array([len(s) for s in shares], np.float64)
    noise = multiplier * math.sqrt(float((sizes ** (2 / 3)).sum())) / np.cbrt(sizes)
    present = np.array([np.count_nonzero(s * total > n) for s, n in zip(shares, noise, strict=True)])
    return ONE_WAY_WEIGHT * float(np.mean(np.minimum(0.4 * present * noise / total, 0.5)))


def _part_for_chosen(single: float, explained: float, total: float, multiplier: float, pairs: int) -> float:
    """What chosen pairs should have of their stage: the best of what they explain less what one-ways lose; 0: nothing.

    Of a distance, what `LOST` groups out of all hold is lost to coarse groups and their noise.
    """
    parts = np.linspace(0.0, 0.9, 10)
    costs = single / np.sqrt(STAGES["one-ways"] + (STAGES["pairs"] + STAGES["fine"]) * (1 - parts))
    for place, part in enumerate(parts[1:], 1):
        deviation = _noise_of_pairs(multiplier, part * STAGES["pairs"], pairs)
        costs[place] -= explained * max(0.0, 1 - LOST / math.sqrt(ROUGH_CHOSEN * total / (0.4 * deviation)))
    return float(parts[int(np.argmin(costs))])


def _count_groups(choice: Choice, total: float, deviation: float) -> int:
    """How many groups a column may have in pair tables; 0 where noise would drown them."""
    most = math.floor(math.sqrt(ROUGH * total / (0.4 * deviation)))
    few, many = MANY_GROUPS
    most = math.floor(most * (1 + (MOST_FINER - 1) * min(1.0, max(0.0, (most - few) / (many - few)))))
    if choice == "all pairs":
        return max(most, 2)
    if most < FEWEST <= math.sqrt(ROUGHEST * total / (0.4 * deviation)):
        most = FEWEST
    return most if most >= FEWEST else 0


def _fit_groups(columns: Sequence[CodedColumn], shares: Sequence[Reals], total: float, most: int) -> tuple[Wholes, ...]:
    return tuple(
        group_cells(s * total, min(most, MOST_GROUPS), ordered=c.is_ordered, hierarchy=_hierarchy(c))
        for s, c in zip(shares, columns, strict=True)
    )


def _noise_of_pairs(multiplier: float, part: float, pairs: int) -> float:
    """The deviation of a cell where so many pairs share a part of the budget."""
    return multiplier / math.sqrt(max(part, 1e-9)) * math.sqrt(0.8 * max(pairs, 1))


def _part_for_pairs(shares: Sequence[Reals], total: float, multiplier: float, pairs: int, *, least: float) -> float:
    """What pairs should have of their stage; one-ways are measured once more for the rest."""
    part = 1 - _split(shares, total, multiplier, pairs) - STAGES["look"] - STAGES["fine"] - STAGES["distances"]
    return min(1.0, max(part / STAGES["pairs"], least))


def design_distances(
    columns: Sequence[CodedColumn], measured: Measured, multiplier: float, deviation: float, *, method: Choice
) -> Design:
    """The second stage: distances of pairs from independence in a few groups; one-ways once more where none are needed.

    None are needed where all pairs can be measured anyhow, and where noise would drown even distances.

    Args:
        columns: the columns with their cells.
        measured: what the first stage released, in units of the counts.
        multiplier: of the whole budget, times what one unit counts for.
        deviation: of each distance.
        method: what the caller asks for.
    """
    total, shares = clean_oneways(columns, measured)
    pairs = len(columns) * (len(columns) - 1) // 2
    part = _part_for_pairs(shares, total, multiplier, pairs, least=0.0)
    groups = _count_groups(method, total, _noise_of_pairs(multiplier, part * STAGES["pairs"], pairs))
    is_useful = groups < FEW_GROUPS and deviation / (2 * total) < MOST_DOUBT
    if pairs and (method in {"tree", "selected pairs"} or (method == "automatic" and is_useful)):
        whole = _one_group_each(columns)
        few = _fit_groups(columns, shares, total, COMPARED)
        return Design(axes_of(columns, few, whole), {}, few, whole, "selected pairs")
    return design_oneways(columns)


def expect_independence(columns: Sequence[CodedColumn], design: Design, measured: Measured) -> dict[Pair, Wholes]:
    """The pair tables that distances are taken from: products of the one-ways that were released, in whole numbers."""
    total, shares = clean_oneways(columns, measured)
    grouped = [np.bincount(g, s) for g, s in zip(design.groups, shares, strict=True)]
    return {
        (design.columns + a, design.columns + b): np.rint(total * np.outer(grouped[a], grouped[b])).astype(np.int64)
        for a, b in itertools.combinations(range(design.columns), 2)
    }


def read_distances(
    columns: Sequence[CodedColumn], design: Design, measured: Measured, values: Reals, deviation: float
) -> Distances:
    """Distances as shares of all rows, less what the noise of one-ways puts between a pair and their product."""
    total, shares = clean_oneways(columns, measured)
    off = [find_group_error(share * total, measured.deviations.get(((i, 1),), 0.0), design.groups[i],
                            ordered=column.is_ordered, known=column.known_cells)
           for i, (column, share) in enumerate(zip(columns, shares, strict=True))]  # fmt: skip
    return Distances.find(values / (2 * total), off, deviation / (2 * total))


def design_pairs(
    columns: Sequence[CodedColumn],
    measured: Measured,
    multiplier: float,
    *,
    method: Choice = "automatic",
    distances: Distances | None = None,
    target: int | None = None,
) -> Design:
    """The third stage: pairs in groups, and one-ways once more, each with what helps most.

    Args:
        columns: the columns with their cells.
        measured: what the stages before released, in units of the counts.
        multiplier: of the whole budget, times what one unit counts for.
        method: "independent" measures one-ways alone; "automatic" decides.
        distances: of all pairs from independence, where they were measured: pairs are chosen by them.
        target: a column whose pairs are always measured, and more accurately than others.
    """
    total, shares = clean_oneways(columns, measured)
    chosen, name = list(itertools.combinations(range(len(columns)), 2)), "all pairs"
    if distances is not None:
        chosen = choose_pairs(distances, len(columns), is_tree=method == "tree", is_asked=method != "automatic")
        if target is not None and method != "tree":
            chosen = sorted({*chosen, *(pair for pair in distances.values if target in pair)})
        name = "tree" if len(span_tree(chosen, len(columns))) == len(chosen) else "selected pairs"
        name = name if method == "automatic" else method
        if len(chosen) > DENSE * len(columns):
            name, distances = "all pairs", None
    least = 0.0 if method in {"automatic", "independent"} else 0.5
    for_pairs = _part_for_pairs(shares, total, multiplier, len(chosen), least=least)
    if distances is not None and method == "automatic":
        single = _error_of_oneways(shares, total, multiplier)
        explained = explained_distance(distances, chosen, len(columns))
        for_pairs = _part_for_chosen(single, explained, total, multiplier, len(chosen))
    deviation = _noise_of_pairs(multiplier, for_pairs * STAGES["pairs"], len(chosen))
    most = _count_groups(method, total, deviation)
    if distances is not None:
        most = max(FEWEST, math.floor(math.sqrt(ROUGH_CHOSEN * total / (0.4 * deviation))))
    whole = _one_group_each(columns)
    if not most or not chosen or not for_pairs or method == "independent":
        return Design(axes_of(columns, whole, whole), _present_shares(columns, measured, 1.0), whole, whole,
                      "independent")  # fmt: skip
    groups = _fit_groups(columns, shares, total, most)
    axes = axes_of(columns, groups, whole)
    raw = _pair_shares(axes, [(len(columns) + a, len(columns) + b) for a, b in chosen],
                       None if target is None else len(columns) + target)  # fmt: skip
    found = _present_shares(columns, measured, 1 - for_pairs)
    found.update({term: for_pairs * share for term, share in raw.items()})
    return Design(axes, found, groups, whole, cast("Method", name))


def _present_shares(columns: Sequence[CodedColumn], measured: Measured, part: float) -> dict[Term, float]:
    """As `_oneway_shares`, by the cells that stand out of the noise: empty ones are cleaned away."""
    total, shares = clean_oneways(columns, measured)
    raw: dict[Term, float] = {}
    for place, (column, share) in enumerate(zip(columns, shares, strict=True)):
        noise = measured.deviations.get(((place, 1),), 0.0) / 2
        if column.size > 1:
            present = max(1.5, float(np.count_nonzero(share * total > noise)))
            raw[((place, 1),)] = (1 - 1 / column.size) * present ** (2 / 3)
    return _divide(raw, part)


def _hierarchy(column: CodedColumn) -> Wholes | None:
    return None if column.groups is None else np.asarray(column.groups, np.int64)


def _pair_shares(axes: Sequence[Axis], pairs: Sequence[Pair], target: int | None = None) -> dict[Term, float]:
    """Larger tables a little more accurately: deviations inverse to the cube root of their number of cells."""
    raw = {}
    for a, b in pairs:
        if axes[a].size > 1 and axes[b].size > 1:
            cells = axes[a].size * axes[b].size
            share = (1 - 1 / axes[a].size) * (1 - 1 / axes[b].size) * cells ** (2 / 3)
            raw[((a, 1), (b, 1))] = share * (FOR_TARGET if target in {a, b} else 1.0)
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
    """The fourth stage: the strongest of all pairs in finer groups; else the third stage once more."""
    if design.method != "all pairs":
        return design
    total, shares = clean_oneways(columns, measured)
    coarse = _choose_strong(design, measured, total, shares)
    if not coarse:
        return design
    deviation = multiplier / math.sqrt(STAGES["fine"]) * math.sqrt(0.9 * len(coarse))
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


def _choose_strong(design: Design, measured: Measured, total: float, shares: Sequence[Reals]) -> list[Pair]:
    """The pairs to be measured in finer groups: the farthest from independence, by what was released already."""
    if max(int(groups.max()) + 1 for groups in design.groups) < FEW_GROUPS:
        return []
    grouped = [np.asarray(np.bincount(g, s), np.float64) for g, s in zip(design.groups, shares, strict=True)]
    strength = {}
    for target in pair_targets(design, measured, total, 1):
        excess = shrink_towards_independence(target, grouped)[1]
        strength[target.first, target.second] = 0.5 * float(np.abs(excess).sum())
    most = max(1, math.ceil(MOST_STRONG * len(strength)))
    chosen = [pair for pair in sorted(strength, key=lambda pair: -strength[pair])[:most] if strength[pair] > STRONG]
    return [(a, b) for a, b in chosen if _is_merged(design, a) or _is_merged(design, b)]


def _is_merged(design: Design, place: int) -> bool:
    return int(design.groups[place].max()) + 1 <= MERGED * len(design.groups[place])


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
