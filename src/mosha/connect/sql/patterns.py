"""LIKE in SQL: patterns that mean the same everywhere, and that no row makes slow."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from sqlglot import exp

from mosha.connect.language.schema import Type
from mosha.connect.sql.dialect import Node, Segment, binary, text
from mosha.connect.sql.layers import Layers, Typed

if TYPE_CHECKING:
    from mosha.connect.language.expression import Call

__all__ = ["like_sql", "same_letters"]

LAST_CASED = 0x1F000


def like_sql(scope: Layers, expression: Call, arguments: list[Typed], _: Type) -> Node:
    pattern, *folded = expression.options
    node = arguments[0].node
    segments = _segments(pattern)
    if any(folded):
        letters = _variants(segments)
        segments = [[c if c is None else letters.get(c, c) for c in segment] for segment in segments]
        changed = [(c, to) for c, to in letters.items() if c != to]
        node = scope.dialect.translate(node, changed) if changed else node
    found = scope.dialect.search(node, segments)
    return _like(node, segments) if found is None else found


def _segments(pattern: str) -> list[Segment]:
    """What stands between the % of a pattern, None for each _; a run of % counts once."""
    segments: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            if segments[-1] or len(segments) == 1:
                segments.append([])
            continue
        segments[-1].append(next(characters) if character == "\\" else None if character == "_" else character)
    return list(segments)


def _like(node: Node, segments: list[Segment]) -> Node:
    """LIKE itself, with ! before what is meant as it is: no engine reads a backslash there in a way of its own."""
    special = "!%_"
    parts = ["".join("_" if c is None else "!" + c if c in special else c for c in segment) for segment in segments]
    escaped = any(c is not None and c in special for segment in segments for c in segment)
    test = binary(exp.Like, node, text("%".join(parts)))
    # an empty ESCAPE would not do: a backslash is a special character unless another one is named
    needs = escaped or any("\\" in part for part in parts)
    return exp.Escape(this=test, expression=text("!")) if needs else test


def _variants(segments: list[Segment]) -> dict[str, str]:
    """Every letter that differs from one of the pattern in its case alone, and the one it is taken for."""
    found: dict[str, str] = {}
    for segment in segments:
        for c in segment:
            if c is not None:
                lower = c.lower() if len(c.lower()) == 1 else c
                found |= dict.fromkeys((lower, c, *same_letters().get(lower, ())), lower)
    return found


@cache
def same_letters() -> dict[str, tuple[str, ...]]:
    """The letters whose lower case is a given letter, where that is one letter for one."""
    found: dict[str, tuple[str, ...]] = {}
    for lower, upper in _list_letter_pairs():
        found[lower] = (*found.get(lower, ()), upper)
    return found


def _list_letter_pairs() -> Iterator[tuple[str, str]]:
    for c in map(chr, range(LAST_CASED)):
        lower = c.lower()
        if lower != c and len(lower) == 1:
            yield lower, c
