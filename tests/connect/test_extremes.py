"""A few random expressions at the ends of everything; `python -m fuzz.expressions` tries them for hours."""

import contextlib
import itertools
from typing import Any

import pytest

from fuzz.expressions import Bench
from mosha.connect import private, type_of
from mosha.connect.language import limits
from mosha.connect.language.cases import Case
from mosha.connect.language.expression import Call
from mosha.connect.language.operator import Operator
from mosha.core.errors import DataError
from tests.connect.extremes import SCHEMA, expression_of, extreme_rows, find_fault, seen
from tests.connect.places import DuckDBPlace
from tests.searches import draw_seeds

COUNTS = {"duckdb": 40, "postgresql": 25, "mariadb": 15, "spark": 5}


def test_no_engine_raises_and_all_give_what_the_oracle_gives(place: Any) -> None:
    rows = extreme_rows(60)
    relation = private(place.load(SCHEMA, rows))
    tried = 0
    for seed in draw_seeds(f"expressions on {place.name}"):
        expression = expression_of(seed)
        try:
            type_of(expression, SCHEMA)
        except DataError:  # too deep, or a mixture of types
            continue
        assert find_fault(relation, expression, seen(rows)) is None, f"seed {seed}: {expression!r}"
        tried += 1
        if tried == COUNTS[place.name]:
            return


@pytest.mark.parametrize("engine", ["kernel", "csv", "parquet"])
def test_the_other_ways_to_read_a_table_raise_as_little(engine: str) -> None:
    with contextlib.ExitStack() as stack:
        bench = Bench(engine, stack)
        seeds = itertools.islice(draw_seeds(f"expressions by {engine}"), 25)
        assert [fault for seed in seeds if (fault := bench.fault(seed))] == []


def operators_in(expression: Any) -> Any:
    if isinstance(expression, Case):
        parts = [part for branch in expression.branches for part in branch]
        return set().union(*map(operators_in, [*parts, *([] if expression.rest is None else [expression.rest])]))
    if isinstance(expression, Call):
        return {expression.operator}.union(*map(operators_in, expression.arguments))
    return set()


@pytest.mark.parametrize(
    ("operator", "name", "old"), [(Operator.SUBSTRING, "MOST_PLACES", 2**70), (Operator.BIN, "WIDEST_BIN", 2**63)]
)
def test_the_search_finds_a_range_that_is_too_wide(
    operator: Any, name: str, old: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the ranges of before, an engine raises within a few hundred expressions that use the operator."""
    monkeypatch.setattr(limits, name, old)
    rows = extreme_rows(60)
    relation = private(DuckDBPlace().load(SCHEMA, rows))
    tried = 0
    for seed in draw_seeds(name):
        expression = expression_of(seed)
        if operator not in operators_in(expression):
            continue
        try:
            fault = find_fault(relation, expression, seen(rows))
        except DataError:
            continue
        if fault is not None and fault.startswith("raised"):
            return
        tried += 1
        assert tried < 1500, "nothing was found: the search has lost its power"
