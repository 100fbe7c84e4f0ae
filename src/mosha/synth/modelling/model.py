"""The model of a table: a mixture over groups of cells, and inside of a group the noisy one-way."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mosha.mechanisms.residuals.axis import Reals
from mosha.mechanisms.residuals.residuals import Measured
from mosha.synth.measuring.columns import CodedColumn, Wholes
from mosha.synth.modelling.choosing import complete_pairs
from mosha.synth.modelling.design import Design, clean_oneways, pair_targets
from mosha.synth.modelling.mixture import (
    Mixture,
    assume_independence,
    fit_mixture,
    join_mixtures,
    misfit_of_independence,
)
from mosha.synth.modelling.shrinking import CLOSE, shrink_directions

__all__ = ["Model", "fit_model"]

FEWEST_COMPONENTS, USUAL_COMPONENTS, MOST_COMPONENTS, MOST_STEPS = 200, 400, 800, 1000
RICH = 1000.0
"""From this misfit of independent columns on a fit has the most components; else fewer, so that several are joined."""

MEMORY = 1 << 26
"""Numbers that the matrix of all components may have."""

FITS, MOST_WORK = 6, 1.3e11
"""How many fits are joined; no other is begun after so many multiplications, so that large tables take no longer."""


@dataclass(frozen=True, eq=False)
class Model:
    """Distributions of all components over groups of cells, and of the cells inside of each group.

    Fields:
        mixture: the components.
        groups: for each column the group of every cell.
        inside: for each column the share of every cell within its group.
        total: the noisy number of rows.
    """

    mixture: Mixture
    groups: tuple[Wholes, ...]
    inside: tuple[Reals, ...]
    total: float

    def column(self, place: int) -> Reals:
        """The share of every cell of a column, for each component."""
        groups = self.mixture.column(place)[:, self.groups[place]]
        return np.asarray(groups * self.inside[place], np.float64)

    def marginal(self, columns: Sequence[int]) -> Reals:
        """The table that the model implies for some columns, as shares."""
        found = np.ones((len(self.mixture.parts), 1))
        shape = []
        for place in columns:
            part = self.column(place)
            shape.append(part.shape[1])
            if place == columns[-1]:
                return np.asarray(found.T @ part / len(part), np.float64).reshape(shape)
            found = (found[:, :, None] * part[:, None, :]).reshape(len(part), -1)
        return np.ones(())

    def chance(self, selections: Mapping[int, Reals]) -> Reals:
        """For each component, how likely a row lies in the chosen cells of some columns."""
        found = np.ones(len(self.mixture.parts))
        for place, selection in selections.items():
            found = found * (self.column(place) @ selection)
        return found


def seed_of(measured: Measured) -> int:
    """A seed that is a function of what was released."""
    text = b"".join(np.asarray(table, "<f8").tobytes() for table in measured.residuals.values())
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


def fit_model(
    columns: Sequence[CodedColumn],
    design: Design,
    measured: Measured,
    *,
    progress: Callable[[float], None] | None = None,
) -> Model:
    """The model of what was released; `measured` is in rows."""
    total, shares = clean_oneways(columns, measured)
    has_fine = any(len(term) == 2 and term[0][0] >= 2 * len(columns) for term in measured.residuals)
    cells = design.fine if has_fine else design.groups
    if design.method == "independent":
        cells = tuple(np.arange(column.size, dtype=np.int64) for column in columns)
    merged, coarse, inside, deviations = [], [], [], []
    for place, (share, numbers) in enumerate(zip(shares, cells, strict=True)):
        weights = np.asarray(np.bincount(numbers, share), np.float64)
        sizes = np.bincount(numbers)
        merged.append(weights / weights.sum())
        filled = np.where(weights[numbers] > 0, share / np.maximum(weights[numbers], 1e-300), 1 / sizes[numbers])
        inside.append(np.asarray(filled, np.float64))
        first = np.unique(numbers, return_index=True)[1]
        coarse.append(design.groups[place][first])
        deviation = measured.deviations.get(((place, 1),), total)
        deviations.append(deviation * math.sqrt(len(share) / len(weights)) / total)
    grouped = [np.asarray(np.bincount(g, s), np.float64) for g, s in zip(design.groups, shares, strict=True)]
    pairs = [assume_independence(pair, grouped) for pair in pair_targets(design, measured, total, 1)]
    if design.method in {"tree", "selected pairs"}:
        pairs += complete_pairs(pairs, grouped)
    fine = pair_targets(design, measured, total, 2)
    components = count_components(merged, misfit_of_independence(pairs, grouped))
    nearer = [shrink_directions(pair, grouped) for pair in pairs], [shrink_directions(pair, merged) for pair in fine]

    def fit(number: int) -> Mixture:  # every other one to what was measured, the rest to what is left of it
        coarser, finer = nearer if number % 2 else (pairs, fine)
        closer = CLOSE**0.5 if number % 2 else 1.0
        return fit_mixture(
            merged, coarser, groups=coarse, fine=finer, deviations=[closer * deviation for deviation in deviations],
            components=components, steps=MOST_STEPS, seed=seed_of(measured) + number,
            progress=None if progress is None else lambda share: progress((number + share) / FITS),
        )  # fmt: skip

    mixture = _fit_several(fit, components * sum(int(groups.max()) + 1 for groups in coarse) ** 2)
    return Model(mixture, tuple(cells), tuple(inside), total)


def count_components(oneways: Sequence[Reals], misfit: float) -> int:
    """How many components a fit has: more for wide tables, and where little noise hides much dependence.

    >>> count_components([np.full(300, 1 / 300)], misfit=2.0), count_components([np.full(300, 1 / 300)], misfit=1e4)
    (400, 600)
    """
    width = max(sum(len(shares) for shares in oneways), 1)
    most = MOST_COMPONENTS if misfit > RICH else USUAL_COMPONENTS
    return max(FEWEST_COMPONENTS, min(most, MEMORY // width, 2 * width))


def _fit_several(fit: Callable[[int], Mixture], work: float) -> Mixture:
    """Several fits from different beginnings as one, as long as they are not too much work; `work` is that of a step.

    One is enough where all columns are independent.
    """
    fits = [fit(0)]
    while len(fits) < FITS and len(fits[0].parts) > 1:
        done = sum(each.steps for each in fits)
        if (done + fits[0].steps) * work > MOST_WORK or (len(fits) + 1) * fits[0].parts.size > MEMORY:
            break
        fits.append(fit(len(fits)))
    return join_mixtures(fits)
