"""What is asked of an engine: exact integers per group, every person's part in them bounded."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time
from typing import TYPE_CHECKING, Any, Self

from mosha.connect.language.cases import Case
from mosha.connect.language.checking import join_types, list_expressions, type_of
from mosha.connect.language.expression import Call, Expression, Operator, as_expression, lit
from mosha.connect.language.limits import check_limit, seeds
from mosha.connect.language.schema import LARGEST_INTEGER, Schema, Type
from mosha.connect.language.value import Clamped, Persons, Value, check_keys, check_values
from mosha.connect.plan.bounding import Bound, NormBound, Truncate, Unbounded
from mosha.connect.plan.relation import Relation
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.errors import Unbounded as UnboundedError
from mosha.core.language import phrase

__all__ = ["MOST_TEXTS", "Aggregation", "Distinct", "NearRanks", "Norms", "Question", "are_plain", "check_growth"]


@dataclass(frozen=True, eq=False)
class Question:
    """The root: `keys` split the rows of `relation` into groups; `only` lists the groups that are asked for.

    With `only`, rows of other groups are dropped before anything is bounded, so nobody's allowance is spent on them.

    >>> from mosha.connect import col, private, source
    >>> wards = private(source({"ward": ["a", "b", "a"]}))
    >>> Question(wards, keys={"ward": col("ward")}, only=["a", "b"]).only
    (('a',), ('b',))
    """

    relation: Relation
    keys: tuple[tuple[str, Expression], ...] = ()
    only: tuple[tuple[Any, ...], ...] | None = field(default=None, kw_only=True)
    listing: Any = field(default=None, init=False, repr=False)  # how an engine lists the public keys, if not in SQL
    part: tuple[int, int] | None = field(default=None, init=False, repr=False)  # (number, count) of a slice of persons

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", check_keys(self.keys, self.relation.schema))
        check_growth(self.relation, [expression for _, expression in self.keys])
        if self.only is not None:
            object.__setattr__(self, "only", _public_keys(self.only, self.key_types))

    @property
    def key_types(self) -> tuple[Type, ...]:
        return tuple(type_of(expression, self.relation.schema) for _, expression in self.keys)

    @property
    def key_schema(self) -> Schema:
        return Schema(dict(zip((name for name, _ in self.keys), self.key_types, strict=True)))

    def list_values(self, listing: object) -> Self:
        """The same question, its public keys listed by an engine in its own way: `listing` makes that expression."""
        question = copy.copy(self)
        object.__setattr__(question, "listing", listing)
        return question

    def take_slice(self, number: int, count: int) -> Self:
        """The same question about slice `number` (from 0) of `count` slices of persons."""
        self._need_person()
        question = copy.copy(self)
        object.__setattr__(question, "part", (number, count))
        return question

    def _need_person(self) -> None:
        if self.relation.person is None:
            raise UnboundedError(
                "bounding per person needs a column that says whose a row is, and this relation has none "
                "(no person was named, or a join gave it up). Ask with Unbounded and the relation's stability."
            )


def _public_keys(only: Iterable[object], kinds: tuple[Type, ...]) -> tuple[tuple[Any, ...], ...]:
    """Public key tuples in plain form, without repetition; those that are plain already pass at once."""
    if isinstance(only, tuple) and are_plain(only, kinds):
        return tuple(dict.fromkeys(only))
    found: dict[tuple[Any, ...], None] = {}
    for key in only:
        values = tuple(key) if isinstance(key, (tuple, list)) else (key,)
        if len(values) != len(kinds):
            raise InvalidParameter("connect.public_key_length", values=len(kinds))
        found[tuple(_to_plain(value, kind) for value, kind in zip(values, kinds, strict=True))] = None
    if not found:
        raise InvalidParameter("connect.no_public_keys", parameter="only")
    return tuple(found)


def are_plain(rows: Sequence[Any], kinds: Sequence[Type]) -> bool:
    """Whether these are tuples with whole numbers of 64 bits, or ASCII text, where that is the type of the column."""
    if set(map(type, rows)) != {tuple} or set(map(len, rows)) != {len(kinds)}:
        return False
    return all(_is_plain([row[place] for row in rows], kind) for place, kind in enumerate(kinds))


def _is_plain(column: Sequence[Any], kind: Type) -> bool:
    types = set(map(type, column))
    if kind is Type.INTEGER and types == {int}:
        return bool(max(column) <= LARGEST_INTEGER and min(column) >= -LARGEST_INTEGER)
    text = "".join(column) if kind is Type.TEXT and types == {str} else "\x00"
    return text.isascii() and "\x00" not in text


def _to_plain(value: object, kind: Type) -> Any:
    if value is None:
        return None
    literal = lit(value)
    if join_types([literal.type, kind], "connect.where_public_key") is not kind:
        raise DataError("connect.public_key_type", kind=str(kind), given=str(literal.type))
    if kind is Type.TIMESTAMP and literal.type is Type.DATE:
        return datetime.combine(literal.value, time())  # a day stands for its midnight, as an engine gives it back
    return float(literal.value) if kind is Type.REAL else literal.value


@dataclass(frozen=True, eq=False)
class Aggregation(Question):
    """The sum of each of `values` in each group, after bounding each person as `bound` says.

    Guarantee:
        The answer is a function of the multiset of rows, in exact integers: row order cannot change it and it cannot
        overflow (sums are kept in at least 126 bits, values below 2**62, tables below 2**63 rows). One person moves
        it by no more than `sensitivity` says.

    >>> from mosha.connect import Rows, Unbounded, answer, col, private, source
    >>> wards = private(source({"ward": ["a", "b", "a"]}))
    >>> answer(Aggregation(wards, {"ward": col("ward")}, {"rows": Rows()}, bound=Unbounded(), only=["a"])).to_dict()
    {('a',): (2,)}
    """

    values: tuple[tuple[str, Value], ...] = ()
    bound: Bound = field(kw_only=True)

    if TYPE_CHECKING:  # a mapping of names is taken too, and any list of public keys

        def __init__(
            self,
            relation: Relation,
            keys: Mapping[str, Expression] | Sequence[tuple[str, Expression]] = (),
            values: Mapping[str, Value] | Sequence[tuple[str, Value]] = (),
            *,
            bound: Bound,
            only: Iterable[object] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "values", check_values(self.values, self.relation.schema))
        check_growth(self.relation, [*(e for _, e in self.keys), *(value.expression for _, value in self.values)])
        names = {name for name, _ in self.values}
        if isinstance(self.bound, Unbounded):
            if any(isinstance(value, Persons) for _, value in self.values):
                raise InvalidParameter("connect.persons_need_bound", parameter="bound")
            return
        self._need_person()
        if isinstance(self.bound, NormBound):
            self._check_limits(self.bound, names)
        elif not isinstance(self.bound, Truncate):
            raise InvalidParameter("connect.not_a_bound", parameter="bound")

    def _check_limits(self, bound: NormBound, names: set[str]) -> None:
        leaders, values = bound.leaders(), dict(self.values)
        if set(leaders) != names:
            raise InvalidParameter("connect.norm_limits")
        for name, (leader, _) in leaders.items():
            if isinstance(values[name], Persons) != isinstance(values[leader], Persons):
                raise InvalidParameter("connect.persons_and_rows")
            if name != leader and not values[name].follows(values[leader]):
                raise InvalidParameter("connect.value_cannot_follow", value=str(name), leader=str(leader))


@dataclass(frozen=True, eq=False)
class Distinct(Question):
    """How many distinct values of `of` each group has, each person bringing at most `at_most` (key, value) pairs.

    `key` is that of the hash: 16 secret bytes.

    Guarantee:
        The pairs that a person keeps are picked by a keyed hash of that person's pairs alone. Without the person
        at most `at_most` pairs leave the union, so the counts of all groups together fall by at most `at_most`.
        For `person` None every row brings one pair: the counts move by at most the relation's stability. With `add`
        the values, which are whole numbers, are added up: sums move by at most as many values.

    >>> from mosha.connect import answer, col, private, source
    >>> visits = private(source({"who": [1, 1, 2], "ward": ["a", "b", "a"]}), person="who")
    >>> answer(Distinct(visits, of=col("ward"), at_most=2, key=bytes(16)))["distinct"].tolist()
    [2]
    """

    of: Expression = field(kw_only=True)
    at_most: int = field(kw_only=True)
    key: bytes = field(kw_only=True)
    add: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "of", as_expression(self.of))
        kind = type_of(self.of, self.relation.schema)
        if self.add and kind is not Type.INTEGER:
            raise DataError(
                "connect.operator_needs", operator="sum", what=phrase("connect.whole_numbers"), kind=str(kind)
            )
        check_growth(self.relation, [*(expression for _, expression in self.keys), self.of])
        check_limit("at_most", self.at_most)
        seeds(self.key)


@dataclass(frozen=True, eq=False)
class Norms(Question):
    """How many persons have a norm of `value` in each bucket: bucket i holds norms in (thresholds[i-1], thresholds[i]].

    The norm is that of `NormBound` (order 1: the sum of |v| over rows; order 2: over groups), in units of the value;
    the last bucket holds all norms above the last threshold. Every person is in one bucket.

    `order` is 1 or 2; `thresholds` are whole numbers that increase.

    >>> from mosha.connect import Rows, answer, private, source
    >>> visits = private(source({"who": [1, 1, 1, 2]}), person="who")
    >>> answer(Norms(visits, value=Rows(), order=1, thresholds=(1, 2, 4))).to_dict()
    {(1,): (1,), (2,): (0,), (4,): (1,), (None,): (0,)}
    """

    value: Value = field(kw_only=True)
    order: int = field(kw_only=True)
    thresholds: tuple[int, ...] = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._need_person()
        self.value.check(self.relation.schema)
        check_growth(self.relation, [*(expression for _, expression in self.keys), self.value.expression])
        if self.order not in {1, 2}:
            raise InvalidParameter("connect.norm_order", parameter="order")
        ascending = all(a < b for a, b in zip(self.thresholds, self.thresholds[1:], strict=False))
        whole = all(isinstance(t, int) and not isinstance(t, bool) and 0 <= t < 2**52 for t in self.thresholds)
        if not (self.thresholds and ascending and whole):
            raise InvalidParameter("connect.thresholds", parameter="thresholds")


@dataclass(frozen=True, eq=False)
class NearRanks(Question):
    """How many rows each group has in the cells of a grid, but only in cells near some ranks; people are bounded.

    In each group let n_c be the weight of cell c, u_c that of the cells up to it and t that of the whole group. `near`
    lists (top, bottom, reach): the answer has the cells with n_c > 0 for which one of those intervals meets theirs,

        bottom * u_c >= top * t - reach    and    bottom * (u_c - n_c) <= top * t + reach,

    as "cell", "rows" (n_c), "upto" (u_c) and "total" (t). A group has at most 2 reach / bottom + 2 of them for each
    interval, however many rows it has. The weight of a row is that of `Rows()` under `bound`, which is a NormBound of
    order 1 for the value "rows", or none.
    """

    cell: Clamped = field(kw_only=True)
    near: tuple[tuple[int, int, int], ...] = field(kw_only=True)
    bound: NormBound | Unbounded = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.cell.check(self.relation.schema)
        check_growth(self.relation, [*(expression for _, expression in self.keys), self.cell.expression])
        if isinstance(self.bound, NormBound):
            self._need_person()
            if self.bound.order != 1 or set(self.bound.limits) != {"rows"}:
                raise InvalidParameter("connect.norm_limits")


MOST_TEXTS = 512
_MAKERS: Mapping[Operator, int] = {
    **dict.fromkeys((Operator.TRIM, Operator.SUBSTRING, Operator.TAIL, Operator.CONCAT, Operator.REPLACE), 1),
    **dict.fromkeys((Operator.LOWER, Operator.UPPER), 4),  # MariaDB exchanges one letter after the other: 26 texts
    Operator.SPLIT: 4,  # DuckDB makes a list of all parts: 16 bytes for each character
}


def _count_texts(call: Call) -> int:
    if call.operator is Operator.LIKE:  # of which MariaDB makes two more texts for each letter whose case is no matter
        return 1 + len({c.lower() for c in call.options[0] if c.lower() != c.upper()}) // 4 * any(call.options[1:])
    return _MAKERS.get(call.operator, 0)


def texts_in(expression: Expression) -> int:
    """How many texts an expression makes (LIKE does where the case of letters does not count), in units of 2 MB."""
    if isinstance(expression, Case):
        parts = [part for branch in expression.branches for part in branch]
        return sum(map(texts_in, [*parts, expression.rest] if expression.rest is not None else parts))
    if isinstance(expression, Call):
        return _count_texts(expression) + sum(map(texts_in, expression.arguments))
    return 0


def _expressions(relation: Relation) -> Iterator[Expression]:
    """Everything that the steps of a relation compute."""
    waiting = [relation]
    while waiting:
        step = waiting.pop()
        yield from list_expressions(step)
        waiting += [getattr(step, name) for name in ("parent", "left", "right") if hasattr(step, name)]


def check_growth(relation: Relation, more: Iterable[Expression]) -> None:
    """Refuse a question that makes so many texts of each row that one row could fill the memory.

    Guarantee:
        A text has at most 2**18 bytes, and one concatenation makes at most 8 times that before it is cut. A question
        holds operators that make at most MOST_TEXTS texts of that kind, so what one row adds to an engine's memory is
        bounded by a public number (1 GB at the very most, and 128 MB of finished texts) and not by what somebody wrote
        into the row.
    """
    if sum(map(texts_in, [*_expressions(relation), *more])) > MOST_TEXTS:
        raise DataError("connect.too_many_texts", most=MOST_TEXTS, spent="nothing")
