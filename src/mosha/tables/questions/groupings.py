"""Counts in several groupings of the same rows: which noise suits them best, and the bars of each grouping."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from mosha.connect.language.value import Rows
from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter, Refused
from mosha.tables.mechanisms.grouping_noise import Grouping, GroupingNoise
from mosha.tables.parts.part import Frame, Part, noise_multiplier
from mosha.tables.parts.sums import Sums, is_shared

__all__ = ["MOST_SETS", "MOST_SUMMED", "MOST_WORK", "check_sets", "choose_noise", "is_planned", "show_grouping"]

MOST_SETS = 64

MOST_SUMMED = 1 << 16
"""More groups are not rebuilt from residuals."""

MOST_WORK = 1 << 20
"""Of residuals times groups: about half a second of work, before payment and after it."""


def check_sets(sets: Sequence[Sequence[str]], keys: Sequence[str], *, of_some: bool) -> None:
    """Refuse groupings that name no key or one twice, that are many, or that are of some groups alone.

    Args:
        sets: the keys that each grouping keeps.
        keys: those of the question.
        of_some: whether only the largest groups are shown: what noise is planned for is all of them.
    """
    if len(sets) > MOST_SETS:
        raise Refused("tables.sql_too_many_sets", most=MOST_SETS, spent="nothing")
    for kept in sets:
        if unknown := [name for name in kept if name not in keys]:
            raise InvalidParameter("tables.sets_of_keys", name=unknown[0], spent="nothing")
        if len(set(kept)) < len(kept):
            raise InvalidParameter("tables.sets_repeat_a_key", parameter="sets", spent="nothing")
    if sets and of_some:
        raise InvalidParameter("tables.sets_of_top", parameter="sets", spent="nothing")


def choose_noise(frame: Frame, sums: Sums, budget: Budget) -> Sums:
    """The same counts with noise that is planned for all groupings together, where that has the smaller errors.

    Compared are the sums of the variances of all numbers that are asked for: with noise on the finest groups, every
    grouping has all of their noise, in fewer numbers. Only public numbers decide. One person is in one of the finest
    groups, or in few, so that Laplace noise on them is hard to beat where there are not many.

    Args:
        frame: the groups, and the groupings that are asked for.
        sums: the only part of the release, with the noise that it would have on the finest groups.
        budget: of the release.
    """
    sizes = _list_sizes(frame)
    plain = all(isinstance(value, Rows) for value in sums.values.values()) and not sums.fixed
    if not sizes or _count_work(sizes, frame.sets) > MOST_WORK:
        return sums
    if not plain or not budget.allows_gaussian or sums.choice is not None or sums.ranges is not None:
        return sums
    multiplier = noise_multiplier(budget, 1.0, gaussian=1.0)
    shared = is_shared(frame, sums.aggregates, sums.values, sums.limits)
    try:
        noise = GroupingNoise(multiplier, len(sums.values), sizes, frame.sets, shared)
    except InvalidParameter:  # a budget that is too small for this grid
        return sums
    planned = replace(sums, noise=noise, other=None)
    reach = planned.reach(frame, planned.limits.norm)
    usual = sums.noise.deviation(sums.reach(frame, sums.limits.norm)[0]) ** 2 * math.prod(sizes) * len(frame.sets)
    ours = noise.sum_variances() * (noise.deviation(reach[0]) / math.sqrt(max(map(noise.variance, frame.sets)))) ** 2
    return planned if ours < usual and noise.can_measure(reach) else sums


def _list_sizes(frame: Frame) -> tuple[int, ...]:
    """How many values each key has, where the groups are all combinations of them, in order; none otherwise."""
    if not frame.sets or frame.only is None or not 0 < len(frame.only) <= MOST_SUMMED:
        return ()
    values = [list(dict.fromkeys(row[place] for row in frame.only)) for place in range(len(frame.keys))]
    sizes = tuple(map(len, values))
    if math.prod(sizes) != len(frame.only) or tuple(itertools.product(*values)) != tuple(map(tuple, frame.only)):
        return ()
    return sizes


def _count_work(sizes: Sequence[int], sets: Sequence[Grouping]) -> int:
    """At most how many residuals there are, times the groups that each of them is found from."""
    residuals = sum(1 << sum(sizes[key] > 1 for key in kept) for kept in dict.fromkeys(sets))
    return residuals * math.prod(sizes)


def is_planned(part: Part) -> bool:
    """Whether a part has noise that is planned for groupings."""
    return isinstance(part, Sums) and isinstance(part.noise, GroupingNoise)


def show_grouping(part: Part, kept: Grouping) -> Part:
    """The same part, whose error bars are those of this grouping where its noise is planned for groupings."""
    if isinstance(part, Sums) and isinstance(part.noise, GroupingNoise):
        return replace(part, noise=replace(part.noise, shown=kept))
    return part
