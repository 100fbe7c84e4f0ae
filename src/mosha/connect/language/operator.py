"""The operators of scalar expressions, by name."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Operator"]


class Operator(StrEnum):
    """All that an expression can do.

    `checking` types it, `limits` says what it takes, `mosha.connect.sql.expressions` writes it in SQL.
    """

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    NEGATE = "negate"
    ABSOLUTE = "absolute"
    FLOOR = "floor"
    CEILING = "ceiling"
    ROUND = "round"
    CLAMP = "clamp"
    BIN = "bin"
    GRID = "grid"
    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    AND = "and"
    OR = "or"
    NOT = "not"
    IS_NULL = "is_null"
    IN = "in"
    COALESCE = "coalesce"
    LOWER = "lower"
    UPPER = "upper"
    TRIM = "trim"
    LENGTH = "length"
    SUBSTRING = "substring"
    CONCAT = "concat"
    LIKE = "like"
    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"
    WEEKDAY = "weekday"
    TRUNCATE_DATE = "truncate_date"
    DAYS_BETWEEN = "days_between"
    CAST = "cast"
