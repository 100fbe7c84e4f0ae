"""Declared ranges of features: from each example's numbers to whole steps of a public grid, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from mosha.core.errors import InvalidParameter, Unbounded
from mosha.core.number import real
from mosha.models.sums.row_sums import Floats, Wholes

__all__ = ["RADIUS", "Between", "Ranges", "read_ranges"]

RADIUS = 1 << 14
"""Half of a range, in steps."""

Between: TypeAlias = "Mapping[str, tuple[float, float]] | Sequence[float | Sequence[float]] | None"
"""One (low, high) for all features, (lows, highs), or {name: (low, high)}."""


@dataclass(frozen=True)
class Ranges:
    """The lowest (`lows`) and the highest value (`highs`) of each feature, declared in advance.

    Guarantee:
        `to_steps` turns every number by itself into a whole number of size at most RADIUS: subtraction, division,
        clamping, product and rounding are single IEEE operations, the same wherever the number stands. NaN stays out:
        the second answer says which examples have none.

    >>> ranges = Ranges((0.0, -1.0), (10.0, 1.0))
    >>> ranges.to_steps(np.array([[5.0, 1.0], [99.0, float("nan")]]))[0].tolist()
    [[0, 16384], [16384, 0]]
    """

    lows: tuple[float, ...]
    highs: tuple[float, ...]

    @property
    def middles(self) -> Floats:
        return np.asarray((np.array(self.lows) + np.array(self.highs)) / 2, np.float64)

    @property
    def halves(self) -> Floats:
        return np.asarray((np.array(self.highs) - np.array(self.lows)) / 2, np.float64)

    @np.errstate(all="ignore")
    def to_steps(self, values: Floats) -> tuple[Wholes, Wholes]:
        """Steps of `values` from the middle of each range, and 1 for each example without a missing number (else 0)."""
        scaled = np.clip((values - self.middles) / self.halves, -1.0, 1.0)
        known = np.asarray(~np.isnan(values).any(axis=1), np.int64)
        return np.rint(np.nan_to_num(scaled) * RADIUS).astype(np.int64), known

    def to_unit(self, values: Floats) -> Floats:
        """Public `values` as numbers from -1 to 1, as the model sees them."""
        return np.asarray(np.clip((values - self.middles) / self.halves, -1.0, 1.0))


def read_ranges(
    between: Between,
    features: int,
    names: Sequence[str] | None = None,
    declared: Mapping[str, tuple[float, float]] | None = None,
) -> Ranges:
    """The ranges that were said, or those that the table's declaration has.

    >>> read_ranges((0, 1), 2)
    Ranges(lows=(0.0, 0.0), highs=(1.0, 1.0))
    >>> read_ranges({"age": (0, 120)}, 2, ["age", "bmi"], {"bmi": (10, 60)})
    Ranges(lows=(0.0, 10.0), highs=(120.0, 60.0))
    """
    if between is None or isinstance(between, Mapping):
        known = {**(declared or {}), **(between or {})}
        listed = list(names or ())
        if missing := [name for name in listed if name not in known]:
            raise Unbounded("models.range_of_column", parameter="between", column=missing[0])
        if not listed:
            raise Unbounded("models.range_of_features", parameter="between")
        between = [[known[name][0] for name in listed], [known[name][1] for name in listed]]
    try:
        low, high = between
        sides = [np.broadcast_to(np.asarray(side, np.float64), (features,)).tolist() for side in (low, high)]
    except (TypeError, ValueError):
        raise InvalidParameter("models.form_of_ranges", parameter="between") from None
    lows, highs = (tuple(real("between", side) for side in each) for each in sides)
    for a, b in zip(lows, highs, strict=True):
        if not (a < b and b - a >= 2.0**-300 and max(abs(a), abs(b)) <= 2.0**300):
            raise InvalidParameter("models.order_of_range", parameter="between", low=a, high=b)
    return Ranges(lows, highs)
