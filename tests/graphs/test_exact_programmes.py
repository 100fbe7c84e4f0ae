"""Where floats do not close the gap, the optimum is found in fractions: a step at node level always has an answer."""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import linprog

from mosha.graphs import Graph
from mosha.graphs.data.exact_programme import maximize
from mosha.graphs.statistics import forests, lipschitz
from mosha.graphs.statistics.forests import bounded_forest
from mosha.graphs.statistics.lipschitz import capped_triangles, triangles_capped_at_edges

RNG = np.random.default_rng()


def graphs() -> Iterator[Any]:
    pairs = list(itertools.combinations(range(9), 2))
    yield Graph.of(pairs, vertices=9)
    yield Graph.of([(0, i) for i in range(1, 9)], vertices=9)
    for share in (0.3, 0.5, 0.8):
        yield Graph.of([pair for pair in pairs if RNG.random() < share], vertices=9)


def test_fractions_find_what_floats_find() -> None:
    for _ in range(30):
        table = RNG.integers(0, 4, size=(5, 7))
        table[0] += 1
        gains, limits = RNG.integers(0, 5, 7), RNG.integers(0, 9, 5)
        value, prices = maximize(
            [{i: int(a) for i, a in enumerate(column) if a} for column in table.T], gains.tolist(), limits.tolist()
        )
        assert float(value) == pytest.approx(-linprog(-gains, A_ub=table, b_ub=limits).fun, abs=1e-9)
        assert value == sum(price * int(limit) for price, limit in zip(prices, limits, strict=True))
        assert all(price >= 0 for price in prices)
        assert all(
            sum(price * int(a) for price, a in zip(prices, column, strict=True)) >= int(gain)
            for column, gain in zip(table.T, gains, strict=True)
        )


@pytest.mark.parametrize("fault", ["no solution", "far away", "not a number"])
def test_a_solver_that_fails_does_not_make_the_step_fail(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = list(graphs())
    right = [
        (capped_triangles(g, 3), triangles_capped_at_edges(g, 2), bounded_forest(g, 1), bounded_forest(g, 2))
        for g in cases
    ]

    def broken(gains: Any, A_ub: Any, b_ub: Any, **_: Any) -> Any:  # noqa: N803  (SciPy's names)
        x = {"no solution": None, "far away": np.zeros(len(gains))}.get(fault, np.full(len(gains), np.nan))
        return SimpleNamespace(x=x, ineqlin=SimpleNamespace(marginals=np.zeros(len(b_ub))))

    monkeypatch.setattr(scipy.optimize, "linprog", broken)
    found = [
        (capped_triangles(g, 3), triangles_capped_at_edges(g, 2), bounded_forest(g, 1), bounded_forest(g, 2))
        for g in cases
    ]
    for before, after in zip(right, found, strict=True):
        assert all(abs(a - b) <= 1 for a, b in zip(before, after, strict=True))  # 1/4 above may round up
    assert found[1][2:] == (1, 2)


def test_the_exact_optimum_is_within_a_quarter_of_what_is_certified() -> None:
    for graph in graphs():
        if graph.edge_count:
            mixture = forests._Mixture(graph.pairs().astype(np.int64), graph.vertices, 2)
            exact = mixture.exact_optimum()
            assert 0 <= bounded_forest(graph, 2) - exact + Fraction(1, 2) <= Fraction(5, 4)
    assert lipschitz.TOLERANCE == forests.TOLERANCE == 0.25
