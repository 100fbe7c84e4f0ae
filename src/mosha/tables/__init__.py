"""Private answers from tables: verbs build a question, a release pays for it and answers with error bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.connect.language.cases import when as when
    from mosha.connect.language.expression import col as col
    from mosha.connect.language.expression import lit as lit
    from mosha.core.budget import Budget as Budget
    from mosha.tables.aggregates import Aggregate as Aggregate
    from mosha.tables.aggregates import correlation as correlation
    from mosha.tables.aggregates import count as count
    from mosha.tables.aggregates import covariance as covariance
    from mosha.tables.aggregates import distinct as distinct
    from mosha.tables.aggregates import maximum as maximum
    from mosha.tables.aggregates import mean as mean
    from mosha.tables.aggregates import median as median
    from mosha.tables.aggregates import minimum as minimum
    from mosha.tables.aggregates import persons as persons
    from mosha.tables.aggregates import quantile as quantile
    from mosha.tables.aggregates import standard_deviation as standard_deviation
    from mosha.tables.aggregates import sum as sum  # noqa: A004  (the analyst's word)
    from mosha.tables.aggregates import variance as variance
    from mosha.tables.answer import Answer as Answer
    from mosha.tables.databases.database import Database as Database
    from mosha.tables.databases.database import protect_database as protect_database
    from mosha.tables.databases.declaration import DatabaseDeclaration as DatabaseDeclaration
    from mosha.tables.databases.declaration import read_database_declaration as read_database_declaration
    from mosha.tables.databases.drafting import draft_database as draft_database
    from mosha.tables.declaration import Declaration as Declaration
    from mosha.tables.declaration import read_declaration as read_declaration
    from mosha.tables.parts.key_values import date_range as date_range
    from mosha.tables.parts.key_values import interval as interval
    from mosha.tables.parts.key_values import intervals as intervals
    from mosha.tables.protecting import protect as protect
    from mosha.tables.protecting import public_table as public_table
    from mosha.tables.question import Question as Question
    from mosha.tables.survival import SurvivalCurve as SurvivalCurve
    from mosha.tables.survival import find_survival_curve as find_survival_curve
    from mosha.tables.table import Grouped as Grouped
    from mosha.tables.table import Table as Table

_NAMES = {
    "Aggregate": "aggregates",
    "Answer": "answer",
    "Budget": ".core.budget",
    "Database": "databases.database",
    "DatabaseDeclaration": "databases.declaration",
    "Declaration": "declaration",
    "Grouped": "table",
    "Question": "question",
    "SurvivalCurve": "survival",
    "Table": "table",
    "col": ".connect.language.expression",
    "correlation": "aggregates",
    "count": "aggregates",
    "covariance": "aggregates",
    "date_range": "parts.key_values",
    "distinct": "aggregates",
    "draft_database": "databases.drafting",
    "find_survival_curve": "survival",
    "interval": "parts.key_values",
    "intervals": "parts.key_values",
    "lit": ".connect.language.expression",
    "maximum": "aggregates",
    "mean": "aggregates",
    "median": "aggregates",
    "minimum": "aggregates",
    "persons": "aggregates",
    "protect": "protecting",
    "protect_database": "databases.database",
    "public_table": "protecting",
    "quantile": "aggregates",
    "read_database_declaration": "databases.declaration",
    "read_declaration": "declaration",
    "standard_deviation": "aggregates",
    "sum": "aggregates",
    "variance": "aggregates",
    "when": ".connect.language.cases",
}
__all__ = [
    "Aggregate",
    "Answer",
    "Budget",
    "Database",
    "DatabaseDeclaration",
    "Declaration",
    "Grouped",
    "Question",
    "SurvivalCurve",
    "Table",
    "col",
    "correlation",
    "count",
    "covariance",
    "date_range",
    "distinct",
    "draft_database",
    "find_survival_curve",
    "interval",
    "intervals",
    "lit",
    "maximum",
    "mean",
    "median",
    "minimum",
    "persons",
    "protect",
    "protect_database",
    "public_table",
    "quantile",
    "read_database_declaration",
    "read_declaration",
    "standard_deviation",
    "sum",
    "variance",
    "when",
]
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES)
