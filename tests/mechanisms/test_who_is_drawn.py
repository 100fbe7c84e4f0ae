"""Who is drawn: each rule draws as its price assumes, and its price is the event that the accountant knows."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import mosha
from mosha.core.errors import InvalidParameter
from mosha.core.events import FixedSizeSampled, Gaussian, Sampled
from mosha.learning.plan import DPSGD
from mosha.mechanisms.plans.sampling import Everybody, FixedSize, Poisson, Shuffled, TakingTurns, shuffle
from mosha.noise import secure

RULES = [Poisson(0.25), FixedSize(10), Shuffled(4), TakingTurns(4), Everybody()]


def test_a_shuffle_gives_every_order_equally_often() -> None:
    """6,000 orders of three: the smallest and the largest count are each that far off with probability 6e-10."""
    counts = np.zeros(6)
    orders = {order: i for i, order in enumerate(itertools.permutations(range(3)))}
    for _ in range(6_000):
        counts[orders[tuple(shuffle(np.arange(3), secure()).tolist())]] += 1
    law = binom(6_000, 1 / 6)
    assert law.cdf(counts.min()) > 1e-10
    assert law.sf(counts.max() - 1) > 1e-10


def test_fewer_units_than_planned_are_drawn_no_more_often() -> None:
    """Each of 20 present of 100 planned is in a sample of 10 with probability 1/10: 3000 draws, 8 sd."""
    rule, counts = FixedSize(10), np.zeros(20)
    for _ in range(3000):
        counts[rule.draw(range(20), 100, 1, secure())] += 1  # type: ignore[index]
    assert (np.abs(counts - 300) < 8 * math.sqrt(270)).all()
    assert rule.neighbors == mosha.Neighbors.REPLACE_ONE
    assert [len(rule.draw(range(500), 100, 1, secure())) for _ in range(5)] == [10] * 5


def test_poisson_draws_each_unit_on_its_own() -> None:
    """Pairs of 40 units at rate 0.3 over 2000 draws: rates and covariances within 8 sd."""
    drawn = np.zeros((2000, 40))
    for row in drawn:
        row[Poisson(0.3).draw(range(40), 40, 1, secure())] = 1  # type: ignore[index]
    assert (np.abs(drawn.mean(axis=0) - 0.3) < 8 * math.sqrt(0.21 / 2000)).all()
    pair = (drawn[:, :-1] * drawn[:, 1:]).mean(axis=0)
    assert (np.abs(pair - 0.09) < 8 * math.sqrt(0.09 * 0.91 / 2000)).all()


def test_turns_depend_on_the_own_name_alone_and_come_once_a_period() -> None:
    rule, names = TakingTurns(3), [f"client {i}" for i in range(30)]
    rounds = [rule.draw(names, 30, number, secure()) for number in range(1, 8)]
    for name in names:
        turns = [t for t, drawn in enumerate(rounds) if name in drawn]
        assert 2 <= len(turns) <= rule.participations(7) == 3
        assert all(b - a == 3 for a, b in itertools.pairwise(turns))
        fewer = [n for n in names if n != "client 5" or name == n]
        assert [t for t in range(7) if name in rule.draw(fewer, 29, t + 1, secure())] == turns


def test_shuffled_places_are_uniform_and_independent() -> None:
    """8,000 units in 4 batches: each count within 8 sd, and so are pairs of neighbors in the same batch."""
    places = Shuffled(4).assign(8_000, secure())
    assert (np.abs(np.bincount(places, minlength=4) - 2_000) < 8 * math.sqrt(1_500)).all()
    assert abs(int((places[1:] == places[:-1]).sum()) - 7_999 / 4) < 8 * math.sqrt(1_500)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_rule_prices_a_step_and_as_many_as_a_unit_can_take_part_in(rule: Any) -> None:
    event = Gaussian(2.0)
    assert rule.price(event, steps=10, population=40) == rule.price_step(event, 40) * rule.participations(10)
    assert rule.participations(10) == (3 if isinstance(rule, Shuffled | TakingTurns) else 10)
    assert rule.expected_size(40) == (40 if isinstance(rule, Everybody) else 10)
    assert (rule.moves, rule.neighbors.value) == (
        (2, "replace-one") if isinstance(rule, FixedSize) else (1, "add-remove")
    )


def test_prices_are_the_events_that_the_accountant_knows() -> None:
    event = Gaussian(2.0)
    assert Poisson(0.25).price_step(event, 40) == Sampled(event, 0.25)
    assert FixedSize(10).price_step(event, 40) == FixedSizeSampled(event, 10, 40)
    assert TakingTurns(4).price_step(event, 40) == Shuffled(4).price_step(event, 40) == event
    with pytest.raises(InvalidParameter):
        FixedSize(41).price_step(event, 40)


@pytest.mark.parametrize(
    ("rule", "word", "more"),
    [
        (Poisson(0.05), {"rate": 0.05}, {}),
        (Shuffled(20), {"rate": 0.05, "sampling": "shuffled"}, {}),
        (
            FixedSize(10),
            {"rate": 0.05, "sampling": "fixed_size"},
            {"population": 200, "unit": mosha.Example(neighbors="replace-one")},  # type: ignore[arg-type]
        ),
    ],
    ids=["poisson", "shuffled", "fixed size"],
)
def test_a_training_takes_a_rule_or_its_word(rule: Any, word: Any, more: Any) -> None:
    shape = {"steps": 30, "clip": 1.0, "noise_multiplier": 1.5} | more
    by_rule, by_word = DPSGD(sampling=rule, **shape), DPSGD(**word, **shape)
    assert by_rule == by_word
    assert by_rule.drawing == rule
    assert by_rule.event == rule.price(Gaussian(1.5 / rule.moves), steps=30, population=200)
    with pytest.raises(InvalidParameter):
        DPSGD(sampling=rule, rate=0.5, **shape)
    with pytest.raises(InvalidParameter):
        DPSGD(sampling=Everybody(), **shape)


def test_old_spellings_of_options_work_and_warn() -> None:
    with pytest.warns(DeprecationWarning, match="fixed_size"):
        plan = DPSGD(
            steps=1,
            rate=0.5,
            clip=1.0,
            sampling="fixed size",  # type: ignore[arg-type]
            population=4,
            unit=mosha.Example(neighbors="replace-one"),  # type: ignore[arg-type]
        )
    assert plan.sampling == "fixed_size"
    with pytest.warns(DeprecationWarning, match="per_layer"):
        assert DPSGD(steps=1, rate=0.5, clip=1.0, clipping="per layer").clipping == "per_layer"  # type: ignore[arg-type]
