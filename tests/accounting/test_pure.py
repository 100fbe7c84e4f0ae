"""Basic composition, amplification, groups and failures, against brute force."""

import itertools
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosha import accounting
from mosha.accounting.measures import pure
from mosha.events import (
    NOTHING,
    Approx,
    Failure,
    FixedSizeSampled,
    Gaussian,
    Group,
    Laplace,
    Parallel,
    Plan,
    Pure,
    RandomizedResponse,
    Renyi,
    Sampled,
    Selected,
    SparseVector,
    Tree,
    ZeroConcentrated,
)
from tests.accounting import golden


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("group_adp"))
def test_golden_group(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    epsilon, delta = pure.approx(Group(Approx(inputs["eps"], inputs["delta"]), inputs["k"]))
    assert epsilon == pytest.approx(inputs["k"] * inputs["eps"], rel=1e-12)
    assert delta == pytest.approx(expected, rel=tolerance)


def test_epsilons_and_deltas_add() -> None:
    event = Laplace(4) * 3 + Approx(0.5, 1e-6) * 2 + SparseVector(0.1, 0.4) + Tree(10, 5, "laplace")
    assert pure.approx(event) == (pytest.approx(0.75 + 1.0 + 0.5 + 0.5, rel=1e-12), pytest.approx(2e-6, rel=1e-12))  # type: ignore[comparison-overlap]
    assert pure.epsilon(event) == math.inf
    assert pure.epsilon(NOTHING) == 0


def test_noise_without_a_pure_price_has_none() -> None:
    for event in (Gaussian(100), ZeroConcentrated(1e-6), Renyi((2.0,), (0.1,)), Tree(100, 2)):
        assert math.isinf(pure.epsilon(event))
    assert pure.epsilon(ZeroConcentrated(0.0)) == 0
    assert pure.epsilon(Renyi((2.0, 3.0), (0.0, 0.1))) == 0


def test_the_dearest_of_disjoint_parts_is_paid() -> None:
    assert pure.approx(Parallel((Laplace(1), Laplace(2) * 3, Approx(0.1, 1e-5)))) == (1.5, 1e-5)


def test_a_failure_reveals_everything() -> None:
    assert pure.approx(Failure(Approx(0.3, 0.1), 0.2)) == (0.3, pytest.approx(0.2 + 0.8 * 0.1, rel=1e-12))  # type: ignore[comparison-overlap]


def pairs_within(rng: Any, epsilon: Any, size: Any, count: Any) -> Any:
    """Distributions whose log-ratios are within epsilon of each other."""
    base = rng.dirichlet(np.ones(size))
    found: list[Any] = []
    while len(found) < count:
        tilted = base * np.exp(rng.uniform(-0.5, 0.5, size) * epsilon)
        tilted /= tilted.sum()
        if all(np.max(np.abs(np.log(tilted / other))) <= epsilon for other in [base, *found]):
            found.append(tilted)
    return found


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.95])
def test_every_mixture_is_within_the_amplified_epsilon(epsilon: float, rate: float) -> None:
    rng = np.random.default_rng()
    bound = pure.amplify(epsilon, rate) * (1 + 1e-9)
    for _ in range(200):
        first, second, absent = pairs_within(rng, epsilon, int(rng.integers(2, 7)), 3)
        mixed = [(1 - rate) * absent + rate * one for one in (first, second)] + [absent]
        for one, other in itertools.permutations(mixed, 2):
            assert np.max(np.log(one / other)) <= bound


def test_amplification_is_reached_by_randomized_response() -> None:
    """Adding a unit to a sample of rate q: the ratio is 1 - q + q e^epsilon at the truthful answer."""
    assert pure.amplify(2.0, 0.1) == pytest.approx(math.log(0.9 + 0.1 * math.exp(2.0)), rel=1e-12)
    assert pure.epsilon(RandomizedResponse(2.0).sample(0.1)) == pytest.approx(pure.amplify(2.0, 0.1), rel=1e-12)


@given(st.floats(1e-6, 1e4), st.floats(1e-9, 1.0))
def test_amplification_never_raises_epsilon(epsilon: Any, rate: Any) -> None:
    amplified = pure.amplify(epsilon, rate)
    assert 0 < amplified <= epsilon
    if epsilon > 1e3:
        assert amplified == pytest.approx(max(epsilon + math.log(rate), amplified), rel=1e-9)


def test_delta_shrinks_with_the_sample() -> None:
    assert pure.approx(Approx(0.5, 1e-5).sample(0.1))[1] == pytest.approx(1e-6, rel=1e-12)
    assert pure.approx(FixedSizeSampled(Approx(0.5, 1e-5), 10, 100))[1] == pytest.approx(1e-6, rel=1e-12)
    assert pure.approx(Sampled(Approx(0.5, 1e-5), 0.1, "replace-one"))[1] == pytest.approx(1e-6, rel=1e-12)  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "population"), [(1, 1), (1, 5), (3, 4), (4, 20)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_sampling_with_replacement_covers_a_sum_of_randomized_responses(
    size: int, population: int, epsilon: float
) -> None:
    """Laplace noise on the number of draws of the unit: ratios at the end points of the real line."""
    bound = pure.epsilon(FixedSizeSampled(Laplace(1 / epsilon), size, population, True))
    weights = [math.comb(size, c) / population**c * (1 - 1 / population) ** (size - c) for c in range(size + 1)]
    z = np.linspace(-size - 3, size + 3, 4001)
    mixed = [sum(w * np.exp(-epsilon * np.abs(z - sign * c / 2)) for c, w in enumerate(weights)) for sign in (1, -1)]
    assert np.max(np.log(mixed[0] / mixed[1])) <= bound * (1 + 1e-9)
    assert bound <= size * epsilon * (1 + 1e-12)


def test_sampling_with_replacement_needs_pure_events() -> None:
    assert math.isinf(pure.approx(FixedSizeSampled(Approx(0.1, 1e-9), 3, 10, True))[0])


@pytest.mark.parametrize("mean", [1.0, 3.0, 30.0])
def test_selection_costs_a_multiple_of_epsilon(mean: float) -> None:
    assert pure.epsilon(Selected(Pure(0.1), mean)) == pytest.approx(0.3, rel=1e-12)
    assert pure.epsilon(Selected(Pure(0.1), mean, shape=0.0)) == pytest.approx(0.2, rel=1e-12)
    poisson = pure.epsilon(Selected(Pure(0.1), mean, "poisson"))
    assert poisson == pytest.approx(0.1 + mean * math.tanh(0.05), rel=1e-12)


def test_a_plan_is_sold_at_its_tight_price() -> None:
    plan = Plan(Laplace(100) * 1000, 1e-6)
    epsilon, delta = pure.approx(plan)
    assert epsilon == pytest.approx(1.3629246, rel=2e-4)
    assert delta == 1e-6


@pytest.mark.parametrize("size", [1, 2, 7])
def test_groups_walk_unit_by_unit(size: int) -> None:
    epsilon, delta = pure.approx(Group(Approx(0.2, 1e-9), size))
    walked = 0.0
    for _ in range(size):
        walked = math.exp(0.2) * walked + 1e-9
    assert (epsilon, delta) == (pytest.approx(0.2 * size, rel=1e-12), pytest.approx(walked, rel=1e-12))  # type: ignore[comparison-overlap]


def test_huge_groups_promise_nothing() -> None:
    assert pure.approx(Group(Approx(1.0, 1e-9), 10**6))[1] == 1.0
    assert pure.approx(Group(Approx(0.0, 1e-9), 5)) == (0.0, pytest.approx(5e-9, rel=1e-12))  # type: ignore[comparison-overlap]


@pytest.mark.parametrize("measure", ["pure", "concentrated", "renyi", "gaussian"])
def test_a_plan_has_its_price_whatever_is_loaded_first(measure: str) -> None:
    asked = (
        f"from mosha.accounting.measures import {measure}\n"
        "from mosha.accounting.measures.pure import approx\n"
        "from mosha.core.events import Gaussian, Plan\n"
        "print(*approx(Plan(Gaussian(10) * 100, 1e-6)))"
    )
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    assert float(said[0]) == accounting.epsilon(Gaussian(10) * 100, 1e-6)
    assert float(said[1]) == 1e-6
