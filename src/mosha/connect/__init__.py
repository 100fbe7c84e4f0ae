r"""Engines: data stay where they live, only exact sums of bounded contributions come back.

No noise is added here and nothing is paid: `mosha.tables` does both. A question goes this way:

>>> import tempfile, pathlib
>>> from mosha.connect import Aggregation, Clamped, NormBound, Rows, answer, col, private, source
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

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.connect.engines.opening import source as source
    from mosha.connect.engines.source import Engine as Engine
    from mosha.connect.engines.source import answer as answer
    from mosha.connect.engines.source import engine_of as engine_of
    from mosha.connect.engines.source import explain as explain
    from mosha.connect.language.cases import Case as Case
    from mosha.connect.language.cases import when as when
    from mosha.connect.language.checking import type_of as type_of
    from mosha.connect.language.expression import Column as Column
    from mosha.connect.language.expression import Expression as Expression
    from mosha.connect.language.expression import Literal as Literal
    from mosha.connect.language.expression import Operator as Operator
    from mosha.connect.language.expression import col as col
    from mosha.connect.language.expression import grid as grid
    from mosha.connect.language.expression import lit as lit
    from mosha.connect.language.expression import null as null
    from mosha.connect.language.schema import Schema as Schema
    from mosha.connect.language.schema import Type as Type
    from mosha.connect.language.value import Clamped as Clamped
    from mosha.connect.language.value import Persons as Persons
    from mosha.connect.language.value import Product as Product
    from mosha.connect.language.value import Rows as Rows
    from mosha.connect.language.value import Value as Value
    from mosha.connect.plan.aggregation import Aggregation as Aggregation
    from mosha.connect.plan.aggregation import Distinct as Distinct
    from mosha.connect.plan.aggregation import Norms as Norms
    from mosha.connect.plan.aggregation import Question as Question
    from mosha.connect.plan.bounding import Bound as Bound
    from mosha.connect.plan.bounding import NormBound as NormBound
    from mosha.connect.plan.bounding import Truncate as Truncate
    from mosha.connect.plan.bounding import Unbounded as Unbounded
    from mosha.connect.plan.relation import Relation as Relation
    from mosha.connect.plan.relation import Stability as Stability
    from mosha.connect.plan.relation import private as private
    from mosha.connect.plan.relation import public as public
    from mosha.connect.plan.source import Source as Source
    from mosha.connect.plan.source import Totals as Totals

_NAMES = {
    "Aggregation": "plan.aggregation",
    "Bound": "plan.bounding",
    "Case": "language.cases",
    "Clamped": "language.value",
    "Column": "language.expression",
    "Distinct": "plan.aggregation",
    "Engine": "engines.source",
    "Expression": "language.expression",
    "Literal": "language.expression",
    "NormBound": "plan.bounding",
    "Norms": "plan.aggregation",
    "Operator": "language.expression",
    "Persons": "language.value",
    "Product": "language.value",
    "Question": "plan.aggregation",
    "Relation": "plan.relation",
    "Rows": "language.value",
    "Schema": "language.schema",
    "Source": "plan.source",
    "Stability": "plan.relation",
    "Totals": "plan.source",
    "Truncate": "plan.bounding",
    "Type": "language.schema",
    "Unbounded": "plan.bounding",
    "Value": "language.value",
    "answer": "engines.source",
    "col": "language.expression",
    "engine_of": "engines.source",
    "explain": "engines.source",
    "grid": "language.expression",
    "lit": "language.expression",
    "null": "language.expression",
    "private": "plan.relation",
    "public": "plan.relation",
    "source": "engines.opening",
    "type_of": "language.checking",
    "when": "language.cases",
}
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
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES, ("engines",))
