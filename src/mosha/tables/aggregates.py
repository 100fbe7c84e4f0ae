"""What can be asked of each group, by the analyst's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mosha.connect.language.expression import Expression
from mosha.core.errors import InvalidParameter
from mosha.tables.parts.additive import Additive, Aggregate, Count, CountPersons, Distinct, Mean, Sum
from mosha.tables.parts.bounded_number import Measured, numeric
from mosha.tables.parts.correlations import Correlation
from mosha.tables.parts.spreads import Covariance, StandardDeviation

__all__ = [
    "Additive",
    "Aggregate",
    "correlation",
    "count",
    "covariance",
    "distinct",
    "mean",
    "persons",
    "standard_deviation",
    "sum",
    "variance",
]


def count(column: Any = None) -> Count:
    """How many rows (with `column`: in which it is not missing).

    Args:
        column: the name of a column, or an expression.

    >>> count("days")
    Count(of="days")
    """
    return Count(None if column is None else numeric(column))


def persons() -> CountPersons:
    """How many persons.

    >>> persons()
    CountPersons()
    """
    return CountPersons()


def distinct(column: Any) -> Distinct:
    """How many different values a column has.

    Args:
        column: the name of a column, or an expression.

    >>> distinct("ward")
    Distinct(of="ward")
    """
    return Distinct(numeric(column))


def sum(column: Any, *, between: Any = None) -> Sum:  # noqa: A001  (the analyst's word)
    """The sum of a column whose values are clamped into [low, high]."""
    return Sum(Measured.of_column("sum", column, between))


def mean(column: Any, *, between: Any = None) -> Mean:
    """The mean of a column whose values are clamped into [low, high].

    Args:
        column: the name of a column, or an expression.
        between: the range (low, high); "automatic" buys one from the budget; left out, the declared one.

    >>> mean("days", between=(0, 30)).measured.bounds
    (0.0, 30.0)
    """
    return Mean(Measured.of_column("mean", column, between))


def variance(column: Any, *, between: Any = None) -> Covariance:
    """The variance of a column whose values are clamped into [low, high]."""
    measured = Measured.of_column("variance", column, between)
    return Covariance(measured, measured)


def standard_deviation(column: Any, *, between: Any = None) -> StandardDeviation:
    """The standard deviation of a column whose values are clamped into [low, high]."""
    return StandardDeviation(variance(column, between=between))


def covariance(columns: Sequence[Any], *, between: Sequence[Any] = (None, None)) -> Covariance:
    """The covariance of two columns, each clamped into its own (low, high)."""
    first, second = _pair("covariance", columns, between)
    return Covariance(first, second, _both(first, second))


def correlation(columns: Sequence[Any], *, between: Sequence[Any] = (None, None)) -> Correlation:
    """The correlation of two columns, each clamped into its own (low, high)."""
    first, second = _pair("correlation", columns, between)
    given = _both(first, second)
    return Correlation(
        (Covariance(first, second, given), Covariance(first, first, given), Covariance(second, second, given))
    )


def _both(first: Measured, second: Measured) -> Expression:
    """Zero, missing where either column is."""
    return first.of * 0.0 + second.of * 0.0


def _pair(name: str, columns: Sequence[Any], between: Sequence[Any]) -> tuple[Measured, Measured]:
    lists = (columns, between)
    if not all(isinstance(given, list | tuple) and len(given) == 2 for given in lists):
        raise InvalidParameter("tables.two_columns_needed", aggregate=name)
    first, second = (Measured.of_column(name, c, b) for c, b in zip(columns, between, strict=True))
    return first, second
