"""The verbs that end in a question, the same for a table and for a table in groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from mosha.core.errors import InvalidParameter, WrongCall
from mosha.core.language import say
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import real
from mosha.core.options import QuantileBars
from mosha.tables import aggregates
from mosha.tables.aggregates import Ranges, maximum, minimum, quantile
from mosha.tables.parts.additive import Aggregate
from mosha.tables.question import Question

__all__ = ["Asks"]

INSTEAD = {
    "avg": "mean", "average": "mean", "std": "standard_deviation", "stddev": "standard_deviation", "var": "variance",
    "min": "minimum", "max": "maximum", "nunique": "distinct", "unique": "distinct", "n_unique": "distinct",
    "size": "count", "len": "count", "shape": "count", "corr": "correlation", "cov": "covariance",
    "nlargest": "top", "hist": "histogram", "query": "where", "assign": "with_columns", "with_column": "with_columns",
    "merge": "join", "groupby": "group_by", "columns": "schema", "dtypes": "schema", "pivot_table": "pivot",
    "crosstab": "pivot", "summary": "describe", "info": "describe", "apply": "with_columns", "map": "with_columns",
    "fillna": "with_columns", "dropna": "where", "limit": "top", "sort_values": "top", "sort": "top", "order_by": "top",
}  # fmt: skip
"""Verbs of other libraries, and what they are called here."""

ROWS = ("head", "tail", "sample", "show", "collect", "to_pandas", "to_polars", "to_arrow", "iloc", "loc", "values")
"""Verbs that show rows: there is no such thing here."""


@explain_wrong_calls
class Asks:
    """The verbs that end in a question."""

    def __getattr__(self, name: str) -> Any:
        """Only for names that do not exist: the answer names the right verb."""
        kind = type(self).__name__
        if name.startswith("_"):
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")
        if name in ROWS:
            raise AttributeError(say("tables.verb_shows_rows", verb=name))
        if name in getattr(self.__dict__.get("relation"), "schema", ()):
            raise AttributeError(say("tables.no_column_attribute", name=name))
        known = [verb for verb in dir(type(self)) if not verb.startswith("_")]
        close = [INSTEAD[name]] if INSTEAD.get(name) in {*known, "schema"} else get_close_matches(name, known, n=2)
        code = "tables.verb_instead" if close else "tables.unknown_verb"
        raise AttributeError(say(code, kind=kind, verb=name, close=close))

    def __getitem__(self, name: object) -> Any:
        raise TypeError(say("tables.no_brackets", name=str(name) if isinstance(name, str) else "x"))

    def __len__(self) -> int:
        raise TypeError(say("tables.no_length"))

    def __bool__(self) -> bool:
        return True

    def aggregate(self, /, **named: Aggregate) -> Question:
        """Several things, each `named`, in one release; they share one budget."""
        raise NotImplementedError

    def agg(self, /, *unnamed: object, **named: Aggregate) -> Question:
        """The same as `aggregate`; what is `unnamed`, as other libraries have it, is told how it is written here."""
        if unnamed:
            raise WrongCall("tables.agg_by_name", parameter="named", spent="nothing")
        return self.aggregate(**named)

    def count(self, column: object = None) -> Question:
        """How many rows (with `column`: in which it is not missing)."""
        return self.aggregate(count=aggregates.count(column))

    def persons(self) -> Question:
        """How many persons."""
        return self.aggregate(persons=aggregates.persons())

    def distinct(self, column: object) -> Question:
        """How many different values a column has."""
        return self.aggregate(distinct=aggregates.distinct(column))

    def sum(self, column: object, *, between: object = None) -> Question:
        """The sum of a column, values clamped into [low, high]; between="automatic" buys a range from the budget."""
        return self.aggregate(sum=aggregates.sum(column, between=between))

    def mean(self, column: object, *, between: object = None) -> Question:
        """The mean of a column, values clamped into [low, high]."""
        return self.aggregate(mean=aggregates.mean(column, between=between))

    def variance(self, column: object, *, between: object = None) -> Question:
        """The variance of a column, values clamped into [low, high]."""
        return self.aggregate(variance=aggregates.variance(column, between=between))

    def standard_deviation(self, column: object, *, between: object = None) -> Question:
        """The standard deviation of a column, values clamped into [low, high]."""
        return self.aggregate(standard_deviation=aggregates.standard_deviation(column, between=between))

    def covariance(self, columns: Sequence[object], *, between: Ranges = (None, None)) -> Question:
        """The covariance of two columns, each clamped into its own (low, high)."""
        return self.aggregate(covariance=aggregates.covariance(columns, between=between))

    def correlation(self, columns: Sequence[object], *, between: Ranges = (None, None)) -> Question:
        """The correlation of two columns, each clamped into its own (low, high)."""
        return self.aggregate(correlation=aggregates.correlation(columns, between=between))

    def quantile(self, column: object, at: float, *, between: object = None, bars: QuantileBars = "values") -> Question:
        """The quantile `at` of a column, values clamped into [low, high]; bars="rows" saves half of the price."""
        return self.aggregate(quantile=quantile(column, at, between=between, bars=bars))

    def quantiles(
        self, column: object, at: Iterable[float], *, between: object = None, bars: QuantileBars = "values"
    ) -> Question:
        """Several quantiles of a column, named quantile_0.25 and so on: 3 at the price of 2, 7 at the price of 3."""
        try:
            shares = [real("at", share) for share in at]
        except TypeError:
            raise InvalidParameter("tables.quantiles_shares", parameter="at") from None
        asked = {f"quantile_{share:g}": quantile(column, share, between=between, bars=bars) for share in shares}
        return self.aggregate(**asked)

    def minimum(self, column: object, *, between: object = None, bars: QuantileBars = "values") -> Question:
        """About the least value: the quantile at 0.01, because the least value itself is one person's secret."""
        return self.aggregate(minimum=minimum(column, between=between, bars=bars))

    def maximum(self, column: object, *, between: object = None, bars: QuantileBars = "values") -> Question:
        """About the largest value: the quantile at 0.99, because the largest value itself is one person's secret."""
        return self.aggregate(maximum=maximum(column, between=between, bars=bars))

    def median(self, column: object, *, between: object = None, bars: QuantileBars = "values") -> Question:
        """The median of a column, values clamped into [low, high]; bars="rows" saves half of the price."""
        return self.aggregate(median=quantile(column, 0.5, between=between, bars=bars))
