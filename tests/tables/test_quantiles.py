"""Quantiles: where they land, what one person can do to them, and what several of them cost."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.tables import Budget, median, protect, quantile
from mosha.tables.mechanisms import rank_choice
from mosha.tables.parts.part import pure_epsilon
from tests.tables.one_group import choose_point, rank_group

PEOPLE = 4000


@pytest.fixture(scope="module")
def incomes() -> tuple[Any, ...]:
    values = np.exp(np.random.default_rng().normal(10, 0.6, PEOPLE))
    return pa.table({"who": np.arange(PEOPLE), "half": np.arange(PEOPLE) % 2, "income": values}), values


def test_quantiles_land_within_their_error_bars(incomes: Any) -> None:
    # False alarm: 9 numbers, each outside its bar with probability 1e-10.
    table, values = incomes
    protected = protect(table, unit=mosha.Person("who", at_most=1))
    shares = [0.25, 0.5, 0.9]
    asked = {f"q{at}": quantile("income", at, between=(0, 200_000), bars="rows") for at in shares}
    question = protected.aggregate(**asked)
    measurement = question.measurement(Budget(epsilon=4))
    value, _ = measurement.step(None, None, None, mosha.noise.secure())
    answers = question.plan_release(Budget(epsilon=4)).answers(value)
    bars = measurement.error(1 - 1e-10, value)
    for name, at in zip(asked, shares, strict=True):
        rank = np.searchsorted(np.sort(values), answers[name][0])
        assert abs(rank - at * PEOPLE) <= bars[name][0] + 1


def test_every_group_has_its_own_median(incomes: Any) -> None:
    table, values = incomes
    protected = protect(table, unit=mosha.Person("who", at_most=1))
    question = protected.group_by("half", keys=[0, 1, 7]).median("income", between=(0, 200_000), bars="rows")
    measurement = question.measurement(Budget(epsilon=8))
    value, _ = measurement.step(None, None, None, mosha.noise.secure())
    answers = question.plan_release(Budget(epsilon=8)).answers(value)["median"]
    bars = measurement.error(1 - 1e-10, value)["median"]
    for half in (0, 1):
        mine = np.sort(values[half::2])
        assert abs(np.searchsorted(mine, answers[half]) - len(mine) / 2) <= bars[half] + 1
    assert 0 <= answers[2] <= 200_000


def test_three_quantiles_cost_two_levels_and_seven_cost_three(incomes: Any) -> None:
    table, _ = incomes
    protected = protect(table, unit=mosha.Person("who", at_most=1))
    for count, levels in ((1, 1), (3, 2), (7, 3)):
        asked = {f"q{i}": quantile("income", (i + 1) / 8, between=(0, 1), bars="rows") for i in range(count)}
        event = protected.aggregate(**asked).measurement(Budget(epsilon=1)).event
        assert event == mosha.events.Exponential(pure_epsilon(mosha.tables.Budget(epsilon=1), 1 / levels)) * levels


def test_a_point_with_the_median_on_it_is_the_best_candidate() -> None:
    cells, counts = np.array([5, 10, 11]), np.array([100, 1000, 100])
    drawn = {choose_point(cells, counts, (0, 20), Fraction(1, 2), Fraction(1), mosha.noise.secure()) for _ in range(50)}
    assert drawn == {10}


def exact_law(cells: Any, counts: Any, epsilon: Any, span: Any) -> Any:
    """The probability of every point, by the definition of the mechanism."""
    points = np.arange(span[0], span[1] + 1)
    below = np.array([counts[cells < t].sum() for t in points])
    upto = np.array([counts[cells <= t].sum() for t in points])
    target = counts.sum() / 2
    score = -np.maximum(np.maximum(below - target, target - upto), 0)
    weight = np.exp((score - score.max()) * epsilon)
    return weight / weight.sum()


def test_one_row_changes_no_probability_by_more_than_epsilon() -> None:
    generator = np.random.default_rng()
    for _ in range(200):
        cells = np.unique(generator.integers(0, 12, 5))
        counts = generator.integers(1, 4, len(cells))
        law = exact_law(cells, counts, 1.0, (0, 11))
        for at in range(12):
            more_cells = np.append(cells, at)
            more = exact_law(more_cells, np.append(counts, 1), 1.0, (0, 11))
            assert np.abs(np.log(law) - np.log(more)).max() <= 1 + 1e-9


def test_the_sampler_follows_the_law() -> None:
    # Chi-square over 12 points at false alarm 1e-9, and the law of half the epsilon must be rejected.
    from scipy.stats import chi2

    cells, counts = np.array([2, 5, 6, 9]), np.array([2, 1, 3, 1])
    draws = 6_000
    drawn = [
        choose_point(cells, counts, (0, 11), Fraction(1, 2), Fraction(1), mosha.noise.secure()) for _ in range(draws)
    ]
    found = np.bincount(drawn, minlength=12)

    def distance(epsilon: Any) -> Any:
        expected = exact_law(cells, counts, epsilon, (0, 11)) * draws
        return ((found - expected) ** 2 / expected).sum()

    limit = chi2.isf(1e-9, 11)
    assert distance(1.0) <= limit < min(distance(0.7), distance(1.4))


def test_a_median_is_refused_without_a_range(incomes: Any) -> None:
    with pytest.raises(mosha.errors.Unbounded, match="between"):
        protect(incomes[0], unit=mosha.Person("who", at_most=1)).aggregate(middle=median("income"))


def scores_of_all_points(monkeypatch: pytest.MonkeyPatch, ranked: Any, share: Any, scale: Any, span: Any) -> Any:
    """What each point of the grid is worth to `choose_points`, or None where it asks for a closer look."""
    heard: dict[Any, Any] = {}

    def choose(scores: Any, starts: Any, _scale: Any, *, weights: Any, rng: Any) -> Any:
        del rng
        heard.update(scores=scores, weights=weights)
        return starts[:-1] + np.argmax(weights > 0)

    monkeypatch.setattr(rank_choice, "exponential_choices", choose)
    pieces = rank_choice.Pieces.from_ranked(ranked, span)
    if rank_choice.choose_points(pieces, share, scale, mosha.noise.secure()) is None:
        return None
    return np.repeat(heard["scores"], heard["weights"])


def test_cells_far_from_the_rank_need_not_be_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of all points are the same from the near cells as from all of them; one reach less and they are not."""
    generator, closer_looks = np.random.default_rng(), 0
    for _ in range(150):
        cells = np.unique(generator.integers(0, 60, 40))
        counts = generator.integers(1, 5, len(cells))
        share, scale = Fraction(int(generator.integers(0, 11)), 10), Fraction(1, int(generator.integers(5, 400)))
        reach = rank_choice.farthest_score(share, scale, 60)
        upto, total = np.cumsum(counts), counts.sum()
        top, bottom = share.numerator, share.denominator
        for less, expected in ((0, True), (reach, False)):
            near = (bottom * upto >= top * total - reach + less) & (
                bottom * (upto - counts) <= top * total + reach - less
            )
            owner = np.zeros(near.sum(), np.int64)
            known = (part[near] for part in (cells, counts, upto, np.full(len(cells), total)))
            ranked = rank_choice.Ranked.of(owner, *known, 1)  # type: ignore[call-arg]
            assert ranked.counts.sum() == total
            whole = scores_of_all_points(monkeypatch, rank_group(cells, counts), share, scale, (0, 59))
            found = scores_of_all_points(monkeypatch, ranked, share, scale, (0, 59))
            if expected:
                assert found.tolist() == whole.tolist()
            else:
                closer_looks += found is None
    assert closer_looks > 20


def test_a_point_that_strayed_is_kept_and_the_rest_is_chosen_from_a_closer_look(
    incomes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, values = incomes
    question = protect(table, unit=mosha.Row()).aggregate(
        **{f"q{at}": quantile("income", at, between=(0, 200_000)) for at in (0.25, 0.5, 0.9)}
    )
    original, looks = rank_choice.choose_points, []
    stray = int(np.quantile(values, 0.05) * 4)

    def choose(pieces: Any, *arguments: Any, **named: Any) -> Any:
        looks.append(pieces.ranked.lumps.any())
        return np.array([stray]) if len(looks) == 1 else original(pieces, *arguments, **named)

    monkeypatch.setattr(rank_choice, "choose_points", choose)
    plan = question.plan_release(Budget(epsilon=400))
    value, _ = question.measurement(Budget(epsilon=400)).step(None, None, None, mosha.noise.secure())
    low, middle, high = (float(column[0]) for column in plan.answers(value).values())
    assert looks[0]
    assert not looks[-1]
    assert middle == stray / 4
    assert abs(np.searchsorted(np.sort(values), low) - 0.025 * PEOPLE) < 5
    assert abs(np.searchsorted(np.sort(values), high) - (0.05 + 0.95 * 0.8) * PEOPLE) < 5


def test_quantiles_that_would_look_at_too_many_rows_are_refused_before_payment(incomes: Any) -> None:
    protected = protect(incomes[0], unit=mosha.Person("who", at_most=50))
    many = protected.group_by("half", keys=range(100_000)).median("income", between=(0, 200_000))
    with pytest.raises(mosha.errors.InvalidParameter, match="fewer groups") as refused:
        many.measurement(Budget(epsilon=0.001))
    assert refused.value.spent == "nothing"
    assert "-- at most 105 cells of a group come back" in protect(incomes[0], unit=mosha.Row()).median(
        "income", between=(0, 200_000), bars="rows"
    ).explain(epsilon=1, statements=True)
