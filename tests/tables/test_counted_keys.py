"""Groups from the data that are shown by their own noisy counts: seldom one of a single person, and accurate."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.tables import Budget, count, mean, median, protect
from mosha.tables.mechanisms.joint_noise import BoxNoise, GaussianNoise
from mosha.tables.parts.bounds import Limits
from mosha.tables.parts.counted_keys import CountedKeys, find_threshold, list_largest_counts

BUDGET = Budget(epsilon=0.5, delta=1e-6)


def plan_of(unit: Any, budget: Any = BUDGET, **aggregates: Any) -> Any:
    table = protect(pa.table({"who": [1, 2], "g": ["a", "b"], "x": [1.0, 2.0]}), unit=unit)
    return table.group_by("g").aggregate(**(aggregates or {"count": count()})).plan_release(budget)


NOISES = [
    BoxNoise(0.5, 1, 1 << 20),
    BoxNoise(0.5, 2, 1 << 20),
    BoxNoise(8.0, 3, 1 << 20),
    GaussianNoise(4.0, 1, 1 << 20),
    GaussianNoise(4.0, 2, 1 << 20),
]


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_the_bound_on_a_tail_is_above_the_tail_and_close_to_it(noise: Any) -> None:
    # 200,000 draws at a point that a hundredth exceeds: the share is off by 6.5 deviations once in 1e10.
    reach, draws = 64, 200_000
    sample = noise.add(np.zeros((draws, noise.channels), object), [reach] * noise.channels, mosha.noise.secure())[:, 0]
    point = float(np.quantile(sample, 0.99)) + 1e-9
    share, bound = float(np.mean(sample >= point)), noise.exceed(reach, point)
    assert share <= bound + 6.5 * math.sqrt(bound / draws)
    assert bound <= share * 1.2 + 6.5 * math.sqrt(share / draws)  # a bound of 1 would hold, and be of no use


LIMITS = [
    (Limits(rows=5), 5, [[5], [3, 2], [1] * 5]),
    (Limits(truncation=(6, 6, 6), by_person=True), 6, [[6], [2, 2, 2], [1] * 6]),
    (Limits(truncation=(None, 3, 2), by_person=True), 6, [[2, 2, 2], [1]]),
    (Limits(norm=4, by_person=True, finest=1024), 1024, [[1024], [724, 724], [102] * 100, [1] * 1024**2]),
    (Limits(rows=5, twice=True), 10, [[5], [1] * 5]),
]


@pytest.mark.parametrize(("limits", "reach", "units"), LIMITS, ids=repr)
@pytest.mark.parametrize("noise", NOISES[:1] + NOISES[3:4], ids=repr)
def test_no_unit_lifts_a_group_of_its_own_above_the_threshold_more_often_than_delta(
    limits: Any, reach: Any, units: Any, noise: Any
) -> None:
    blocks, delta = tuple(list_largest_counts(limits, reach)), 1e-6
    level = find_threshold(noise, reach, blocks, delta)
    for counts in units:
        assert len(counts) <= sum(number for number, _ in blocks)
        sizes, numbers = np.unique(counts, return_counts=True)
        chance = sum(n * noise.exceed(reach, level - s) for s, n in zip(sizes.tolist(), numbers.tolist(), strict=True))
        assert chance <= delta
    lower = level - 2 * noise.deviation(reach)  # the threshold is needed
    assert sum(number * noise.exceed(reach, lower - size) for number, size in blocks) > 2 * delta


UNITS = [
    mosha.Person("who"),
    mosha.Person("who", at_most=6),
    mosha.Person("who", groups=3, per_group=2),
    mosha.Person("who", at_most=6, neighbors="replace-one"),  # type: ignore[arg-type]
    mosha.Row(at_most=3),
]


@pytest.mark.parametrize("unit", UNITS, ids=repr)
@pytest.mark.parametrize("budget", [BUDGET, Budget(rho=0.01, delta=1e-6)], ids=str)
def test_a_count_shows_groups_at_no_price_of_its_own_and_within_the_budget(unit: Any, budget: Any) -> None:
    plan = plan_of(unit, budget)
    assert isinstance(plan.parts[0], CountedKeys)
    assert plan.selection is None
    event = plan.measurement("count").event
    if budget.epsilon is not None:
        assert mosha.accounting.epsilon(event, budget.delta) <= budget.epsilon * (1 + 1e-9)


def test_where_no_count_is_asked_groups_are_selected_by_their_people() -> None:
    assert plan_of(mosha.Person("who", at_most=6), m=mean("x", between=(0, 3))).selection is not None


def sites() -> Any:
    """About 700 people and 2,400 rows at the smallest of six sites; each person lives at one, and has up to 6 rows."""
    generator = np.random.default_rng()
    people = 700 + 100 * np.arange(6)
    site = np.repeat(np.arange(6), people)
    rows = generator.choice([1, 3, 4, 5, 6], site.size, p=[0.2, 0.35, 0.2, 0.2, 0.05])
    return pa.table({"who": np.repeat(np.arange(site.size), rows), "site": np.repeat(site, rows)})


@pytest.mark.parametrize("unit", [mosha.Person("who"), mosha.Person("who", at_most=6)], ids=["bought", "declared"])
def test_no_site_of_seven_hundred_people_is_lost_at_a_small_epsilon(unit: Any) -> None:
    # 2,200 rows against a threshold below 800 and noise of scale 40 at most: a miss has a chance below e^-35; that a
    # bound above 12 rows is bought has one of 1e-4 each, and then a miss is still rarer than 1e-6.
    question = protect(sites(), unit=unit).group_by("site").count()
    budget = Budget(epsilon=0.2, delta=1e-7)
    for _ in range(10):
        value, _ = question.measurement(budget).step(None, None, None, mosha.noise.secure())
        assert len(value["keys"]) == 6


def test_the_bar_of_a_count_by_groups_from_the_data_is_that_of_public_keys() -> None:
    """Thresholding the noisy count itself costs no epsilon: 5 rows a person at 0.25 have bars of 60, as Laplace has."""
    question = protect(sites(), unit=mosha.Person("who", at_most=5)).group_by("site").count()
    (bar,) = question.forecast(epsilon=0.25, delta=2.5e-8)["count"].tolist()
    assert bar == pytest.approx(20 * math.log(20), rel=0.035)


def test_other_parts_are_asked_about_the_groups_that_the_counts_show() -> None:
    table = protect(
        pa.table({"who": np.arange(4000), "g": ["a", "b"] * 2000, "x": np.tile([1.0, 1.0, 2.0, 2.0], 1000)}),
        unit=mosha.Person("who", at_most=1),
    )
    asked = {"n": count(), "m": mean("x", between=(0, 3)), "d": median("x", between=(0, 3))}
    question = table.group_by("g").aggregate(**asked)
    budget = Budget(epsilon=4, delta=1e-6)
    value, _ = question.measurement(budget).step(None, None, None, mosha.noise.secure())
    assert value["keys"] == [["a"], ["b"]]
    answers = question.plan_release(budget).answers(value)
    assert np.allclose(answers["n"], 2000, atol=60)  # box noise of scale below 2: e^-30
    assert np.allclose(answers["m"], 1.5, atol=0.2)
    assert answers["d"].shape == (2,)


def test_the_answer_says_from_which_count_on_groups_are_shown() -> None:
    plan = plan_of(mosha.Person("who", at_most=6))
    value, _ = plan.measurement("count").step(None, None, None, mosha.noise.secure())
    assert "not shown" in " ".join(plan.notes(value))
    assert plan.rows(value) == ()


@pytest.mark.parametrize("unit", [mosha.Person("who"), mosha.Person("who", at_most=6)], ids=["bought", "declared"])
def test_a_question_whose_counts_show_groups_is_explained(unit: Any) -> None:
    """With a bound that is to be bought, an explanation was refused for the lack of a guess."""
    table = protect(pa.table({"who": [1, 2], "g": ["a", "b"]}), unit=unit)
    said = table.group_by("g").count().explain(epsilon=1, delta=1e-6)
    assert "epsilon 1" in said
    assert "not shown" in said
    assert ("at_most=" in said) == (unit.at_most is None)
    assert len(said.splitlines()) == 5
