"""The mean of one number a device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mosha.core.errors import InvalidParameter
from mosha.core.names.deprecation import renamed_method
from mosha.core.number import positive, positive_integer, real
from mosha.core.options import MeanMethod
from mosha.local.protocols.numeric import METHODS, Numeric, numeric_by_name
from mosha.local.survey import Survey, require_reports

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Average", "Mean", "check_range", "share_of_range", "shares_of_range"]


@dataclass(frozen=True)
class Average:
    """An estimated mean.

    Fields:
        value: the unbiased estimate, in the unit of the data.
        reports: how many reports were counted.
        deviation: the standard deviation of what one report estimates.
        reach: how far the estimates of two reports can lie apart.

    >>> from mosha.local import Mean
    >>> survey = Mean(between=(0, 10), epsilon=4)
    >>> average = survey.estimate(survey.reports([5.0] * 2000))
    >>> average.reports, 3 < average.value < 7
    (2000, True)
    """

    value: float
    reports: int
    deviation: float
    reach: float

    def error(self, confidence: float = 0.95) -> float:
        """The half-width of the error bar at `confidence`, in the unit of the data."""
        from mosha.local.estimate import deviations

        return deviations(confidence) * self.deviation / math.sqrt(self.reports)

    def bound_poisoning(self, fakes: int) -> float:
        """How far `fakes` fake devices among those that reported can have moved the mean: no report reaches further."""
        if positive_integer("fakes", fakes) > self.reports:
            raise InvalidParameter("local.more_fakes_than_reports", parameter="fakes")
        return fakes * self.reach / self.reports

    poisoned = renamed_method("poisoned", "bound_poisoning")

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.error():.2g}"


class Mean(Survey):
    """A survey of one number a device, clamped into `between`; its mean, without bias.

    Guarantee:
        That of `Numeric`. The value is clamped first, so every number has a report; what is no number is refused.

    Units:
        `between` and the estimate are in the unit of the data.

    Args:
        between: (low, high), public.
        epsilon: what one report may reveal.
        method: "hybrid" (the least worst-case variance), "piecewise" or "duchi".

    >>> survey = Mean(between=(0, 100), epsilon=4)
    >>> average = survey.estimate(survey.reports([30.0] * 50_000))
    >>> abs(average.value - 30) < 3 * average.error(0.9999)
    True
    """

    kind = "mean"
    randomizer: Numeric

    def __init__(self, *, between: tuple[float, float], epsilon: float, method: MeanMethod = "hybrid") -> None:
        self.epsilon = positive("epsilon", epsilon)
        self.between = check_range(between)
        self.method = method
        self.randomizer = numeric_by_name(method, self.epsilon)

    def _question_fields(self) -> dict[str, Any]:
        return {"between": list(self.between), "method": self.method}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Mean:
        if fields["method"] not in METHODS:
            raise InvalidParameter("local.unknown_method", parameter="method")
        low, high = fields["between"]
        return cls(between=(low, high), epsilon=fields["epsilon"], method=fields["method"])

    def _describe(self) -> str:
        return f"between {self.between[0]:g} and {self.between[1]:g}, {self.method}"

    def _encode(self, value: object) -> float:
        return share_of_range(value, self.between)

    def _encode_many(self, values: object) -> NDArray[np.float64]:
        return shares_of_range(values, self.between)

    def decode(self, counters: NDArray[np.int64], reports: int) -> Average:
        count = require_reports(reports)
        first, second = self.randomizer.moments(counters)
        low, high = self.between
        deviation = math.sqrt(max(0.0, second - first**2))
        width = high - low
        return Average(low + width * first, count, width * deviation, width * self.randomizer.reach)


def check_range(between: Any) -> tuple[float, float]:
    """A range whose ends are finite and in order."""
    try:
        low, high = between
    except (TypeError, ValueError):
        raise InvalidParameter("local.not_a_range", parameter="between") from None
    low, high = real("between", low), real("between", high)
    if not low < high or not math.isfinite(high - low):
        raise InvalidParameter("local.range_reversed", parameter="between")
    return low, high


def share_of_range(value: Any, between: tuple[float, float]) -> float:
    """How far along the range the value lies, from 0 to 1; beyond the ends it is clamped."""
    try:
        number = math.nan if _is_no_number(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise InvalidParameter("local.not_a_number", parameter="value")
    low, high = between
    return (min(max(number, low), high) - low) / (high - low)


def shares_of_range(values: object, between: tuple[float, float]) -> NDArray[np.float64]:
    """The same for many values."""
    import numpy as np

    try:
        given = np.asarray(values)
        listed = values if isinstance(values, list | tuple) else given.tolist() if given.dtype.kind == "O" else ()
        known = not given.size or (given.dtype.kind in "iufO" and not any(_is_no_number(value) for value in listed))
        array: NDArray[np.float64] = given.astype(np.float64) if known else np.array([math.nan])
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter("local.not_numbers", parameter="values") from None
    if array.ndim != 1 or np.isnan(array).any():
        raise InvalidParameter("local.numbers_not_flat", parameter="values")
    low, high = between
    return (np.clip(array, low, high) - low) / (high - low)


def _is_no_number(value: object) -> bool:
    """A text that looks like a number is none, nor is a truth."""
    return isinstance(value, bool | str | bytes | bytearray) or type(value).__name__ in ("bool", "bool_")
