"""A private bandit: paid before the first person, the best arm is found, rewards are one step of one stream."""

from typing import Any

import numpy as np
import pytest

import mosha
from mosha.core.errors import BudgetExceeded, InvalidParameter, RunError
from mosha.streams import Bandit


def account(epsilon: float = 5.0) -> Any:
    return mosha.Ledger.memory().account("arms", unit=mosha.Reading(), epsilon=epsilon)


@pytest.mark.parametrize("method", ["ucb", "thompson"])
def test_the_arm_that_always_pays_is_offered_most(method: str) -> None:
    """Rewards 1 and 0, 400 people, epsilon 9: noise of a sum has a deviation below 3 against hundreds."""
    paying = mosha.Ledger.memory().account("arms", unit=mosha.Reading(), epsilon=9)
    bandit = Bandit(["a", "b"], horizon=400, account=paying, epsilon=9, method=method)  # type: ignore[arg-type]
    for _ in range(400):
        bandit.record(float(bandit.choose() == "b"))
    assert bandit.pulls["b"] > bandit.pulls["a"]
    assert sum(bandit.pulls.values()) == 400
    assert bandit.means["b"] == pytest.approx(1, abs=0.5)


def test_a_bandit_is_paid_for_when_it_is_made_and_not_by_the_person() -> None:
    paying = account(1.0)
    bandit = Bandit(["a", "b"], horizon=50, account=paying, epsilon=1)
    spent = paying.spent
    assert spent == pytest.approx(1)
    for _ in range(10):
        bandit.choose()
        bandit.record(1.0)
    assert paying.spent == spent
    with pytest.raises(BudgetExceeded):
        Bandit(["a", "b"], horizon=50, account=paying, epsilon=1)


def test_the_person_after_the_last_is_refused() -> None:
    bandit = Bandit(["a", "b"], horizon=2, account=account(), epsilon=5)
    for _ in range(2):
        bandit.choose()
        bandit.record(0.0)
    bandit.choose()
    with pytest.raises(RunError):
        bandit.record(1.0)


def test_rewards_are_clamped_and_a_reward_without_an_offer_is_refused() -> None:
    bandit = Bandit(["a", "b"], horizon=4, account=account(), epsilon=5)
    with pytest.raises(RunError, match="choose"):
        bandit.record(1.0)
    bandit.choose()
    bandit.record(1e9)
    assert abs(bandit.means["a"]) < 100
    assert bandit.choose() is bandit.choose()


def test_one_arm_is_no_choice() -> None:
    with pytest.raises(InvalidParameter, match="arms"):
        Bandit(["a"], horizon=4, account=account(), epsilon=5)


def test_a_reward_moves_the_published_sum_by_no_more_than_is_paid_for() -> None:
    """The stream behind it under attack: more than epsilon 1 is claimed once in 1e9 runs."""
    stream = mosha.streams.series(
        unit=mosha.Reading(), horizon=1, keys=["a", "b"], key="arm", between=(0, 1), column="reward", epsilon=1
    )
    rows = [{"arm": ["a"], "reward": [reward]} for reward in (1.0, 0.0)]
    verdict = mosha.audit.attack(
        stream.map(lambda sums: tuple(np.round(sums, 3).tolist())),
        neighbors=rows,  # type: ignore[arg-type]
        runs=2000,
        confidence=1 - 1e-9,
    )
    assert verdict.lower <= 1
