"""DuckDB, PostgreSQL, Spark, files and data frames: where rows are read."""
