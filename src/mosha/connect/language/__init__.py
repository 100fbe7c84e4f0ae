"""Columns, types, operators and expressions: what can be said about a table before any engine is known."""
