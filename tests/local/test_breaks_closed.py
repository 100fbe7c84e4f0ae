"""Breaks of the promise that a hostile reader once showed, each closed."""

import pytest

import mosha
from mosha import events, local
from mosha.core.errors import MoshaError
from mosha.core.measurement import Measurement
from mosha.core.unit import Row
from mosha.local.k_ary import KAry
from mosha.noise import secure


def test_a_survey_that_is_changed_after_pricing_keeps_its_randomiser():
    survey = local.Frequency(["a", "b", "c"], epsilon=0.1, protocol="k-ary")
    measurement = survey.measurement
    survey.randomiser = KAry(3, 20.0)
    told = sum(measurement.step(None, "a", None, secure())[0][-1] == 0 for _ in range(2_000))
    assert told < 1_000  # a third; more than half of 2,000 has a probability below 1e-50


def test_shuffled_reports_do_not_hide_whether_there_is_one(tmp_path):
    account = mosha.Ledger(tmp_path / "book.db").account("rows", unit=Row(), epsilon=1, delta=1e-6)
    count = Measurement(
        unit=Row(), event=events.Shuffled(1.0, 1000, 3), step=lambda state, data, ask, rng: (len(data), state)
    )
    with pytest.raises(MoshaError):
        account.open(count)


@pytest.mark.parametrize("length", [0, 3, 10, 15])
def test_a_trajectory_does_not_tell_how_long_the_way_was(length):
    assert len(local.Location((0.0, 0.0), 5000, 0.05).trajectory([(0.0, 0.0)] * length, at_most=10)) == 10
