"""SQL aggregates as aggregates of a protected table.

The range of a number follows from what the query itself says: CLAMP, declared columns, constants, conditions. Whatever
range comes out is public, and every value is clamped into it before it is summed: no guarantee hangs on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from mosha.connect.language.cases import when
from mosha.connect.language.checking import is_loose, is_number, type_of
from mosha.connect.language.expression import Call, Column, Expression, lit
from mosha.connect.language.schema import Type
from mosha.core.number import real
from mosha.core.options import QuantileBars
from mosha.tables import aggregates as tables
from mosha.tables.aggregates import Aggregate, maximum, minimum, quantile
from mosha.tables.functions.powers import find_power_range, list_logarithm
from mosha.tables.functions.range_functions import between, split_ends
from mosha.tables.sql.scalar import Refused, Scope, constant, name_of, scalar

__all__ = ["AGGREGATES", "Context", "Range", "aggregate", "find_range", "is_aggregate"]

Range = tuple[float, float]
Known = Callable[[exp.Expression], Range | None]
"""The range of a column, or of anything that is true or false."""

PARTS: Mapping[str, Range] = {
    "QUARTER": (1, 4), "MONTH": (1, 12), "DAY": (1, 31), "ISODOW": (1, 7), "HOUR": (0, 23), "MINUTE": (0, 59),
    "DOW": (0, 6), "DAYOFWEEK": (0, 6), "DOY": (1, 366), "DAYOFYEAR": (1, 366), "WEEK": (1, 53), "SIGN": (-1, 1),
}  # fmt: skip

_FUNCTIONS: Mapping[type[exp.Expression], str] = {
    exp.Quarter: "QUARTER", exp.Month: "MONTH", exp.Day: "DAY", exp.DayOfWeekIso: "ISODOW", exp.Hour: "HOUR",
    exp.Minute: "MINUTE", exp.DayOfYear: "DOY", exp.WeekOfYear: "WEEK", exp.Sign: "SIGN",
}  # fmt: skip


def find_range(node: exp.Expression, known: Known) -> Range | None:
    """The least and the greatest value that `node` can have, where the query says them; else None.

    >>> import sqlglot
    >>> find_range(sqlglot.parse_one("CASE WHEN x > 3 THEN 1 ELSE 0 END"), lambda column: None)
    (0, 1)
    """
    found = known(node)
    if found is None and (handler := _KINDS.get(type(node))) is not None:
        found = handler(node, known)
    return found


def _constant(node: exp.Expression, known: Known) -> Range | None:
    del known
    value = None if node.is_string else constant(node)
    return (value, value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _together(nodes: Iterable[exp.Expression | None], known: Known) -> Range | None:
    """What holds the ranges of all; NULL has none and needs none."""
    there = [node for node in nodes if node is not None and not isinstance(node, exp.Null)]
    ranges = [find_range(node, known) for node in there]
    if not ranges or None in ranges:
        return None
    lows, highs = zip(*(found for found in ranges if found is not None), strict=True)
    return min(lows), max(highs)


def _case(node: exp.Expression, known: Known) -> Range | None:
    return _together([*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")], known)


def _if(node: exp.Expression, known: Known) -> Range | None:
    return _together([node.args["true"], node.args.get("false")], known)


def _clamp(node: exp.Expression, known: Known) -> Range | None:
    del known
    if str(node.this).upper() != "CLAMP" or len(node.expressions) != 3:
        return None
    low, high = (constant(edge) for edge in node.expressions[1:])
    return low, high


def _least(node: exp.Expression, known: Known) -> Range | None:
    """LEAST(GREATEST(x, low), high), GREATEST(LEAST(x, high), low), and one of them alone with a constant."""
    if (parts := split_ends(node)) is not None:
        found, choose = find_range(parts[0], known), min if isinstance(node, exp.Least) else max
        end = real("an end of a range", parts[1]) if found is not None else 0.0
        return None if found is None else (choose(found[0], end), choose(found[1], end))
    if not isinstance(node.this, exp.Least | exp.Greatest) and len(node.expressions) == 1:
        sides = find_range(node.this, known), find_range(node.expressions[0], known)
        choose = min if isinstance(node, exp.Least) else max
        return None if None in sides else tuple(map(choose, *sides))  # type: ignore[arg-type, return-value]
    if not isinstance(node.this, exp.Least | exp.Greatest) or len(node.expressions) != 1 != len(node.this.expressions):
        return None
    return between(node)


def _arithmetic(operation: Callable[[float, float], float]) -> Callable[[exp.Expression, Known], Range | None]:
    def handler(node: exp.Expression, known: Known) -> Range | None:
        sides = find_range(node.this, known), find_range(node.expression, known)
        if sides[0] is None or sides[1] is None:
            return None
        found = [operation(a, b) for a in sides[0] for b in sides[1]]
        return (min(found), max(found)) if all(map(math.isfinite, found)) else None

    return handler


def _divide(node: exp.Expression, known: Known) -> Range | None:
    sides = find_range(node.this, known), find_range(node.expression, known)
    if sides[0] is None or sides[1] is None or sides[1][0] <= 0 <= sides[1][1]:
        return None
    found = [a / b for a in sides[0] for b in sides[1]]
    return min(found), max(found)


def _negative(node: exp.Expression, known: Known) -> Range | None:
    found = find_range(node.this, known)
    return None if found is None else (-found[1], -found[0])


def _absolute(node: exp.Expression, known: Known) -> Range | None:
    found = find_range(node.this, known)
    return None if found is None else (max(0, found[0], -found[1]), max(abs(found[0]), abs(found[1])))


def _root(node: exp.Expression, known: Known) -> Range | None:
    found = find_range(node.this, known)
    return None if found is None or found[1] < 0 else (math.sqrt(max(0, found[0])), math.sqrt(found[1]))


def _power(node: exp.Expression, known: Known) -> Range | None:
    base, exponent = find_range(node.this, known), find_range(node.expression, known)
    return None if base is None or exponent is None else find_power_range(base, exponent)


def _exponential(node: exp.Expression, known: Known) -> Range | None:
    exponent = find_range(node.this, known)
    return None if exponent is None else find_power_range((math.e, math.e), exponent)


def _logarithm(node: exp.Expression, known: Known) -> Range | None:
    value, base = list_logarithm(node)
    found = find_range(value, known)
    if found is None or found[0] <= 0:
        return None
    ends = [math.log(end) / (1 if base is None else math.log(base)) for end in found]
    return min(ends), max(ends)


def _outwards(node: exp.Expression, known: Known) -> Range | None:
    """A number that becomes a whole one, or stays what it is."""
    found = find_range(node.this, known)
    return None if found is None else (math.floor(found[0]), math.ceil(found[1]))


def _part(node: exp.Expression, known: Known) -> Range | None:
    del known
    return PARTS.get(node.this.name.upper() if isinstance(node, exp.Extract) else _FUNCTIONS[type(node)])


_KINDS: dict[type[exp.Expression], Callable[[exp.Expression, Known], Range | None]] = {
    exp.Literal: _constant,
    exp.Paren: lambda node, known: find_range(node.this, known),
    exp.Case: _case,
    exp.If: _if,
    exp.Anonymous: _clamp,
    exp.Least: _least,
    exp.Greatest: _least,
    exp.Coalesce: lambda node, known: _together([node.this, *node.expressions], known),
    exp.Nullif: lambda node, known: find_range(node.this, known),
    exp.Add: _arithmetic(lambda a, b: a + b),
    exp.Sub: _arithmetic(lambda a, b: a - b),
    exp.Mul: _arithmetic(lambda a, b: a * b),
    exp.Div: _divide,
    exp.Neg: _negative,
    exp.Abs: _absolute,
    exp.Sqrt: _root,
    exp.Pow: _power,
    exp.Exp: _exponential,
    **dict.fromkeys((exp.Ln, exp.Log), _logarithm),
    exp.Sign: _part,
    **dict.fromkeys((exp.Cast, exp.TryCast, exp.Floor, exp.Ceil, exp.Trunc), _outwards),
    **dict.fromkeys((exp.Extract, *_FUNCTIONS), _part),
}


@dataclass(frozen=True)
class Context:
    """What translation needs to know: columns and their types, those of the person, declared ranges, bars of quantiles.

    `given` is the condition of FILTER (WHERE ...): rows for which it is not true count as if the value were missing.
    `said` has the ranges of computed values that a condition says, by how the plan writes the value.
    """

    scope: Scope
    persons: frozenset[str]
    ranges: Mapping[str, Range] = field(default_factory=dict)
    bars: QuantileBars = "values"
    given: Expression | None = None
    said: Mapping[str, Range] = field(default_factory=dict)

    def find_bounds(self, node: exp.Expression, what: str) -> tuple[Expression, Range]:
        """A number and its range: CLAMP(x, low, high), a declared column, or what follows from these and constants."""
        found = find_range(node, self._find_known)
        if found is None:
            expression = scalar(node, self.scope)
            if not is_number(expression, self.scope.schema):
                raise _no_number(node, what, type_of(expression, self.scope.schema))
            raise no_range(node, what)
        number = self._number(node, kept=found[0] == found[1])
        if self.given is not None and is_loose(number, self.scope.schema):
            number = number.cast("real")
        return self.filter_value(number), _widen(found)

    def _find_known(self, node: exp.Expression) -> Range | None:
        if isinstance(node, exp.Column) and (declared := self.ranges.get(self.scope(node))) is not None:
            return declared
        if self.said and (said := self.said.get(repr(scalar(node, self.scope)))) is not None:
            return said
        return (0, 1) if type_of(scalar(node, self.scope), self.scope.schema) is Type.BOOLEAN else None

    def _number(self, node: exp.Expression, *, kept: bool) -> Expression:
        """The number without its CLAMP, which the range stands for unless it has no width; conditions as 1 and 0."""
        while isinstance(node, exp.Paren):
            node = node.this
        clamped = isinstance(node, exp.Least | exp.Greatest) and split_ends(node) is None
        clamped = clamped or (isinstance(node, exp.Anonymous) and str(node.this).upper() == "CLAMP")
        expression = scalar(node, self.scope)
        if clamped and not kept and isinstance(expression, Call):
            expression = expression.arguments[0]
        return expression.cast("integer") if type_of(expression, self.scope.schema) is Type.BOOLEAN else expression

    def filter_value(self, expression: Expression) -> Expression:
        """The value, missing where the condition of FILTER is not true."""
        return expression if self.given is None else when(self.given, expression)


def _widen(found: Range) -> Range:
    """A range with some width: one constant is seen from zero."""
    low, high = found
    if low != high:
        return low, high
    return (min(0, low), max(0, high)) if low else (0, 1)


def _no_number(node: exp.Expression, what: str, kind: Type) -> Refused:
    code = "tables.sql_needs_number_of_days" if kind.temporal else "tables.sql_needs_number"
    refusal = Refused(code, function=what, text=name_of(node), kind=str(kind))
    if kind.temporal:
        refusal.__dict__["day"] = node  # which the nearest query counts from the beginning of this year
    return refusal


def no_range(node: exp.Expression, what: str) -> Refused:
    """The refusal of a number without a range; its `node` is what CLAMP would stand around."""
    refusal = Refused("tables.sql_needs_range", function=what, text=name_of(node))
    refusal.__dict__["node"] = node
    return refusal


def _count(node: exp.Expression, context: Context) -> Aggregate:
    inner = node.this
    if node.expressions:
        raise Refused("tables.sql_count_columns", text=name_of(node))
    if inner is None or isinstance(inner, exp.Star):
        return tables.count(None if context.given is None else context.filter_value(lit(1)))
    if not isinstance(inner, exp.Distinct):
        return tables.count(context.filter_value(scalar(inner, context.scope)))
    if len(inner.expressions) != 1:
        raise Refused("tables.sql_count_distinct", text=name_of(node))
    of = scalar(inner.expressions[0], context.scope)
    if not isinstance(of, Column) or of.name not in context.persons:
        return tables.distinct(context.filter_value(of))
    if context.given is None:
        return tables.persons()
    raise Refused("tables.sql_filter_of_persons", text=name_of(node))


def _count_if(node: exp.Expression, context: Context) -> Aggregate:
    condition = scalar(node.this, context.scope)
    given = condition if context.given is None else context.given & condition
    return tables.count(when(given, 1))


def _filter(node: exp.Expression, context: Context) -> Aggregate:
    """FILTER (WHERE condition): as if every value stood in CASE WHEN condition THEN value END."""
    condition = node.expression.this
    if any(is_aggregate(part) for part in condition.walk()):
        raise Refused("tables.sql_filter_of_aggregates", text=name_of(node))
    return aggregate(node.this, replace(context, given=scalar(condition, context.scope)))


def _one(make: Callable[..., Aggregate], what: str) -> Callable[[exp.Expression, Context], Aggregate]:
    def translate(node: exp.Expression, context: Context) -> Aggregate:
        if isinstance(node.this, exp.Distinct):
            if not isinstance(node, exp.Sum) or len(node.this.expressions) != 1:
                raise Refused("tables.sql_distinct", text=name_of(node))
            of, between = context.find_bounds(node.this.expressions[0], what)
            return tables.distinct_sum(of, between=between)
        of, between = context.find_bounds(node.this, what)
        return make(of, between=between)

    return translate


def _two(make: Callable[..., Aggregate], what: str) -> Callable[[exp.Expression, Context], Aggregate]:
    def translate(node: exp.Expression, context: Context) -> Aggregate:
        pairs = [context.find_bounds(part, what) for part in (node.this, node.expression)]
        return make([of for of, _ in pairs], between=[between for _, between in pairs])

    return translate


def _extreme(make: Callable[..., Aggregate], what: str) -> Callable[[exp.Expression, Context], Aggregate]:
    def translate(node: exp.Expression, context: Context) -> Aggregate:
        of, between = context.find_bounds(node.this, what)
        return make(of, between=between, bars=context.bars)

    return translate


def _quantile(node: exp.Expression, context: Context) -> Aggregate:
    of, between = context.find_bounds(node.this, "MEDIAN")
    return quantile(of, 0.5, between=between, bars=context.bars)


def _percentile(node: exp.Expression, context: Context) -> Aggregate:
    share = node.args.get("quantile") or node.args.get("expression")
    if share is None:
        raise Refused("tables.sql_percentile", text=name_of(node))
    of, between = context.find_bounds(node.this, "QUANTILE")
    return quantile(of, constant(share), between=between, bars=context.bars)


def _within(node: exp.Expression, context: Context) -> Aggregate:
    inner, order = node.this, node.expression
    if not isinstance(inner, exp.PercentileCont | exp.PercentileDisc) or len(order.expressions) != 1:
        raise Refused("tables.sql_within_group", text=name_of(node))
    ordered = order.expressions[0]
    share = constant(inner.this)
    of, between = context.find_bounds(ordered.this, "PERCENTILE_CONT")
    at = 1 - share if ordered.args.get("desc") else share
    return quantile(of, at, between=between, bars=context.bars)


AGGREGATES: dict[type[exp.Expression], Callable[[exp.Expression, Context], Aggregate]] = {
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.Filter: _filter,
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
    exp.Min: _extreme(minimum, "MIN"),
    exp.Max: _extreme(maximum, "MAX"),
    exp.Median: _quantile,
    exp.PercentileCont: _percentile,
    exp.PercentileDisc: _percentile,
    exp.Quantile: _percentile,
    exp.WithinGroup: _within,
}


def is_aggregate(node: object) -> bool:
    """Whether this very node is an aggregate (WITHIN GROUP and FILTER hold one, and are one themselves)."""
    return isinstance(node, exp.AggFunc | exp.WithinGroup | exp.Filter)


def aggregate(node: exp.Expression, context: Context) -> Aggregate:
    """The aggregate that a node asks for."""
    if node.args.get("distinct"):
        raise Refused("tables.sql_distinct", text=name_of(node))
    handler = AGGREGATES.get(type(node))
    if handler is None:
        raise Refused("tables.sql_no_aggregate", text=name_of(node))
    return handler(node, context)
