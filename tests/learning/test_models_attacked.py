"""The attacker finds no more than was claimed of any model or choice, and finds a planted fault."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mosha.audit import attack
from mosha.audit.own.learning_models import EXAMPLE, own_entries
from mosha.learning import Descent, LogisticRegression
from tests.chance import look_for_fault

RUNS = 400


@pytest.mark.parametrize("entry", own_entries(), ids=lambda entry: entry.name)
def test_the_attacker_finds_no_more_than_was_claimed(entry: Any) -> None:
    """False alarms: at most 1e-11 each."""
    verdict = entry.attack(runs=RUNS, confidence=1 - 1e-11)
    assert not verdict.broken, str(verdict)


def model(**changed: Any) -> Any:
    shape = {"examples": 4, "norm": 1.0, "fit_intercept": False, "learning_rate": 1.0, "steps": 1, "mu": 1.0}
    return LogisticRegression(**shape | changed)


PAIR: Any = ((np.ones((1, 1)), [1]), (np.zeros((0, 1)), []))


def test_a_gradient_that_is_not_clipped_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault of others: the price of a clip that nobody applies."""
    faulty = model(clip=0.01).measurement(1)
    monkeypatch.setattr("mosha.learning.linear.descent.clip_residuals", lambda residuals, clip: residuals)
    assert look_for_fault(lambda: attack(faulty, neighbors=PAIR, runs=1500, confidence=1 - 1e-9)).broken


def test_a_divisor_that_is_the_private_number_of_examples_is_found() -> None:
    """The fault of others: sums divided by the true number, so that one example more halves the noise that is seen."""
    plan = Descent(width=1, outputs=1, loss="logistic", examples=100, steps=1, learning_rate=1.0, momentum=0.0)
    right = plan.measurement(unit=EXAMPLE, mu=0.1)

    def step(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        answer, state = right.step(state, data, ask, rng)
        return answer * 100 / data[0].shape[0], state

    leaky = replace(right, step=step)
    pair = tuple((np.full((n, 1), 1 << 14, np.int16), np.ones((n, 1)), None) for n in (2, 1))
    assert not attack(right, neighbors=pair, runs=1500, confidence=1 - 1e-9).broken  # type: ignore[arg-type]
    assert look_for_fault(lambda: attack(leaky, neighbors=pair, runs=1500, confidence=1 - 1e-9)).broken  # type: ignore[arg-type]
