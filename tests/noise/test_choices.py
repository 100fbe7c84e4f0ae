"""The exponential mechanism and permute-and-flip choose with exactly the chances they name."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mosha.core.errors import InvalidParameter
from mosha.noise import (
    SeededRandom,
    exponential_choice,
    exponential_choices,
    permute_and_flip_choice,
    permute_and_flip_choices,
)
from tests.noise.goodness import rejects

N = 200_000
LOW, HIGH = -(2**63), 2**63 - 1


def exponential_chances(scores: Any, scale: Any, weights: Any = None) -> list[Any]:
    best = max(scores)
    chances = [w * math.exp((s - best) / scale) for s, w in zip(scores, weights or [1] * len(scores), strict=True)]
    return [chance / sum(chances) for chance in chances]


def permute_and_flip_chances(scores: Any, scale: Any) -> Any:
    """By definition: over all orders, the first heads."""
    coins = [math.exp((s - max(scores)) / scale) for s in scores]
    chances = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        alive = 1.0
        for i in order:
            chances[i] += alive * coins[i] / len(orders)
            alive *= 1 - coins[i]
    return chances


@pytest.mark.parametrize(
    ("scores", "scale", "weights"),
    [
        ([0], 1, None),
        ([0, 1, 2, 5], 2, None),
        ([3, 3, 3], 0.5, None),
        ([-100, 0, 40], Fraction(100, 3), None),
        ([5, 4, 0, 0], 1, [1, 10, 1000, 0]),
        ([100, 0, 1], 1.5, [0, 2**40, 2**39]),
        ([0, -40], 1, [1, 2**62]),
    ],
)
def test_the_exponential_choice_has_its_chances(scores: Any, scale: Any, weights: Any) -> None:
    drawn = exponential_choice(scores, scale, N, weights=weights)
    counts = np.bincount(drawn, minlength=len(scores)).tolist()
    assert not rejects([(c, N, p) for c, p in zip(counts, exponential_chances(scores, scale, weights), strict=True)])
    wrong = [exponential_chances(scores, float(scale) * f, weights) for f in (0.9, 1.1)]
    if len(set(scores)) > 1:
        for chances in wrong:
            assert rejects([(c, N, p) for c, p in zip(counts, chances, strict=True)])


def test_choices_from_many_lists_have_the_chances_of_each() -> None:
    """As many copies of each list, one after the other; a scale that is a tenth off must be rejected."""
    lists = [
        ([0, 1, 2, 5], [1, 1, 1, 1]),
        ([9], [3]),
        ([5, 4, 0, 0], [1, 10, 1000, 0]),
        ([100, 0, 1], [0, 2**20, 2**19]),
    ]
    scores, weights = (np.concatenate([np.tile(part[i], N) for part in lists]).astype(np.int64) for i in (0, 1))
    sizes = np.concatenate([np.full(N, len(part[0])) for part in lists])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    drawn = exponential_choices(scores, starts, 2, weights=weights) - starts[:-1]
    for place, (mine, heavy) in enumerate(lists):
        counts = np.bincount(drawn[place * N : (place + 1) * N], minlength=len(mine)).tolist()
        events = {f: exponential_chances(mine, 2 * f, heavy) for f in (0.9, 1, 1.1)}
        for factor, chances in events.items():
            wrong = factor != 1 and len(mine) > 1
            assert rejects([(c, N, p) for c, p in zip(counts, chances, strict=True)]) == wrong


@pytest.mark.parametrize(("scores", "scale"), [([0, 1, 2, 5], 2), ([3, 3, 3], 1), ([0, 10, 11], 4.5)])
def test_permute_and_flip_has_its_chances(scores: Any, scale: float) -> None:
    trials = 6000
    drawn = [permute_and_flip_choice(scores, scale) for _ in range(trials)]
    counts = [drawn.count(i) for i in range(len(scores))]
    events = list(zip(counts, [trials] * len(scores), permute_and_flip_chances(scores, scale), strict=True))
    assert not rejects(events)
    for wrong in (0.5, 2):
        chances = permute_and_flip_chances(scores, scale * wrong)
        if len(set(scores)) > 1:
            assert rejects(list(zip(counts, [trials] * len(scores), chances, strict=True)))


def test_many_permutations_and_flips_have_the_chances_of_each() -> None:
    """Two kinds of rows take turns, with equal candidates and far ones; a scale a tenth off must be rejected."""
    kinds = [[0, 1, 2, 5], [7, 7, 7, 5]]
    drawn = permute_and_flip_choices(np.tile(kinds, (N, 1)), 2)
    for place, scores in enumerate(kinds):
        counts = np.bincount(drawn[place::2], minlength=4).tolist()
        for factor in (0.9, 1, 1.1):
            chances = permute_and_flip_chances(scores, 2 * factor)
            assert rejects([(c, N, p) for c, p in zip(counts, chances, strict=True)]) == (factor != 1)


def test_rows_choose_independently() -> None:
    """Of two equal rows of two equal candidates the first takes the first one, and both take the same: half each."""
    drawn = permute_and_flip_choices(np.zeros((2 * N, 2), np.int64), 1)
    first, same = int((drawn == 0).sum()), int((drawn[::2] == drawn[1::2]).sum())
    assert not rejects([(first, 2 * N, 0.5), (same, N, 0.5)])
    assert rejects([(N, N, 0.5)])


def test_permute_and_flip_is_never_worse_than_the_exponential() -> None:
    """McKenna and Sheldon: the chance of the best candidate is at least as large."""
    for scores in ([0, 1, 2, 5], [0, 10, 11], [1, 1, 2]):
        assert permute_and_flip_chances(scores, 3)[-1] >= exponential_chances(scores, 3)[-1]


@pytest.mark.parametrize("choose", [exponential_choice, permute_and_flip_choice])
def test_extreme_scores_do_not_overflow(choose: Any) -> None:
    assert choose([LOW, HIGH], 1) == 1
    assert choose(np.array([HIGH, LOW]), 2**60) == 0
    assert choose([LOW, LOW], 1e-300) in {0, 1}
    assert choose(np.array([-5], np.int8), 1) == 0


def test_extreme_scores_of_many_rows_do_not_overflow() -> None:
    assert permute_and_flip_choices(np.array([[LOW, HIGH], [HIGH, LOW], [0, LOW]]), 1).tolist() == [1, 0, 0]
    assert permute_and_flip_choices(np.empty((0, 3), np.int64), 1).tolist() == []


def test_one_choice_among_many_equals_any_other() -> None:
    drawn = exponential_choice(np.zeros(100_000, int), 1, 50_000)
    assert not rejects([(int((drawn < 50_000).sum()), 50_000, 0.5)])
    assert drawn.max() < 100_000


def test_only_differences_of_scores_matter() -> None:
    scores = np.arange(50)
    first = exponential_choice(scores, 3, 1000, rng=SeededRandom(1))
    shifted = exponential_choice(scores + HIGH - 49, 3, 1000, rng=SeededRandom(1))
    assert (first == shifted).all()


@pytest.mark.parametrize("choose", [exponential_choice, permute_and_flip_choice])
@pytest.mark.parametrize(
    "scores",
    [
        [],
        [[1, 2]],
        5,
        [1.5],
        ["a"],
        [None],
        [True],
        [2**63],
        [2**70],
        [1, [2]],
        np.array([1], np.uint64),
        [float("nan")],
    ],
)
def test_wrong_scores_are_refused_without_a_word_about_them(choose: Any, scores: Any) -> None:
    with pytest.raises(InvalidParameter) as error:
        choose(scores, 1)
    assert not any(character.isdigit() for character in str(error.value).replace("64-bit", ""))


@pytest.mark.parametrize("weights", [[], [1], [1, 2, 3], [-1, 1], [0, 0], [0.5, 1], "ab", [[1, 2]]])
def test_wrong_weights_are_refused(weights: Any) -> None:
    with pytest.raises(InvalidParameter):
        exponential_choice([1, 2], 1, weights=weights)


@pytest.mark.parametrize("choose", [exponential_choice, permute_and_flip_choice])
@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), "1", None, True])
def test_wrong_scales_are_refused(choose: Any, scale: Any) -> None:
    with pytest.raises(InvalidParameter):
        choose([1, 2], scale)
