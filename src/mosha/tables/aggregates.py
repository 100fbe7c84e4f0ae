"""What can be asked of each group, by the analyst's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from mosha.connect.language.expression import Expression
from mosha.core.errors import InvalidParameter
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import real
from mosha.core.options import QuantileBars
from mosha.tables.parts.additive import Additive, Aggregate, Count, CountPersons, Distinct, DistinctSum, Mean, Sum
from mosha.tables.parts.bounded_number import Measured, numeric
from mosha.tables.parts.correlations import Correlation
from mosha.tables.parts.quantiles import Quantile
from mosha.tables.parts.spreads import Covariance, StandardDeviation

__all__ = [
    "Additive",
    "Aggregate",
    "correlation",
    "count",
    "covariance",
    "distinct",
    "maximum",
    "mean",
    "median",
    "minimum",
    "persons",
    "quantile",
    "standard_deviation",
    "sum",
    "variance",
]

Ranges = Sequence[object] | Mapping[Any, object]
"""A range for each of two columns: in their order, or by their names."""


@explain_wrong_calls
def count(column: object = None) -> Count:
    """How many rows (with `column`: in which it is not missing).

    Args:
        column: the name of a column, or an expression.

    >>> count("days")
    Count(of="days")
    """
    return Count(None if column is None else numeric(column))


@explain_wrong_calls
def persons() -> CountPersons:
    """How many persons.

    >>> persons()
    CountPersons()
    """
    return CountPersons()


@explain_wrong_calls
def distinct(column: object) -> Distinct:
    """How many different values a column has.

    Args:
        column: the name of a column, or an expression.

    >>> distinct("ward")
    Distinct(of="ward")
    """
    return Distinct(numeric(column))


@explain_wrong_calls
def distinct_sum(column: object, *, between: object = None) -> DistinctSum:
    """The sum of the different values of `column`, which are clamped into `between`: SUM(DISTINCT column) in SQL.

    >>> distinct_sum("days", between=(0, 30)).measured.bounds
    (0.0, 30.0)
    """
    measured = Measured.of_column("distinct_sum", column, between)
    if measured.automatic:
        raise InvalidParameter("tables.distinct_sum_range", parameter="between")
    return DistinctSum(measured.plain.known, measured)


@explain_wrong_calls
def sum(column: object, *, between: object = None) -> Sum:  # noqa: A001  (the analyst's word)
    """The sum of `column`, whose values are clamped into `between`.

    >>> import mosha
    >>> visits = mosha.protect({"days": [1, 2]}, unit=mosha.Row())
    >>> visits.aggregate(days=sum("days", between=(0, 30))).forecast(epsilon=1)["days"].round().tolist()
    [90.0]
    """
    return Sum(Measured.of_column("sum", column, between))


@explain_wrong_calls
def mean(column: object, *, between: object = None) -> Mean:
    """The mean of a column whose values are clamped into [low, high].

    Args:
        column: the name of a column, or an expression.
        between: the range (low, high); "automatic" buys one from the budget; left out, the declared one.

    >>> mean("days", between=(0, 30)).measured.bounds
    (0.0, 30.0)
    """
    return Mean(Measured.of_column("mean", column, between))


@explain_wrong_calls
def variance(column: object, *, between: object = None) -> Covariance:
    """The variance of `column`, whose values are clamped into `between`.

    >>> import mosha
    >>> visits = mosha.protect({"days": [1, 2]}, unit=mosha.Row())
    >>> list(visits.aggregate(spread=variance("days", between=(0, 30))).aggregates)
    ['spread']
    """
    measured = Measured.of_column("variance", column, between)
    return Covariance(measured, measured)


@explain_wrong_calls
def standard_deviation(column: object, *, between: object = None) -> StandardDeviation:
    """The standard deviation of `column`, whose values are clamped into `between`.

    >>> import mosha
    >>> visits = mosha.protect({"days": [1, 2]}, unit=mosha.Row())
    >>> list(visits.aggregate(spread=standard_deviation("days", between=(0, 30))).aggregates)
    ['spread']
    """
    return StandardDeviation(variance(column, between=between))


@explain_wrong_calls
def covariance(columns: Sequence[object], *, between: Ranges = (None, None)) -> Covariance:
    """The covariance of two `columns`, each clamped into its own (low, high) of `between`.

    >>> import mosha
    >>> visits = mosha.protect({"days": [1, 2], "age": [30, 40]}, unit=mosha.Row())
    >>> both = covariance(["days", "age"], between=[(0, 30), (0, 120)])
    >>> list(visits.aggregate(both=both).aggregates)
    ['both']
    """
    first, second = _pair("covariance", columns, between)
    return Covariance(first, second, _both(first, second))


@explain_wrong_calls
def correlation(columns: Sequence[object], *, between: Ranges = (None, None)) -> Correlation:
    """The correlation of two `columns`, each clamped into its own (low, high) of `between`.

    >>> import mosha
    >>> visits = mosha.protect({"days": [1, 2], "age": [30, 40]}, unit=mosha.Row())
    >>> both = correlation(["days", "age"], between=[(0, 30), (0, 120)])
    >>> list(visits.aggregate(both=both).aggregates)
    ['both']
    """
    first, second = _pair("correlation", columns, between)
    given = _both(first, second)
    return Correlation(
        (Covariance(first, second, given), Covariance(first, first, given), Covariance(second, second, given))
    )


def _both(first: Measured, second: Measured) -> Expression:
    """Zero, missing where either column is."""
    return first.of * 0.0 + second.of * 0.0


def _pair(name: str, columns: Sequence[object], between: Ranges) -> tuple[Measured, Measured]:
    if isinstance(between, Mapping):
        between = [between.get(column) for column in columns]
    pairs = [given for given in (columns, between) if isinstance(given, list | tuple) and len(given) == 2]
    if len(pairs) < 2 or any(isinstance(each, int | float) for each in between):
        raise InvalidParameter("tables.two_columns_needed", aggregate=name)
    first, second = (Measured.of_column(name, c, b) for c, b in zip(columns, between, strict=True))
    return first, second


@explain_wrong_calls
def quantile(column: object, at: float, *, between: object = None, bars: QuantileBars = "values") -> Quantile:
    """The quantile `at` (0.5: the median) of `column`, whose values are clamped into `between`.

    With `bars` as "values" half of the budget buys an error bar in the unit of the column; "rows" leaves it out, and
    the bar is a number of rows, which costs nothing.

    >>> quantile("days", 0.9, between=(0, 30)).at
    Fraction(9, 10)
    """
    share = real("at", at)
    if bars not in ("rows", "values"):
        raise InvalidParameter("tables.quantile_bars", parameter="bars")
    if not 0 <= share <= 1:
        raise InvalidParameter("tables.quantile_share", parameter="at")
    nearest = Fraction(share).limit_denominator(1000)
    return Quantile(Measured.of_column("quantile", column, between), nearest, in_values=bars == "values")


@explain_wrong_calls
def median(column: object, *, between: object = None, bars: QuantileBars = "values") -> Quantile:
    """The median of `column`, whose values are clamped into `between`; `bars` are those of `quantile`.

    >>> median("days", between=(0, 30)).at
    Fraction(1, 2)
    """
    return quantile(column, 0.5, between=between, bars=bars)


@explain_wrong_calls
def minimum(column: object, *, between: object = None, bars: QuantileBars = "values") -> Quantile:
    """About the least value: the quantile at 0.01, because the least value itself is one person's secret.

    `column`, `between` and `bars` are those of `quantile`.

    >>> minimum("days", between=(0, 30)).at
    Fraction(1, 100)
    """
    return quantile(column, 0.01, between=between, bars=bars)


@explain_wrong_calls
def maximum(column: object, *, between: object = None, bars: QuantileBars = "values") -> Quantile:
    """About the largest value: the quantile at 0.99, because the largest value itself is one person's secret.

    `column`, `between` and `bars` are those of `quantile`.

    >>> maximum("days", between=(0, 30), bars="values").at
    Fraction(99, 100)
    """
    return quantile(column, 0.99, between=between, bars=bars)
