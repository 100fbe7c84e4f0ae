"""Reading SQL in a time that grows with the text, and no error but those that are written for people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlglot
from sqlglot import TokenType
from sqlglot.dialects.duckdb import DuckDB

from mosha.core.errors import InvalidParameter, MoshaError

__all__ = ["check_readings", "reading"]

_OPEN, _CLOSED = {TokenType.L_PAREN, TokenType.L_BRACKET}, {TokenType.R_PAREN, TokenType.R_BRACKET}
_TYPES = DuckDB.Parser.TYPE_TOKENS
_MOST_READINGS = 4  # of each word, where a text is long


def check_readings(text: str) -> None:
    """Refuse a text that the parser would read again and again.

    Behind the name of a type it reads what is in parentheses as sizes first, and then once more as arguments (three
    times before an index), so that DATE(DATE(DATE(...))) would take twice as long with every DATE. Counted ahead.
    """
    tokens = sqlglot.tokenize(text, dialect="duckdb")
    depths, readings = [0], 0
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.token_type in _OPEN:
            depths.append(depths[-1] + (before is not None and before.token_type in _TYPES))
        elif token.token_type in _CLOSED and len(depths) > 1:
            depths.pop()
        readings += 3 ** min(depths[-1], 20)
    if readings > _MOST_READINGS * (len(tokens) + 5000):
        raise InvalidParameter("tables.sql_unreadable", parameter="sql")


@contextmanager
def reading() -> Iterator[None]:
    """While a text is read, and nothing else: whatever error the parser has for what nobody writes is a refusal."""
    try:
        yield
    except MoshaError:
        raise
    except (RecursionError, LookupError, TypeError, ValueError, AttributeError, AssertionError) as fault:
        raise InvalidParameter("tables.sql_unreadable", parameter="sql") from fault
