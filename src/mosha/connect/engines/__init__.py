"""DuckDB, PostgreSQL, Spark, files and data frames: where rows are read."""

from mosha.core.names.lazy import loaded_when_used

__all__: list[str] = []
__getattr__, __dir__ = loaded_when_used(__name__, {}, ("duckdb", "mariadb", "postgresql", "spark"))
