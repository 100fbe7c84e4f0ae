"""What is read of every piece of SQL; anything else that stands in it is refused, and never passed over in silence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from mosha.core.errors import Refused

__all__ = ["READ", "check_arguments"]

_NOTHING: tuple[str, ...] = ()
_ONE, _BOTH, _LIST = ("this",), ("this", "expression"), ("this", "expressions")

READ: Mapping[type[exp.Expression], tuple[str, ...]] = {
    **dict.fromkeys(
        (exp.Neg, exp.Not, exp.Paren, exp.Abs, exp.Floor, exp.Ceil, exp.Lower, exp.Upper, exp.Trim, exp.Length,
         exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfWeekIso, exp.Hour, exp.Minute, exp.Sqrt, exp.Boolean),
        _ONE,
    ),
    **dict.fromkeys(
        (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.And, exp.Or,
         exp.StartsWith, exp.Extract, exp.Nullif, exp.Left, exp.Contains, exp.Mod, exp.Pow),
        _BOTH,
    ),
    **dict.fromkeys(
        (exp.Avg, exp.Sum, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Min, exp.Max,
         exp.Median, exp.CountIf),
        _ONE,
    ),
    **dict.fromkeys(
        (exp.CovarPop, exp.CovarSamp, exp.Corr, exp.PercentileCont, exp.PercentileDisc, exp.WithinGroup, exp.Filter),
        _BOTH,
    ),
    **dict.fromkeys((exp.Is, exp.Like, exp.ILike), (*_BOTH, "negate")),
    exp.DPipe: (*_BOTH, "safe"),
    exp.Quantile: ("this", "quantile"),
    exp.Count: (*_LIST, "big_int"),
    exp.DateDiff: (*_BOTH, "unit", "date_part_boundary", "big_int"),
    **dict.fromkeys((exp.TimestampTrunc, exp.DateTrunc), ("this", "unit", "input_type_preserved")),
    exp.Interval: ("this", "unit"),
    exp.Literal: ("this", "is_string"),
    exp.Null: _NOTHING,
    exp.Column: ("this", "table", "db", "catalog"),
    exp.Identifier: ("this", "quoted"),
    exp.Star: _NOTHING,
    exp.Var: _ONE,
    **dict.fromkeys((exp.Cast, exp.TryCast), ("this", "to", "safe")),
    exp.DataType: (*_LIST, "nested"),
    exp.DataTypeParam: _ONE,
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true", "false"),
    exp.In: (*_LIST, "query", "unnest"),
    exp.Between: ("this", "low", "high", "symmetric"),
    exp.Coalesce: (*_LIST, "is_nvl"),
    exp.Concat: ("expressions", "safe", "coalesce"),
    exp.Substring: ("this", "start", "length"),
    exp.Round: ("this", "decimals", "casts_non_integer_decimals"),
    exp.Anonymous: _LIST,
    **dict.fromkeys((exp.Least, exp.Greatest), (*_LIST, "ignore_nulls")),
    exp.Distinct: ("expressions",),
    **dict.fromkeys((exp.From, exp.Where, exp.Having, exp.Qualify), _ONE),
    exp.Alias: ("this", "alias"),
    exp.TableAlias: ("this", "columns"),
    exp.Exists: _ONE,
    exp.Union: ("this", "expression", "distinct"),
    exp.Table: ("this", "alias", "db", "catalog"),
    exp.Subquery: ("this", "alias"),
    exp.CTE: ("this", "alias", "materialized"),
    exp.With: ("expressions", "recursive"),
    exp.Join: ("this", "side", "kind", "on", "using", "method"),
    exp.Group: ("expressions", "all", "cube", "rollup", "grouping_sets", "totals"),
    exp.Order: ("expressions",),
    exp.Ordered: ("this", "desc", "nulls_first"),
    exp.Limit: ("expression",),
    exp.StrPosition: ("this", "substr"),
    exp.Replace: (*_BOTH, "replacement"),
    exp.Window: ("this", "partition_by", "order", "over", "spec", "alias"),
    **dict.fromkeys((exp.Ln, exp.Exp), _ONE),
    **dict.fromkeys((exp.RowNumber, exp.Rank, exp.DenseRank, exp.Pi), _NOTHING),
}  # fmt: skip
"""The arguments that somebody reads, or refuses with a better word than could be said here."""


def check_arguments(node: Any) -> None:
    """Refuse a piece of SQL with an argument that nobody reads: its answer would be that of another question."""
    read = READ.get(type(node))
    if read is None:
        return
    for name, value in node.args.items():
        if name not in read and value not in (None, False, [], ""):
            said = name.rstrip("_").replace("_", " ").upper()
            raise Refused("tables.sql_option_unread", option=said, of=node.key.upper(), spent="nothing")
