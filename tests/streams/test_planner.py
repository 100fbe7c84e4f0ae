"""The planner takes the least predicted error, says why, and refuses what makes no sense."""

from typing import Any

import numpy as np
import pytest

import mosha
from mosha import Person, Reading, Row, Window, errors, streams
from mosha.accounting.measures import concentrated, gaussian, pure


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ({"unit": Reading(), "horizon": 1024, "epsilon": 1}, "13-ary"),
        ({"unit": Reading(), "horizon": 1 << 16, "epsilon": 1, "delta": 1e-6}, "column-normalised BLT"),
        ({"unit": Person("id"), "horizon": 365, "rho": 0.5}, "per-step Gaussian"),
        ({"unit": Person("id", at_most=12), "horizon": 365, "apart": 30, "rho": 0.5}, "30 bands"),
        ({"unit": Window("id", 48), "horizon": 5000, "rho": 0.5, "release": "instant"}, "per-step Gaussian"),
    ],
)
def test_the_best_mechanism_is_taken_and_the_reason_given(asked: Any, name: str) -> None:
    stream = streams.counter(**asked)
    assert name in stream.plan.name
    assert stream.reason.startswith(stream.plan.name)
    errors_told = [error for _, error in stream.alternatives]
    assert errors_told == sorted(errors_told)


def test_the_price_is_the_budget() -> None:
    priced = streams.counter(unit=Reading(), horizon=500, epsilon=0.7)
    assert pure.cost_of(priced.event).amount == pytest.approx(0.7)
    assert concentrated.rho(streams.counter(unit=Reading(), horizon=500, rho=0.3).event)[0] == pytest.approx(0.3)
    both = streams.counter(unit=Reading(), horizon=5000, epsilon=1, delta=1e-6).event
    mu = gaussian.mu(both)[0]
    assert gaussian.epsilon(mu, 1e-6) == pytest.approx(1, rel=1e-4)
    assert gaussian.epsilon(mu, 1e-6) <= 1


def test_the_known_errors_of_persons_who_come_back() -> None:
    for most, apart, root, largest in ((4, 90, 5.84, 7.08), (12, 30, 12.7, 16.9), (52, 7, 43.9, 60.1)):
        stream = streams.counter(unit=Person("id", at_most=most), horizon=365, apart=apart, rho=0.5)
        assert stream.plan.root_mean_square == pytest.approx(root, rel=5e-3)
        assert stream.plan.largest_deviation == pytest.approx(largest, rel=5e-3)


def test_more_noise_never_costs_more_and_longer_is_never_cheaper() -> None:
    tight, loose = (streams.counter(unit=Reading(), horizon=256, rho=rho) for rho in (0.1, 0.4))
    assert tight.plan.root_mean_square == pytest.approx(2 * loose.plan.root_mean_square, rel=1e-6)
    lengths = [streams.counter(unit=Reading(), horizon=h, rho=0.5).plan.root_mean_square for h in (64, 1024, 1 << 14)]
    assert lengths == sorted(lengths)


def test_replacing_a_unit_costs_twice_the_error() -> None:
    once = streams.counter(unit=Reading(), horizon=64, rho=0.5)
    twice = streams.counter(unit=Reading(neighbors="replace-one"), horizon=64, rho=0.5)  # type: ignore[arg-type]
    assert twice.plan.root_mean_square == pytest.approx(2 * once.plan.root_mean_square, rel=1e-3)


def test_the_promise_is_said_in_words_with_the_price_of_the_other_one() -> None:
    event = streams.counter(unit=Reading(), horizon=96, rho=0.5).describe()
    assert "10:05" in event
    assert "whole persons" in event
    person = streams.counter(unit=Person("id", at_most=3), horizon=96, rho=0.5).describe()
    assert "was here at all" in person
    assert "single readings" in person
    assert "7 consecutive steps" in streams.window(unit=Window("id", 7), epsilon=1).describe()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "wrong",
    [
        {"unit": Row(), "horizon": 10, "epsilon": 1},
        {"unit": None, "horizon": 10, "epsilon": 1},
        {"unit": Reading(), "horizon": 0, "epsilon": 1},
        {"unit": Reading(), "horizon": 1 << 41, "epsilon": 1},
        {"unit": Reading(), "horizon": 10},
        {"unit": Reading(), "horizon": 10, "epsilon": 0},
        {"unit": Reading(), "horizon": 10, "epsilon": float("nan")},
        {"unit": Reading(), "horizon": 10, "epsilon": 1, "rho": 1},
        {"unit": Reading(), "horizon": 10, "rho": 1, "delta": 1e-6},
        {"unit": Reading(), "horizon": 10, "epsilon": 1, "delta": 1.0},
        {"unit": Reading(), "horizon": 10, "epsilon": 1e-30},
        {"unit": Reading(), "horizon": 10, "epsilon": 1e300},
        {"unit": Reading(), "horizon": 10, "epsilon": 1, "apart": 2},
        {"unit": Reading(), "horizon": 10, "epsilon": 1, "release": "later"},
        {"unit": Reading(), "horizon": 10, "epsilon": 1, "mechanism": "magic"},
        {"unit": Reading(), "horizon": 10, "epsilon": 1, "memory": 0},
        {"unit": Person("id", groups=3), "horizon": 10, "epsilon": 1},
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_spent(wrong: Any) -> None:
    with pytest.raises(errors.MoshaError):
        streams.counter(**wrong)


@pytest.mark.parametrize("between", [(1, 1), (2, 1), (float("nan"), 1), (0, float("inf"))])
def test_wrong_bounds_are_refused(between: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        streams.total(unit=Reading(), horizon=10, epsilon=1, between=between)


def test_error_bars_of_single_steps_with_laplace_noise_are_exact() -> None:
    """Of 2,000 steps 4.85% miss on average: a line fails by chance less than once in 10**10 runs."""
    steps = 2000
    unit = Person("id", at_most=20)
    stream = streams.counter(unit=unit, horizon=steps, epsilon=1, release="instant")
    assert stream.plan.name == "per-step Laplace"
    with mosha.Ledger.memory().account("steps", unit=unit, epsilon=1).open(stream) as run:
        answers = np.abs([run.step({"id": []}).value for _ in range(steps)])
    width = stream.error_at(1, 0.95)
    assert 25 <= np.sum(answers > width) <= 200
    assert np.sum(answers > width / 2) > 200  # a bar too narrow would be found,
    assert np.sum(answers > 2 * width) < 25  # and one too wide
