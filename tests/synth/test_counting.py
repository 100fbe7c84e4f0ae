"""Exact tables of pairs: the same whether rows are held or added up as they come."""

import itertools
from typing import Any

import numpy as np
import pytest

import mosha
from mosha.noise import SeededRandom
from mosha.synth.measuring import counting
from mosha.synth.measuring.counting import PairCounts, count_cells, count_pairs
from tests.synth.test_synthesis import WORDS


@pytest.mark.parametrize("unit", [mosha.Row(), mosha.Person("who")], ids=["rows", "persons"])
@pytest.mark.parametrize("at_once", [1, 7, 1 << 18])
def test_tables_of_pairs_are_those_of_the_rows(
    unit: Any, at_once: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "AT_ONCE", at_once)
    question = mosha.protect(rows.slice(0, 300), unit=unit).synthesize(**WORDS)
    held, added = (count(question.relation, unit, question.columns) for count in (count_cells, count_pairs))
    assert isinstance(added, PairCounts)
    places = range(len(question.columns))
    for some in [(), *((place,) for place in places), *itertools.permutations(places, 2)]:
        np.testing.assert_array_equal(held.marginal(some), added.marginal(some))


def test_a_release_is_the_same_either_way(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same noise: where tables of pairs would be too large, rows are held."""
    table = mosha.protect(rows, unit=mosha.Row())
    values = []
    for most in (counting.MOST_PAIR_CELLS, 1):
        monkeypatch.setattr(counting, "MOST_PAIR_CELLS", most)
        question = table.synthesize(**WORDS)
        values.append(question.measurement_for(epsilon=3, delta=1e-9).step(None, None, None, SeededRandom(4))[0])
    for stage in ("one-ways", "distances", "pairs", "fine", "look"):
        np.testing.assert_array_equal(values[0][stage], values[1][stage])


def test_an_empty_table_has_empty_pairs(rows: Any) -> None:
    question = mosha.protect(rows.slice(0, 0), unit=mosha.Row()).synthesize(**WORDS)
    found = count_pairs(question.relation, mosha.Row(), question.columns)
    assert found.marginal(()) == 0
    assert found.marginal((0, 1)).sum() == 0
