"""Breaks of the promise that a hostile reader once showed, each closed."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosha
from mosha import events, local
from mosha.core.errors import InvalidParameter, MoshaError
from mosha.core.measurement import Measurement
from mosha.core.unit import Row
from mosha.local.protocols.k_ary import KAry
from mosha.noise import secure


def test_a_survey_that_is_changed_after_pricing_keeps_its_randomizer() -> None:
    survey = local.Frequency(["a", "b", "c"], epsilon=0.1, protocol="k-ary")
    measurement = survey.measurement
    with pytest.raises(InvalidParameter, match="cannot be changed"):
        survey.randomizer = KAry(3, 20.0)
    vars(survey)["randomizer"] = KAry(3, 20.0)  # whoever insists
    told = sum(measurement.step(None, "a", None, secure())[0][-1] == 0 for _ in range(2_000))
    assert told < 1_000  # a third; more than half of 2,000 has a probability below 1e-50


def test_shuffled_reports_do_not_hide_whether_there_is_one(tmp_path: Path) -> None:
    account = mosha.Ledger(tmp_path / "book.db").account("rows", unit=Row(), epsilon=1, delta=1e-6)
    count = Measurement(
        unit=Row(), event=events.Shuffled(1.0, 1000, 3), step=lambda state, data, ask, rng: (len(data), state)
    )
    with pytest.raises(MoshaError):
        account.open(count)


@pytest.mark.parametrize("length", [0, 3, 10, 15])
def test_a_trajectory_does_not_tell_how_long_the_way_was(length: int) -> None:
    assert len(local.Location((0.0, 0.0), 5000, 0.05).trajectory([(0.0, 0.0)] * length, at_most=10)) == 10


AGAIN = local.Repeated(["a", "b"], permanent=2, epsilon=1)


def test_a_repeated_survey_makes_no_batch_of_people_either() -> None:
    """A batch at a time would cost epsilon each day, and no account would know; nor does one hide among questions."""
    with pytest.raises(InvalidParameter, match="Device"):
        AGAIN.reports(["a"])
    with pytest.raises(InvalidParameter, match="Device"):
        local.Several({"x": AGAIN})
    assert AGAIN.estimate(AGAIN.simulate(["a", "b"] * 50)).reports == 100


@pytest.mark.parametrize(
    "values",
    [["3"], [b"3"], [True], [1.0, True], [1.0, "3"], np.array(["3"]), np.array(["3"], object), [np.bool_(1)], {"a": 3},
     {3}, [None], [1j], np.array([True]), np.array([[1.0]]), "3", [10**400]],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("kind", [local.Mean, local.Distribution])
def test_what_is_no_number_alone_is_none_among_many(kind: Any, values: Any) -> None:
    survey = kind(between=(0, 10), epsilon=1)
    with pytest.raises(InvalidParameter):
        survey.reports(values)
    if isinstance(values, list):
        with pytest.raises(InvalidParameter):
            survey.report(values[-1])


def test_numbers_of_every_library_are_numbers() -> None:
    survey = local.Mean(between=(0, 10), epsilon=1)
    for values in (
        [3, 4.5],
        (3,),
        np.array([3], np.int8),
        np.array([3, 4.5], object),
        [np.float32(3)],
        [math.inf],
        [],
        range(3),
    ):
        assert len(survey.reports(values)) == len(values)


@pytest.mark.parametrize("values", [{"a": 3}, {"a"}, "ab", np.array([["a"]]), np.array("a"), 7], ids=repr)
@pytest.mark.parametrize("other", [None, "z"])
def test_what_is_no_list_of_values_is_refused(values: Any, other: Any) -> None:
    with pytest.raises(InvalidParameter):
        local.Frequency(["a", "b"], epsilon=1, other=other).reports(values)


@pytest.mark.parametrize("place", [(48.86, "2"), ("48.86", 2.0), (b"1", 2.0), (True, 2.0), "12"])
def test_a_text_is_no_place(place: Any) -> None:
    with pytest.raises(InvalidParameter):
        local.Location((48.86, 2.0), 5000, 0.05).report(place)


def test_a_place_outside_the_region_is_moved_to_its_edge() -> None:
    """The noise is 20 cm: 20 metres of it have a probability of e^-100 (1 + 100)."""
    city = local.Location((48.86, 2.0), 5000, 5.0)
    assert abs(local.distance(city.center, city.report((49.5, 2.0))) - 5000) < 20


@pytest.mark.parametrize("odd", [None, "3", math.nan, math.inf, True, [1.0], b"3"])
def test_the_share_below_what_is_no_number_is_refused(odd: Any) -> None:
    survey = local.Distribution(between=(0, 10), epsilon=1)
    density = survey.estimate(survey.reports([5.0] * 50))
    for ask in (density.below, density.below_interval):
        with pytest.raises(InvalidParameter):
            ask(odd)


def test_the_ends_of_a_share_stay_between_nothing_and_all() -> None:
    survey = local.Distribution(between=(0, 10), epsilon=1)
    density = survey.estimate(survey.reports([5.0] * 100))
    for value in (-3.0, 0.0, 0.1, 2.0, 5.0, 9.9, 10.0, 50.0):
        found = density.below_interval(value)
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert (found.low == found.value - found.error) or found.low == 0
        assert (found.high == found.value + found.error) or found.high == 1
    assert density.below_interval(5.0).error > 0


def test_a_survey_says_what_it_is() -> None:
    tea = local.Frequency(["tea", "coffee"], epsilon=2)
    assert repr(tea) == "<Frequency of 2 values ('tea', 'coffee'), k-ary, epsilon 2, 2 bytes per report>"
    assert repr(local.Frequency(range(1000), epsilon=1)).startswith("<Frequency of 1000 values (0, 1, 2, ...), ")
    mean = local.Mean(between=(0, 120), epsilon=2)
    assert repr(mean) == "<Mean between 0 and 120, hybrid, epsilon 2, 3 bytes per report>"
    assert repr(local.Distribution(between=(0, 1), epsilon=1)).startswith("<Distribution between 0 and 1, averaged, ")
    assert repr(local.Several({"x": mean, "y": tea})).startswith("<Several of 'x': mean, 'y': frequency, epsilon 2, ")
    assert "permanent 2" in repr(AGAIN)


@pytest.mark.parametrize("values", [[], ["a"], range(0), range(1)])
def test_too_few_values_are_told_as_values(values: Any) -> None:
    with pytest.raises(InvalidParameter, match="at least two values"):
        local.Frequency(values, epsilon=1)


def test_a_comparison_says_what_its_numbers_are() -> None:
    told = str(local.compare(2000, 4, 1.0))
    assert "standard deviation of a count" in told
    assert "in 15 simulated" in told
    assert "±" not in told
