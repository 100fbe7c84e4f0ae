"""Time as an answer: a leak is found, equal work is not flagged, whatever else the machine does."""

from typing import Any

import pytest

from mosha.audit import Outcome, attack_timing
from mosha.core.errors import InvalidParameter
from tests.chance import look_for_fault


def work(amount: Any) -> int:
    total = 0
    for i in range(amount):
        total += i
    return 0


def test_work_that_depends_on_the_data_is_found() -> None:
    attacked = look_for_fault(lambda: attack_timing(work, neighbors=(0, 30_000), epsilon=0.5, runs=200))
    assert attacked.outcome is Outcome.BROKEN
    assert attacked.neighbor == "neighbor 2"
    assert "BROKEN" in str(attacked)
    assert attacked.to_dict()["lower"] == attacked.lower > 0.5


def test_equal_work_is_not_flagged() -> None:
    """False-alarm rate 1e-9."""
    attacked = attack_timing(lambda _: work(500), neighbors=(0, 1), epsilon=0.5, runs=400, confidence=1 - 1e-9)
    assert attacked.outcome is Outcome.CONSISTENT


def test_a_claim_that_so_few_pairs_cannot_touch_is_called_no_power() -> None:
    assert attack_timing(lambda _: 0, neighbors=(0, 1), epsilon=9, runs=40).outcome is Outcome.NO_POWER


@pytest.mark.parametrize("wrong", [{"epsilon": -1}, {"runs": 3}, {"confidence": 1}])
def test_wrong_arguments_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidParameter):
        attack_timing(work, **({"neighbors": (0, 1), "epsilon": 1.0, "runs": 40} | wrong))
