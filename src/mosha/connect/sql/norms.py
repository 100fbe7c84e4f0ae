"""Norm bounding in SQL, in whole numbers only: every engine and the kernel give the same integers (`bounding.md`)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mosha.connect.language.schema import Type
from mosha.connect.language.value import Persons, Value
from mosha.connect.plan.aggregation import Aggregation, Norms, Question
from mosha.connect.plan.bounding import NormBound
from mosha.connect.sql.dialect import Dialect, Kind, Node, binary, call, cast, choose, column, number
from mosha.connect.sql.rows import subquery
from mosha.connect.sql.statement import (
    Query,
    alias,
    any_of,
    contributions,
    copies,
    is_plain_count,
    key_columns,
    select,
    table,
    with_parts,
)

__all__ = ["GROUP_LIMIT", "SQUARE_LIMIT", "group_norms", "norm_histogram", "row_norms"]

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
    return Query(with_parts(query, rows=rows, norms=norms), tuple(place))


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
