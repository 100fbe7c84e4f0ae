"""The attack: its laws, its false-alarm rate, its power, its refusals."""

from functools import partial
from typing import Any, NoReturn

import numpy as np
import pytest
from scipy.stats import binom

from mosha import Measurement, Row, noise
from mosha.audit import Outcome, attack
from mosha.core.errors import HorizonExceeded, InvalidParameter
from mosha.core.events import Gaussian as GaussianEvent
from mosha.core.events import Pure as PureEvent
from mosha.core.guarantee import Approx, Gaussian, Pure, ZeroConcentrated
from tests.chance import look_for_fault

EDGE = np.e / (1 + np.e)  # randomized response that says the truth so often has epsilon 1 exactly


def response(truth: Any) -> Any:
    return lambda bit, size: np.where(np.random.default_rng().random(size) < truth, bit, 1 - bit)


def laplace(scale: Any) -> Any:
    return lambda value, size: value + noise.discrete_laplace(scale, size)


# Laws


def test_a_mechanism_at_the_edge_of_its_claim_is_called_broken_no_more_often_than_stated() -> None:
    """At confidence 0.8, 150 attacks: more than 62 alarms have probability below 1e-9 if the rate is 0.2."""
    limit = int(binom.isf(1e-9, 150, 0.2))
    alarms = sum(
        attack(response(EDGE), neighbors=(0, 1), claim=Pure(1), runs=300, batch=True, confidence=0.8).broken
        for _ in range(150)
    )
    assert alarms <= limit < 65


def test_the_same_count_of_alarms_would_betray_an_attack_that_forgot_its_confidence() -> None:
    """Power of the test above: a rate of 0.7 passes it with probability below 1e-9."""
    assert binom.cdf(int(binom.isf(1e-9, 150, 0.2)), 150, 0.7) < 1e-9


def test_publishing_the_data_is_broken_and_reaches_the_ceiling() -> None:
    verdict = attack(lambda data, size: [data] * size, neighbors=("a", "b"), claim=Pure(1), runs=2_000, batch=True)
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.lower == pytest.approx(verdict.ceiling, rel=0.02)


def test_a_constant_answer_shows_nothing() -> None:
    verdict = attack(lambda data, size: np.zeros(size), neighbors=(0, 1), claim=Pure(1), runs=2_000, batch=True)
    assert verdict.outcome is Outcome.CONSISTENT
    assert verdict.lower == 0


def test_what_no_number_of_these_runs_could_show_is_called_no_power_with_the_runs_that_could() -> None:
    shout = lambda data, size: np.full(size, data)
    verdict = attack(shout, neighbors=(0, 1), claim=Pure(9), runs=2_000, batch=True)
    assert verdict.outcome is Outcome.NO_POWER
    assert verdict.ceiling < 9
    enough = attack(shout, neighbors=(0, 1), claim=Pure(9), runs=int(verdict.runs_needed * 1.05), batch=True)
    assert enough.outcome is Outcome.BROKEN
    few = attack(shout, neighbors=(0, 1), claim=Pure(9), runs=int(verdict.runs_needed * 0.9), batch=True)
    assert few.outcome is Outcome.NO_POWER


def test_a_claim_beyond_all_runs_says_so() -> None:
    verdict = attack(response(0.9), neighbors=(0, 1), claim=Pure(60), runs=500, batch=True)
    assert verdict.runs_needed == np.inf
    assert "no affordable number" in str(verdict)
    assert verdict.to_dict()["runs_needed"] is None


def test_both_directions_are_looked_at() -> None:
    """Answers of the second world alone betray it, or of the first: each is found."""

    def rare(world: Any) -> Any:
        return lambda data, size: np.where((np.random.default_rng().random(size) < 0.05) & (data == world), 1, 0)

    for world in (0, 1):
        found = partial(attack, rare(world), neighbors=(0, 1), claim=Pure(1), runs=5_000, batch=True)
        assert look_for_fault(found).broken


def test_an_error_that_only_one_world_raises_is_found() -> None:
    def fails(rows: Any) -> int:
        if not rows:
            raise ZeroDivisionError
        return 0

    verdict = attack(fails, neighbors=([], [1]), claim=Pure(1), runs=500)
    assert verdict.broken


def test_what_never_answers_is_not_called_consistent() -> None:
    """A question that failed in both worlds, run after run, passed for one that keeps its promise."""

    def fails(rows: Any) -> NoReturn:
        raise KeyError("days")

    with pytest.raises(InvalidParameter) as refused:
        attack(fails, neighbors=([], [1]), claim=Pure(1), runs=500)
    assert refused.value.code == "audit.never_answers"

    def step(state: Any, data: Any, ask: Any, rng: Any) -> NoReturn:
        raise KeyError("days")

    with pytest.raises(InvalidParameter):
        attack(Measurement(unit=Row(), event=PureEvent(1.0), step=step, horizon=2), neighbors=([], [1]), runs=500)


def test_errors_that_tell_the_worlds_apart_are_found_though_nothing_is_answered() -> None:
    def fails(rows: Any) -> NoReturn:
        raise KeyError(f"row {len(rows)}")

    assert attack(fails, neighbors=([], [1]), claim=Pure(1), runs=500).broken


def test_texts_lengths_missing_numbers_and_types_are_looked_at() -> None:
    answers = [
        ("yes", "no"),
        ([1], [1, 1]),
        (float("nan"), 1.0),
        (1, 1.0),
        (None, 0),
        ({"a": 1}, {"b": 1}),
        (b"x", b"y"),
    ]
    for one, two in answers:
        tell = lambda world, size, one=one, two=two: [two if world else one] * size
        assert attack(tell, neighbors=(0, 1), claim=Pure(1), runs=500, batch=True).broken, (one, two)


# Claims


@pytest.mark.parametrize(
    ("claim", "too_strict"),
    [
        (Pure(1), Pure(0.8)),
        (Approx(1, 1e-6), Approx(0.8, 1e-6)),
        (Approx(0, np.tanh(0.5)), Approx(0, 0.8 * np.tanh(0.5))),
        (ZeroConcentrated(0.5), ZeroConcentrated(0.2)),
        (Gaussian(1.24), Gaussian(1.1)),
    ],
)
def test_every_kind_of_claim_can_be_kept_and_broken(claim: Any, too_strict: Any) -> None:
    """False-alarm rate 1e-9 for the kept claim; the strict one is broken at 100,000 runs by more than 9 deviations."""
    sure: dict[str, Any] = {"neighbors": (0, 1), "runs": 100_000, "batch": True, "confidence": 1 - 1e-9}
    assert attack(response(EDGE), claim=claim, **sure).outcome is Outcome.CONSISTENT
    assert look_for_fault(lambda: attack(response(EDGE), claim=too_strict, **sure)).outcome is Outcome.BROKEN


@pytest.mark.parametrize(
    ("mechanism", "neighbors", "claim"),
    [
        (laplace(1.0), (0, 1), Pure(1)),
        (response(EDGE), (0, 1), Pure(1)),
        (lambda v, size: 1024 * v + noise.discrete_gaussian(1024, size), (0, 1), Gaussian(1)),
    ],
    ids=["Laplace", "randomized response", "Gaussian"],
)
def test_the_lower_bound_comes_close_to_the_claim_of_a_correct_mechanism(
    mechanism: Any, neighbors: Any, claim: Any
) -> None:
    verdict = attack(mechanism, neighbors=neighbors, claim=claim, runs=100_000, batch=True)
    assert verdict.tightness > 0.9


# Measurements


def counting(**more: Any) -> Any:
    step = lambda state, data, ask, rng: (int(noise.discrete_laplace(1.0, rng=rng)) + len(data), state)
    return Measurement(unit=Row(), event=PureEvent(1.0), step=step, name="counting", **more)


def test_a_measurement_brings_its_own_claim_and_is_run_without_an_account() -> None:
    verdict = attack(counting(), neighbors=([], [1]), runs=1_000, confidence=1 - 1e-9)
    assert verdict.outcome is Outcome.CONSISTENT
    assert (verdict.name, verdict.claim.describe()) == ("counting", "epsilon 1")


def test_all_steps_of_a_run_are_looked_at_together() -> None:
    verdict = look_for_fault(lambda: attack(counting(horizon=8), neighbors=([], [1]), runs=5_000))
    assert verdict.broken, "eight answers of epsilon 1 each were priced as one"
    one = attack(counting(horizon=8), neighbors=([], [1]), runs=5_000, asks=[None], confidence=1 - 1e-9)
    assert one.outcome is Outcome.CONSISTENT


def test_each_step_of_a_stream_sees_its_own_data() -> None:
    seen = []
    step = lambda state, data, ask, rng: (seen.append(data) or data, state)
    echo = Measurement(unit=Row(), event=GaussianEvent(1.0), step=step, horizon=3)
    verdict = attack(echo, neighbors=([1, 2, 3], [1, 2, 4]), stream=True, runs=500)
    assert verdict.broken
    assert set(seen) == {1, 2, 3, 4}


def test_an_error_inside_a_step_ends_the_run_and_is_an_answer() -> None:
    def step(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        if data:
            raise HorizonExceeded("over")
        return 0, state

    broken = Measurement(unit=Row(), event=PureEvent(1.0), step=step, horizon=2)
    assert attack(broken, neighbors=([], [1]), runs=500).broken


def test_a_seeded_generator_may_be_used_on_public_data() -> None:
    verdict = attack(counting(), neighbors=([], [1]), runs=500, rng=noise.SeededRandom(1))
    again = attack(counting(), neighbors=([], [1]), runs=500, rng=noise.SeededRandom(1))
    assert verdict == again


# Refusals


@pytest.mark.parametrize(
    "wrong",
    [
        {"claim": None},
        {"claim": 1.0},
        {"confidence": 1.0},
        {"confidence": 0.0},
        {"confidence": float("nan")},
        {"runs": 10},
        {"runs": 1e5},
        {"neighbors": (0,)},
        {"neighbors": 3},
        {"asks": [1]},
        {"stream": True},
    ],
)
def test_wrong_arguments_are_refused(wrong: Any) -> None:
    arguments = {"neighbors": (0, 1), "claim": Pure(1), "runs": 500, "batch": True} | wrong
    with pytest.raises(InvalidParameter):
        attack(response(0.5), **arguments)


def test_only_measurements_and_functions_are_attacked() -> None:
    with pytest.raises(InvalidParameter):
        attack(3, neighbors=(0, 1), claim=Pure(1))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        attack(counting(), neighbors=([], [1]), batch=True)
    with pytest.raises(InvalidParameter):
        attack(counting(horizon=2), neighbors=([], [1]), asks=[1, 2, 3], runs=500)
    with pytest.raises(InvalidParameter):
        attack(lambda data, size: [0], neighbors=(0, 1), claim=Pure(1), runs=500, batch=True)
