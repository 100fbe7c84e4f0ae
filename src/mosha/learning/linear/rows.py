"""Rows of numbers as whole numbers in a ball: what a linear model sees of an example.

Everything that a linear model does with an example is exact on whole numbers, so that what one example adds to a
gradient is the same whichever other examples are there, however the machine orders its sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter, Unbounded
from mosha.core.number import positive, positive_integer, real
from mosha.exact.bounding import to_array, to_numbers
from mosha.exact.clip import clip_vectors

__all__ = ["RADIUS", "BoundedRows", "label_codes"]

RADIUS = 1 << 14
"""The norm that every row has at most, in steps; a coordinate fits 16 bits."""

BLOCK = 1 << 11
"""Rows that are handled at once; no result depends on it."""


@dataclass(frozen=True)
class BoundedRows:
    """Examples mapped into the unit ball: clamped into `between`, centred, shortened to `norm`, rounded.

    `between` holds the lowest and the highest value of every feature (one number for all of them, or one each); a
    feature then runs from -1 to 1. `norm` is the largest Euclidean norm of a row after that; without it the root of
    the number of features is used, which no row exceeds. With `intercept` a constant is added.

    Guarantee:
        `steps` gives each row by itself a whole vector of Euclidean norm at most `RADIUS` (`clip_vectors`, checked in
        integers). A row with a NaN becomes zero, so no value fails or is dropped from sight of the others.

    Units:
        `between` and `norm` are in the units of the features; without `between`, `norm` is that of the raw row.

    >>> rows = BoundedRows(features=2, norm=5.0, intercept=False)
    >>> (rows.steps([[3.0, 4.0], [30.0, 40.0], [float("nan"), 1.0]]) / RADIUS).round(3).tolist()
    [[0.6, 0.8], [0.6, 0.8], [0.0, 0.0]]
    """

    features: int
    between: Any = None
    norm: float | None = None
    intercept: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", positive_integer("features", self.features))
        if self.between is None and self.norm is None:
            raise Unbounded("learning.linear_needs_bounds", parameter="between")
        if not isinstance(self.intercept, bool | np.bool_):
            raise InvalidParameter("learning.intercept_options", parameter="intercept")
        object.__setattr__(self, "between", _bounds(self.between, self.features))
        norm = math.sqrt(self.features) if self.norm is None else positive("norm", self.norm)
        if not 2.0**-400 < norm < 2.0**400:
            raise InvalidParameter("learning.norm_range", parameter="norm")
        object.__setattr__(self, "norm", norm)

    @property
    def width(self) -> int:
        """How many coordinates a row has, the constant included."""
        return self.features + int(self.intercept)

    @property
    def shrink(self) -> float:
        """What a row is multiplied with after it was divided by `norm`: room for the constant."""
        return math.sqrt(0.5) if self.intercept else 1.0

    def matrix(self, data: object) -> NDArray[np.float64]:
        """The raw rows as floats; only their declared shape can be wrong."""
        if hasattr(data, "to_numpy"):
            data = data.to_numpy()
        return to_numbers(data, width=self.features)

    def steps(self, data: object) -> NDArray[np.int16]:
        """Each row as whole steps."""
        raw = self.matrix(data)
        found = np.empty((raw.shape[0], self.width), np.int16)
        for start in range(0, raw.shape[0], BLOCK):
            found[start : start + BLOCK] = self._block(raw[start : start + BLOCK])
        return found

    @np.errstate(all="ignore")
    def _block(self, raw: NDArray[np.float64]) -> NDArray[np.int64]:
        if self.between is not None:
            low, high = (np.array(side) for side in self.between)
            raw = (np.clip(raw, low, high) - (low + high) / 2) / ((high - low) / 2)
        assert self.norm is not None
        radius = math.isqrt(RADIUS * RADIUS // 2) if self.intercept else RADIUS
        steps = clip_vectors(raw, radius, 2, self.norm / radius)
        if not self.intercept:
            return steps
        known = np.isfinite(raw).all(axis=1, keepdims=True)
        return np.hstack([steps, np.where(known, radius, 0)])

    def in_units(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights of the ball (width by outputs) as coefficients (outputs by features) and intercepts of raw features.

        They speak of rows within the bounds: others are bounded first.
        """
        assert self.norm is not None
        scaled = weights[: self.features].T * (self.shrink / self.norm)
        offset = weights[-1] * self.shrink if self.intercept else np.zeros(weights.shape[1])
        if self.between is None:
            return scaled, offset
        low, high = (np.array(side) for side in self.between)
        coefficients = scaled / ((high - low) / 2)
        return coefficients, offset - coefficients @ ((low + high) / 2)


def _bounds(between: Any, features: int) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    if between is None:
        return None
    try:
        low, high = between
        sides = [np.broadcast_to(np.asarray(side, np.float64), (features,)).tolist() for side in (low, high)]
    except (TypeError, ValueError):
        raise InvalidParameter("learning.between_form", parameter="between") from None
    lows, highs = (tuple(real("between", side) for side in each) for each in sides)
    if not all(
        a < b and b - a >= 2.0**-400 and max(abs(a), abs(b)) <= 2.0**400 for a, b in zip(lows, highs, strict=True)
    ):
        raise InvalidParameter("learning.between_order", parameter="between")
    return lows, highs


def label_codes(labels: object, classes: Sequence[object]) -> NDArray[np.intp]:
    """The position of each label among `classes`, or -1 for one that is not among them; each row by itself.

    >>> label_codes(["yes", "no", None, "yes"], ["no", "yes"]).tolist()
    [1, 0, -1, 1]
    """
    array = to_array(labels)
    if array.ndim != 1:
        raise DataError("learning.labels_of_examples")
    codes = np.full(array.size, -1, np.intp)
    if array.dtype.kind in "biuf" and all(isinstance(c, int | float | np.number) for c in classes):
        for code, label in enumerate(classes):
            codes[array == label] = code
        return codes
    known = {label: code for code, label in enumerate(classes)}
    for row, label in enumerate(array.tolist()):
        try:
            codes[row] = known.get(label, -1)
        except Exception:  # noqa: BLE001  (what a row does when it is compared must not be heard)
            codes[row] = -1
    return codes
