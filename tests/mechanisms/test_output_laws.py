"""The answers of every mechanism follow the law that its proof is about; wrong twins, too, are told apart.

Each `rejects` has a false-alarm rate of 1e-10; the twins differ by so much that they are missed less often than that.
"""

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mosha import Own, Person, Row
from mosha.mechanisms import (
    Count,
    Histogram,
    above_threshold,
    exponential,
    mean,
    partition_selection,
    permute_and_flip,
    randomized_response,
    report_noisy_max,
    top_k,
)
from mosha.mechanisms.partition_selection import keeping_probabilities
from mosha.noise import SeededRandom, secure
from mosha.noise.cauchy import discrete_cauchy, flip_coin
from mosha.noise.unbounded import END, unbounded_laplace
from tests.mechanisms.draws import answers
from tests.noise.goodness import laplace_below, quantile_events, rejects

N = 2000
LETTERS = Histogram(keys=["a", "b", "c"])
DATA, SCORES = ["a"] * 5 + ["b"] * 4 + ["c"] * 2, [5, 4, 2]


def frequencies(drawn: Any, law: Any) -> list[Any]:
    counts = Counter(drawn)
    return [(counts[outcome], len(drawn), p) for outcome, p in law.items()]


def exponential_law(scores: Any, scale: Any) -> Any:
    weights = [math.exp(score / scale) for score in scores]
    return dict(zip("abc", np.array(weights) / sum(weights), strict=False))


def permute_and_flip_law(scores: Any, scale: Any) -> Any:
    """Every order, every coin."""
    heads = [math.exp((score - max(scores)) / scale) for score in scores]
    law = dict.fromkeys("abc", 0.0)
    for order in itertools.permutations(range(3)):
        left = 1 / 6
        for i in order:
            law["abc"[i]] += left * heads[i]
            left *= 1 - heads[i]
    return law


@pytest.mark.parametrize(("factory", "law"), [(exponential, exponential_law), (permute_and_flip, permute_and_flip_law)])
@pytest.mark.parametrize(("unit", "span"), [(Row(), 1), (Row(neighbors="replace-one"), 2)])  # type: ignore[arg-type]
def test_a_choice_has_the_probabilities_of_its_scores(factory: Any, law: Any, unit: Any, span: int) -> None:
    drawn = answers(factory(LETTERS, unit=unit, epsilon=1), DATA, N)
    assert not rejects(frequencies(drawn, law(SCORES, span)))
    assert rejects(frequencies(drawn, law(SCORES, span / 2)))
    assert rejects(frequencies(drawn, law(SCORES, span * 2.5)))


def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism() -> None:
    for scores in ([5, 4, 2], [0, 0, 0], [9, 1, 1]):
        loss = [sum((max(scores) - s) * p for s, p in zip(scores, law(scores, 1).values(), strict=True))
                for law in (permute_and_flip_law, exponential_law)]  # fmt: skip
        assert loss[0] <= loss[1] + 1e-12


def test_top_k_is_one_exponential_mechanism_after_the_other() -> None:
    def law(scale: Any) -> dict[Any, Any]:
        weight = dict(zip("abc", (math.exp(s / scale) for s in SCORES), strict=True))
        whole = sum(weight.values())
        return {
            (x, y): weight[x] / whole * weight[y] / (whole - weight[x]) for x, y in itertools.permutations("abc", 2)
        }

    drawn = [tuple(answer) for answer in answers(top_k(LETTERS, unit=Row(), k=2, epsilon=2), DATA, N)]
    assert not rejects(frequencies(drawn, law(1.0)))
    assert rejects(frequencies(drawn, law(0.5)))
    assert rejects(frequencies(drawn, law(2.5)))


def test_the_gap_of_the_noisy_max_is_that_of_two_laplace_noises() -> None:
    measurement = report_noisy_max(Histogram(keys=["a", "b"]), unit=Row(), epsilon=0.5)
    signed = [row["gap"] * (1 if row["choice"] == "a" else -1) for (row,) in answers(measurement, ["a"] * 3, N)]

    def events(scale: Any) -> list[Any]:
        def above(t: Any) -> Any:  # of the difference of two Laplace noises
            tail = math.exp(-abs(t) / scale) * (2 + abs(t) / scale) / 4
            return tail if t >= 0 else 1 - tail

        return [(sum(s > t for s in signed), N, above(t - 3)) for t in (-6.5, -3.5, -0.5, 0, 1.5, 3.5, 6.5, 9.5)]

    assert not rejects(events(2.0))
    assert rejects(events(1.0))
    assert rejects(events(4.0))


def test_the_gaps_of_the_top_two_are_positive_and_add_up() -> None:
    measurement = report_noisy_max(LETTERS, unit=Row(), epsilon=100, top=2)
    for rows in answers(measurement, DATA, 50):
        assert [row["choice"] for row in rows] == ["a", "b"]
        assert all(row["gap"] > 0 for row in rows)
        assert abs(rows[0]["gap"] + rows[1]["gap"] - 3) < 2


def test_ties_go_to_the_first_label_and_have_a_gap_of_one_step() -> None:
    from mosha.mechanisms.noisy_max import _rank_noisy

    assert _rank_noisy([5, 5, 3], 1) == [(0, 1)]
    assert _rank_noisy([5, 7, 7], 2) == [(1, 1), (2, 2)]
    assert _rank_noisy([7, 5, 7], 2) == [(0, 1), (2, 2)]
    assert _rank_noisy([3, 5], 1) == [(1, 2)]


def test_above_threshold_compares_two_noisy_numbers() -> None:
    # Count is monotone: with one alarm both noises have the scale 2 D / epsilon
    measurement = above_threshold(Count(), unit=Row(), epsilon=1, threshold=5, horizon=1)
    yes = sum(answers(measurement, [1] * 6, N))

    def probability(threshold_scale: Any, answer_scale: Any) -> float:
        reach = np.arange(-400, 401)
        answer = np.exp(-np.abs(reach) / answer_scale)
        below = laplace_below(threshold_scale)
        return float((answer / answer.sum() * below(reach + 1)).sum())  # e <= q - T + n

    assert not rejects([(yes, N, probability(2, 2))])
    assert rejects([(yes, N, probability(0.5, 0.5))])
    twin = above_threshold(Count(), unit=Row(), epsilon=0.2, threshold=5, horizon=1)
    assert rejects([(sum(answers(twin, [1] * 9, N)), N, above_by_four(2, 2))])


def above_by_four(threshold_scale: Any, answer_scale: Any) -> float:
    reach = np.arange(-400, 401)
    answer = np.exp(-np.abs(reach) / answer_scale)
    return float((answer / answer.sum() * laplace_below(threshold_scale)(reach + 4)).sum())


@pytest.mark.parametrize(("categories", "epsilon"), [(2, 1.0), (5, 2.0)])
def test_randomized_response_tells_the_truth_as_often_as_it_says(categories: int, epsilon: float) -> None:
    labels = list(range(categories))
    drawn = answers(randomized_response(labels, unit=Own(), epsilon=epsilon), 1, N)

    def law(e: Any) -> dict[Any, Any]:
        z = math.exp(e) + categories - 1
        return {label: (math.exp(e) if label == 1 else 1) / z for label in labels}

    assert not rejects(frequencies(drawn, law(epsilon)))
    assert rejects(frequencies(drawn, law(epsilon / 4)))
    assert rejects(frequencies(drawn, law(epsilon * 3)))


def test_a_value_that_is_no_category_is_answered_uniformly() -> None:
    measurement = randomized_response(["a", "b", "c"], unit=Own(), epsilon=3)
    for odd in (None, "z", np.zeros(3), float("nan")):
        assert not rejects(frequencies(answers(measurement, odd, 1000), dict.fromkeys("abc", 1 / 3)))


@pytest.mark.parametrize("people", [5, 13, 14, 16])
def test_a_key_is_kept_as_often_as_privacy_allows(people: int) -> None:
    # 2000 keys with so many people each, in one step
    measurement = partition_selection(unit=Person("who", groups=1), epsilon=1, delta=1e-6)
    keys, n = [f"key {i}" for i in range(2000)], 2000
    data = (list(range(n * people)), [key for key in keys for _ in range(people)])
    (kept,) = answers(measurement, data, 1)
    table = keeping_probabilities(1.0, 1e-6)
    assert not rejects([(len(kept), n, table[people] / 2**128)])
    if people in {13, 14}:
        assert rejects([(len(kept), n, table[people - 1] / 2**128)])
        assert rejects([(len(kept), n, table[people + 1] / 2**128)])
    assert kept == sorted(kept)


def test_a_key_that_nobody_has_is_never_kept_and_one_that_many_have_always_is() -> None:
    measurement = partition_selection(unit=Row(), epsilon=1, delta=1e-6)
    assert answers(measurement, ["x"] * 1000, 20) == [["x"]] * 20
    assert answers(measurement, [], 20) == [[]] * 20
    assert answers(measurement, [None, float("nan")] * 1000, 5) == [[]] * 5


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(9, 2), Fraction(10**6, 3)])
def test_discrete_cauchy_has_its_law(scale: Any) -> None:
    s, rng = float(scale), secure()
    samples = np.array([discrete_cauchy(scale, rng=rng) for _ in range(3000)])

    def events(s: Any) -> list[Any]:
        reach = max(60, min(40_000_000, int(400 * s)))
        if s < 1000:
            x = np.arange(-reach, reach + 1)
            mass = s * math.tanh(math.pi * s) / math.pi / (s * s + x * x)
            below = lambda k: 1 / 2 - mass[reach + 1 :].sum() - mass[reach] / 2 + mass[: reach + k + 1].sum()
        else:
            below = lambda k: 0.5 + math.atan((k + 0.5) / s) / math.pi
        edges = sorted({round(s * math.tan(a)) for a in np.linspace(-1.4, 1.4, 15)})
        return [(int((samples <= k).sum()), len(samples), min(1.0, max(0.0, below(k)))) for k in edges]

    assert not rejects(events(s))
    assert rejects(events(s * 2.2))
    assert rejects(events(s / 2.2))


def test_a_coin_with_a_rational_bias() -> None:
    rng = secure()
    assert not rejects([(sum(flip_coin(1, 3, rng) for _ in range(N)), N, 1 / 3)])
    assert rejects([(sum(flip_coin(1, 3, rng) for _ in range(N)), N, 0.5)])
    assert rejects([(sum(flip_coin(1, 3, rng) for _ in range(N)), N, 0.2)])


class Words:
    """A generator that says what it is told, then goes on at random."""

    secure = False

    def __init__(self, *words: Any) -> None:
        self.words, self.rest = list(words), SeededRandom(1)

    def bytes(self, n: Any) -> Any:
        return self.words.pop(0).to_bytes(n, "little") if self.words else self.rest.bytes(n)


def test_a_coin_that_ties_on_64_bits_looks_at_more() -> None:
    third = (1 << 64) // 3
    assert flip_coin(1, 3, Words(third, third - 1))
    assert not flip_coin(1, 3, Words(third, third + 1))
    assert not flip_coin(1, 2, Words(1 << 63))  # exactly one half: not below it


def test_the_tail_of_cauchy_noise_draws_more_bits_where_the_floor_is_open() -> None:
    from mosha.noise.cauchy import _draw_beyond

    assert 1 << 64 < _draw_beyond(1, Words(0, 1 << 63)) <= (1 << 65) + 1  # the first 64 bits of U are all zero
    assert _draw_beyond(10, Words(1 << 63)) == 20  # U a little above one half
    assert _draw_beyond(10, Words((1 << 64) - 1)) == 11


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7), Fraction(2**40)])
def test_unbounded_laplace_has_its_law(scale: Any) -> None:
    samples = unbounded_laplace(scale, 20_000, rng=secure())
    events = lambda s: quantile_events(samples, laplace_below(s), s)
    assert not rejects(events(float(scale)))
    assert rejects(events(float(scale) * 1.3))
    assert rejects(events(float(scale) / 1.3))


def test_unbounded_laplace_goes_on_where_64_bits_end(monkeypatch: pytest.MonkeyPatch) -> None:
    heads = iter(
        [np.array([[True, False], [False, False]]), np.array([[True, True], [False, False]]), np.zeros((2, 2), bool)]
    )
    monkeypatch.setattr("mosha.noise.unbounded.bernoulli_exp", lambda *_, **__: next(heads))
    first, second = unbounded_laplace(Fraction(3), 2, rng=secure())
    assert abs(first - 2 * END) < 1000  # heads twice, and a coin that lies already is not thrown again
    assert abs(second) < 1000


def test_a_mean_has_the_error_of_the_box_and_not_of_a_split_budget() -> None:
    # 1000 ages around 40 in [0, 100]: the box predicts 100 / 1000 * sqrt(1 + 0.2^2) = 0.10198, two Laplace
    # releases 0.1442. The root mean square of 8000 has a relative deviation of 1.05%: 8% is 7.6 of them.
    ages, n = np.array([39.0, 40.0, 41.0, 40.0] * 250), 8000
    errors = np.array(
        [answer["mean"] - 40 for answer in answers(mean(between=(0, 100), unit=Row(), epsilon=1), ages, n)]
    )
    found = math.sqrt((errors**2).mean())
    assert 0.10198 * 0.92 < found < 0.10198 * 1.08
    assert found < 0.8 * 0.1442


def test_sum_and_count_of_a_mean_are_noised_like_a_box() -> None:
    # given the box, the count is uniform in it: tails e^-t (1 + t/2), in units of 1 / epsilon
    draws = 5000  # scales 30% off are missed with probability below 1e-15
    noise = np.array(
        [answer["count"] - 3 for answer in answers(mean(between=(0, 8), unit=Row(), epsilon=0.5), [1, 2, 3], draws)]
    )

    def events(scale: Any) -> list[Any]:
        return [
            (int((np.abs(noise) > t * 2).sum()), draws, math.exp(-t / scale) * (1 + t / scale / 2))
            for t in (0.5, 1, 2, 4, 6)
        ]

    assert not rejects(events(1.0))
    assert rejects(events(1.3))
    assert rejects(events(1 / 1.3))
