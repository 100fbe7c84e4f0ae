"""Rows and random expressions at the ends of everything, and what an engine must make of them.

`find_faults` asks an engine for many expressions of every row and compares with the oracle; an engine that raises is a
fault of its own, for no admitted expression may.
"""

import csv
import math
import random
import re
from datetime import date, datetime
from typing import Any

from mosha.connect import Aggregation, Clamped, NormBound, Rows, Schema, Type, Unbounded, answer, col, grid, lit, when
from mosha.connect.language.expression import Call
from mosha.connect.language.operator import Operator
from mosha.core.errors import DataError, InvalidParameter
from tests.connect import oracle
from tests.connect.grower import BOOL, CLOCK, DATE, GROWN, KINDS, LEAVES, REAL, TEXT, WHOLE
from tests.connect.oracle import LONGEST, evaluate, flush, scanned

INTEGERS = [0, 1, -1, 7, 2**31 - 1, 2**31, 2**32, 2**53, 2**61, 2**62 + 1, 10**18, 2**63 - 1, -(2**31), -(2**62) - 1]
PUBLIC_INTEGERS = [*INTEGERS, -(2**63) + 1]
REALS = [0.0, 1.5, -2.5, 0.5, 5e-324, 1e-300, 2.0**-500, 2.0**-501, 2.0**499, -(2.0**499), 1e150, 2.0**52, 0.1, 1e15]
TEXTS = [
    *[
        "",
        " ",
        "a",
        "Ab",
        "É",
        "ß",
        "İ",
        "日本",
        "😀",
        "a%b_c",
        "\\",
        "!",
        "'",
        "${env:HOME}",
        "\n",
        "12",
        "-7",
        "1e99",
    ],
    *["2024-02-29", "0001-01-01", "9999-12-31 23:59:59.999999", "9" * 18, "true", "a" * 300, "ab" * 2**9, "{{", "$1"],
]
LONG = ["a" * LONGEST, "a" * (LONGEST + 1), "é" * (LONGEST // 2), "😀" * (LONGEST // 4 + 1)]
PATTERNS = [
    *[
        "%",
        "_",
        "",
        "\\%",
        "\\\\",
        "!",
        "!!",
        "%!_",
        "a!",
        "[a]",
        "(",
        ".*",
        "%%%a",
        "_%_%_",
        "'",
        "\n",
        "é_",
        "%\\\\%",
    ],
    *["%a%a%a%b", "%a_%a_%a_b", "a%b%a%_%b", "%\\%%\\_%", "%É%", "ß%", "%${%", "%😀_%", "_" * 1000, "%a" * 500],
]
DATES = [date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29), date(1582, 10, 10), date(1900, 3, 1)]
CLOCKS = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1969, 12, 31, 23, 59, 59, 999999)]
PLACES = [1, 2, 3, 2**18, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 10**19]
WIDTHS = [1, 6, 2**31, 2**53, 2**61 - 1, 2**61, 2**61 + 1, 2**62 + 1, 2**63 - 1]
SCHEMA = Schema(
    {
        **dict.fromkeys(["id", "i", "j"], Type.INTEGER),
        **dict.fromkeys("xy", Type.REAL),
        **dict.fromkeys("bc", Type.BOOLEAN),
        **dict.fromkeys("ts", Type.TEXT),
        **dict.fromkeys("de", Type.DATE),
        "w": Type.TIMESTAMP,
    }
)


def extreme_rows(count: int = 90) -> Any:
    """Rows in which every extreme value stands somewhere, the rest at random (the seed is of no importance)."""
    wild = [math.nan, math.inf, -math.inf, 1e308, -1e308, 2.0**500, -5e-324]
    ends = [None, *INTEGERS, -(2**63), -(2**63) + 1]
    reals, logic = [None, *REALS, *wild], [None, True, False]
    columns = [(ends, ends), (reals, reals), (logic, logic), ([None, *TEXTS, *LONG], [None, *TEXTS, *LONG[:1]])]
    columns += [([None, *DATES], [None, *DATES])]
    rows = []
    for k in range(count):
        cells = [pick for first, second in columns for pick in (first[k % len(first)], random.choice(second))]  # type: ignore[arg-type, index]
        rows.append((k, *cells, CLOCKS[k % len(CLOCKS)] if k % 7 else None))
    return rows


class Extremes:
    """`grow(kind, depth)` makes an expression whose constants are as large, small and odd as the language takes.

    What the language refuses is tried too, and another expression taken in its place: a range that is too wide is
    found by the engine that raises.
    """

    def __init__(self, seed: Any) -> None:
        self.random = random.Random(seed)

    def grow(self, kind: Any, depth: Any) -> Any:
        if depth == 0:
            return self._leaf(kind)
        for _ in range(20):
            try:
                if self.random.random() < 0.5:
                    return self.random.choice(EXTREME[kind])(
                        lambda inner: self.grow(inner, depth - 1), self.random.choice
                    )
                return self.random.choice(GROWN[kind])(lambda inner: self.grow(inner, depth - 1))
            except InvalidParameter:
                continue
        return self._leaf(kind)

    def _leaf(self, kind: Any) -> Any:
        constants = {WHOLE: PUBLIC_INTEGERS, REAL: REALS, BOOL: [True], TEXT: TEXTS, DATE: DATES, CLOCK: CLOCKS}
        return self.random.choice([*LEAVES[kind], *LEAVES[kind], lit(self.random.choice(constants[kind]))])  # type: ignore[arg-type]


SOUGHT = ["a", "ab", "'", "\\", "é", "%", "a" * 1000, "$1", "\n", "😀"]
SHIFTS = [(n, unit) for unit in ("day", "month") for n in (0, 1, -1, 31, -12, 119_988, -119_988, 40_000)]
EXTREME = {
    WHOLE: [
        lambda g, pick: g(WHOLE).bin(pick(WIDTHS), pick(PUBLIC_INTEGERS)),
        lambda g, pick: g(WHOLE).clamp(*sorted([pick(PUBLIC_INTEGERS), pick(PUBLIC_INTEGERS)])),
        lambda g, pick: g(WHOLE) * lit(pick(PUBLIC_INTEGERS)),
        lambda g, pick: lit(pick(PUBLIC_INTEGERS)) - g(WHOLE),
        lambda g, pick: g(REAL).round(0),
        lambda g, pick: (g(REAL) * lit(pick(REALS))).cast(WHOLE),
        lambda g, pick: g(TEXT).concat(g(TEXT)).length(),
        lambda g, pick: g(CLOCK).days_since(g(DATE)),
        lambda g, pick: Call(Operator.POSITION, (g(TEXT),), (pick(SOUGHT),)),
        lambda g, pick: grid(
            g(pick([WHOLE, REAL])),
            sorted([pick([0.0, -1e149, 1e-300, 2.0**40, -7.5]), pick([1.0, 1e149, 2.0**41, 1e-290, 2e15])]),
            pick([-400, -50, -1, 0, 5, 400]),
            center=pick([0, 2**50, -(2**50)]),
        ),
    ],
    REAL: [
        lambda g, pick: g(REAL).bin(pick([*REALS, 3]), pick([*REALS, 0])),
        lambda g, pick: g(REAL) / lit(pick(REALS)),
        lambda g, pick: g(WHOLE) * lit(pick(REALS)),
        lambda g, pick: g(pick([REAL, WHOLE])).round(pick([-16, -15, -3, 1, 2, 9, 15, 300])),
        lambda g, pick: g(REAL).clamp(*sorted([pick(REALS), pick(REALS)])),
        lambda g, pick: g(WHOLE) / g(REAL),
        lambda g, pick: Call(Operator.SQUARE_ROOT, (g(pick([REAL, WHOLE])),)),
        lambda g, pick: Call(Operator.LOGARITHM, (g(pick([REAL, WHOLE])),), pick([(), (10.0,), (0.5,)])),
        lambda g, pick: Call(Operator.EXPONENTIAL, (g(pick([REAL, WHOLE])),)),
        lambda g, pick: Call(Operator.POWER, (g(pick([REAL, WHOLE])), g(pick([REAL, WHOLE])))),
    ],
    TEXT: [
        lambda g, pick: g(TEXT).substring(pick(PLACES), pick([0, *PLACES])),
        lambda g, pick: Call(Operator.TAIL, (g(TEXT),), (pick([0, *PLACES]),)),
        lambda g, pick: Call(Operator.SPLIT, (g(TEXT),), (pick(SOUGHT), pick([1, 2, 3, 1000]))),
        lambda g, pick: Call(Operator.TRIM, (g(TEXT),), pick([("leading",), ("trailing",)])),
        lambda g, pick: g(TEXT).concat(*[g(TEXT) for _ in range(pick([1, 2, 7]))]),
        lambda g, pick: g(TEXT).concat(*[g(TEXT)] * 8),
        lambda g, pick: lit(pick(TEXTS)).concat(g(TEXT)),
        lambda g, pick: Call(Operator.REPLACE, (g(TEXT),), (pick(SOUGHT), pick(["", "b", "é", "'"]))),
        lambda g, pick: when(g(TEXT).is_null(), pick(TEXTS)).else_(g(TEXT)),
    ],
    BOOL: [
        lambda g, pick: g(TEXT).like(pick(PATTERNS)),
        lambda g, pick: g(TEXT).ilike(pick(PATTERNS)),
        lambda g, pick: g(TEXT).contains(pick(TEXTS)),
        lambda g, pick: g(TEXT).ends_with(pick(TEXTS)),
        lambda g, pick: g(WHOLE).is_in(*[pick(PUBLIC_INTEGERS) for _ in range(3)]),
        lambda g, pick: g(REAL).is_in(*[pick(REALS) for _ in range(3)]),
        lambda g, pick: g(TEXT).is_in(*[pick(TEXTS) for _ in range(3)]),
        lambda g, pick: g(WHOLE) >= lit(pick(PUBLIC_INTEGERS)),
    ],
    DATE: [
        lambda g, pick: g(DATE).truncate(pick(["year", "quarter", "month", "week", "day"])),
        lambda g, pick: g(DATE).coalesce(pick(DATES)),
        lambda g, pick: Call(Operator.SHIFT_DATE, (g(DATE),), pick(SHIFTS)),
    ],
    CLOCK: [
        lambda g, pick: g(CLOCK).truncate(pick(["year", "week", "hour", "minute"])),
        lambda g, pick: g(CLOCK).coalesce(pick(CLOCKS)),
        lambda g, pick: Call(Operator.SHIFT_DATE, (g(CLOCK),), pick(SHIFTS)),
    ],
}


def expression_of(seed: Any) -> Any:
    """The expression of a seed: its type and its depth are the seed's too."""
    grower = Extremes(seed)
    return grower.grow(grower.random.choice(KINDS), grower.random.choice([1, 2, 2, 3]))


def seen(rows: Any) -> list[Any]:
    """Rows as the language sees them."""
    return [{n: scanned(cell, kind) for (n, kind), cell in zip(SCHEMA.items(), row, strict=True)} for row in rows]


def written(rows: Any) -> Any:
    """The rows that a CSV file can hold, as cells of text."""
    kept = []
    for row in rows:
        cells = [None if c is None else str(c).lower() if isinstance(c, bool) else str(c) for c in row]
        if not any(c is not None and (c == "" or set(c) & set('\n\r"') or len(c) > 1000) for c in cells):
            kept.append(cells)
    return kept


def write_csv(path: Any, rows: Any) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([list(SCHEMA), *written(rows)])


def read_csv(relation: Any) -> Any:
    """The columns of a CSV relation with their types."""
    kinds = {n: kind for n, kind in SCHEMA.items() if kind not in {Type.TEXT, Type.BOOLEAN}}
    logic = {n: when(col(n) == "true", True).when(col(n) == "false", False) for n in "bc"}
    return relation.compute({**{n: col(n).cast(kind) for n, kind in kinds.items()}, **logic})


def seen_in_csv(rows: Any) -> list[Any]:
    """What the language makes of the cells."""
    read = lambda cell, kind: cell == "true" if kind is Type.BOOLEAN else oracle._read(cell, kind)
    return [
        {
            n: c if c is None or kind is Type.TEXT else read(c, kind)
            for (n, kind), c in zip(SCHEMA.items(), row, strict=True)
        }
        for row in written(rows)
    ]


def expected_of(expression: Any, rows: Any) -> list[Any]:
    found = [evaluate(expression, row, SCHEMA) for row in rows]
    return [flush(value) if isinstance(value, float) else value for value in found]


def is_alike(found: Any, expected: Any, expression: Any) -> bool:
    """Equal to the last bit; within two steps of 40 bits where a function is shortened, which may round either way."""
    if type(found) is not type(expected):
        return False
    shortened = isinstance(found, float) and re.search(" (logarithm|exponential|power)", repr(expression))
    return found == expected or (bool(shortened) and math.isclose(found, expected, rel_tol=2.0**-38))


def find_fault(relation: Any, expression: Any, rows: Any) -> str | None:
    """What is wrong with an engine's answer to one expression, or None."""
    keys = {"id": col("id"), "k": expression}
    try:
        found = answer(Aggregation(relation, keys, {"n": Rows()}, bound=Unbounded()))
    except DataError as error:
        return f"raised: {error}"
    got = dict(zip(*(column.tolist() for column in found.keys), strict=True))
    expected = dict(zip([row["id"] for row in rows], expected_of(expression, rows), strict=True))
    for key, value in expected.items():
        if key not in got or not is_alike(got[key], value, expression):
            return f"row {key}: {str(got.get(key, 'no row'))[:200]!r} for {str(value)[:200]!r}"
    return None


def find_fault_in_sum(relation: Any, expression: Any, rows: Any) -> Any:
    """The same for a sum over bounded persons, which the compiled kernels answer."""
    values = {"v": Clamped(expression, (-100, 100), exponent=3), "n": Rows(expression)}
    try:
        found = answer(Aggregation(relation, {}, values, bound=NormBound(1, {"v": 2**20, "n": 8})))
    except DataError as error:
        return f"raised: {error}"
    known = [value for value in expected_of(expression, rows) if value is not None]
    expected = (sum(oracle.grid(value, -100.0, 100.0, 3) for value in known), len(known))
    got = found.to_dict().get((), (0, 0))
    return None if got == expected else f"sums {got} for {expected}"
