"""Every stream is attacked and holds; streams and alarms with planted faults are found out.

False alarms: every attack is at confidence 1 - 1e-9.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from mosha import Reading, audit, noise, streams
from mosha.audit.own.streams import own_entries
from mosha.core.events import DiscreteGaussian
from mosha.guarantees import Pure
from mosha.noise import discrete_laplace
from mosha.streams.stream import stream_of
from tests.chance import look_for_fault

CONFIDENCE = 1 - 1e-9


@pytest.mark.parametrize("entry", own_entries(), ids=lambda entry: entry.name)
def test_no_attack_shows_more_than_was_paid_for(entry: Any) -> None:
    assert entry.attack(runs=120, confidence=CONFIDENCE).outcome is audit.Outcome.CONSISTENT


def attacked(measurement: Any, first: Any, second: Any, runs: int = 1000, **how: Any) -> Any:
    return look_for_fault(
        lambda: audit.attack(measurement, neighbors=(first, second), runs=runs, confidence=CONFIDENCE, **how)
    ).outcome


def test_noise_that_is_too_small_is_found() -> None:
    """The same stream with the price of ten times as much noise."""
    stream = streams.counter(unit=Reading(), horizon=4, rho=12.0, mechanism="BLT")
    sold = replace(stream, event=DiscreteGaussian(2.0, stream.event.sensitivity, 4))  # type: ignore[attr-defined]
    found = attacked(sold, [[1], [], [], []], [[], [], [], []], stream=True)
    assert found is audit.Outcome.BROKEN


def test_a_release_that_is_divided_too_finely_for_its_noise_is_found() -> None:
    """Data that weigh six times what the noise was made for: a wrong column norm would look like this."""
    stream = streams.counter(unit=Reading(), horizon=8, rho=4.0, mechanism="BLT")
    mechanism = replace(stream.plan.mechanism, unit=stream.plan.mechanism.unit * 6)
    broken = stream_of(replace(stream.plan, mechanism=mechanism), Reading(), name="broken")
    assert attacked(broken, [[1]] + [[]] * 7, [[]] * 8, runs=1000, stream=True) is audit.Outcome.BROKEN


def laplace(scale: Any) -> Any:
    return discrete_laplace(Fraction(scale), rng=noise.secure())


def no_noise_on_questions(questions: Any) -> tuple[Any, ...]:  # Stoddard, Chen and Machanavajjhala 2014
    threshold = laplace(2)
    return tuple(q >= threshold for q in questions)


def test_alarms_without_noise_on_the_questions_are_found() -> None:
    """One of the four broken variants that Lyu, Su and Li list; all of them are in `tests/audit/faults.py`.

    Epsilon 3.1 is shown, with a deviation of 0.06.
    """
    worlds = ([0] * 4 + [1] * 4, [1] * 4 + [0] * 4)
    how: dict[str, Any] = {"neighbors": worlds, "claim": Pure(1), "confidence": CONFIDENCE}
    found = look_for_fault(lambda: audit.attack(no_noise_on_questions, runs=6000, **how))
    assert found.outcome is audit.Outcome.BROKEN
