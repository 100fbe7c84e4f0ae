"""Laws of measurements and releases: post-processing is free, error bars are public, a forecast costs nothing."""

import json
from typing import Any

import pytest

import mosha
from mosha import events
from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Measurement
from mosha.core.release import Receipt, Release


def receipt(**changes: Any) -> Any:
    fields: dict[str, Any] = {
        "account": "visits",
        "entry": "1",
        "unit": mosha.Row(),
        "event": events.Laplace(2),
        "measure": "epsilon",
    }
    return Receipt(**fields | {"cost": 0.5, "spent": 0.75, "limit": 2.0} | changes)


def width(confidence: Any, answer: Any) -> Any:
    return 10 * confidence if answer is None else 10 * confidence + answer


def measurement(**changes: Any) -> Any:
    fields: dict[str, Any] = {
        "unit": mosha.Row(),
        "event": events.Laplace(2),
        "step": lambda s, d, a, r: (d, s),
        "error": width,
    }
    return Measurement(**fields | changes)


def test_mapping_a_release_is_free_and_keeps_the_receipt() -> None:
    release = Release(4, receipt())
    assert release.map(lambda x: x * 2).value == 8  # type: ignore[operator]
    assert release.map(lambda x: x * 2).receipt is release.receipt  # type: ignore[operator]
    assert release.value == 4


def test_the_error_bar_of_a_mapped_release_is_not_invented() -> None:
    with pytest.raises(InvalidParameter, match="error bar"):
        Release(4, receipt(), 1, width).map(str).error()


def test_a_release_has_the_error_bar_of_its_measurement() -> None:
    release = Release(4, receipt(), 1, width, lambda answer, error: ("picture", answer, error))
    assert release.error(0.5) == 9
    assert release.plot() == ("picture", 4, 13.5)


def test_a_release_without_a_picture_says_so() -> None:
    with pytest.raises(InvalidParameter, match="picture"):
        Release(4, receipt()).plot()


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, float("nan"), "95%", None, True])
def test_a_confidence_is_a_probability(confidence: Any) -> None:
    with pytest.raises(InvalidParameter):
        Release(4, receipt(), 1, width).error(confidence)
    with pytest.raises(InvalidParameter):
        measurement().forecast(confidence)


def test_a_forecast_knows_no_answer() -> None:
    assert measurement().forecast(0.5) == 5
    with pytest.raises(InvalidParameter, match="depends on the data"):
        measurement(error=None).forecast()


def test_mapping_a_measurement_keeps_the_price() -> None:
    doubled = measurement().map(lambda x: 2 * x)
    assert doubled.event == measurement().event
    assert doubled.step(None, 21, None, None) == (42, None)
    assert doubled.error is None


@pytest.mark.parametrize(
    "changes", [{"unit": "row"}, {"event": 1.0}, {"event": None}, {"horizon": 0}, {"horizon": 1.5}, {"horizon": True}]
)
def test_a_measurement_without_unit_price_or_horizon_is_refused(changes: Any) -> None:
    with pytest.raises(InvalidParameter):
        measurement(**changes)


def test_a_receipt_says_who_paid_what_and_who_is_hidden() -> None:
    assert str(receipt()) == (
        "paid epsilon 0.5 from account 'visits': 0.75 of 2 spent, 1.25 left; hidden: one row is added or removed"
    )
    assert "and delta 1e-06" in str(receipt(delta=1e-6))


def test_a_receipt_is_json_for_programs() -> None:
    described = json.loads(json.dumps(receipt().to_dict()))
    assert described["remaining"] == 1.25
    assert events.from_dict(described["event"]) == events.Laplace(2)
    assert mosha.Unit.from_dict(described["unit"]) == mosha.Row()


def test_what_remains_is_never_negative() -> None:
    assert receipt(spent=2.5).remaining == 0
