"""Answers that are always empty are consistent with any claim, and no reason to stop."""

from mosha.audit import attack
from mosha.core.guarantee import Pure


def test_a_mechanism_that_says_nothing_is_not_broken() -> None:
    verdict = attack(lambda data: [], neighbors=(0, 1), claim=Pure(1), runs=2000)
    assert verdict.lower == 0
    assert verdict.outcome.value != "broken"
