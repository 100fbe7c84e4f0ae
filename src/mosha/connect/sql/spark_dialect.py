"""How Spark says it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from sqlglot import exp

from mosha.connect.language.schema import Type
from mosha.connect.sql.dialect import (
    Dialect,
    Kind,
    Listed,
    Node,
    Segment,
    binary,
    call,
    cast,
    column,
    number,
    pattern_of,
    plain_text,
    text,
)

__all__ = ["SPARK"]

SMALL = 48  # nodes of an expression that Spark may as well compute twice


class _Spark(Dialect):
    """Statements in which nothing is left for Spark to interpret.

    Spark reads a statement before it parses it: `${...}` is replaced by variables, backslashes mean what a setting
    says. So text with anything but plain characters is written in hexadecimal digits, and no name of the data is
    written at all (see `spark`).
    """

    name = "spark"
    safe_text = re.compile(r"[A-Za-z0-9 _.,:<>!%+/-]*")
    kinds: ClassVar[dict[Type, exp.DType]] = Dialect.kinds | {
        Type.TIMESTAMP: Kind.TIMESTAMPNTZ,
        Type.INSTANT: Kind.TIMESTAMPNTZ,
    }

    def bound(self, node: Node, names: Iterator[str], use: Callable[[Node], Node]) -> Node | None:
        """By a lambda over an array of one: Spark copies inner SELECTs into outer ones, doubling with every layer."""
        if sum(1 for _ in node.walk()) <= SMALL:
            return use(node)
        name = next(names)
        body = exp.Lambda(this=use(column(name)), expressions=[exp.Identifier(this=name, quoted=True)])
        return call("ELEMENT_AT", call("TRANSFORM", call("ARRAY", node), body), number(1))

    def list_values(self, columns: Sequence[Listed], name: str) -> Node:
        """INLINE of a JSON text: a single constant, however many values."""
        rows = zip(*([plain_text(value) for value in column.values] for column in columns), strict=True)
        written = json.dumps([{f"c{i}": item for i, item in enumerate(row)} for row in rows], ensure_ascii=False)
        shape = ", ".join(f"c{i}: STRING" for i in range(len(columns)))
        parsed = call("INLINE", call("FROM_JSON", text(written), text(f"ARRAY<STRUCT<{shape}>>")))
        inner = exp.Subquery(
            this=exp.Select(expressions=[parsed]), alias=exp.TableAlias(this=exp.Identifier(this=name, quoted=True))
        )
        typed = [exp.alias_(self.to(c.kind, column(f"c{i}")), c.name, quoted=True) for i, c in enumerate(columns)]
        outer = exp.Select(expressions=typed)
        outer.set("from_", exp.From(this=inner))
        return exp.Subquery(this=outer, alias=exp.TableAlias(this=exp.Identifier(this=name, quoted=True)))

    def widen(self, node: Node) -> Node:
        """Not TRY_MULTIPLY and the like: Spark puts constants of a chain together, which may then overflow alone."""
        return cast(node, Kind.DECIMAL, 38, 0)

    def sum(self, node: Node, magnitude: int | None) -> Node:
        narrow = magnitude is not None and magnitude < 2**27
        return exp.Sum(this=node if narrow else self.widen(node))

    def quotient(self, left: Node, right: Node, *, wide: bool) -> Node:
        quotient = binary(exp.IntDiv, left, right)
        return self.widen(quotient) if wide else quotient

    def hash(self, seeds: tuple[int, int], nodes: Sequence[Node]) -> Node:
        return call("XXHASH64", *(cast(number(seed), Kind.BIGINT) for seed in seeds), *nodes)

    def concat(self, nodes: Sequence[Node]) -> Node:
        return call("CONCAT", *nodes)

    def trim(self, node: Node, side: str = "") -> Node:
        return call({"leading": "LTRIM", "trailing": "RTRIM"}.get(side, self.trims), node)

    def search(self, node: Node, segments: Sequence[Segment]) -> Node | None:
        """Each inner segment where it first fits, which `(?>...)` keeps: no later place would fit better."""
        if len(segments) < 3:
            return None
        within = [c for c in segments[1] if c is not None]
        if len(segments) == 3 and not segments[0] and not segments[2] and len(within) == len(segments[1]):
            return binary(exp.GT, call("INSTR", node, text("".join(within))), number(0))
        first, *inner, last = map(pattern_of, segments)
        return self.matches(node, f"(?s:{first}{''.join(f'(?>.*?{part})' for part in inner)}.*{last})")

    def position(self, node: Node, sought: str) -> Node:
        return call("INSTR", node, text(sought))

    def matches(self, node: Node, pattern: str) -> Node:
        return binary(exp.RegexpLike, node, text(f"\\A(?:{pattern})\\z"))

    def truncate_date(self, unit: str, node: Node, kind: Type) -> Node:
        if unit in {"hour", "minute"}:  # DATE_TRUNC would pass through the session's time zone
            minutes = call("MINUTE", node.copy()) if unit == "minute" else number(0)
            clock = call("MAKE_DT_INTERVAL", number(0), call("HOUR", node.copy()), minutes)
            return binary(exp.Add, self.to(kind, cast(node, Kind.DATE)), clock)
        day = cast(node, Kind.DATE)
        return self.to(kind, day if unit == "day" else call("TRUNC", day, text(unit)))

    def shift_date(self, node: Node, amount: int, unit: str, kind: Type) -> Node:
        if unit == "month":
            return self.to(kind, binary(exp.Add, node, call("MAKE_YM_INTERVAL", number(0), number(amount))))
        if kind is Type.DATE:
            return call("DATE_ADD", node, number(amount))
        return binary(exp.Add, node, call("MAKE_DT_INTERVAL", number(amount)))

    def days_between(self, later: Node, earlier: Node) -> Node:
        return cast(call("DATEDIFF", later, earlier), Kind.BIGINT)

    def sql(self, query: Node, *, pretty: bool = False) -> str:
        for literal in list(query.find_all(exp.Literal)):
            if literal.is_string and not self.safe_text.fullmatch(literal.this):
                literal.replace(cast(exp.HexString(this=literal.this.encode().hex()), Kind.TEXT))
        return super().sql(query, pretty=pretty)


SPARK = _Spark()
