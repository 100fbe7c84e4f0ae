"""How MariaDB says it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import reduce
from typing import Any, ClassVar

from sqlglot import exp

from mosha.connect.language.schema import Type
from mosha.connect.sql.dialect import (
    Dialect,
    Kind,
    Listed,
    Node,
    binary,
    call,
    cast,
    column,
    number,
    plain_text,
    text,
)

__all__ = ["COLLATION", "MARIADB", "collate"]

COLLATION = "utf8mb4_nopad_bin"
"""Compares by code point; unlike utf8mb4_bin it tells 'a' from 'a '."""
FIRST_MONTHS = ("01", "04", "07", "10")


def collate(node: Node) -> Node:
    """Text that compares by code point, blanks at its end included, whatever the collation of its column."""
    return exp.Paren(this=exp.Collate(this=node, expression=exp.Var(this=COLLATION)))


class _MariaDB(Dialect):
    """Statements for a session whose settings `mariadb` makes.

    A truth value is the number 0 or 1. Text with anything but plain characters is written in hexadecimal digits, so no
    mode of the server decides what a backslash means. Derived tables are kept apart by a setting, not by OFFSET 0.
    """

    name = "mysql"
    safe_text = re.compile(r"[A-Za-z0-9 _.,:<>!%+/$*\[\]-]*")
    kinds: ClassVar[dict[Type, exp.DType]] = Dialect.kinds | {
        Type.BOOLEAN: Kind.BIGINT,
        Type.TIMESTAMP: Kind.DATETIME,
        Type.INSTANT: Kind.DATETIME,
    }

    def to(self, kind: Type, node: Node) -> Node:
        if kind in {Type.TIMESTAMP, Type.INSTANT}:
            return cast(node, Kind.DATETIME, 6)
        return cast(node, self.kinds[kind])

    def literal(self, value: Any, kind: Type) -> Node:
        """Reals with an exponent, which makes them doubles and no decimals."""
        if kind is Type.REAL and value is not None:
            written = repr(abs(float(value)))
            literal = exp.Literal.number(written if "e" in written else written + "e0")
            return exp.Paren(this=exp.Neg(this=literal)) if value < 0 else literal
        return super().literal(value, kind)

    def list_values(self, columns: Sequence[Listed], name: str) -> Node:
        """JSON_TABLE of a JSON text: a single constant, however many values."""
        rows = zip(*([plain_text(value) for value in column.values] for column in columns), strict=True)
        written = json.dumps([list(row) for row in rows], ensure_ascii=False)
        shape = [
            exp.JSONColumnDef(
                this=exp.to_identifier(f"c{i}", quoted=True),
                kind=exp.DataType(this=Kind.LONGTEXT),
                path=text(f"$[{i}]"),
            )
            for i in range(len(columns))
        ]
        table = exp.JSONTable(this=text(written), path=text("$[*]"), schema=exp.JSONSchema(expressions=shape))
        typed = [
            exp.alias_(self._read_listed(column(f"c{i}"), c.kind), c.name, quoted=True) for i, c in enumerate(columns)
        ]
        outer = exp.Select(expressions=typed)
        alias = exp.TableAlias(this=exp.Identifier(this=name, quoted=True))
        outer.set("from_", exp.From(this=exp.Alias(this=table, alias=exp.to_identifier(name, quoted=True))))
        return exp.Subquery(this=outer, alias=alias)

    def _read_listed(self, node: Node, kind: Type) -> Node:
        if kind is Type.TEXT:
            return collate(node)
        return binary(exp.EQ, collate(node), text("true")) if kind is Type.BOOLEAN else self.to(kind, node)

    def widen(self, node: Node) -> Node:
        return cast(node, Kind.DECIMAL, 65, 0)

    def quotient(self, left: Node, right: Node, *, wide: bool) -> Node:
        """Of decimals by a division without a rest: DIV gives a BIGINT, and `/` rounds at a digit of the session."""
        if not wide:
            return binary(exp.IntDiv, left, right)
        whole = binary(exp.Sub, left, call("MOD", left.copy(), right.copy()))
        return self.widen(exp.Div(this=exp.Paren(this=whole), expression=exp.Paren(this=right), typed=True))

    def attempt(self, kind: Type, node: Node) -> Node:
        return self.to(kind, node)

    def hash(self, seeds: tuple[int, int], nodes: Sequence[Node]) -> Node:
        """The first 64 bits of MD5 in hexadecimal digits; each node with its length, so no two lists read the same."""
        words: list[Node] = [text(f"{seeds[0]},{seeds[1]}")]
        for node in nodes:
            written = cast(node, Kind.TEXT)
            marked = call("CONCAT", text(","), call("LENGTH", written), text(":"), written.copy())
            words.append(call("COALESCE", marked, text(",N")))
        return call("LEFT", call("MD5", call("CONCAT", *words)), number(16))

    def in_slice(self, person: Node, number: int, count: int) -> Node:
        digits = call("LEFT", self.hash((1, 2), [person]), exp.Literal.number(8))
        whole = call("CONV", digits, exp.Literal.number(16), exp.Literal.number(10))
        bucket = binary(exp.Mod, cast(whole, Kind.BIGINT), exp.Literal.number(count))
        return binary(exp.EQ, bucket, exp.Literal.number(number))

    def concat(self, nodes: Sequence[Node]) -> Node:
        return call("CONCAT", *nodes)

    def trim(self, node: Node, side: str = "") -> Node:
        return call({"leading": "LTRIM", "trailing": "RTRIM"}.get(side, self.trims), node)

    def split(self, node: Node, sought: str, place: int) -> Node:
        """What stands before so many separators, without what stands before one less and the separator."""
        until = call("SUBSTRING_INDEX", node, text(sought), number(place))
        if place == 1:
            return until
        before = call("SUBSTRING_INDEX", node.copy(), text(sought), number(place - 1))
        start = binary(exp.Add, call("CHAR_LENGTH", before), number(len(sought) + 1))
        return call("SUBSTRING", until, start)

    def text_length(self, node: Node) -> Node:
        return call("CHAR_LENGTH", node)

    def translate(self, node: Node, letters: Sequence[tuple[str, str]]) -> Node:
        """One letter after the other, which is the same as all at once: no letter is both old and new."""
        return reduce(lambda found, pair: call("REPLACE", found, *map(text, pair)), letters, node)

    def position(self, node: Node, sought: str) -> Node:
        return call("LOCATE", text(sought), node)

    def matches(self, node: Node, pattern: str) -> Node:
        return binary(exp.GT, call("REGEXP_INSTR", node, text(f"\\A(?:{pattern})\\z")), number(0))

    def date_text(self, node: Node) -> Node:
        return call("DATE_FORMAT", node, text("%Y-%m-%d"))

    def truncate_date(self, unit: str, node: Node, kind: Type) -> Node:
        if unit == "week":
            days = exp.Interval(this=call("WEEKDAY", node.copy()), unit=exp.Var(this="DAY"))
            return self.to(kind, exp.Sub(this=cast(node, Kind.DATE), expression=days))
        if unit == "quarter":
            month = call("ELT", call("QUARTER", node.copy()), *map(text, FIRST_MONTHS))
            return self.to(kind, call("CONCAT", call("DATE_FORMAT", node, text("%Y-")), month, text("-01")))
        forms = {"year": "%Y-01-01", "month": "%Y-%m-01", "day": "%Y-%m-%d"}
        clocks = {"hour": "%Y-%m-%d %H:00:00", "minute": "%Y-%m-%d %H:%i:00"}
        return self.to(kind, call("DATE_FORMAT", node, text((forms | clocks)[unit])))

    def shift_date(self, node: Node, amount: int, unit: str, kind: Type) -> Node:
        interval = exp.Interval(this=exp.Paren(this=number(amount)), unit=exp.Var(this=unit.upper()))
        return self.to(kind, exp.Add(this=node, expression=interval))

    def days_between(self, later: Node, earlier: Node) -> Node:
        return cast(call("DATEDIFF", later, earlier), Kind.BIGINT)

    def sql(self, query: Node, *, pretty: bool = False) -> str:
        for literal in list(query.find_all(exp.Literal)):
            if literal.is_string and not self.safe_text.fullmatch(literal.this):
                digits = exp.HexString(this=literal.this.encode().hex())
                literal.replace(collate(exp.Introducer(this=exp.Var(this="_utf8mb4"), expression=digits)))
        return super().sql(query, pretty=pretty)


MARIADB = _MariaDB()
