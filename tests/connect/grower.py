"""Random well-typed expressions over the columns i, j, x, y, b, c, t, s, d, e, w."""

import random
from datetime import date, datetime
from typing import Any

from mosha.connect import Operator, Type, col, grid, lit, when
from mosha.connect.language.expression import Call

WHOLE, REAL, BOOL, TEXT, DATE, CLOCK = (
    Type.INTEGER,
    Type.REAL,
    Type.BOOLEAN,
    Type.TEXT,
    Type.DATE,
    Type.TIMESTAMP,
)


class Grower:
    """`grow(kind, depth)` makes an expression of that type, at most that deep."""

    def __init__(self, seed: Any) -> None:
        self.random = random.Random(seed)

    def grow(self, kind: Any, depth: Any) -> Any:
        if depth == 0:
            return self.random.choice(LEAVES[kind])
        return self.random.choice(GROWN[kind])(lambda inner: self.grow(inner, depth - 1))


LEAVES = {
    WHOLE: [col("i"), col("j"), lit(3), lit(-(2**62))],
    REAL: [col("x"), col("y"), lit(0.1), lit(-1e100)],
    BOOL: [col("b"), col("c"), lit(True)],
    TEXT: [col("t"), col("s"), lit("a")],
    DATE: [col("d"), col("e"), lit(date(2000, 2, 29))],
    CLOCK: [col("w"), lit(datetime(1999, 12, 31, 23, 59))],
}
GROWN = {
    WHOLE: [
        lambda g: g(WHOLE) + g(WHOLE),
        lambda g: g(WHOLE) - g(WHOLE),
        lambda g: g(WHOLE) * g(WHOLE),
        lambda g: -g(WHOLE),
        lambda g: abs(g(WHOLE)),
        lambda g: g(REAL).floor(),
        lambda g: g(REAL).ceil(),
        lambda g: g(REAL).cast(WHOLE),
        lambda g: g(TEXT).length(),
        lambda g: g(DATE).year(),
        lambda g: g(CLOCK).hour(),
        lambda g: g(DATE).days_since(g(CLOCK)),
        lambda g: g(WHOLE).bin(6, 1),
        lambda g: when(g(BOOL), g(WHOLE)).else_(g(WHOLE)),
        lambda g: g(TEXT).cast(WHOLE),
        lambda g: grid(g(REAL), (-4, 4), 2),
        lambda g: g(BOOL).cast(WHOLE),
        lambda g: g(WHOLE).clamp(-9, 9),
        lambda g: g(WHOLE).coalesce(g(WHOLE)),
    ],
    REAL: [
        lambda g: g(REAL) + g(REAL),
        lambda g: g(REAL) - g(WHOLE),
        lambda g: g(REAL) * g(REAL),
        lambda g: g(WHOLE) / g(WHOLE),
        lambda g: g(REAL) / g(REAL),
        lambda g: -g(REAL),
        lambda g: abs(g(REAL)),
        lambda g: g(REAL).bin(0.5),
        lambda g: g(REAL).clamp(-2, 1e9),
        lambda g: g(TEXT).cast(REAL),
        lambda g: when(g(BOOL), g(REAL)).else_(g(WHOLE)),
        lambda g: g(REAL).coalesce(g(REAL)),
        lambda g: g(REAL).round(1),
        lambda g: Call(Operator.SQUARE_ROOT, (g(REAL),)),
    ],
    BOOL: [
        lambda g: g(WHOLE) < g(WHOLE),
        lambda g: g(REAL) >= g(WHOLE),
        lambda g: g(TEXT) == g(TEXT),
        lambda g: g(DATE) > g(CLOCK),
        lambda g: g(BOOL) & g(BOOL),
        lambda g: g(BOOL) | g(BOOL),
        lambda g: ~g(BOOL),
        lambda g: g(REAL).is_null(),
        lambda g: g(TEXT).like("%a_%"),
        lambda g: g(WHOLE).is_in(3, 4),
    ],
    TEXT: [
        lambda g: g(TEXT).concat(g(TEXT)),
        lambda g: g(TEXT).lower(),
        lambda g: g(TEXT).upper().trim(),
        lambda g: g(TEXT).substring(2, 2),
        lambda g: Call(Operator.TRIM, (g(TEXT),), ("leading",)),
        lambda g: Call(Operator.REPLACE, (g(TEXT),), ("a", "é-")),
        lambda g: g(WHOLE).cast(TEXT),
        lambda g: when(g(BOOL), g(TEXT)),
        lambda g: g(TEXT).coalesce(g(TEXT)),
        lambda g: g(DATE).cast(TEXT),
    ],
    DATE: [
        lambda g: g(DATE).truncate("month"),
        lambda g: g(CLOCK).cast(DATE),
        lambda g: when(g(BOOL), g(DATE)).else_(g(DATE)),
        lambda g: g(DATE).truncate("week"),
        lambda g: Call(Operator.SHIFT_DATE, (g(DATE),), (-1, "month")),
        lambda g: g(TEXT).cast(DATE),
    ],
    CLOCK: [
        lambda g: g(CLOCK).truncate("hour"),
        lambda g: Call(Operator.SHIFT_DATE, (g(CLOCK),), (30, "day")),
        lambda g: g(DATE).cast(CLOCK),
        lambda g: when(g(BOOL), g(CLOCK)).else_(g(DATE)),
        lambda g: g(TEXT).cast(CLOCK),
    ],
}
KINDS = tuple(GROWN)
