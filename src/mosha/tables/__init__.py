"""Private answers from tables: verbs build a question, a release pays for it and answers with error bars."""

from mosha.connect.language.cases import when
from mosha.connect.language.expression import col, lit
from mosha.core.budget import Budget
from mosha.core.names.lazy import keep_public_names
from mosha.tables.aggregates import (
    Aggregate,
    correlation,
    count,
    covariance,
    distinct,
    maximum,
    mean,
    median,
    minimum,
    persons,
    quantile,
    standard_deviation,
    sum,  # noqa: A004  (the analyst's word)
    variance,
)
from mosha.tables.answer import Answer
from mosha.tables.databases.database import Database, protect_database
from mosha.tables.databases.declaration import DatabaseDeclaration, read_database_declaration
from mosha.tables.databases.drafting import draft_database
from mosha.tables.declaration import Declaration, read_declaration
from mosha.tables.parts.key_values import date_range, interval, intervals
from mosha.tables.protecting import protect, public_table
from mosha.tables.question import Question
from mosha.tables.survival import SurvivalCurve, find_survival_curve
from mosha.tables.table import Grouped, Table

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
keep_public_names(__name__)
