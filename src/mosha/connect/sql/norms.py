"""Norm bounding in SQL, in whole numbers only: every engine and the kernel give the same integers (`bounding.md`).

`queries` chooses the statements that answer a question: bounding and exact sums, where the data live.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mosha.connect.language.expression import Expression
from mosha.connect.language.schema import Type
from mosha.connect.language.value import Clamped, Persons, Rows, Value
from mosha.connect.plan.aggregation import Aggregation, Distinct, NearRanks, Norms, Question
from mosha.connect.plan.bounding import NormBound, Truncate, Unbounded
from mosha.connect.sql.dialect import Dialect, Kind, Node, binary, call, cast, choose, column, number
from mosha.connect.sql.rows import subquery
from mosha.connect.sql.statement import (
    Query,
    alias,
    all_of,
    any_of,
    can_read_again,
    contributions,
    copies,
    is_plain_count,
    key_columns,
    select,
    table,
    with_parts,
)
from mosha.connect.sql.truncation import distinct, truncate_rows

__all__ = [
    "GROUP_LIMIT",
    "SQUARE_LIMIT",
    "group_norms",
    "near_ranks",
    "norm_histogram",
    "queries",
    "row_norms",
    "sql_of",
]

GROUP_LIMIT = 2**43
SQUARE_LIMIT = 2**102
Values = list[tuple[str, Value]]


def row_norms(
    question: Question, values: Values, bound: NormBound, dialect: Dialect, split: Sequence[Value] = ()
) -> Query:
    """Order 1: one pass for each person's total, one for the weighted sums.

    Only persons above a limit are joined: they are few, and whoever is not among them counts in full. Groups are split
    further by the numbers in `split`, which the answer has behind the keys.
    """
    kinds, leaders = dict(values), bound.leaders()
    place = {name: i for i, name in enumerate(kinds)}
    wide = {leader: _needs_wide(leader, kinds, bound) for leader in dict.fromkeys(leaders[name][0] for name in kinds)}
    totals = [
        alias(_total(column(f"v{place[leader]}"), kinds[leader], dialect, wide=wide[leader]), f"t{place[leader]}")
        for leader in wide
    ]
    everybody = select([column("p"), *totals], table("rows"), group=[column("p")])
    above = [
        binary(exp.GT, column(f"t{place[leader]}"), number(limit))
        for leader, limit in dict.fromkeys(leaders[name] for name in kinds)
    ]
    norms = select([exp.Star()], subquery(everybody, "totals"), where=any_of(above))
    sums = []
    for name, kind in values:
        leader, limit = leaders[name]
        value = None if is_plain_count(kind) else column(f"v{place[name]}")
        kept = _weigh_row(value, kind, column(f"t{place[leader]}"), limit, bound.fraction, dialect, wide=wide[leader])
        sums.append(alias(dialect.sum(kept, kind.magnitude * limit << bound.fraction), f"s{place[name]}"))
    keys = [*key_columns(question), *(column(f"v{len(kinds) + i}") for i in range(len(split)))]
    query = select([*keys, *sums], table("rows"), group=copies(keys))
    query.set("joins", [_by_person("norms", side="LEFT")])
    rows = contributions(question, [*kinds.values(), *split], dialect)
    again = can_read_again(question, dialect)
    return Query(with_parts(query, rows_again=again, rows=rows, norms=norms), tuple(place))


def _needs_wide(leader: str, kinds: dict[str, Value], bound: NormBound) -> bool:
    """Whether a product of a value with its limit may leave 62 bits."""
    led = [(kinds[name].magnitude, limit) for name, (first, limit) in bound.leaders().items() if first == leader]
    return any(magnitude * (limit << bound.fraction) >= 2**62 for magnitude, limit in led)


def _total(value: Node, kind: Value, dialect: Dialect, *, wide: bool) -> Node:
    """The sum of |v|. Narrow, it stops at 2**62: any larger total divides every product (below 2**62) to zero too."""
    if is_plain_count(kind):
        total: Node = exp.Count(this=exp.Star())
        return dialect.widen(total) if wide else total
    total = dialect.sum(value if kind.low >= 0 else exp.Abs(this=value), None)
    return total if wide else cast(call("LEAST", total, dialect.widen(number(2**62))), Kind.BIGINT)


def _weigh_row(
    value: Node | None, kind: Value, total: Node, limit: int, fraction: int, dialect: Dialect, *, wide: bool
) -> Node:
    """What a row counts. Where its value is 0 or ±1, that is the value times the weight of a 1, which others share."""
    one = dialect.to(Type.INTEGER, number(1 << fraction))
    above = binary(exp.GT, total, number(limit))
    if value is not None and (wide or kind.magnitude > 1):
        scaled = _scale_value(value, total.copy(), limit << fraction, dialect, wide=wide)
        full = (dialect.widen(part) for part in (value.copy(), one)) if wide else (value.copy(), one)
        return choose((above, scaled), otherwise=binary(exp.Mul, *full))
    scaled = _scale_value(dialect.to(Type.INTEGER, number(1)), total.copy(), limit << fraction, dialect, wide=wide)
    weight = choose((above, scaled), otherwise=one)
    return weight if value is None else binary(exp.Mul, value, weight)


def _scale_value(value: Node, divisor: Node, factor: int, dialect: Dialect, *, wide: bool) -> Node:
    """The product of value and factor, divided, towards zero."""
    if wide:
        product = binary(exp.Mul, dialect.widen(value), dialect.widen(number(factor)))
    else:
        product = binary(exp.Mul, value, dialect.to(Type.INTEGER, number(factor)))
    return dialect.quotient(product, divisor, wide=wide)


def _by_person(name: str, *, side: str | None = None) -> exp.Join:
    return exp.Join(this=table(name), side=side, using=[exp.Identifier(this="p", quoted=True)])


def group_norms(question: Aggregation, values: Values, bound: NormBound, dialect: Dialect) -> Query:
    """Order 2 (and persons): the sums of each person and group, then each person's norm, then the weighted sums."""
    kinds, leaders = dict(values), bound.leaders()
    place = {name: i for i, name in enumerate(kinds)}
    used = dict.fromkeys(leaders[name] for name in kinds)
    powers, divisors = [], []
    for name, limit in used:
        i = place[name]
        powers.append(alias(_power(column(f"v{i}"), kinds[name], bound.order, dialect), f"n{i}"))
        divisors.append(alias(_divisor(column(f"n{i}"), limit, bound.order, dialect), f"t{i}"))
    powered = select([column("p"), *powers], table("pairs"), group=[column("p")])
    norms = select([column("p"), *divisors], subquery(powered, "powers"))
    sums = []
    for name in kinds:
        leader, limit = leaders[name]
        value, divisor = column(f"v{place[name]}"), column(f"t{place[leader]}")
        scaled = _scale_value(value, dialect.widen(divisor), limit << bound.fraction, dialect, wide=True)
        wide = GROUP_LIMIT << bound.fraction >= 2**63
        one = number(1 << bound.fraction)
        full = binary(
            exp.Mul, dialect.widen(value.copy()) if wide else value.copy(), dialect.widen(one) if wide else one
        )
        whole = binary(exp.EQ, divisor.copy(), number(0))
        kept = choose((whole, dialect.widen(full)), otherwise=scaled)
        sums.append(alias(dialect.sum(kept, None), f"s{place[name]}"))
    keys = key_columns(question)
    query = select([*keys, *sums], table("pairs"), group=copies(keys))
    query.set("joins", [_by_person("norms")])
    pairs = _pairs(question, list(kinds.values()), dialect)
    return Query(with_parts(query, pairs=pairs, norms=norms), tuple(place))


def _divisor(power: Node, limit: int, order: int, dialect: Dialect) -> Node:
    """What a person's values are divided by, a BIGINT: 0 within the limit, NULL (no contribution) from 2**102 on."""
    above = binary(exp.GT, power, dialect.widen(number(limit**order)))
    root = power.copy() if order == 1 else _root(power.copy(), dialect)
    below = binary(exp.LT, power.copy(), dialect.widen(number(2**62 if order == 1 else SQUARE_LIMIT)))
    narrow = choose((below, cast(root, Kind.BIGINT)))
    return choose((above, narrow), otherwise=dialect.to(Type.INTEGER, number(0)))


def _pairs(question: Question, values: list[Value], dialect: Dialect) -> exp.Select:
    """For each person and group the sum of each value, moved into ±2**43."""
    keys = key_columns(question)
    sums = []
    for i, value in enumerate(values):
        if isinstance(value, Persons):
            node: Node = dialect.to(Type.INTEGER, number(1))
        elif is_plain_count(value):
            node = exp.Count(this=exp.Star())
        else:
            low, high = (dialect.widen(number(limit)) for limit in (-GROUP_LIMIT, GROUP_LIMIT))
            total = call("LEAST", dialect.sum(column(f"v{i}"), None), high)
            node = cast(call("GREATEST", total, low), Kind.BIGINT)
        sums.append(alias(node, f"v{i}"))
    rows = subquery(contributions(question, values, dialect), "rows")
    return select([column("p"), *keys, *sums], rows, group=[column("p"), *copies(keys)])


def _power(value: Node, kind: Value, order: int, dialect: Dialect) -> Node:
    """The sum over a person's groups of |v| or v**2."""
    if isinstance(kind, Persons):
        return dialect.widen(exp.Count(this=exp.Star()))
    if order == 1:
        return dialect.sum(exp.Abs(this=value), None)
    return dialect.sum(binary(exp.Mul, dialect.widen(value), dialect.widen(value.copy())), None)


def _root(square: Node, dialect: Dialect) -> Node:
    """The least integer whose square is not below `square`, which is below 2**102.

    The double's square root is less than 1 away from the true one, whatever way the engine rounds the square to a
    double; so the answer is one of floor(root) - 1, ..., floor(root) + 2, and exact squares decide.
    """
    guess = dialect.widen(call("FLOOR", call("SQRT", dialect.to(Type.REAL, square))))
    branches = []
    for step in (-1, 0, 1, 2):
        candidate = binary(exp.Add, guess.copy(), dialect.widen(number(step)))
        reached = binary(exp.GTE, binary(exp.Mul, candidate, candidate.copy()), square.copy())
        branches.append((reached, candidate.copy()))
    return choose(*branches)


def norm_histogram(question: Norms, dialect: Dialect) -> Query:
    """The number of persons in each bucket of norms: the bucket is the number of thresholds below the norm."""
    value = question.value
    if question.order == 1 and not isinstance(value, Persons):
        inner = contributions(question, [value], dialect)
        norm = _total(column("v0"), value, dialect, wide=True)
    else:
        inner = _pairs(question, [value], dialect)
        norm = _power(column("v0"), value, question.order, dialect)
    norms = select([alias(norm, "t")], subquery(inner, "rows"), group=[column("p")])
    bucket: Node = number(0)
    for threshold in question.thresholds:
        limit = dialect.widen(number(threshold**question.order))
        bucket = binary(exp.Add, bucket, choose((binary(exp.GT, column("t"), limit), number(1)), otherwise=number(0)))
    numbered = select([alias(dialect.to(Type.INTEGER, bucket), "k0")], subquery(norms, "norms"))
    counted = alias(exp.Count(this=exp.Star()), "s0")
    return Query(select([column("k0"), counted], subquery(numbered, "buckets"), group=[column("k0")]), ("persons",))


def queries(question: Question, dialect: Dialect) -> list[Query]:
    """The statements that answer a question: more than one only where rows and persons are bounded side by side."""
    if isinstance(question, Distinct):
        return [distinct(question, dialect)]
    if isinstance(question, Norms):
        return [norm_histogram(question, dialect)]
    if isinstance(question, NearRanks):
        return [near_ranks(question, dialect)]
    assert isinstance(question, Aggregation)
    bound = question.bound
    if isinstance(bound, Unbounded):
        return [_sum_all_rows(question, dialect)]
    if isinstance(bound, Truncate):
        return [truncate_rows(question, bound, dialect)]
    assert isinstance(bound, NormBound)
    parts: tuple[list[tuple[str, Value]], list[tuple[str, Value]]] = ([], [])
    for name, value in question.values:
        by_row = bound.order == 1 and not isinstance(value, Persons)
        parts[0 if by_row else 1].append((name, value))
    found = [row_norms(question, parts[0], bound, dialect)] if parts[0] else []
    return found + ([group_norms(question, parts[1], bound, dialect)] if parts[1] else [])


def sql_of(question: Question, dialect: Dialect) -> str:
    """The statements as text, for people."""
    return ";\n\n".join(dialect.sql(query.statement, pretty=True) for query in queries(question, dialect))


def _sum_all_rows(question: Aggregation, dialect: Dialect) -> Query:
    """Every row in full. What is missing counts nothing, so a sum and the number of its known rows share a column."""
    values, keys = [value for _, value in question.values], key_columns(question)
    known = {repr(value.of): value.known for value in values if isinstance(value, Clamped)}
    columns: dict[str, Expression] = {}
    sums: list[Node] = []
    for i, value in enumerate(values):
        counted = isinstance(value, Rows) and (is_plain_count(value) or repr(value.of) in known)
        if counted and is_plain_count(value):
            sums.append(alias(exp.Count(this=exp.Star()), f"s{i}"))
            continue
        if isinstance(value, Rows) and counted:
            expression = known[repr(value.of)]
        else:
            expression = value.known if isinstance(value, Clamped) else value.expression
        columns.setdefault(repr(expression), expression)
        node = column(f"x{list(columns).index(repr(expression))}")
        sums.append(alias(exp.Count(this=node) if counted else dialect.sum(node, value.magnitude), f"s{i}"))
    rows = contributions(question, [], dialect, extra=list(columns.values()))
    query = select([*keys, *sums], subquery(rows, "rows"), group=copies(keys))
    return Query(query, tuple(name for name, _ in question.values))


NAMES = ("cell", "rows", "upto", "total")


def near_ranks(question: NearRanks, dialect: Dialect) -> Query:
    """One statement: weights by cell, running totals in each group, and the cells near the ranks."""
    keys = key_columns(question)
    cells, cell = _count_cells(question, dialect)
    named = [*copies(keys), alias(cell, "cell"), alias(dialect.widen(column("s0")), "rows")]
    filled = binary(exp.GT, column("s0"), number(0))
    weighed = select(named, subquery(cells, "cells"), where=filled)
    upto = _running(dialect.sum(column("rows"), None), keys, exp.Order(expressions=[column("cell")]))
    total = _running(dialect.sum(column("rows"), None), keys)
    ranked = select(
        [*copies(keys), column("cell"), column("rows"), alias(upto, "upto"), alias(total, "total")],
        subquery(weighed, "weighed"),
    )
    found = [alias(column(name), f"s{i}") for i, name in enumerate(NAMES)]
    near = any_of([_is_near(top, bottom, reach, dialect) for top, bottom, reach in question.near])
    return Query(select([*copies(keys), *found], subquery(ranked, "ranked"), where=near), NAMES)


def _count_cells(question: NearRanks, dialect: Dialect) -> tuple[exp.Select, Node]:
    """The weight s0 of each group's cells, and the column that holds the cell."""
    if isinstance(question.bound, NormBound):
        return row_norms(question, [("rows", Rows())], question.bound, dialect, [question.cell]).statement, column("v1")
    keys = [*key_columns(question), column("v0")]
    counted = alias(exp.Count(this=exp.Star()), "s0")
    rows = subquery(contributions(question, [question.cell], dialect), "rows")
    return select([*keys, counted], rows, group=copies(keys)), column("v0")


def _running(total: Node, keys: list[Node], order: exp.Order | None = None) -> Node:
    """A sum over the rows of a group, or over those up to this one."""
    frame = exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW")
    over = {"partition_by": copies(keys)} | ({} if order is None else {"order": order, "spec": frame})
    return exp.Window(this=total, **over)


def _is_near(top: int, bottom: int, reach: int, dialect: Dialect) -> Node:
    """Whether the ranks of a cell come within reach / bottom of the share top / bottom of its group."""
    share, whole, away = (dialect.widen(number(n)) for n in (top, bottom, reach))
    target = binary(exp.Mul, share, column("total"))
    last = binary(exp.Mul, whole, column("upto"))
    first = binary(exp.Mul, whole.copy(), binary(exp.Sub, column("upto"), column("rows")))
    return all_of(
        [
            binary(exp.GTE, last, binary(exp.Sub, target, away)),
            binary(exp.LTE, first, binary(exp.Add, target.copy(), away.copy())),
        ]
    )
