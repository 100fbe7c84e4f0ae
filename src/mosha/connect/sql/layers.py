"""The rows of one SELECT on its way, in layers, and the guards that keep numbers in their ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from mosha.connect.language.schema import LARGEST_REAL, SMALLEST_FACTOR, Schema, Type
from mosha.connect.sql.dialect import Dialect, Node, binary, choose, column

__all__ = ["Layers", "Typed"]


@dataclass(frozen=True)
class Typed:
    """A piece of SQL with its type; a `wild` REAL comes from the data and may be NaN, infinite or too large.

    A `loose` TEXT is a column without a declared type (see `Schema`).
    """

    node: Node
    type: Type
    wild: bool = False
    loose: bool = False


@dataclass
class Layers:
    """The rows of one SELECT on its way: where they come from, what their columns are, which of them stay.

    A piece of SQL that is used twice is computed once, as a column of an inner SELECT (`once`). Such columns stand in
    layers: a column of layer n is computed from columns below it. A predicate is tested as deep as it can be.
    """

    dialect: Dialect
    table: Node
    columns: dict[str, Typed]
    names: Iterator[str]
    predicates: list[Node] = field(default_factory=list)
    layers: list[list[Node]] = field(default_factory=list)
    depths: dict[str, int] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        loose = (name for name, typed in self.columns.items() if typed.loose)
        return Schema({name: typed.type for name, typed in self.columns.items()}, loose=loose)

    def once(self, node: Node) -> Node:
        """The node as something that may be written twice: a column of an inner SELECT if it is not one already."""
        if _is_simple(node):
            return node
        name, depth = next(self.names), self._depth(node)
        if depth == len(self.layers):
            self.layers.append([])
        self.layers[depth].append(exp.alias_(node, name, quoted=True, copy=False))
        self.depths[name] = depth + 1
        return column(name)

    def let(self, node: Node, use: Callable[[Node], Node]) -> Node:
        """What `use` makes of the node, which is computed once however often it is used."""
        if _is_simple(node):
            return use(node)
        bound = self.dialect.bound(node, self.names, use)
        return use(self.once(node)) if bound is None else bound

    def _depth(self, node: Node) -> int:
        """How many layers must stand before the node can be computed."""
        return max((self.depths.get(found.name, 0) for found in node.find_all(exp.Column)), default=0)

    def dress(self, select: exp.Select) -> exp.Select:
        """The SELECT with this scope's FROM and WHERE."""
        tests: list[list[Node]] = [[] for _ in range(len(self.layers) + 1)]
        for predicate in self.predicates:
            tests[self._depth(predicate)].append(predicate)
        table = self.table
        for layer, conditions in zip(self.layers, tests, strict=False):
            inner = _from(exp.Select(expressions=[exp.Star(), *layer]), table, conditions)
            if self.dialect.barrier:
                inner.set("offset", exp.Offset(expression=exp.Literal.number(0)))
            table = self.add_alias(inner)
        return _from(select, table, tests[-1])

    def seal(self) -> None:
        """Close the layers and predicates so far into the table, before something that looks at many rows."""
        if self.layers or self.predicates:
            self.table = self.add_alias(self.dress(exp.Select(expressions=[exp.Star()])))
            self.predicates, self.layers, self.depths = [], [], {}

    def add_alias(self, query: exp.Select) -> Node:
        alias = exp.TableAlias(this=exp.Identifier(this=next(self.names), quoted=True))
        return exp.Subquery(this=query, alias=alias)

    def coerce(self, typed: Typed, kind: Type) -> Node:
        return typed.node if typed.type is kind else self.dialect.to(kind, typed.node)

    def real(self, value: float) -> Node:
        return self.dialect.literal(float(value), Type.REAL)

    def tame(self, node: Node) -> Node:
        """NULL in place of NaN, infinities and magnitudes from 2**500 on."""
        return self.within(node, -LARGEST_REAL, LARGEST_REAL, lambda inside: inside)

    def within(self, node: Node, low: float, high: float, then: Callable[[Node], Node]) -> Node:
        """`then` of the node where low < node < high, else NULL; no engine takes NaN to be below `high`."""
        return self.let(node, lambda value: choose((self.between(value, low, high), then(value.copy()))))

    def between(self, node: Node, low: float, high: float) -> Node:
        return binary(exp.And, binary(exp.GT, node, self.real(low)), binary(exp.LT, node.copy(), self.real(high)))

    def flush(self, node: Node) -> Node:
        """Zero in place of magnitudes below 2**-500 (and of -0.0), so that products cannot underflow."""
        zero = self.real(0)

        def flush(value: Node) -> Node:
            return choose((self.between(value, -SMALLEST_FACTOR, SMALLEST_FACTOR), zero), otherwise=value.copy())

        return self.let(node, flush)


def _from(select: exp.Select, table: Node, conditions: list[Node]) -> exp.Select:
    select.set("from_", exp.From(this=table))
    if conditions:
        condition = conditions[0]
        for other in conditions[1:]:
            condition = binary(exp.And, condition, other)
        select.set("where", exp.Where(this=condition))
    return select


def _is_simple(node: Node) -> bool:
    """Whether a node may as well be written twice."""
    plain = node.this if isinstance(node, exp.Cast) else node
    return isinstance(plain, (exp.Column, exp.Literal, exp.Null, exp.Boolean))
