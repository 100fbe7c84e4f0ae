"""Shuffling is bounded by exact sums for small crowds, by simulation of real randomizers and by closed forms."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import mpmath
import numpy as np
import pytest

from mosha.accounting.measures import concentrated, renyi, shuffle
from mosha.accounting.numerics.binomial import binomial
from mosha.core.errors import InvalidParameter
from mosha.events import Shuffled
from tests.accounting import golden


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("shuffle_closed_FMT23"))
def test_golden_closed_form(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    found = shuffle.closed_form_if_spread(inputs["eps0"], inputs["n"], inputs["delta"])
    assert found == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("local", [0.1, 1.0, 3.0])
@pytest.mark.parametrize(("people", "delta"), [(1000, 1e-4), (20_000, 1e-9)])
def test_the_exact_sums_are_below_the_closed_forms(local: float, people: int, delta: float) -> None:
    assert shuffle.epsilon(local, people, delta) <= shuffle.closed_form(local, people, delta)
    spread = shuffle.epsilon(local, people, delta, spread=True)
    assert spread <= shuffle.closed_form_if_spread(local, people, delta)
    assert spread <= shuffle.epsilon(local, people, delta) <= local


def randomized_response(epsilon: Any, categories: Any) -> Any:
    table = np.full((categories, categories), 1.0) + (math.exp(epsilon) - 1) * np.eye(categories)
    return table / table.sum(axis=1, keepdims=True)


def counts_of(table: Any, inputs: Any) -> Any:
    """The exact distribution of how often each report occurs, as a dictionary."""
    law = {(0,) * table.shape[1]: 1.0}
    for value in inputs:
        fresh: dict[Any, Any] = {}
        for counts, weight in law.items():
            for report, chance in enumerate(table[value]):
                key = (*counts[:report], counts[report] + 1, *counts[report + 1 :])
                fresh[key] = fresh.get(key, 0.0) + weight * chance
        law = fresh
    return law


def hockey_stick(first: Any, second: Any, epsilon: Any) -> Any:
    return sum(max(0.0, p - math.exp(epsilon) * second.get(key, 0.0)) for key, p in first.items())


def moment(first: Any, second: Any, order: Any) -> Any:
    return math.log(sum(p**order * second[key] ** (1 - order) for key, p in first.items() if p > 0)) / (order - 1)


def every_crowd(table: Any, others: Any) -> Iterator[Any]:
    size = table.shape[0]
    for crowd in itertools.combinations_with_replacement(range(size), others):
        laws = {value: counts_of(table, (value, *crowd)) for value in range(size)}
        yield from itertools.permutations(laws.values(), 2)


@pytest.mark.parametrize("local", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(("categories", "others"), [(2, 1), (2, 7), (3, 5), (4, 3)])
def test_randomized_responses_of_every_crowd_are_covered(local: float, categories: int, others: int) -> None:
    """Randomized response satisfies the condition of the stronger bound."""
    table = randomized_response(local, categories)
    for first, second in every_crowd(table, others):
        for total in (0.0, local / 4, local / 2, 0.9 * local):
            lost = hockey_stick(first, second, total)
            assert lost <= shuffle.delta(local, others + 1, total, spread=True) * (1 + 1e-9) + 1e-15
            assert lost <= shuffle.delta(local, others + 1, total) * (1 + 1e-9) + 1e-15
        for order in (1.5, 4.0):
            assert moment(first, second, order) <= shuffle.divergence(local, others + 1, order, spread=True) + 1e-12


def test_some_crowd_comes_close_to_the_stronger_bound() -> None:
    """Two categories: the others are spread over both, the bound assumes no more than that."""
    table, others, local = randomized_response(1.0, 2), 9, 1.0
    worst = max(hockey_stick(first, second, 0.2) for first, second in every_crowd(table, others))
    assert worst > 0.3 * shuffle.delta(local, others + 1, 0.2, spread=True)


def silent_randomizer(epsilon: Any, chance: Any) -> Any:
    """Input 2 never lets 0 and 1 hide well: all it shares with them is the report that tells nothing."""
    told, grown = chance, math.exp(epsilon)
    zero = [told * grown / (grown + 1), told / (grown + 1), 1 - told]
    other = [told / (grown + 1), told / (grown + 1), 1 - 2 * told / (grown + 1)]
    return np.array([zero, [zero[1], zero[0], zero[2]], other])


@pytest.mark.parametrize("local", [1.0, 3.0])
@pytest.mark.parametrize("chance", [0.05, 0.2, 0.6])
def test_randomizers_that_mostly_say_nothing_are_covered_by_the_general_bound(local: float, chance: float) -> None:
    table = silent_randomizer(local, chance)
    ratios = table[:, None, :] / table[None, :, :]
    assert np.max(ratios) <= math.exp(local) * (1 + 1e-9)
    others = 6
    for first, second in every_crowd(table, others):
        for total in (0.0, local / 4, local / 2):
            lost = hockey_stick(first, second, total)
            assert lost <= shuffle.delta(local, others + 1, total) * (1 + 1e-9) + 1e-15


def by_brute_force(local: Any, people: Any, total: Any, chance: Any) -> Any:
    """The two counts, summed one by one."""
    grown, worth = math.exp(local), 0.0
    for clones in range(people):
        weight = math.comb(people - 1, clones) * chance**clones * (1 - chance) ** (people - 1 - clones)
        fair = [math.comb(clones, a) / 2**clones for a in range(clones + 1)] + [0.0]
        for labels in range(clones + 2):
            with_one, without = fair[labels - 1] if labels else 0.0, fair[labels]
            here, there = (grown * with_one + without) / (grown + 1), (with_one + grown * without) / (grown + 1)
            worth += weight * max(0.0, here - math.exp(total) * there)
    return worth


@pytest.mark.parametrize("local", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("people", [1, 2, 13, 60])
def test_the_sums_are_exact_for_small_crowds(local: float, people: int) -> None:
    for spread, chance in ((False, math.exp(-local)), (True, 2 / (math.exp(local) + 1))):
        for total in (0.0, 0.1 * local, 0.5 * local, 0.95 * local):
            truth = by_brute_force(local, people, total, chance)
            found = shuffle.delta(local, people, total, spread=spread)
            assert truth * (1 - 1e-12) <= found <= truth * (1 + 1e-6) + 1e-280


@pytest.mark.parametrize("clones", [1000, 10**6, 10**7])
def test_large_crowds_agree_with_a_plain_sum_over_labels(clones: Any) -> None:
    """The tail of the incomplete beta function and the point probability, against probabilities built by ratios."""
    fair = binomial(clones, 0.0)[1]
    padded = np.concatenate((fair, [0.0]))
    shifted = np.concatenate(([0.0], fair))
    grown, m = math.e, clones + 1
    here, there = (grown * shifted + padded) / (grown + 1), (shifted + grown * padded) / (grown + 1)
    for share in (0.5, 3.0, 6.0):
        total = share * 2 * math.tanh(0.5) / math.sqrt(m)
        truth = math.fsum(np.maximum(0.0, here - math.exp(total) * there))
        found = float(shuffle._delta_given(np.array([float(clones)]), 1.0, total)[0])
        assert truth * (1 - 1e-7) <= found <= truth * (1 + 1e-5)


def test_epsilon_and_delta_undo_each_other_on_the_safe_side() -> None:
    for local, people, delta in ((1.0, 1000, 1e-6), (2.0, 10**5, 1e-12), (0.5, 50, 0.001)):
        found = shuffle.epsilon(local, people, delta)
        assert shuffle.delta(local, people, found) <= delta
        assert shuffle.delta(local, people, found * (1 - 1e-6)) > delta * (1 - 1e-3)


def test_more_people_and_smaller_local_epsilons_never_cost_more() -> None:
    by_people = [shuffle.epsilon(1.0, people, 1e-6) for people in (1, 10, 1000, 10**5)]
    assert by_people == sorted(by_people, reverse=True)
    by_local = [shuffle.epsilon(local, 1000, 1e-6) for local in (0.1, 0.5, 1.0, 2.0, 5.0)]
    assert by_local == sorted(by_local)


def test_a_divergence_and_a_rho_see_the_amplification() -> None:
    event = Shuffled(1.0, 10_000)
    assert renyi.epsilon(event, 1e-6) < 1.15 * shuffle.epsilon(1.0, 10_000, 1e-6)
    rho = concentrated.rho(event)[0]
    assert rho < 0.01 * concentrated.rho_of_pure(1.0)
    for order in (1.5, 8.0, 100.0, 5000.0):
        assert renyi.divergence(event, order) <= 1.01 * order * rho or renyi.divergence(event, order) == 1.0


def test_alone_in_the_crowd_nothing_is_gained() -> None:
    assert shuffle.epsilon(1.0, 1, 1e-6) == pytest.approx(1.0, rel=1e-5)
    assert shuffle.divergence(1.0, 1, 8.0) == pytest.approx(renyi.divergence(Shuffled(1.0, 1), 8.0), rel=1e-9)


def test_extreme_crowds_do_not_break() -> None:
    assert shuffle.epsilon(50.0, 10**6, 1e-6) <= 50.0
    assert shuffle.epsilon(1e-6, 10**6, 1e-6) <= 1e-6
    assert shuffle.delta(700.0, 100, 1.0) <= 1.0
    assert 0 < shuffle.epsilon(1.0, 10**8, 1e-9) < 1e-3


@pytest.mark.parametrize("count", [1, 7, 500])
@pytest.mark.parametrize("log_odds", [-4.0, 0.0, 2.0])
def test_binomial_probabilities_are_right_within_their_stated_error(count: int, log_odds: float) -> None:
    numbers, found, error = binomial(count, log_odds)
    with mpmath.workdps(40):
        odds = mpmath.mpf(math.exp(log_odds))
        for j, value in zip(numbers.astype(int).tolist(), found.tolist(), strict=True):
            truth = mpmath.binomial(count, j) * odds**j / (1 + odds) ** count
            assert abs(value - truth) <= error * truth + mpmath.mpf(10) ** -300


@pytest.mark.parametrize("wrong", [0, -1.0, math.nan, math.inf, "1", None])
def test_numbers_that_make_no_sense_are_refused(wrong: Any) -> None:
    for call in (
        lambda: shuffle.epsilon(wrong, 10, 1e-6),
        lambda: shuffle.epsilon(1.0, wrong, 1e-6),
        lambda: shuffle.epsilon(1.0, 10, wrong),
        lambda: shuffle.closed_form(1.0, 10, wrong),
        lambda: shuffle.divergence(wrong, 10, 2.0),
        lambda: shuffle.divergence(1.0, 10, 1.0),
    ):
        with pytest.raises(InvalidParameter):
            call()
