"""Every operator means the same on every engine: all engines are compared with one oracle in plain Python."""

import math
import random
import secrets
from datetime import UTC, date, datetime
from typing import Any

import pytest
import sqlglot

from mosha.connect import (
    Aggregation,
    Operator,
    Rows,
    Schema,
    Type,
    Unbounded,
    answer,
    col,
    grid,
    lit,
    null,
    private,
    when,
)
from mosha.connect.language.expression import Call
from mosha.tables.sql.scalar import scalar
from mosha.tables.sql.scope import Scope
from mosha.tables.sql.spellings import respell
from tests.connect.grower import KINDS, Grower
from tests.connect.oracle import evaluate, flush, scanned

INTEGERS = [None, 0, 1, -1, 7, -7, 100, 2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1]
REALS = [
    *[None, math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -2.5, 0.1, 2.5, 1e308, -1e308, 1e-308, 5e-324, -5e-324],
    *[2.0**500, -(2.0**500), 2.0**499, 1e150, 1e-200, 0.49999999999999994, 123456789.123, 4503599627370495.5],
]
TEXTS = [
    *[None, "", " ", " a ", "Ab", "aB", "É", "é", "ß", "İ", "日本", "a%b", "a_b", "a\\b", "a!b", "12", "-7", "+5"],
    *["'; DROP TABLE visits; --", '"', "12.5", "1e5", "1e99", "1e999", " 12", "9" * 19, "true", "2024-02-29"],
    *["2023-02-29", "1900-02-29", "0000-01-01", "2024-01-01 12:30:45", "2024-01-01T12:30:45.12", "2024-01-01 24:00:00"],
    *["2024-01-01T12:30:45Z", "2024-01-01 12:30:45.5Z", "2024-01-01Z", "2024-01-01T12:30:45ZZ", "2024-01-01T12:30:45z"],
    *["👩‍👩‍👧", "e\u0301", "line\nbreak", "12\n", "tab\t", "\u00a0x\u00a0", "١٢", "0x10", "1_000", "nan", "inf"],
]
DATES = [
    *[None, date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29), date(1900, 2, 28)],
    *[date(1582, 10, 10), date(2023, 12, 31), date(2024, 1, 1), date(1969, 12, 31), date(2024, 12, 30)],
]
MOMENTS = [
    *[None, datetime(1970, 1, 1), datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)],
    *[
        datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime(2024, 3, 31, 2, 30, 15, 123456),
        datetime(2024, 2, 29, 0, 59),
    ],
]
SCHEMA = Schema(
    {
        **dict.fromkeys(["id", "i", "j"], Type.INTEGER),
        **dict.fromkeys("xy", Type.REAL),
        **dict.fromkeys("bc", Type.BOOLEAN),
        **dict.fromkeys("ts", Type.TEXT),
        **dict.fromkeys("de", Type.DATE),
        "w": Type.TIMESTAMP,
        "z": Type.INSTANT,
    }
)


def pairs(values: Any, size: Any) -> Any:
    """Two columns in which every value meets every other, and then at random."""
    listed = [(a, b) for a in values for b in values]
    rest = size - len(listed)
    return listed[:size] + [(random.choice(values), random.choice(values)) for _ in range(rest)]


def table(size: int = 530) -> list[Any]:
    numbers, reals = pairs(INTEGERS, size), pairs(REALS, size)
    logic, dates = pairs([None, True, False], size), pairs(DATES, size)
    texts = [(TEXTS[k % len(TEXTS)], random.choice(TEXTS)) for k in range(size)]
    moments = [(MOMENTS[k % len(MOMENTS)], MOMENTS[k // 7 % len(MOMENTS)]) for k in range(size)]
    rows = zip(numbers, reals, logic, texts, dates, moments, strict=True)
    return [(k, *(cell for pair in row for cell in pair)) for k, row in enumerate(rows)]


ROWS = table()


@pytest.fixture(scope="module")
def edges(place: Any) -> Any:
    return private(place.load(SCHEMA, ROWS))


def compared(relation: Any, expressions: Any) -> Any:
    """Ask for each expression in each row; list where an engine and the oracle differ."""
    keys = {"id": col("id")} | {f"e{n}": expression for n, expression in enumerate(expressions)}
    found = answer(Aggregation(relation, keys, {"n": Rows()}, bound=Unbounded()))
    assert sorted(found.keys[0].tolist()) == list(range(len(ROWS)))
    columns = [column.tolist() for column in found.keys]
    wrong = []
    for place, identity in enumerate(columns[0]):
        row = {name: scanned(cell, kind) for (name, kind), cell in zip(SCHEMA.items(), ROWS[identity], strict=True)}
        for n, expression in enumerate(expressions):
            expected, got = evaluate(expression, row, SCHEMA), columns[n + 1][place]
            expected = flush(expected) if isinstance(expected, float) else expected
            if type(expected) is not type(got) or expected != got:
                wrong.append(
                    (expression, {k: v for k, v in row.items() if f'"{k}"' in repr(expression)}, expected, got)
                )
    return wrong


i, j, x, y, b, c, t, s, d, e, w, z = (col(name) for name in SCHEMA if name != "id")
COMPARISONS = [
    Operator.EQUAL,
    Operator.NOT_EQUAL,
    Operator.LESS,
    Operator.LESS_EQUAL,
    Operator.GREATER,
    Operator.GREATER_EQUAL,
]
NUMBERS = [
    *[Call(Operator.SQUARE_ROOT, (v,)) for v in (i, x, y)],
    *[Call(Operator.LOGARITHM, (v,), base) for v in (i, x, y) for base in [(), (10.0,), (2.0,)]],
    *[Call(Operator.EXPONENTIAL, (v,)) for v in (i, x)],
    *[Call(Operator.POWER, pair) for pair in [(i, j), (x, y), (y, x), (x, i), (lit(1.5), y), (i, lit(-0.5))]],
    *[(i * 2**32) * 2**61, (j + (2**63 - 1)) + (2**63 - 1), (i + (2**63 - 1)) + (-(2**63) + 1), i * 0 * 2**62 * 2**62],
    *[i + j, i - j, i * j, i / j, -i, abs(i), x + y, x - y, x * y, x / y, -x, abs(x), i + x, x * j, i / y],
    *[
        i.floor(),
        x.floor(),
        x.ceil(),
        x.round(),
        x.round(2),
        x.round(15),
        x.round(-3),
        i.round(-2),
        i.round(),
        Call(Operator.ROUND, (x,), (1, 1e4)),
        i.clamp(-5, 50),
        x.clamp(-1.5, 1e200 / 1e100),
        i.clamp(0.5, 9),
    ],
    *[i.bin(10), i.bin(7, -3), x.bin(0.25), x.bin(1e-3, 0.1), i.bin(2.5), x.bin(10, 3), i.bin(2**61, 5)],
    *[
        i.bin(2**61, -(2**63) + 1),
        i.bin(2**61 - 1, 2**63 - 1),
        i.bin(1, 2**62),
        x.bin(2.0**-500),
        x.bin(2.0**499, 1e150),
    ],
    *[grid(x, (0, 30), 10), grid(x, (-5.5, 2.25), 0), grid(x, (-1e12, 1e12), -20), grid(i, (-50, 50), 3)],
    *[
        grid(i, (-0.5, 7.5), 1),
        grid(i, (-100, 100), -2),
        grid(x + y, (0, 1), 20),
        grid(x, (-5, 40), 10, center=7_000),
        grid(i, (-50, 50), 3, center=-(2**50)),
        grid(x, (1, 1), 5),
        grid(x, (-1e100, 1e100), -300),
        grid(x, (1e-308, 1e-300), -5),
    ],
]
LOGIC = [
    *[Call(operator, pair) for operator in COMPARISONS for pair in [(i, j), (x, y), (i, y), (t, s), (d, e), (d, w)]],
    *[b == c, b != c, b & c, b | c, ~b, b.is_null(), x.is_null(), t.is_null(), (x / y).is_null(), i > 3, x <= 2.5],
    *[i.is_in(1, 7, 2**62), x.is_in(0.0, 1.5, 7), i.is_in(0.5, 100), t.is_in("", "日本", "'; DROP TABLE visits; --")],
    *[d.is_in(date(2024, 2, 29)), b.is_in(True), i.between(-7, 7), w > datetime(2000, 1, 1), d >= date(1900, 1, 1)],
    *[z < datetime(1980, 1, 1, 8, tzinfo=UTC), z == z, t < "b", s >= "é", lit("a") < t],
]
TEXT = [
    *[t.lower(), t.upper(), t.trim(), t.length(), t.substring(2, 3), t.substring(1, 0), t.concat(s), t.concat("-", s)],
    *[t.like("%a%"), t.like("_"), t.like("a\\%b"), t.like("a\\_b"), t.like("a!b"), t.like("a\\\\b"), t.like("")],
    *[t.starts_with("a"), t.ends_with("b"), t.contains("_"), t.contains("%"), t.starts_with("'; DROP"), t.like("%\n%")],
    *[Call(Operator.POSITION, (t,), (sought,)) for sought in ("a", "b", "é", "\\", "本", "👧", "'; DROP")],
    *[Call(Operator.REPLACE, (t,), pair) for pair in [("a", ""), ("b", "BBBB"), ("\\", "/"), ("日", "a"), ("'", "''")]],
    *[Call(Operator.TAIL, (t,), (n,)) for n in (0, 1, 3, 2**31 - 1)],
    *[Call(Operator.SPLIT, (t,), (c, n)) for c, n in [("a", 1), (" ", 2), ("aa", 2), ("日", 2), ("-", 3), ("\\", 2)]],
    *[Call(Operator.TRIM, (t,), (side,)) for side in ("leading", "trailing")],
    *[t.coalesce(s, "none"), s.starts_with("日"), t.substring(3, 100)],
    *[t.substring(1, 2**31 - 1), t.substring(2**31 - 1, 2**31 - 1), t.substring(2**31 - 1, 0), t.like("%_a%_b%")],
    *[t.ilike("É"), t.ilike("%B%"), t.ilike("İ"), t.ilike("SS"), t.ilike("ß"), s.ilike("a\\%B"), t.ilike("%DROP%_s%")],
    *[t.like("%a%b%"), t.like("a%_%b"), t.like("%!%"), t.like("%\\_%\\_%"), t.like("%-%-%"), t.concat(*[s] * 20)],
    *[t.concat(*["x" * 2**17] * 3).length(), t.concat("y" * (2**18 - 8)).length(), t.concat(*[t.concat(s)] * 9)],
]
DATE = [
    *[part(v) for v in (d, w, z) for part in (lambda v: v.year(), lambda v: v.quarter(), lambda v: v.month())],
    *[part(v) for v in (d, w, z) for part in (lambda v: v.day(), lambda v: v.weekday())],
    *[w.hour(), w.minute(), z.hour(), z.minute(), d.days_since(e), w.days_since(d), d.days_since(date(2000, 1, 1))],
    *[d.truncate(unit) for unit in ("year", "quarter", "month", "week", "day")],
    *[w.truncate(unit) for unit in ("year", "quarter", "month", "week", "day", "hour", "minute")],
    *[z.truncate(unit) for unit in ("week", "hour")],
    *[Call(Operator.SHIFT_DATE, (v,), (n, "month")) for v in (d, w) for n in (1, -1, 12, -23, 0, 119_987, -119_987)],
    *[Call(Operator.SHIFT_DATE, (v,), (n, "day")) for v in (d, w, z) for n in (1, -1, 365, 3_652_058, -3_652_058)],
]
CASTS = [
    *[i.cast("real"), i.cast("text"), x.cast("integer"), b.cast("integer"), b.cast("text"), d.cast("timestamp")],
    *[t.cast("integer"), t.cast("real"), t.cast("date"), t.cast("timestamp"), d.cast("text"), w.cast("date")],
    *[z.cast("date"), z.cast("timestamp"), i.cast("integer"), (i + j).cast("text"), t.cast("date").year()],
]
CHOICES = [
    *[when(i > 0, "plus").when(i < 0, "minus").else_("nought"), when(b, i).else_(x), when(b & c, d), when(x > y, x)],
    *[i.coalesce(j, 0), x.coalesce(i, 1.5), null("text").coalesce(t), d.coalesce(e), i.coalesce(x)],
    *[when(b, null("integer")).else_(j), when(x.is_null(), 0).else_(1), when(d > e, w).else_(d)],
]
WRITTEN = [
    *("d + 3", "d - 40", "e + INTERVAL 1 MONTH", "d - e", "LAST_DAY(d)", "LAST_DAY(w)", "MONTHNAME(d)", "DAYNAME(d)"),
    *("EXTRACT(DOW FROM d)", "EXTRACT(DOY FROM w)", "EXTRACT(WEEK FROM d)", "DATEDIFF('month', d, e)"),
    *(
        "DATEDIFF('quarter', d, e)",
        "DATEDIFF('year', d, e)",
        "STRFTIME(d, '%Y-%m')",
        "STRFTIME(w, '%d.%m.%Y %H:%M %j')",
    ),
    *("SIGN(x)", "SIGN(i)", "TRUNC(x)", "GREATEST(i, 1)", "LEAST(x, 1.5)", "GREATEST(x, y)", "LEAST(i, j)", "i % 7"),
    *("i // 7", "POWER(i, 3)", "POWER(x, -2)", "POWER(x, 0)", "POWER(j, 0.5)", "CBRT(x)", "LOG10(i)", "LOG2(x)"),
    *("NULLIF(i, j)", "x IS DISTINCT FROM y", "i IS NOT DISTINCT FROM NULL", "i BETWEEN SYMMETRIC 7 AND -7"),
    *("(i, t) IN ((1, ''), (7, 'Ab'))", "ENDS_WITH(t, 'b')", "SUBSTRING(t, 2)", "LPAD(t, 4, '-')", "RPAD(t, 4, '日')"),
    *("LTRIM(t)", "RTRIM(s)", "RIGHT(t, 2)", "SPLIT_PART(t, ' ', 2)", "REGEXP_LIKE(t, '^(a|A).*b$')", "t ~* 'A[%_].'"),
    *("t SIMILAR TO '(a|1)_%'", "CONCAT(t, '-', s)", "CASE WHEN i > 3 THEN t END", "IF(b, i, j)", "COALESCE(x, i)"),
]


def read_sql(text: str, relation: Any) -> Any:
    """What SQL means, as an expression: functions that are put together from others."""
    scope = Scope(relation, {"": {name: name for name in SCHEMA}}, None)
    return scalar(respell(sqlglot.parse_one(text, dialect="duckdb")), scope)


def test_every_operator_is_tried_somewhere() -> None:
    seen = set()

    def walk(expression: Any) -> None:
        seen.add(getattr(expression, "operator", None))
        for part in getattr(expression, "arguments", ()):
            walk(part)

    for expression in [*NUMBERS, *LOGIC, *TEXT, *DATE, *CASTS, *CHOICES]:
        walk(expression)
    assert seen >= set(Operator)


@pytest.mark.parametrize(
    "expressions",
    [NUMBERS, LOGIC, TEXT, DATE, CASTS, CHOICES, WRITTEN],
    ids=["numbers", "logic", "text", "dates", "casts", "choices", "written"],
)
def test_an_operator_gives_what_the_oracle_gives(edges: Any, expressions: Any) -> None:
    read = [read_sql(one, edges) if isinstance(one, str) else one for one in expressions]
    assert compared(edges, read) == []


def test_random_expressions_give_what_the_oracle_gives(edges: Any) -> None:
    seed = secrets.randbits(64)
    grower = Grower(seed)
    expressions = [grower.grow(kind, depth) for kind in KINDS for depth in (1, 2, 3, 3)]
    assert compared(edges, expressions) == [], f"seed {seed}"
