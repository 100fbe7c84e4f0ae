"""The auditor against an account: an adversary chooses its second payment by the first answer, as in proposition 6.

What an account admits depends on payments alone. So it is asked once for each beginning of the game, a real account of
a real ledger, and the answers of many games are drawn at once.
"""

import math
from typing import Any

import numpy as np
import pytest

import mosha
from mosha import guarantees
from mosha.accounting.either import EitherRule
from mosha.audit import Outcome, attack
from tests.accounting.test_either import DELTA, EPSILON, Naive, made, menu_for, randomized_response
from tests.chance import look_for_fault
from tests.ledger.place import PERSON, asking

FIRST = randomized_response(0.2)
RUNS = 1_000_000  # of each world
ENOUGH = 6_000_000  # the excess is 16 deviations then, of which the bounds take 8: missed less than once in 1e9 times
CONFIDENCE = 1 - 1e-9  # the rate of false alarms of each test


def second_choice(answer: Any, menu: Any, swap: Any) -> Any:
    """What serves the adversary best after this answer, of all that the account still pays for."""
    account = mosha.Ledger.memory().account("game", unit=PERSON, epsilon=EPSILON, delta=DELTA)
    account.open(asking(FIRST.event, answer=answer)).step(None)
    p, q = FIRST.outputs[answer][:: -1 if swap else 1]

    def gain(mechanism: Any) -> Any:
        return math.fsum(max(p * a - math.exp(EPSILON) * q * b, 0.0) for a, b in mechanism.outputs)

    for mechanism in sorted(menu, key=gain, reverse=True):
        if account.how_many(mechanism.event) != 0:
            account.open(asking(mechanism.event)).step(None)
            return mechanism
    raise AssertionError("nothing is admitted")


def play(menu: Any, swap: Any) -> Any:
    """The game as a function of the world: whether its transcript is one of those that betray the first world.

    `played.excess` is what the game is worth, as a multiple of delta.
    """
    transcripts = [
        (a * c, b * d)
        for answer in range(2)
        for a, b in [FIRST.outputs[answer][:: -1 if swap else 1]]
        for c, d in second_choice(answer, menu, swap).outputs
    ]
    telling = [(p, q) for p, q in transcripts if p > math.exp(EPSILON) * q]
    chances = [math.fsum(pair[world] for pair in telling) for world in (0, 1)]

    def played(world: Any, size: Any) -> Any:
        return np.random.default_rng().random(size) < chances[world]

    played.excess = (chances[0] - math.exp(EPSILON) * chances[1]) / DELTA  # type: ignore[attr-defined]
    return played


def audit(game: Any, runs: Any = RUNS) -> Any:
    claim = guarantees.Approx(EPSILON, DELTA)
    return attack(game, neighbors=(0, 1), claim=claim, confidence=CONFIDENCE, runs=runs, batch=True)


@pytest.mark.parametrize("swap", [False, True])
def test_no_adversary_gets_more_out_of_an_account_than_it_promises(swap: bool) -> None:
    menu = menu_for(made(EitherRule)) + menu_for(made(Naive))
    game = play([mechanism.swapped() if swap else mechanism for mechanism in menu], swap)
    verdict = audit(game)
    assert verdict.outcome is not Outcome.BROKEN
    assert verdict.lower <= EPSILON
    assert game.excess > 0.4  # of delta: an adversary that gets nothing would show nothing


def test_the_auditor_finds_an_account_that_gives_both_sums_all_of_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    menu = menu_for(made(Naive))
    monkeypatch.setattr(EitherRule, "limits", Naive.limits)
    monkeypatch.setattr(EitherRule, "way", lambda self, first: "either")
    game = play(menu, swap=False)
    verdict = look_for_fault(lambda: audit(game, ENOUGH))
    assert game.excess > 1.1
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.lower > EPSILON
