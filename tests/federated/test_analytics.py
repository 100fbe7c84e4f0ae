"""Questions to clients without training: right answers, right noise, bounded contributions, typed refusals."""

import math
from typing import Any

import numpy as np
import pytest

import mosha
from mosha import accounting, errors
from mosha.federated import heavy_hitters, histogram, mean, quantile
from mosha.noise import secure
from tests.federated.parties import purse

TERMS: dict[str, Any] = {"clients": 60, "survivors": 50, "epsilon": 4.0, "delta": 1e-5}
VALUES = dict(enumerate(np.random.default_rng(3).normal(10, 3, 60).tolist()))


def asked(question: Any, values: Any) -> Any:
    account = purse()
    release = account.open(question.measurement()).step(values)
    assert account.spent <= 4.0 * (1 + 1e-9)
    return release


def test_a_histogram_counts_within_its_error_bar() -> None:
    question = histogram(keys=["a", "b", "c"], **TERMS)
    release = asked(question, {i: "aab?"[i % 4] for i in range(60)})
    assert (np.abs(release.value - [30, 15, 0]) < release.error(1 - 1e-12)).all()


def test_a_mean_and_a_quantile_are_near_the_truth() -> None:
    """Noise multiplier 1.3 on counts of 60: sd of the mean 0.3 of 15 * 1.6 / 60; the margins are above 8 sd."""
    found = asked(mean(between=(0, 20), **TERMS), VALUES).value
    assert abs(found - np.mean(list(VALUES.values()))) < 4.0
    found = asked(quantile(at=0.5, between=(0, 20), bins=16, **TERMS), VALUES).value
    assert abs(found - np.median(list(VALUES.values()))) < 8.0


@pytest.mark.parametrize("value", [None, math.nan, math.inf, "x", [1], {}, object(), 10**400, -(10**400)])
@pytest.mark.parametrize(
    "question",
    [
        histogram(keys=[1, 2], **TERMS),
        mean(between=(0, 1), **TERMS),
        quantile(at=0.5, between=(0, 1), **TERMS),
        heavy_hitters(longest=4, buckets=64, **TERMS),
    ],
    ids=["histogram", "mean", "quantile", "heavy hitters"],
)
def test_whatever_a_client_holds_it_adds_no_more_than_its_share_and_never_fails(question: Any, value: Any) -> None:
    steps = question._steps(value)
    assert sum(int(s) ** 2 for s in steps) <= question.square * question.units**2
    assert question.encode(value, secure()).shape == (question.coordinates,)


def test_popular_texts_are_found_first() -> None:
    """Each is 14 deviations of its noise out in the median of four rows; the names of strangers are all different."""
    terms: dict[str, Any] = TERMS | {"clients": 400, "survivors": 400, "epsilon": 6.0}
    question = heavy_hitters(longest=5, alphabet="abcdefghij", buckets=256, **terms)
    names = ["abc"] * 170 + ["jihgf"] * 150 + [f"{chr(97 + i % 10)}{chr(97 + i // 10)}" for i in range(80)]
    total = sum(question.encode(name, secure()).view(np.int32).astype(np.int64) for name in names)
    rows = question.decode(total / question.units)  # type: ignore[arg-type]
    assert [row["value"] for row in rows[:2]] == ["abc", "jihgf"]
    for row, count in zip(rows[:2], (170, 150), strict=True):
        assert abs(row["count"] - count) < 4 * row["error"]  # 8 deviations


def test_popular_texts_are_opened_by_secure_aggregation_and_paid_once() -> None:
    """Everybody has the text: 60 of them, more than 15 deviations of the noise."""
    question = heavy_hitters(longest=2, alphabet="abc", buckets=64, **TERMS)
    rows = asked(question, dict.fromkeys(range(60), "ab")).value
    assert rows[0]["value"] == "ab"
    assert question.square == 4
    assert 4 * 0.999 < accounting.epsilon(question.event, 1e-5) <= 4


def test_noise_of_the_least_cohort_is_what_is_charged() -> None:
    """7 sd of a chi-square over 4000 coordinates; noise of 0.85 and 1.18 of it is told apart."""
    question = histogram(keys=range(4000), **TERMS)
    total = sum(question.encode(None, secure()).view(np.int32).astype(np.int64) for _ in range(50))
    sigma = question.noise_multiplier * question.units
    ratio = float((total.astype(float) ** 2).mean()) / sigma**2  # type: ignore[union-attr]
    tolerance = 7 * math.sqrt(2 / 4000)
    assert abs(ratio - 1) < tolerance
    assert abs(ratio / 0.85**2 - 1) > tolerance
    assert abs(ratio / 1.18**2 - 1) > tolerance


def test_the_price_is_the_promise() -> None:
    for question in (histogram(keys=["a", "b"], **TERMS), mean(between=(0, 1), **TERMS)):
        assert 4 * 0.999 < accounting.epsilon(question.event, 1e-5) <= 4


def test_too_few_clients_are_not_opened_and_the_payment_waits() -> None:
    account = purse()
    run = account.open(histogram(keys=["a", "b"], **TERMS).measurement())
    with pytest.raises(errors.SourceUnavailable):
        run.step(dict.fromkeys(range(49), "a"))
    assert abs(run.step(dict.fromkeys(range(55), "a")).value[0] - 55) < 40


@pytest.mark.parametrize(
    "make",
    [
        lambda: histogram(keys=[], **TERMS),
        lambda: histogram(keys=[1, 1], **TERMS),
        lambda: histogram(keys=[1], **TERMS | {"epsilon": 0}),
        lambda: histogram(keys=[1], **TERMS | {"delta": 0}),
        lambda: histogram(keys=[1], **TERMS | {"survivors": 61}),
        lambda: histogram(keys=[1], **TERMS | {"survivors": 1}),
        lambda: mean(between=(1, 0), **TERMS),
        lambda: mean(between=None, **TERMS),
        lambda: quantile(at=1.5, between=(0, 1), **TERMS),
        lambda: quantile(at=0.5, between=(0, 1), bins=0, **TERMS),
        lambda: histogram(keys=[1], **TERMS | {"clients": 2**40}).measurement(),
    ],
)
def test_bad_questions_are_refused(make: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        make()


def test_another_unit_is_refused() -> None:
    with pytest.raises(errors.WrongUnit):
        purse(unit=mosha.Row()).open(histogram(keys=["a", "b"], **TERMS).measurement())
