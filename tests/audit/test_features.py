"""What the attacker sees: columns of answers, lattices, codes, scores."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosha.audit.attacks.features import ZERO, features_of, hash_answers, lattice
from mosha.audit.attacks.score import combine_scores, learn_bins, order_by_number
from mosha.audit.claims.answers import Answers, Raised


@given(st.integers(min_value=-(2**53), max_value=2**53), st.integers(min_value=-900, max_value=900))
def test_the_lattice_of_a_number_is_the_power_of_two_that_divides_it(number: Any, power: Any) -> None:
    value = np.ldexp(float(number), power)
    found = lattice(np.array([value]))[0]
    if number == 0:
        assert found == ZERO
    else:
        odd = number >> (found_power := (number & -number).bit_length() - 1)
        assert odd % 2
        assert found == found_power + power


def test_the_lattice_of_integers_and_of_what_is_not_finite() -> None:
    assert lattice(np.array([12, 7, 0, -8, np.iinfo(np.int64).min])).tolist() == [2, 0, ZERO, 3, 63]
    assert np.isnan(lattice(np.array([np.nan, np.inf, -np.inf]))).all()
    assert lattice(np.array([5e-324])).tolist() == [-1074]


def test_answers_of_one_type_become_numbers() -> None:
    assert Answers.of([1, 2, 3]).values.tolist() == [[1], [2], [3]]
    assert Answers.of([True, False]).values.tolist() == [[1], [0]]
    assert Answers.of([0.5, 1.5]).values.dtype == np.float64
    assert Answers.of(np.zeros((4, 2, 3))).values.shape == (4, 6)
    assert Answers.of([np.array([1, 2]), np.array([3, 4])]).values.tolist() == [[1, 2], [3, 4]]


MIXED = [
    1,
    1.0,
    True,
    None,
    "1",
    b"1",
    [1],
    (1,),
    {"a": 1},
    {"b": 1},
    {1},
    np.array([1]),
    np.array([1.0]),
    [1, 1],
    [],
    float("nan"),
    2**70,
    1 + 2j,
    Raised("ValueError", "no"),
    Raised("ValueError", "yes"),
    Raised("TypeError", "no"),
]


def test_answers_that_differ_in_anything_have_different_codes() -> None:
    codes = hash_answers(Answers.of(MIXED))
    assert len(set(codes.tolist())) == len(MIXED)


def test_equal_answers_have_equal_codes_wherever_they_are() -> None:
    codes = hash_answers(Answers.of(MIXED + MIXED))
    assert codes[: len(MIXED)].tolist() == codes[len(MIXED) :].tolist()


def test_the_order_of_keys_does_not_matter_and_their_names_do() -> None:
    rows = Answers.of([{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 2, "b": 1}, {"a": 1, "c": 2}])
    codes = hash_answers(rows).tolist()
    assert codes[0] == codes[1]
    assert len(set(codes)) == 3
    assert rows.values[:2].tolist() == [[1, 2], [1, 2]]


def test_flat_and_nested_answers_agree_on_their_shape() -> None:
    flat = Answers.of([[1, 2.5], [3, 4.5]])
    nested = Answers.of([[1, 2.5], [3, 4.5], [[1], None]])
    assert flat.values.tolist() == nested.values[:2, :2].tolist()
    assert len(np.unique(flat.shape)) == 1
    assert len(np.unique(nested.shape)) == 2


def test_a_part_keeps_its_rows_and_their_words() -> None:
    answers = Answers.of(["a", "b", "c", "d"])
    part = answers.part(2, 4)
    assert len(part) == 2
    assert part.show(0) == "'c'"


def test_long_answers_are_looked_at_where_they_differ() -> None:
    random = np.random.default_rng()
    one, two = random.normal(size=(500, 80)), random.normal(size=(500, 80))
    two[:, 61] += 3
    names = [feature.name for feature in features_of(Answers.of(one), Answers.of(two))]
    assert "answer[61]" in names
    assert len(names) < 90


def worlds() -> tuple[Any, ...]:
    random = np.random.default_rng()
    one, two = random.normal(size=4000), random.normal(size=4000)
    two[:400] = 0.5
    two[400:500] = np.nan
    return Answers.of(one), Answers.of(two)


def test_an_atom_and_a_missing_number_have_bins_of_their_own() -> None:
    first, second = worlds()
    feature = next(f for f in features_of(first, second) if f.name == "answer")
    score = learn_bins(feature, first, second)
    assert score(Answers.of([0.5]))[0] < -2
    assert score(Answers.of([float("nan")]))[0] < -2
    assert abs(score(Answers.of([0.51]))[0]) < 1
    assert "0.5" in score.describe(-2, high=False)
    assert "NaN" in score.describe(-2, high=False)


def test_scores_of_both_kinds_favour_the_first_world_where_they_are_high() -> None:
    random = np.random.default_rng()
    first, second = (Answers.of(random.normal(size=(3000, 2)) + shift) for shift in (0.7, 0.0))
    singles = [learn_bins(feature, first, second) for feature in features_of(first, second)]
    for score in [*singles[:2], combine_scores(singles[:6], first, second)]:
        assert score(first).mean() > score(second).mean()


def test_codes_have_no_order() -> None:
    first, second = Answers.of(["a"] * 50), Answers.of(["b"] * 50)
    for feature in features_of(first, second):
        if feature.category:
            assert order_by_number(feature, first, second) == []


@pytest.mark.parametrize("high", [True, False])
def test_a_half_line_is_described_as_one(high: bool) -> None:
    first, second = worlds()
    feature = next(f for f in features_of(first, second) if f.name == "answer")
    up, down = order_by_number(feature, first, second)
    word = {True: "at least", False: "at most"}
    assert word[high] in up.describe(0.25, high=high)
    assert word[not high] in down.describe(0.25, high=high)
    assert ("missing" in up.describe(0.25, high=high)) is not high


def test_a_finding_about_float_grids_says_what_it_means() -> None:
    both = [Answers.of(numbers * 50) for numbers in ([0.5, 0.25, 0.75, 2.0], [0.1, 0.3, 0.7, 0.9])]
    (feature,) = [found for found in features_of(*both) if found.meaning]
    for score in (*order_by_number(feature, *both), learn_bins(feature, *both)):
        said = score.describe(float(score(both[0])[0]), high=True)
        assert said.startswith("the answers of the two worlds lie on different float grids")
        assert "power of two that divides answer" in said
