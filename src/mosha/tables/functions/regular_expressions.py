"""Regular expressions and SIMILAR TO, as far as a few LIKE patterns say the same: no row takes long for these.

An engine that tries every way to match may need longer than anybody waits on one row, and that would be an answer
about that row. LIKE has a time that is known (`expressions.md`).
"""

from __future__ import annotations

import re
from functools import reduce
from itertools import product
from operator import or_

from mosha.connect.language.expression import Expression

__all__ = ["MOST_PATTERNS", "list_patterns", "match_any"]

MOST_PATTERNS = 64
_REGULAR = re.compile(
    r"\\(?P<literal>[^A-Za-z0-9])|\[(?P<choice>[^\]\[\\^-]+)\]|(?P<group>\((?:\?:)?|[|)])|\.(?P<some>[*+]?)|(?P<plain>[^\\.*+?{}\[\]^$])"
)
_SIMILAR = re.compile(
    r"\\(?P<literal>.)|\[(?P<choice>[^\]\[\\^-]+)\]|(?P<group>[(|)])|(?P<wild>[%_])|(?P<plain>[^\\*+?{}\[\]])"
)
_WILD = {"": "_", "*": "%", "+": "_%"}


def list_patterns(said: str, *, similar: bool = False) -> list[str] | None:
    """The LIKE patterns one of which matches where a regular expression is found in a text; None where no few do.

    There are letters as they are, `.`, `.*`, `.+`, `[abc]`, `(a|b)`, `^` at the beginning and `$` at the end. SIMILAR
    TO means the whole text, with `%` and `_`.

    >>> list_patterns("^cup-(red|blue)")
    ['cup-red%', 'cup-blue%']
    >>> list_patterns("(a+)+b")
    """
    start, end = (True, True) if similar else (said.startswith("^"), said.endswith("$") and not said.endswith("\\$"))
    inner = said if similar else said[start : len(said) - end]
    if not similar and (start or end) and _is_split(inner):
        return None  # ^a|b$ means (^a)|(b$)
    tokens, place = [], 0
    grammar = _SIMILAR if similar else _REGULAR
    while place < len(inner):
        found = grammar.match(inner, place)
        if found is None:
            return None
        tokens.append(found)
        place = found.end()
    read = _read_choices(tokens)
    if read is None or tokens:
        return None
    return [f"{'' if start else '%'}{one}{'' if end else '%'}" for one in read]


def match_any(value: Expression, patterns: list[str], *, folded: bool = False) -> Expression:
    """Whether a text matches one of some patterns."""
    return reduce(or_, [value.ilike(one) if folded else value.like(one) for one in patterns])


def _is_split(text: str) -> bool:
    """Whether alternatives stand outside of all parentheses."""
    depth = 0
    for part in re.sub(r"\\.|\[[^\]]*\]", "", text):
        depth += (part == "(") - (part == ")")
        if part == "|" and depth == 0:
            return True
    return False


def _read_choices(tokens: list[re.Match[str]], depth: int = 0) -> list[str] | None:
    """What a group of alternatives may be; `tokens` loses what was read."""
    found: list[str] = []
    current = [""]
    while tokens:
        token = tokens.pop(0)
        group = token.groupdict().get("group")
        if group == ")":
            return [*found, *current] if depth else None
        if group == "|":
            found, current = [*found, *current], [""]
            continue
        options = _read_choices(tokens, depth + 1) if group else _read_one(token)
        if options is None or len(current) * len(options) + len(found) > MOST_PATTERNS:
            return None
        current = [a + b for a, b in product(current, options)]
    return None if depth else [*found, *current]


def _read_one(token: re.Match[str]) -> list[str]:
    named = token.groupdict()
    if named.get("some") is not None:
        return [_WILD[named["some"]]]
    if named.get("wild"):
        return [named["wild"]]
    letters = named.get("choice") or named.get("plain") or named.get("literal") or ""
    return ["\\" + c if c in "\\%_" else c for c in letters]
