"""SQL over protected tables: one SELECT, checked against a white list, answered with error bars."""

from mosha.core.names.lazy import keep_public_names
from mosha.tables.sql.asking import explain, query
from mosha.tables.sql.query import Statement, statement
from mosha.tables.sql.scalar import Refused

__all__ = ["Refused", "Statement", "explain", "query", "statement"]
keep_public_names(__name__)
