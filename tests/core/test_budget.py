"""One budget for every kind of question."""

import json
import math
from typing import Any

import pytest

import mosha
from mosha.core.budget import Budget, choose_budget
from mosha.core.question import find_least_budget
from mosha.errors import InvalidParameter
from mosha.guarantees import Approx, Gaussian, Pure, ZeroConcentrated

BUDGETS = [
    Budget(epsilon=1),
    Budget(epsilon=0.5, delta=1e-6),
    Budget(rho=0.3),
    Budget(rho=0.3, delta=1e-9),
    Budget(mu=2),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_a_budget_survives_json(budget: Any) -> None:
    assert Budget.from_dict(json.loads(json.dumps(budget.to_dict()))) == budget
    assert eval(repr(budget), {"Budget": Budget}) == budget


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_scaling_moves_the_amount_and_nothing_else(budget: Any) -> None:
    half = budget.scale(0.5)
    assert (half.measure, half.amount, half.delta) == (budget.measure, budget.amount / 2, budget.delta)


def test_each_measure_has_its_guarantee() -> None:
    found = [budget.guarantee for budget in BUDGETS]
    assert found == [Pure(1), Approx(0.5, 1e-6), ZeroConcentrated(0.3), ZeroConcentrated(0.3), Gaussian(2)]


def test_gaussian_noise_needs_a_delta_a_rho_or_a_mu() -> None:
    assert [budget.allows_gaussian for budget in BUDGETS] == [False, True, True, True, True]


WRONG = [
    {},
    {"epsilon": 1, "rho": 1},
    {"epsilon": 0},
    {"epsilon": -1},
    {"epsilon": math.nan},
    {"epsilon": math.inf},
    {"epsilon": "1"},
    {"epsilon": True},
    {"epsilon": 10**400},
    {"epsilon": 1, "delta": 1},
    {"epsilon": 1, "delta": None},
    {"mu": 1, "rho": 1},
    {"epsilon": 1, "price": 1},
    {"epsilon": [1]},
    3,
    None,
    "epsilon",
]


@pytest.mark.parametrize("data", WRONG, ids=repr)
def test_what_is_no_budget_is_refused_by_a_typed_error(data: Any) -> None:
    with pytest.raises(InvalidParameter):
        Budget.from_dict(data)


def test_the_least_budget_is_found_to_one_part_in_a_thousand() -> None:
    found = find_least_budget(lambda budget: 3 / budget.amount, within=6, delta=1e-6)
    assert 0.5 <= found.epsilon <= 0.5005
    assert found.delta == 1e-6


def test_an_accuracy_that_no_epsilon_buys_is_refused_with_the_hint() -> None:
    with pytest.raises(InvalidParameter, match="say rows"):
        find_least_budget(lambda _: 1.0, within=0.5, hint="say rows")


def test_a_release_says_a_price_or_an_accuracy_and_never_both() -> None:
    def plan(within: Any, confidence: Any) -> Any:
        return Budget(epsilon=within + confidence)

    assert choose_budget(plan, rho=0.1) == Budget(rho=0.1)
    assert choose_budget(plan, within=1.0) == Budget(epsilon=1.95)
    for wrong in ({}, {"epsilon": 1, "within": 1}, {"mu": 1, "within": 1}, {"epsilon": 1, "confidence": 0.9}):
        with pytest.raises(InvalidParameter):
            choose_budget(plan, **wrong)


def test_tables_ask_with_the_same_budget() -> None:
    assert mosha.tables.Budget is Budget
