"""Which counts are certified: linear queries on what was measured, unbiased, with an exact error bar."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mosha.core.number import strict_probability
from mosha.mechanisms.error_bars import gaussian_width
from mosha.mechanisms.residuals.axis import Reals
from mosha.mechanisms.residuals.residuals import Measured
from mosha.synth.margins import Estimate
from mosha.synth.modelling.design import Design

__all__ = ["certified_count"]


def certified_count(
    measured: Measured, design: Design, selections: Mapping[int, Reals], confidence: float
) -> Estimate | None:
    """The number of rows in chosen cells of at most two columns; None where that was not measured.

    One column is measured cell by cell. Two columns are measured in groups: their count is certified where each
    selection takes whole groups.
    """
    if len(selections) > 2:
        return None
    queries = {place: selection.reshape(1, -1) for place, selection in selections.items()}
    if len(selections) == 2:
        for groups, shift in ((design.fine, 2), (design.groups, 1)):
            coarse = {place: _by_groups(s, groups[place]) for place, s in selections.items()}
            shifted = {shift * design.columns + place: row for place, row in coarse.items() if row is not None}
            term = tuple((number, 1) for number in sorted(shifted))
            if len(shifted) == 2 and term in measured.residuals:
                return _pair_count(measured, selections, shifted, confidence)
        return None
    value = measured.marginal(tuple(queries))
    for row in queries.values():
        value = np.tensordot(row[0], value, axes=(0, 0))
    return _estimate(float(value), float(measured.variance(queries)[0]), confidence)


def _by_groups(selection: Reals, groups: np.ndarray) -> Reals | None:
    """The selection as one of groups, where it takes every group whole or not at all."""
    most = np.bincount(groups, selection) / np.bincount(groups)
    return most.reshape(1, -1) if np.allclose(most[groups], selection, atol=1e-12) else None


def _pair_count(
    measured: Measured,
    selections: Mapping[int, Reals],
    grouped: Mapping[int, Reals],
    confidence: float,
) -> Estimate:
    """The pair's own residual in groups, and what total and one-ways add to it, spread evenly over groups."""
    term = tuple((number, 1) for number in sorted(grouped))
    value = measured.residuals[term]
    variance = measured.deviations[term] ** 2
    for number in sorted(grouped):
        value = np.tensordot(grouped[number][0], value, axes=(0, 0))
        variance *= float(((grouped[number] - grouped[number].mean()) ** 2).sum())
    (first, second) = sorted(selections)
    means = {
        place: float(grouped[number].mean()) for place, number in zip((first, second), sorted(grouped), strict=True)
    }
    total = float(measured.residuals[()])
    counts = {}
    for place, other in ((first, second), (second, first)):
        # the marginal of a column sits in the pair table with the mean of the other column's coefficients
        row = selections[place]
        residual = measured.residuals.get(((place, 1),), np.zeros(len(row)))
        centred = row - means[place]
        counts[place] = means[other] * (float(centred @ residual) + total * float(centred.mean()))
        spread = centred - centred.mean()
        variance += (means[other] * measured.deviations.get(((place, 1),), 0.0)) ** 2 * float((spread**2).sum())
    coefficient = means[first] * means[second]
    coefficient += means[second] * float((selections[first] - means[first]).mean())
    coefficient += means[first] * float((selections[second] - means[second]).mean())
    variance += (coefficient * measured.deviations[()]) ** 2
    whole = float(value) + sum(counts.values()) + means[first] * means[second] * total
    return _estimate(whole, variance, confidence)


def _estimate(value: float, variance: float, confidence: float) -> Estimate:
    quantile = gaussian_width(2.0**30, strict_probability("confidence", confidence)) / 2.0**30
    return Estimate(value, float(np.sqrt(variance)) * quantile)
