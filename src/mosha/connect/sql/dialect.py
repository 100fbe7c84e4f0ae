"""What the engines say differently: each dialect spells the same meaning in its own words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, ClassVar

from sqlglot import exp

from mosha.connect.language.schema import LONGEST_TEXT, Type

__all__ = [
    "DUCKDB", "POSTGRES", "Dialect", "Read",
    "binary", "call", "cast", "choose", "column", "number", "read_within", "text",
]  # fmt: skip

Node = exp.Expr
Read = Callable[[Node], Node]  # how an engine reads a column
Kind = exp.DType
Segment = Sequence[str | None]


def column(name: str) -> exp.Column:
    """A column, always quoted."""
    return exp.Column(this=exp.Identifier(this=name, quoted=True))


def call(name: str, *arguments: Node) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


def cast(node: Node, kind: exp.DType, *sizes: int) -> exp.Cast:
    expressions = [exp.DataTypeParam(this=exp.Literal.number(size)) for size in sizes]
    return exp.Cast(this=node, to=exp.DataType(this=kind, expressions=expressions))


def number(value: int) -> Node:
    """A whole number whose type the engine picks."""
    return exp.Neg(this=exp.Literal.number(-value)) if value < 0 else exp.Literal.number(value)


def text(value: str) -> exp.Literal:
    return exp.Literal.string(value)


def binary(kind: type[exp.Binary], left: Node, right: Node) -> Node:
    """Two operands and an operator, each operand in parentheses where it needs them."""
    return kind(this=_wrap(left), expression=_wrap(right))


def choose(*branches: tuple[Node, Node], otherwise: Node | None = None) -> exp.Case:
    """CASE WHEN ... THEN ... ELSE ... END."""
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Case(ifs=ifs, default=otherwise)


def read_within(low: Node, high: Node, then: Read) -> Read:
    """How a column is read whose values outside of [low, high] are missing."""

    def read(node: Node) -> Node:
        inside = binary(exp.And, binary(exp.GTE, node, low.copy()), binary(exp.LTE, node.copy(), high.copy()))
        return choose((inside, then(node.copy())))

    return read


@dataclass(frozen=True)
class Listed:
    """A column of public values, none of them missing."""

    name: str
    kind: Type
    values: Sequence[Any]


def _wrap(node: Node) -> Node:
    loose = (exp.Binary, exp.Unary, exp.Predicate, exp.Interval)
    return exp.Paren(this=node) if isinstance(node, loose) and not isinstance(node, exp.Paren) else node


def plain_text(value: object) -> str:
    """A public value as every engine reads it back."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(" ", "microseconds")
    if isinstance(value, date):
        return value.isoformat()
    return repr(value) if isinstance(value, float) else str(value)


def _array_item(value: str) -> str:
    """An element of a PostgreSQL array in its text form."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def pattern_of(segment: Segment) -> str:
    """A segment as a regular expression."""
    special = set("\\^$.|?*+()[]{}&-#~")
    return "".join("." if c is None else "\\" + c if c in special else c for c in segment)


class Dialect:
    """The shared spelling; a subclass overrides what its engine says differently.

    `hash_type` is what `hash` gives; `barrier` tells that inner selects must be kept apart by OFFSET 0; `keeps_parts`,
    that a part of a statement which is used twice is written down as a whole unless the statement forbids it.
    """

    name: ClassVar[str]
    barrier: ClassVar[bool] = False
    keeps_parts: ClassVar[bool] = False
    trims: ClassVar[str] = "TRIM"
    kinds: ClassVar[dict[Type, exp.DType]] = {
        Type.INTEGER: Kind.BIGINT,
        Type.REAL: Kind.DOUBLE,
        Type.BOOLEAN: Kind.BOOLEAN,
        Type.TEXT: Kind.TEXT,
        Type.DATE: Kind.DATE,
        Type.TIMESTAMP: Kind.TIMESTAMP,
        Type.INSTANT: Kind.TIMESTAMP,
    }

    def to(self, kind: Type, node: Node) -> Node:
        return cast(node, self.kinds[kind])

    def literal(self, value: Any, kind: Type) -> Node:
        """A typed constant; reals are written so that they read back as the same double."""
        if value is None:
            return self.to(kind, exp.Null())
        if kind is Type.BOOLEAN:
            return exp.Boolean(this=value)
        if kind is Type.INTEGER:
            return self.to(kind, number(value))
        return self.to(kind, text(plain_text(value)))

    def list_values(self, columns: Sequence[Listed], name: str) -> Node:
        """A table of public values under the alias `name`."""
        rows = zip(*(column.values for column in columns), strict=True)
        tuples = [
            exp.Tuple(expressions=[self.literal(v, c.kind) for v, c in zip(row, columns, strict=True)]) for row in rows
        ]
        identifiers = [exp.Identifier(this=column.name, quoted=True) for column in columns]
        alias = exp.TableAlias(this=exp.Identifier(this=name, quoted=True), columns=identifiers)
        return exp.Values(expressions=tuples, alias=alias)

    def widen(self, node: Node) -> Node:
        """The integer in the engine's widest exact type (at least 2**126)."""
        raise NotImplementedError

    def integer(self, kind: type[exp.Binary], left: Node, right: Node) -> tuple[Node, bool]:
        """A sum, difference or product of two BIGINTs; the flag tells that it is wide and still to be narrowed."""
        return binary(kind, self.widen(left), self.widen(right)), True

    def bound(self, node: Node, names: Iterator[str], use: Callable[[Node], Node]) -> Node | None:
        """What `use` makes of a name for the node, in one expression; None where inner SELECTs serve as well."""
        del node, names, use
        return None

    def finite(self, node: Node) -> Node | None:
        """A test that a double from the data is finite, where comparisons alone do not show it."""
        del node
        return None

    def sum(self, node: Node, magnitude: int | None) -> Node:
        """The exact sum of whole numbers, at least 126 bits wide unless `magnitude` bounds each of them well below."""
        del magnitude  # DuckDB and PostgreSQL widen sums by themselves
        return exp.Sum(this=node)

    def quotient(self, left: Node, right: Node, *, wide: bool) -> Node:
        """The quotient of two whole numbers, both wide or both BIGINT, towards zero; `right` is above zero."""
        del wide  # most engines divide both alike
        return binary(exp.IntDiv, left, right)

    def real_quotient(self, left: Node, right: Node) -> Node:
        return exp.Div(this=_wrap(left), expression=_wrap(right), typed=True, safe=False)

    def remainder(self, left: Node, right: Node) -> Node:
        return binary(exp.Mod, left, right)

    def attempt(self, kind: Type, node: Node) -> Node:
        """A cast that a guard has shown to succeed; NULL and no error even without it, where the engine has such casts.

        Planners may look at a constant inside of a guard before they look at the guard.
        """
        return exp.TryCast(this=node, to=exp.DataType(this=self.kinds[kind]))

    def to_bigint(self, node: Node) -> Node:
        """A double without a fraction, below 2**63, as BIGINT."""
        return self.attempt(Type.INTEGER, node)

    def hash(self, seeds: tuple[int, int], nodes: Sequence[Node]) -> Node:
        """A 64-bit hash of the nodes under two 63-bit seeds.

        What engines mix from several columns keeps the order of the last one too well, so it is hashed once more.
        """
        raise NotImplementedError

    def in_slice(self, person: Node, number: int, count: int) -> Node:
        """Whether a person belongs to slice `number` of `count`: to one slice exactly, by the person's name alone."""
        raise NotImplementedError

    def concat(self, nodes: Sequence[Node]) -> Node:
        first, *rest = nodes
        joined = first
        for node in rest:
            joined = binary(exp.DPipe, joined, node)
        return joined

    def trim(self, node: Node, side: str = "") -> Node:
        return call({"leading": "LTRIM", "trailing": "RTRIM"}.get(side, self.trims), node, text(" "))

    def split(self, node: Node, sought: str, place: int) -> Node:
        """The part of a text at a place, between constants; the first is 1, and what is not there is empty."""
        return call("SPLIT_PART", node, text(sought), number(place))

    def text_length(self, node: Node) -> Node:
        """How many characters a text has."""
        return call("LENGTH", node)

    def translate(self, node: Node, letters: Sequence[tuple[str, str]]) -> Node:
        """A text with letters in place of others: no letter is both old and new."""
        return call("TRANSLATE", node, *(text("".join(side)) for side in zip(*letters, strict=True)))

    def position(self, node: Node, sought: str) -> Node:
        """The place where a text first holds another one, the first being 1; 0 where it does not."""
        return call("STRPOS", node, text(sought))

    def byte_length(self, node: Node) -> Node:
        """How many bytes a text has in UTF-8."""
        return call("OCTET_LENGTH", node)

    def cut_long_text(self, node: Node) -> Node:
        """A text (which may be written twice), NULL where it is longer than texts may be."""
        return choose((binary(exp.LTE, self.byte_length(node), number(LONGEST_TEXT)), node.copy()))

    def search(self, node: Node, segments: Sequence[Segment]) -> Node | None:
        """Whether a text consists of the segments with anything between them; None where LIKE is quick enough.

        A segment is a sequence of characters, None for any one of them. Engines that try every way to place the
        segments would take forever on one row.
        """
        del node, segments
        return None

    def matches(self, node: Node, pattern: str) -> Node:
        """Whether the whole text matches the regular expression."""
        raise NotImplementedError

    def date_text(self, node: Node) -> Node:
        return self.to(Type.TEXT, node)

    def part(self, unit: str, node: Node) -> Node:
        """A part of a date or timestamp as BIGINT; `weekday` is 1 for Monday."""
        if unit == "weekday":
            return cast(binary(exp.Add, call("WEEKDAY", node), number(1)), Kind.BIGINT)
        return cast(call(unit.upper(), node), Kind.BIGINT)

    def truncate_date(self, unit: str, node: Node, kind: Type) -> Node:
        return self.to(kind, call("DATE_TRUNC", text(unit), node))

    def shift_date(self, node: Node, amount: int, unit: str, kind: Type) -> Node:
        """A day some days or months later; the last day of a shorter month where the month has no such day."""
        interval = exp.Interval(this=text(str(amount)), unit=exp.Var(this=unit.upper()))
        return self.to(kind, exp.Add(this=_wrap(node), expression=interval))

    def days_between(self, later: Node, earlier: Node) -> Node:
        """Later minus earlier, both DATE, as BIGINT."""
        return cast(binary(exp.Sub, later, earlier), Kind.BIGINT)

    def sql(self, query: Node, *, pretty: bool = False) -> str:
        return query.sql(dialect=self.name, pretty=pretty, copy=False)


class _DuckDB(Dialect):
    name = "duckdb"
    barrier = True  # beside a join the optimiser writes layers into each other, which doubles them at every one
    keeps_parts = True

    def finite(self, node: Node) -> Node | None:
        """DuckDB takes comparisons for true where a Parquet file's bounds say so, and bounds leave NaN out."""
        return call("ISFINITE", node)

    def widen(self, node: Node) -> Node:
        return cast(node, Kind.INT128)

    def integer(self, kind: type[exp.Binary], left: Node, right: Node) -> tuple[Node, bool]:
        wide = binary(kind, self.widen(left), self.widen(right))
        return exp.TryCast(this=wide, to=exp.DataType(this=Kind.BIGINT)), False

    def hash(self, seeds: tuple[int, int], nodes: Sequence[Node]) -> Node:
        return call("HASH", call("HASH", *(cast(number(seed), Kind.BIGINT) for seed in seeds), *nodes))

    def in_slice(self, person: Node, number: int, count: int) -> Node:
        """By a hash of its own: the engine's tables are laid out by the plain one, and would fill unevenly."""
        return binary(
            exp.EQ, binary(exp.Mod, self.hash((1, 2), [person]), exp.Literal.number(count)), exp.Literal.number(number)
        )

    def byte_length(self, node: Node) -> Node:
        return call("STRLEN", node)

    def search(self, node: Node, segments: Sequence[Segment]) -> Node | None:
        """By an automaton, in one pass, unless the segments are plain."""
        plain = all(c is not None and c not in "!%_\\" for segment in segments for c in segment)
        if plain or len(segments) < 3:
            return None
        return self.matches(node, "(?s:" + ".*".join(map(pattern_of, segments)) + ")")

    def matches(self, node: Node, pattern: str) -> Node:
        return call("REGEXP_FULL_MATCH", node, text(pattern))

    def part(self, unit: str, node: Node) -> Node:
        return call("ISODOW" if unit == "weekday" else unit.upper(), node)


class _Postgres(Dialect):
    name = "postgres"
    barrier = keeps_parts = True
    trims = "BTRIM"

    def literal(self, value: object, kind: Type) -> Node:
        node = super().literal(value, kind)
        return self.collate(node) if kind is Type.TEXT else node

    @staticmethod
    def collate(node: Node) -> Node:
        """Text that compares by code point, whatever the database's own collation."""
        return exp.Paren(this=exp.Collate(this=node, expression=exp.Identifier(this="C", quoted=True)))

    def widen(self, node: Node) -> Node:
        return cast(node, Kind.DECIMAL)

    def attempt(self, kind: Type, node: Node) -> Node:
        return self.to(kind, node)

    def list_values(self, columns: Sequence[Listed], name: str) -> Node:
        """UNNEST of one array for each column: a single constant, however many values."""
        arrays = []
        for column in columns:
            written = "{" + ",".join(_array_item(plain_text(value)) for value in column.values) + "}"
            element = exp.DataType(this=self.kinds[column.kind])
            array = exp.DataType(this=Kind.ARRAY, expressions=[element], nested=True)
            arrays.append(exp.Cast(this=text(written), to=array))
        identifiers = [exp.Identifier(this=column.name, quoted=True) for column in columns]
        alias = exp.TableAlias(this=exp.Identifier(this=name, quoted=True), columns=identifiers)
        return exp.Alias(this=call("UNNEST", *arrays), alias=alias)

    def quotient(self, left: Node, right: Node, *, wide: bool) -> Node:
        return call("DIV", left, right) if wide else exp.Div(this=_wrap(left), expression=right, typed=True)

    def hash(self, seeds: tuple[int, int], nodes: Sequence[Node]) -> Node:
        first, second = (cast(number(seed), Kind.BIGINT) for seed in seeds)
        mixed = call("HASH_RECORD_EXTENDED", call("ROW", first, *nodes), second)
        return call("HASHTEXTEXTENDED", cast(mixed, Kind.TEXT), second.copy())

    def matches(self, node: Node, pattern: str) -> Node:
        return binary(exp.RegexpLike, node, text(f"^(?:{pattern})$"))

    def date_text(self, node: Node) -> Node:
        return self.collate(call("TO_CHAR", node, text("YYYY-MM-DD")))

    def part(self, unit: str, node: Node) -> Node:
        name = "ISODOW" if unit == "weekday" else unit.upper()
        return cast(exp.Extract(this=exp.Var(this=name), expression=node), Kind.BIGINT)

    def truncate_date(self, unit: str, node: Node, kind: Type) -> Node:
        return self.to(kind, call("DATE_TRUNC", text(unit), cast(node, Kind.TIMESTAMP)))


DUCKDB = _DuckDB()
POSTGRES = _Postgres()
