"""The stages of a synthetic table, one after the other: each is designed by what the ones before released.

What a stage measures follows from public numbers and from earlier releases; what leaves is residuals and distances with
their noise, and the groups that follow from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mosha.core.measurement import Rng
from mosha.mechanisms.residuals.axis import Axis, Reals
from mosha.mechanisms.residuals.residuals import Counts, Measured, ResidualNoise, pack, unpack
from mosha.synth.measuring.columns import CodedColumn, Wholes
from mosha.synth.measuring.counting import Counted, PairCounts
from mosha.synth.measuring.distances import distance_deviation, measure_distances
from mosha.synth.modelling.choosing import Distances
from mosha.synth.modelling.design import (
    STAGES,
    Choice,
    Design,
    combine,
    design_distances,
    design_fine,
    design_oneways,
    design_pairs,
    expect_independence,
    read_distances,
)
from mosha.synth.modelling.plain import describe_design, read_design

__all__ = ["look_design", "measure_stages", "read_stages", "whole_multiplier"]


def measure_stages(
    columns: Sequence[CodedColumn],
    counted: Counted | PairCounts,
    noises: Mapping[str, ResidualNoise],
    method: Choice,
    rng: Rng,
    *,
    target: int | None = None,
) -> dict[str, Any]:
    """What all stages release, and their designs."""
    multiplier = whole_multiplier(noises["pairs"], "pairs")
    first = design_oneways(columns)
    one = noises["one-ways"].measure(first.axes, first.shares, _count_design(first, counted), rng)
    first_look = pack(one.residuals)
    compared, told, one, far = _compare(columns, one, counted, noises["distances"], method, rng)
    second = design_pairs(columns, one, multiplier, method=method, distances=far, target=target)
    two = noises["pairs"].measure(second.axes, second.shares, _count_design(second, counted), rng)
    third = design_fine(columns, second, combine(one, two), multiplier)
    three = noises["fine"].measure(third.axes, third.shares, _count_design(third, counted), rng)
    look = look_design(second)
    seen = noises["look"].measure(look.axes, look.shares, _count_design(look, counted), rng)
    return {
        "one-ways": first_look, "distances": told, "pairs": pack(two.residuals), "fine": pack(three.residuals),
        "look": pack(seen.residuals), "method": second.method,
        "designs": {stage: describe_design(design) for stage, design in
                    (("distances", compared), ("pairs", second), ("fine", third))},
    }  # fmt: skip


def _compare(
    columns: Sequence[CodedColumn],
    one: Measured,
    counted: Counted | PairCounts,
    noise: ResidualNoise,
    method: Choice,
    rng: Rng,
) -> tuple[Design, Reals, Measured, Distances | None]:
    """The second stage: its design, what it released, all that is known of one-ways, and distances if there are."""
    deviation = distance_deviation(noise, len(columns) * (len(columns) - 1) // 2)
    design = design_distances(columns, one, whole_multiplier(noise, "distances"), deviation, method=method)
    counts = _count_design(design, counted)
    if design.shares:
        again = noise.measure(design.axes, design.shares, counts, rng)
        return design, pack(again.residuals), combine(one, again), None
    values = measure_distances(noise, expect_independence(columns, design, one), counts, rng)
    return design, values, one, read_distances(columns, design, one, values, deviation)


def whole_multiplier(noise: ResidualNoise, stage: str) -> float:
    """The multiplier of all stages together, times what one unit counts for, from that of one stage."""
    return noise.multiplier * math.sqrt(STAGES[stage]) * noise.reach


def look_design(design: Design) -> Design:
    """The second look: pairs in groups and the total, or one-ways where there are no pairs."""
    shares = {term: share for term, share in design.shares.items() if len(term) == 2 or not term}
    if len(shares) < 2:
        shares = dict(design.shares)
    return Design(design.axes, shares, design.groups, design.fine, design.method)


def read_stages(
    columns: Sequence[CodedColumn], value: Mapping[str, Any], noises: Mapping[str, ResidualNoise], grain: int
) -> tuple[Design, Measured, Measured]:
    """From what was released: the last design, all that the fit may see, and the look; both in rows."""
    designs = {stage: read_design(columns, plain) for stage, plain in value["designs"].items()}
    measured = _in_rows(noises["one-ways"], design_oneways(columns), value["one-ways"], grain)
    for stage, design in designs.items():
        if design.shares:
            measured = combine(measured, _in_rows(noises[stage], design, value[stage], grain))
    look = _in_rows(noises["look"], look_design(designs["pairs"]), value["look"], grain)
    return designs["fine"], measured, look


def _count_design(design: Design, counted: Counted | PairCounts) -> Counts:
    """The exact tables of a design's axes."""
    if isinstance(counted, PairCounts):
        return lambda numbers: _merge_axes(design, counted, numbers)
    known: dict[int, Wholes] = {}

    def cells(number: int) -> Wholes:
        if number not in known:
            known[number] = design.cells(number, counted.cells)
        return known[number]

    def counts(numbers: tuple[int, ...]) -> Wholes:
        if not numbers:
            return counted.marginal(())
        sizes = tuple(design.axes[number].size for number in numbers)
        return counted.table([cells(number) for number in numbers], sizes)

    return counts


def _merge_axes(design: Design, counted: PairCounts, numbers: tuple[int, ...]) -> Wholes:
    """The table of some axes, from that of all cells of their columns."""
    table = counted.marginal(tuple(number % design.columns for number in numbers))
    for axis, number in enumerate(numbers):
        merged = np.zeros((design.axes[number].size, *np.delete(table.shape, axis)), np.int64)
        cells = np.arange(table.shape[axis])
        place = number % design.columns
        np.add.at(merged, design.cells(number, {place: cells}), np.moveaxis(table, axis, 0))
        table = np.moveaxis(merged, 0, axis)
    return table


def _in_rows(noise: ResidualNoise, design: Design, whole: Reals, grain: int) -> Measured:
    axes: tuple[Axis, ...] = design.axes
    deviations = noise.deviations(axes, design.shares)
    residuals = unpack(np.asarray(whole, np.float64), axes, list(deviations))
    return Measured(
        axes, {t: table / grain for t, table in residuals.items()}, {t: d / grain for t, d in deviations.items()}
    )
