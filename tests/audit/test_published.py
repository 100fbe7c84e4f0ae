"""Attacks on published tables: each finds what is there, and nothing where there is nothing."""

from typing import Any

import numpy as np
import pytest

from mosha import noise
from mosha.audit import (
    Outcome,
    anonymity,
    attribute_attack,
    background_attack,
    compare,
    differencing,
    draw_inclusion,
    generalize,
    homogeneity_attack,
    mask,
    membership_attack,
    reconstruct,
    reconstruction_attack,
    suppress,
)
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.guarantee import Gaussian

random = np.random.default_rng


def people(count: Any) -> dict[str, Any]:
    rng = random()
    return {
        "age": rng.integers(18, 90, count),
        "zip": rng.integers(10_000, 99_999, count).astype(str),
        "income": rng.normal(50, 15, count),
        "illness": rng.choice(["flu", "hiv", "none"], count, p=[0.3, 0.1, 0.6]),
    }


def pick(table: Any, rows: Any) -> dict[Any, Any]:
    return {name: column[rows] for name, column in table.items()}


# Membership and attributes


def test_publishing_the_data_as_synthetic_betrays_its_members() -> None:
    """The attacker calls half of them members: the advantage is below 0.9 if the coins are 200 off, by 3e-11."""
    table, included = people(3600), draw_inclusion(3600)
    found = membership_attack(pick(table, included), table, included, claim=Gaussian(1))
    assert found.advantage > 0.9
    assert found.one_run.outcome is Outcome.BROKEN
    assert found.true_positives[0.01] > 0.9
    assert "Membership" in str(found)
    assert "scores" not in found.to_dict()


def test_data_of_other_people_betray_nobody() -> None:
    """False-alarm rates 1e-9 each."""
    table, included = people(600), draw_inclusion(600)
    found = membership_attack(people(500), table, included, claim=Gaussian(0.5), confidence=1 - 1e-9)
    assert found.one_run.outcome is Outcome.CONSISTENT
    assert found.advantage_at_least == 0


def test_an_attribute_leaks_where_members_are_guessed_better_than_others() -> None:
    table, included = people(800), draw_inclusion(800)
    terms: dict[str, Any] = {"sensitive": "illness", "known": ["age", "zip", "income"]}
    leak = attribute_attack(pick(table, included), table, included, **terms)
    assert leak.members == 1
    assert leak.others < 0.7
    assert leak.difference_at_least > 0.2
    blind = attribute_attack(people(500), table, included, **terms, confidence=1 - 1e-9)
    assert blind.difference_at_least == 0


def test_tables_that_do_not_fit_are_refused() -> None:
    table, included = people(50), draw_inclusion(50)
    with pytest.raises(InvalidParameter):
        membership_attack({"other": [1]}, table, included)
    with pytest.raises(InvalidParameter):
        membership_attack(table, table, np.ones(50, bool))
    with pytest.raises(DataError):
        attribute_attack(table, table, included, sensitive="wealth", known=["age"])
    with pytest.raises(DataError):
        anonymity({"a": [1, 2], "b": [1]}, quasi=["a"], sensitive="b")
    with pytest.raises(DataError):
        anonymity([1, 2], quasi=["a"], sensitive="b")


# Reconstruction and differencing


def test_accurate_counts_give_everybody_away_and_private_ones_do_not() -> None:
    """The private attack is a fair coin for each of 60 people: 55 or more right has probability below 1e-11. With 960
    accurate counts a person is missed with probability below 1e-8, three of them with 1e-19."""
    secrets = random().integers(0, 2, 60)
    accurate = reconstruction_attack(
        secrets, lambda counts: counts + random().integers(-1, 2, counts.shape), questions=960
    )
    private = reconstruction_attack(
        secrets, lambda counts: counts + noise.discrete_laplace(len(counts) / 1.0, counts.shape)
    )
    assert accurate.share > 0.95
    assert private.right < 55
    assert "Reconstruction" in str(accurate)
    assert accurate.to_dict()["share"] == accurate.share


def test_exact_counts_are_solved_exactly() -> None:
    secrets = random().integers(0, 2, 20)
    members = random().integers(0, 2, (80, 20))
    assert reconstruct(members, members @ secrets).tolist() == secrets.tolist()


def test_reconstruction_needs_bits_and_counts() -> None:
    with pytest.raises(InvalidParameter):
        reconstruction_attack([0, 1, 2], lambda counts: counts)
    with pytest.raises(InvalidParameter):
        reconstruct([[1, 0]], [float("nan")])
    with pytest.raises(InvalidParameter):
        reconstruct([[1, 0]], [1, 2])


def test_differencing_finds_exactly_those_whom_the_totals_give_away() -> None:
    members = [[1, 1, 1, 1], [1, 1, 1, 0], [0, 1, 1, 0]]
    values = np.array([3.0, 5.0, 7.0, 11.0])
    found = differencing(members, np.array(members) @ values)
    assert found.exposed == (0, 3)
    assert found.values == pytest.approx((3.0, 11.0))
    assert found.recipes == ("cell 0 = total 1 - total 2 = 3", "cell 3 = total 0 - total 1 = 11")
    assert differencing([[1, 1, 0], [0, 1, 1]], [1, 1]).exposed == ()


def test_differencing_needs_names_that_fit() -> None:
    with pytest.raises(InvalidParameter):
        differencing([[1, 1]], [1], cells=["one"])
    with pytest.raises(InvalidParameter):
        differencing([[1, 1]], [1, 2])


# k-anonymity

HOSPITAL = {
    "zip": ["130**"] * 4 + ["148**"] * 4 + ["130**"] * 4,
    "age": ["<30"] * 4 + [">=40"] * 4 + ["3*"] * 4,
    "illness": ["heart", "heart", "virus", "virus", "cancer", "heart", "virus", "virus"] + ["cancer"] * 4,
}
TERMS: dict[str, Any] = {"quasi": ["zip", "age"], "sensitive": "illness"}


def test_the_table_of_machanavajjhala_is_4_anonymous_and_betrays_a_class() -> None:
    figures = anonymity(HOSPITAL, **TERMS)
    assert (figures.k, figures.l, figures.classes, figures.homogeneous, figures.alone) == (4, 1, 3, 4, 0)
    assert homogeneity_attack(HOSPITAL, **TERMS).rows == (8, 9, 10, 11)
    assert len(background_attack(HOSPITAL, **TERMS).rows) == 8, "ruling out heart disease settles the first class"
    assert background_attack(HOSPITAL, **TERMS, excluded=2).share == 1


def test_closeness_is_zero_where_classes_look_like_the_whole() -> None:
    table = {"zip": [1, 1, 2, 2], "illness": ["a", "b", "a", "b"]}
    assert anonymity(table, quasi=["zip"], sensitive="illness").t == 0
    assert anonymity(table, quasi=["zip"], sensitive="illness").entropy_l == pytest.approx(2)


def test_closeness_of_numbers_is_the_earth_movers_distance() -> None:
    """The example of Li, Li and Venkatasubramanian (2007): salaries 3k, 4k, 5k among 3k..11k are 0.375 away."""
    table = {"group": [0, 0, 0, 1, 1, 1, 2, 2, 2], "salary": [3, 4, 5, 6, 8, 11, 7, 9, 10]}
    assert anonymity(table, quasi=["group"], sensitive="salary").t == pytest.approx(0.375)


def test_generalising_masking_and_suppressing() -> None:
    table = {"age": [34, 39, 41], "zip": ["13053", "13068", "14850"], "illness": ["a", "b", "c"]}
    coarse = generalize(table, age=10)
    coarse["zip"] = mask(coarse["zip"], keep=2)
    assert coarse["zip"].tolist() == ["13***", "13***", "14***"]
    assert suppress(coarse, quasi=["age", "zip"], k=2)["illness"].tolist() == ["a", "b"]
    with pytest.raises(InvalidParameter):
        generalize(table, zip=10)
    with pytest.raises(InvalidParameter):
        generalize(table, age=0)
    with pytest.raises(InvalidParameter):
        mask(["a"], keep=-1)


def test_a_comparison_reaches_k_and_says_what_is_left_open() -> None:
    table = people(2000)
    report = compare(
        table, quasi=["age", "zip"], sensitive="illness", k=5, epsilon=1, widths={"age": 30}, keep={"zip": 1}
    )
    assert report.before.k == 1
    assert report.after.k >= 5
    assert report.after.rows + report.suppressed == 2000
    assert report.error >= 2
    assert [attack.total for attack in report.attacks] == [report.after.rows] * 2
    assert "k-anonymized" in str(report)
    with pytest.raises(InvalidParameter):
        compare(table, quasi=["age", "zip"], sensitive="illness", k=5, epsilon=1)


def test_empty_tables_have_no_figures() -> None:
    with pytest.raises(InvalidParameter):
        anonymity({"a": [], "b": []}, quasi=["a"], sensitive="b")
