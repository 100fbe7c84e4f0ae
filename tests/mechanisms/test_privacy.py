"""An attack on every mechanism: count one outcome on two neighbors and ask whether the counts fit the price.

With probability 1 - 1e-9 both frequencies lie within their Clopper-Pearson bounds, so a refuted price is a wrong one.
The same attack must refute each mechanism when it is sold below its price, and some well-known mistakes.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from mosha import Own, Person, Row
from mosha.accounting.measures import gaussian as normal
from mosha.mechanisms import (
    ClippedSum,
    Count,
    Histogram,
    Quantile,
    above_threshold,
    exponential,
    gaussian,
    laplace,
    mean,
    partition_selection,
    permute_and_flip,
    propose_test_release,
    randomized_response,
    report_noisy_max,
    smooth_sensitivity,
    top_k,
)
from mosha.mechanisms.partition_selection import keeping_probabilities
from mosha.mechanisms.propose_test_release import passing_level
from mosha.noise import secure
from tests.mechanisms.draws import answers, runs

RUNS, DELTA = 700, 1e-6
ROW, REPLACED = Row(), Row(neighbors="replace-one")  # type: ignore[arg-type]
MANY = Histogram(keys=["a", *range(19)])
TWO = Histogram(keys=["a", "b"])
MEDIAN = Quantile(at=0.5, between=(0, 8))
TOTAL = ClippedSum(between=(0, 8))


def refutes(first: Any, second: Any, trials: Any, epsilon: Any, delta: float = 0.0, alarm: float = 1e-9) -> bool:
    """Whether an outcome seen `first` and `second` times in `trials` on two neighbors refutes (epsilon, delta)."""
    share = alarm / 8  # four inequalities, two bounds each
    for often, seldom in ((first, second), (second, first)):
        for a, b in ((often, seldom), (trials - often, trials - seldom)):
            least = beta.ppf(share, a, trials - a + 1) if a else 0.0
            most = beta.isf(share, b + 1, trials - b) if b < trials else 1.0
            if least > math.exp(epsilon) * most + delta:
                return True
    return False


@dataclass
class Attack:
    """Neighboring data and an outcome that tells them apart; `cheat` times the epsilon is surely noticed."""

    name: str
    make: Any
    data: Any
    neighbor: Any
    outcome: Any
    cheat: float = 4.0
    runs: int = RUNS

    def counts(self, epsilon: Any) -> list[Any]:
        measurement = self.make(epsilon)
        outcome, data, neighbor = self.outcome, self.data, self.neighbor
        if callable(data):
            data, neighbor = data(epsilon), neighbor(epsilon)
        return [sum(map(bool, map(outcome, answers(measurement, d, self.runs)))) for d in (data, neighbor)]


def crowd(extra: Any) -> Any:
    """As many people as make the key 'y' likely to be kept, but not sure; and `extra` more."""

    def data(epsilon: Any) -> tuple[Any, ...]:
        table = keeping_probabilities(epsilon, DELTA)
        people = next(n for n, p in enumerate(table) if p >= 0.3 * 2**128) - 1 + extra
        return list(range(people)), ["y"] * people

    return data


def dense(fewer: Any) -> Any:
    """As many equal values as pass the test of the proposed sensitivity about half the time; and some fewer."""
    return lambda epsilon: [4.0] * (2 * passing_level(epsilon / 2, DELTA) - fewer)


ATTACKS = [
    Attack("laplace count", lambda e: laplace(Count(), unit=ROW, epsilon=e), [1], [], lambda y: y >= 1),
    Attack("laplace sum", lambda e: laplace(TOTAL, unit=ROW, epsilon=e), [8], [], lambda y: y >= 8),
    Attack("laplace sum, replaced", lambda e: laplace(TOTAL, unit=REPLACED, epsilon=e), [8], [0], lambda y: y >= 8),
    Attack(
        "laplace sum of a person's rows",
        lambda e: laplace(TOTAL, unit=Person("who", at_most=2), epsilon=e),
        ([1, 1, 1], [8, 8, 8]),
        ([], []),
        lambda y: y >= 16,
    ),
    Attack(
        "laplace histogram, replaced",
        lambda e: laplace(TWO, unit=REPLACED, epsilon=e),
        ["a"],
        ["b"],
        lambda y: y[0] >= 1 and y[1] <= 0,
    ),
    Attack(
        "mean",
        lambda e: mean(between=(0, 8), unit=ROW, epsilon=e),
        [8],
        [],
        lambda y: y["sum"] - 4 * y["count"] >= 4,
        8,
    ),
    Attack(
        "corner of the box of a mean",
        lambda e: mean(between=(0, 8), unit=ROW, epsilon=e),
        [8],
        [],
        lambda y: y["count"] < 1 or y["sum"] - 4 * y["count"] < 4,
        20,
        2 * RUNS,
    ),
    Attack(
        "mean, replaced",
        lambda e: mean(between=(0, 8), unit=REPLACED, epsilon=e, missing="middle"),
        [8],
        [0],
        lambda y: y["sum"] >= 8,
    ),
    Attack("exponential", lambda e: exponential(MANY, unit=ROW, epsilon=e), ["a"], [], lambda y: y == "a", 6),
    Attack("permute and flip", lambda e: permute_and_flip(MANY, unit=ROW, epsilon=e), ["a"], [], lambda y: y == "a", 6),
    Attack(
        "permute and flip, replaced",
        lambda e: permute_and_flip(TWO, unit=REPLACED, epsilon=e),
        ["a"],
        ["b"],
        lambda y: y == "a",
        6,
    ),
    Attack(
        "noisy max",
        lambda e: report_noisy_max(MANY, unit=ROW, epsilon=e),
        ["a"],
        [],
        lambda y: y[0]["choice"] == "a",
        12,
    ),
    Attack(
        "gap of the noisy max",
        lambda e: report_noisy_max(TWO, unit=ROW, epsilon=e),
        ["a"],
        [],
        lambda y: y[0]["choice"] == "a" and y[0]["gap"] >= 1,
        8,
    ),
    Attack("top 2", lambda e: top_k(MANY, unit=ROW, k=2, epsilon=e), ["a"], [], lambda y: y[0] == "a", 12),
    Attack(
        "above threshold",
        lambda e: above_threshold(Count(), unit=ROW, epsilon=e, threshold=1, horizon=1),
        [1],
        [],
        lambda y: y,
        12,
    ),
    Attack(
        "randomized response",
        lambda e: randomized_response(["a", "b", "c"], unit=Own(), epsilon=e),
        "a",
        "b",
        lambda y: y == "a",
    ),
    Attack(
        "partition selection",
        lambda e: partition_selection(unit=Person("who", groups=1), epsilon=e, delta=DELTA),
        crowd(1),
        crowd(0),
        lambda y: y == ["y"],
        5,
    ),
    Attack(
        "smooth sensitivity",
        lambda e: smooth_sensitivity(MEDIAN, unit=ROW, epsilon=e),
        [0, 8],
        [0, 0, 8],
        lambda y: y == 8,
        40,
    ),
    Attack(
        "smooth sensitivity, scale alone",
        lambda e: smooth_sensitivity(MEDIAN, unit=ROW, epsilon=e),
        [4, 4, 4],
        [4, 4],
        lambda y: abs(y - 4) < 0.01 if math.isfinite(y) else False,
        60,
    ),
    Attack(
        "propose, test, release",
        lambda e: propose_test_release(MEDIAN, unit=ROW, epsilon=e, delta=DELTA, sensitivity=1),
        dense(-1),
        dense(0),
        lambda y: y is not None,
        8,
    ),
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_finds_no_more_than_was_paid_for(attack: Any) -> None:
    assert not refutes(*attack.counts(1.0), attack.runs, 1.0, DELTA)  # type: ignore[call-arg]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_attack_notices_a_mechanism_that_is_sold_too_cheaply(attack: Any) -> None:
    assert refutes(*attack.counts(attack.cheat), attack.runs, 1.0, DELTA)  # type: ignore[call-arg]


def test_gaussian_noise_keeps_its_curve_and_a_third_of_it_does_not() -> None:
    outcome = lambda y: y >= 0.5
    for mu, broken in ((1.0, False), (3.0, True)):
        counts = [sum(map(outcome, answers(gaussian(Count(), unit=ROW, mu=mu), d, RUNS))) for d in ([1], [])]
        assert refutes(*counts, RUNS, 0.2, normal.delta(1.0, 0.2)) is broken  # type: ignore[call-arg]


class HalfCount(Count):
    """A mistake: rows of one person are counted twice, the sensitivity only once."""

    def sensitivity(self, unit: Any) -> Any:
        return Count().sensitivity(Row())


def test_half_the_sensitivity_is_noticed() -> None:
    person = Person("who", at_most=3)
    counts = [
        sum(y >= 3 for y in answers(laplace(HalfCount(), unit=person, epsilon=1), d, RUNS))
        for d in (([1, 1, 1], [0, 0, 0]), ([], []))
    ]
    assert refutes(*counts, RUNS, 1.0)  # type: ignore[call-arg]


class LocalOnly(Quantile):
    """A mistake: noise for the sensitivity at the data at hand, not smoothed."""

    def evaluate_with_reaches(self, data: Any, unit: Any) -> tuple[Any, ...]:
        exact, reaches = super().evaluate_with_reaches(data, unit)
        return exact, reaches[:1]


def test_noise_for_the_local_sensitivity_alone_is_noticed() -> None:
    measurement = smooth_sensitivity(LocalOnly(at=0.5, between=(0, 8)), unit=ROW, epsilon=1)
    counts = [sum(abs(y - 4) < 0.01 for y in answers(measurement, d, RUNS)) for d in ([4, 4, 4], [4, 4])]
    assert refutes(*counts, RUNS, 1.0)  # type: ignore[call-arg]


SIGNED, ASKS, YES = ClippedSum(between=(-1, 1), grid=1), 40, 12
"""Half of the questions move up with the unit, half of them down: what one shared threshold cannot hide."""


def test_a_sparse_vector_whose_noise_forgets_the_number_of_alarms_is_noticed() -> None:
    rng, trials = np.random.default_rng(), 20_000

    def count(moved: Any, answer_scale: Any) -> int:
        shift = rng.laplace(scale=1 / 0.386, size=(trials, 1))
        up, down = (rng.laplace(scale=answer_scale, size=(trials, ASKS)) + move >= shift for move in (moved, -moved))
        return int((up.sum(axis=1) - down.sum(axis=1) > YES // 2).sum())

    forgetful, correct = 2 / 0.614, 2 * 2 * ASKS / 0.614
    assert refutes(count(1, forgetful), count(0, forgetful), trials, 1.0)
    assert not refutes(count(1, correct), count(0, correct), trials, 1.0)


def test_the_sparse_vector_that_is_sold_keeps_its_price_on_such_questions() -> None:
    up, down = ClippedSum(between=(-1, 1), grid=1, column="up"), ClippedSum(between=(-1, 1), grid=1, column="down")
    measurement = above_threshold(up, unit=ROW, epsilon=1, threshold=0, horizon=20, alarms=20)
    rng, trials = secure(), 100

    def count(data: Any) -> Any:
        found = 0
        for _ in range(trials):
            state, balance = measurement.init(), 0
            for number in range(20):
                answer, state = measurement.step(state, data, (up, down)[number % 2], rng)
                balance += answer if number % 2 == 0 else -answer
            found += balance > 2
        return found

    assert not refutes(count({"up": [1], "down": [-1]}), count({"up": [], "down": []}), trials, 1.0)


def test_all_answers_of_a_run_together_keep_the_price() -> None:
    measurement = above_threshold(Count(), unit=ROW, epsilon=1, threshold=1, horizon=4, alarms=4)
    counts = [sum(run == (True,) * 4 for run in runs(measurement, d, 400)) for d in ([1], [])]
    assert not refutes(*counts, 400, 1.0)  # type: ignore[call-arg]
