"""Quantiles: where they land, what one person can do to them, and what several of them cost."""

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.tables import Budget, median, protect, quantile
from mosha.tables.parts.rank_choice import choose_point
from mosha.tables.parts.shares import pure_epsilon

PEOPLE = 4000


@pytest.fixture(scope="module")
def incomes():
    values = np.exp(np.random.default_rng().normal(10, 0.6, PEOPLE))
    return pa.table({"who": np.arange(PEOPLE), "half": np.arange(PEOPLE) % 2, "income": values}), values


def test_quantiles_land_within_their_error_bars(incomes):
    # False alarm: 9 numbers, each outside its bar with probability 1e-10.
    table, values = incomes
    protected = protect(table, unit=mosha.Person("who", at_most=1))
    shares = [0.25, 0.5, 0.9]
    asked = {f"q{at}": quantile("income", at, between=(0, 200_000)) for at in shares}
    question = protected.aggregate(**asked)
    measurement = question.measurement(Budget(epsilon=4))
    value, _ = measurement.step(None, None, None, mosha.noise.secure())
    answers = question.plan_release(Budget(epsilon=4)).answers(value)
    bars = measurement.error(1 - 1e-10, value)
    for name, at in zip(asked, shares, strict=True):
        rank = np.searchsorted(np.sort(values), answers[name][0])
        assert abs(rank - at * PEOPLE) <= bars[name][0] + 1


def test_every_group_has_its_own_median(incomes):
    table, values = incomes
    protected = protect(table, unit=mosha.Person("who", at_most=1))
    question = protected.group_by("half", keys=[0, 1, 7]).median("income", between=(0, 200_000))
    measurement = question.measurement(Budget(epsilon=8))
    value, _ = measurement.step(None, None, None, mosha.noise.secure())
    answers = question.plan_release(Budget(epsilon=8)).answers(value)["median"]
    bars = measurement.error(1 - 1e-10, value)["median"]
    for half in (0, 1):
        mine = np.sort(values[half::2])
        assert abs(np.searchsorted(mine, answers[half]) - len(mine) / 2) <= bars[half] + 1
    assert 0 <= answers[2] <= 200_000


def test_three_quantiles_cost_two_levels_and_seven_cost_three(incomes):
    table, _ = incomes
    protected = protect(table, unit=mosha.Person("who", at_most=1))
    for count, levels in ((1, 1), (3, 2), (7, 3)):
        asked = {f"q{i}": quantile("income", (i + 1) / 8, between=(0, 1)) for i in range(count)}
        event = protected.aggregate(**asked).measurement(Budget(epsilon=1)).event
        assert event == mosha.events.Exponential(pure_epsilon(mosha.tables.Budget(epsilon=1), 1 / levels)) * levels


def test_a_point_with_the_median_on_it_is_the_best_candidate():
    cells, counts = np.array([5, 10, 11]), np.array([100, 1000, 100])
    from fractions import Fraction

    drawn = {choose_point(cells, counts, (0, 20), Fraction(1, 2), Fraction(1), mosha.noise.secure()) for _ in range(50)}
    assert drawn == {10}


def exact_law(cells, counts, epsilon, span):
    """The probability of every point, by the definition of the mechanism."""
    points = np.arange(span[0], span[1] + 1)
    below = np.array([counts[cells < t].sum() for t in points])
    upto = np.array([counts[cells <= t].sum() for t in points])
    target = counts.sum() / 2
    score = -np.maximum(np.maximum(below - target, target - upto), 0)
    weight = np.exp((score - score.max()) * epsilon)
    return weight / weight.sum()


def test_one_row_changes_no_probability_by_more_than_epsilon():
    generator = np.random.default_rng()
    for _ in range(200):
        cells = np.unique(generator.integers(0, 12, 5))
        counts = generator.integers(1, 4, len(cells))
        law = exact_law(cells, counts, 1.0, (0, 11))
        for at in range(12):
            more_cells = np.append(cells, at)
            more = exact_law(more_cells, np.append(counts, 1), 1.0, (0, 11))
            assert np.abs(np.log(law) - np.log(more)).max() <= 1 + 1e-9


def test_the_sampler_follows_the_law():
    # Chi-square over 12 points at false alarm 1e-9, and the law of half the epsilon must be rejected.
    from fractions import Fraction

    from scipy.stats import chi2

    cells, counts = np.array([2, 5, 6, 9]), np.array([2, 1, 3, 1])
    draws = 6_000
    drawn = [
        choose_point(cells, counts, (0, 11), Fraction(1, 2), Fraction(1), mosha.noise.secure()) for _ in range(draws)
    ]
    found = np.bincount(drawn, minlength=12)

    def distance(epsilon):
        expected = exact_law(cells, counts, epsilon, (0, 11)) * draws
        return ((found - expected) ** 2 / expected).sum()

    limit = chi2.isf(1e-9, 11)
    assert distance(1.0) <= limit < min(distance(0.7), distance(1.4))


def test_a_median_is_refused_without_a_range(incomes):
    with pytest.raises(mosha.errors.Unbounded, match="between"):
        protect(incomes[0], unit=mosha.Person("who", at_most=1)).aggregate(middle=median("income"))
