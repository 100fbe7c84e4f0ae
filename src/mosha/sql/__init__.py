"""SQL over protected tables: one SELECT, checked against a white list, answered with error bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.tables.sql.asking import explain as explain
    from mosha.tables.sql.asking import query as query
    from mosha.tables.sql.query import Statement as Statement
    from mosha.tables.sql.query import statement as statement
    from mosha.tables.sql.scalar import Refused as Refused

_NAMES = {
    "Refused": ".tables.sql.scalar",
    "Statement": ".tables.sql.query",
    "explain": ".tables.sql.asking",
    "query": ".tables.sql.asking",
    "statement": ".tables.sql.query",
}
__all__ = ["Refused", "Statement", "explain", "query", "statement"]
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES)
