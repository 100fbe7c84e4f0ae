"""The noise that explains a release moves as little as was charged, and the release errs as much as predicted."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mosha import Person, Reading, Window, noise
from mosha.core.budget import Budget
from mosha.mechanisms import Count
from mosha.streams import Decayed, Instant, Running, Sliding, counter, histogram
from mosha.streams.candidates import Question, candidates
from mosha.streams.noise.exact_toeplitz import BandedToeplitz, LiftedToeplitz
from mosha.streams.noise.tape import Law, Tape
from mosha.streams.noise.tree import SignedTree
from mosha.streams.presence import presence_of
from mosha.streams.stream import begin, new_tape, take_step


class Written:
    """A tape whose numbers are written by the test."""

    size = 1

    def __init__(self, numbers: Any = ()) -> None:
        self.numbers = list(numbers)
        self.made = None

    def block(self, number: Any) -> Any:
        return np.array([[self.row(number)]], object)

    def row(self, number: Any) -> Any:
        return self.numbers[number] if number < len(self.numbers) else 0


def plans(unit: Any, horizon: Any, release: Any = None, *, apart: Any = 1, budget: Any = None) -> list[Any]:
    asked = Question(Count(), presence_of(unit, horizon, apart), release or Running(), horizon, 600)
    return list(candidates(asked, budget or Budget(epsilon=1.0, delta=1e-6)))


EVERY = [
    plan
    for unit, apart in ((Reading(), 1), (Person("p", at_most=3), 4), (Window("p", 4), 1), (Person("p"), 1))
    for plan in plans(unit, 64, apart=apart)
]
LIFTED = [plan for plan in EVERY if isinstance(plan.mechanism, LiftedToeplitz | BandedToeplitz)]


@pytest.mark.parametrize("plan", EVERY, ids=lambda plan: f"{plan.name}, {plan.presence.most}")
def test_without_noise_every_mechanism_tells_the_truth(plan: Any) -> None:
    state, total = plan.mechanism.start(1), 0.0
    for t in range(plan.horizon):
        value, state = plan.mechanism.step(state, t % 5, Written())
        total += value
        truth = sum(s % 5 for s in range(t + 1))
        assert total == pytest.approx(truth, abs=1e-4)


def released(mechanism: Any, state: Any, data: Any, number: Any) -> tuple[Any, ...]:
    """The integer that is released at this step, for this noise."""
    value, after = mechanism.step(state, data, Written([0] * state.time + [number]))
    worth = mechanism._weights(state.time)[1] if isinstance(mechanism, LiftedToeplitz) else 1 / mechanism.unit
    exact = value / worth
    assert abs(exact - round(exact)) < 0.01
    return round(exact), after


def explaining(mechanism: Any, first: Any, second: Any) -> Any:
    """delta = z - z', the change of the noise that explains one release under both streams."""
    sampler = Law("gaussian", Fraction(mechanism.unit))
    tape = Tape(sampler, 1, lambda _: noise.secure(), 4096)
    here, there, moved = mechanism.start(1), mechanism.start(1), []
    for t, (x, y) in enumerate(zip(first, second, strict=True)):
        z = tape.row(t)
        shown, here = released(mechanism, here, x, z)
        silent, _ = released(mechanism, there, y, 0)
        other = shown - silent  # the release is the noise of this step plus a function of what came before
        again, there = released(mechanism, there, y, other)
        assert again == shown
        moved.append(z - other)
    return math.sqrt(sum(d * d for d in moved))


@pytest.mark.parametrize("plan", LIFTED, ids=lambda plan: f"{plan.name}, {plan.presence.most}")
def test_the_noise_that_explains_a_release_moves_no_further_than_was_charged(plan: Any) -> None:
    horizon, presence = plan.horizon, plan.presence
    charged = plan.event.sensitivity
    worst = 0.0
    for start in (0, 1, horizon // 2, horizon - 1):
        crowd = [7 * t % 11 for t in range(horizon)]
        with_one = list(crowd)
        for i in range(presence.most):
            if start + i * presence.apart < horizon:
                with_one[start + i * presence.apart] += 1
        moved = explaining(plan.mechanism, with_one, crowd)
        assert moved <= charged
        worst = max(worst, moved)
    assert worst > 0.97 * charged  # the charge is no larger than it must be: half of it would be found out


def errors_of(plan: Any, runs: Any, horizon: Any) -> Any:
    rows = []
    for _ in range(runs):
        state = begin(plan)
        state.tape = new_tape(plan, lambda _: noise.secure())
        row = []
        for _ in range(horizon):
            value, state = take_step(plan, state, [])
            row.append(value)
        rows.append(row)
    return np.array(rows, float)


def chi_square_interval(freedom: Any, missed: Any) -> tuple[Any, ...]:
    """Bounds of chi-square / freedom that are missed with probability `missed` (Laurent and Massart 2000)."""
    x = math.log(2 / missed)
    return 1 - 2 * math.sqrt(x / freedom), 1 + 2 * math.sqrt(x / freedom) + 2 * x / freedom


@pytest.mark.parametrize("release", [Running(), Instant(), Sliding(8), Decayed(0.9)], ids=lambda release: release.word)
def test_errors_are_as_predicted_neither_smaller_nor_larger(release: Any) -> None:
    """False alarms: 4 tests of 1e-10 each. The same step of each run: independent normal errors."""
    stream = counter(unit=Reading(), horizon=400, rho=0.5, mechanism="BLT", release=release)
    runs = 1500
    last = errors_of(stream.plan, runs, 24)[:, -1]
    predicted = stream.deviation(24)
    low, high = chi_square_interval(runs, 1e-10)
    share = float(np.sum(last**2)) / runs / predicted**2
    slack = 1.06  # the prediction for sliding and decayed sums takes the largest column norm for all
    assert low / slack <= share <= high
    assert not low <= share / 0.6**2 / slack <= high  # a deviation that is 0.6 or 1.8 of the true one is told apart
    assert not low <= share / 1.8**2 * slack <= high


def test_trees_err_as_predicted() -> None:
    """False alarm below 1e-10: nine deviations of the mean of 700 squares; one Laplace number alone would have to be
    beyond 32 scales."""
    stream = counter(unit=Reading(), horizon=100, epsilon=1, mechanism="tree")
    runs = 700
    values = errors_of(stream.plan, runs, 100)
    predicted = np.array([stream.deviation(t) for t in range(1, 101)])
    share = np.mean(values**2, axis=0) / predicted**2
    spread = math.sqrt(5 / runs)  # kurtosis of a Laplace sum is at most 6
    assert np.all(np.abs(share - 1) < 9 * spread)
    assert np.all(np.abs(share / 4 - 1) > 0.3)
    assert math.sqrt(np.mean(values**2)) == pytest.approx(stream.plan.root_mean_square, rel=0.2)


def test_digits_of_a_signed_tree_are_its_step_count() -> None:
    tree = SignedTree(5, 4)
    state = tree.start(1)
    for t in range(1, tree.reach + 1):
        _, state = tree.step(state, 0, Written())  # type: ignore[arg-type]
        assert sum(d * 5**i for i, d in enumerate(state.digits)) == t
        assert sum(map(len, state.nodes)) == tree.weight(t) <= tree.largest_weight(t)
        assert sum(map(len, state.nodes)) + tree.levels + 3 <= tree.memory


def test_noise_of_a_node_is_used_once_and_the_same_while_in_use() -> None:
    """With one marked draw at a time, the sum over time shows each node's noise in one unbroken run."""
    tree = SignedTree(3, 3)
    for marked in range(12):
        tape = Written([0] * marked + [1])
        state, total, seen = tree.start(1), 0, []
        for _ in range(tree.reach):
            value, state = tree.step(state, 0, tape)  # type: ignore[arg-type]
            total += value
            seen.append(total)
        used = [t for t, v in enumerate(seen) if v]
        assert used == list(range(used[0], used[-1] + 1))
        assert {seen[t] for t in used} in ({1}, {-1})


def test_many_series_are_as_good_as_one_each() -> None:
    stream = histogram(unit=Reading(), horizon=16, rho=0.5, keys=["a", "b", "c"])
    state = begin(stream.plan)
    state.tape = new_tape(stream.plan, lambda _: noise.secure())
    for _ in range(16):
        value, state = take_step(stream.plan, state, ["a", "a", "b", "z"])
    # false alarm: three values, 8 deviations: 4e-15
    assert np.all(np.abs(value - np.array([32, 16, 0])) < 8 * stream.plan.largest_deviation)


def test_memory_does_not_grow_with_the_horizon() -> None:
    for horizon in (1 << 10, 1 << 16, 1 << 24, 1 << 32):
        assert counter(unit=Reading(), horizon=horizon, rho=0.5).plan.memory <= 10
        assert counter(unit=Reading(), horizon=horizon, epsilon=1).plan.memory <= 100


def test_a_very_long_horizon_costs_little() -> None:
    known = counter(unit=Reading(), horizon=1 << 16, rho=0.5)
    unknown = counter(unit=Reading(), horizon=None, rho=0.5)
    assert 1.1 < unknown.deviation(1 << 16) / known.plan.largest_deviation < 1.7
