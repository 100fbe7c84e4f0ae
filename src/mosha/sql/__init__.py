"""SQL over protected tables: one SELECT, checked against a white list, answered with error bars."""

from mosha.sql.declaration import Declaration, read_declaration
from mosha.sql.query import Statement, explain, query, statement
from mosha.sql.scalar import Refused

__all__ = ["Declaration", "Refused", "Statement", "explain", "query", "read_declaration", "statement"]
