"""The operators of scalar expressions, by name."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Operator"]


class Operator(StrEnum):
    """All that an expression can do.

    `checking` types it, `limits` says what it takes, `mosha.connect.sql.expressions` writes it in SQL.

    >>> Operator.CLAMP, Operator("+").name
    (<Operator.CLAMP: 'clamp'>, 'ADD')
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
    SQUARE_ROOT = "square_root"
    LOGARITHM = "logarithm"
    EXPONENTIAL = "exponential"
    POWER = "power"
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
    TAIL = "tail"
    SPLIT = "split"
    CONCAT = "concat"
    POSITION = "position"
    REPLACE = "replace"
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
    SHIFT_DATE = "shift_date"
    CAST = "cast"
