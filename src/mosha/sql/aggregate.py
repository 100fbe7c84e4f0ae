"""SQL aggregates as aggregates of a protected table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from mosha.connect.expression import Column, Expression
from mosha.sql.scalar import Refused, Scope, constant, name_of, scalar
from mosha.tables import aggregates as tables
from mosha.tables.aggregates import Aggregate
from mosha.tables.quantiles import maximum, minimum, quantile

__all__ = ["AGGREGATES", "Context", "aggregate", "is_aggregate"]

Range = tuple[float, float]


@dataclass(frozen=True)
class Context:
    """What translation needs to know: names of columns, the person's column, declared ranges, bars of quantiles."""

    scope: Scope
    person: str | None
    ranges: Mapping[str, Range] = field(default_factory=dict)
    bars: str = "rows"

    def bounded(self, node: exp.Expression, what: str) -> tuple[Expression, Range]:
        """A number and its range: CLAMP(x, low, high), or a column whose range was declared."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Anonymous) and str(node.this).upper() == "CLAMP" and len(node.expressions) == 3:
            low, high = (constant(edge) for edge in node.expressions[1:])
            return scalar(node.expressions[0], self.scope), (low, high)
        if isinstance(node, exp.Least | exp.Greatest):
            clamped: Any = scalar(node, self.scope)
            return clamped.arguments[0], tuple(argument.value for argument in clamped.arguments[1:])
        expression = scalar(node, self.scope)
        if isinstance(expression, Column) and expression.name in self.ranges:
            return expression, self.ranges[expression.name]
        raise Refused(
            f"{what}({name_of(node)}) needs a range, without which one person could move it without limit: "
            f"{what}(CLAMP({name_of(node)}, low, high)), or declare the range of the column."
        )


def _count(node: exp.Expression, context: Context) -> Aggregate:
    inner = node.this
    if isinstance(inner, exp.Star):
        return tables.count()
    if not isinstance(inner, exp.Distinct):
        return tables.count(scalar(inner, context.scope))
    if len(inner.expressions) == 1:
        of = scalar(inner.expressions[0], context.scope)
        if isinstance(of, Column) and of.name == context.person:
            return tables.persons()
        distinct = getattr(tables, "distinct", None)
        if distinct is not None:
            return distinct(of)  # type: ignore[no-any-return]
    raise Refused(f"{name_of(node)}: COUNT(DISTINCT ...) takes one column.")


def _one(make: Callable[..., Aggregate], what: str) -> Callable[[exp.Expression, Context], Aggregate]:
    def translate(node: exp.Expression, context: Context) -> Aggregate:
        if isinstance(node.this, exp.Distinct):
            raise Refused(f"{name_of(node)}: DISTINCT goes with COUNT only.")
        of, between = context.bounded(node.this, what)
        return make(of, between=between)

    return translate


def _two(make: Callable[..., Aggregate], what: str) -> Callable[[exp.Expression, Context], Aggregate]:
    def translate(node: exp.Expression, context: Context) -> Aggregate:
        pairs = [context.bounded(part, what) for part in (node.this, node.expression)]
        return make([of for of, _ in pairs], between=[between for _, between in pairs])

    return translate


def _quantile(node: exp.Expression, context: Context) -> Aggregate:
    of, between = context.bounded(node.this, "MEDIAN")
    return quantile(of, 0.5, between=between, bars=context.bars)


def _percentile(node: exp.Expression, context: Context) -> Aggregate:
    share = node.expression
    if share is None:
        raise Refused(f"{name_of(node)}: write PERCENTILE_CONT(share) WITHIN GROUP (ORDER BY x).")
    of, between = context.bounded(node.this, "QUANTILE")
    return quantile(of, constant(share), between=between, bars=context.bars)


def _within(node: exp.Expression, context: Context) -> Aggregate:
    inner, order = node.this, node.expression
    if not isinstance(inner, exp.PercentileCont | exp.PercentileDisc) or len(order.expressions) != 1:
        raise Refused(f"{name_of(node)}: WITHIN GROUP goes with PERCENTILE_CONT.")
    ordered = order.expressions[0]
    share = constant(inner.this)
    of, between = context.bounded(ordered.this, "PERCENTILE_CONT")
    at = 1 - share if ordered.args.get("desc") else share
    return quantile(of, at, between=between, bars=context.bars)


AGGREGATES: dict[type[exp.Expression], Callable[[exp.Expression, Context], Aggregate]] = {
    exp.Count: _count,
    exp.Sum: _one(tables.sum, "SUM"),
    exp.Avg: _one(tables.mean, "AVG"),
    exp.Variance: _one(tables.variance, "VARIANCE"),
    exp.VariancePop: _one(tables.variance, "VAR_POP"),
    exp.Stddev: _one(tables.standard_deviation, "STDDEV"),
    exp.StddevPop: _one(tables.standard_deviation, "STDDEV_POP"),
    exp.StddevSamp: _one(tables.standard_deviation, "STDDEV_SAMP"),
    exp.CovarPop: _two(tables.covariance, "COVAR_POP"),
    exp.CovarSamp: _two(tables.covariance, "COVAR_SAMP"),
    exp.Corr: _two(tables.correlation, "CORR"),
    exp.Min: _one(minimum, "MIN"),
    exp.Max: _one(maximum, "MAX"),
    exp.Median: _quantile,
    exp.PercentileCont: _percentile,
    exp.PercentileDisc: _percentile,
    exp.Quantile: _percentile,
    exp.WithinGroup: _within,
}


def is_aggregate(node: Any) -> bool:
    """Whether this very node is an aggregate (WITHIN GROUP holds one, and is one itself)."""
    return isinstance(node, exp.AggFunc | exp.WithinGroup)


def aggregate(node: exp.Expression, context: Context) -> Aggregate:
    """The aggregate that a node asks for."""
    if node.args.get("distinct"):
        raise Refused(f"{name_of(node)}: DISTINCT goes with COUNT only.")
    handler = AGGREGATES.get(type(node))
    if handler is None:
        raise Refused(
            f"{name_of(node)} is not an aggregate that can be made private here. There are COUNT, SUM, AVG, VARIANCE, "
            "STDDEV, MIN, MAX, MEDIAN, PERCENTILE_CONT, CORR and COVAR_POP."
        )
    return handler(node, context)
