r"""Engines: data stay where they live, only exact sums of bounded contributions come back.

No noise is added here and nothing is paid: `mosha.tables` does both. A question goes this way:

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "visits.csv"
>>> _ = path.write_text("patient,ward,days\n1,A,3\n1,B,2\n2,A,40\n,A,7\n")
>>> visits = private(source(path), person="patient")
>>> question = Aggregation(
...     visits.where(col("days") > 0),
...     keys={"ward": col("ward")},
...     values={"rows": Rows(), "days": Clamped(col("days"), (0, 30), exponent=0)},
...     bound=NormBound(1, {"rows": 2, "days": 30}),
...     only=["A", "B", "C"],
... )
>>> answer(question).to_dict()
{('A',): (2, 33), ('B',): (1, 2), ('C',): (0, 0)}
"""

from mosha.connect.engines.opening import source
from mosha.connect.engines.source import Engine, answer, engine_of, explain
from mosha.connect.language.cases import Case, when
from mosha.connect.language.checking import type_of
from mosha.connect.language.expression import Column, Expression, Literal, Operator, col, grid, lit, null
from mosha.connect.language.schema import Schema, Type
from mosha.connect.language.value import Clamped, Persons, Product, Rows, Value
from mosha.connect.plan.aggregation import Aggregation, Distinct, Norms, Question
from mosha.connect.plan.bounding import Bound, NormBound, Truncate, Unbounded
from mosha.connect.plan.relation import Relation, Stability, private, public
from mosha.connect.plan.source import Source
from mosha.connect.plan.totals import Totals
from mosha.core.names.lazy import keep_public_names

__all__ = [
    "Aggregation",
    "Bound",
    "Case",
    "Clamped",
    "Column",
    "Distinct",
    "Engine",
    "Expression",
    "Literal",
    "NormBound",
    "Norms",
    "Operator",
    "Persons",
    "Product",
    "Question",
    "Relation",
    "Rows",
    "Schema",
    "Source",
    "Stability",
    "Totals",
    "Truncate",
    "Type",
    "Unbounded",
    "Value",
    "answer",
    "col",
    "engine_of",
    "explain",
    "grid",
    "lit",
    "null",
    "private",
    "public",
    "source",
    "type_of",
    "when",
]
keep_public_names(__name__)
