"""Questions about all steps of a stream: the protocol of tables and graphs, one payment, the numbers of a stream."""

import json
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import pytest

import mosha
from mosha import streams
from mosha.core.question import Answer, Question
from mosha.errors import DataError, InvalidParameter, MoshaError

MUCH = 512.0  # so much epsilon that noise is zero but for a chance below exp(-60)
DAYS = [[1] * rows for rows in (3, 0, 5, 2)]
METERS = [{"where": ["hall", "roof", "hall"], "kW": [1.0, 2.0, 9.0]}, {"where": [], "kW": []}]


def account(unit: Any = None, epsilon: float = 2000.0) -> Any:
    return mosha.Ledger.memory().account("door", unit=unit or mosha.Reading(), epsilon=epsilon)


def days(**given: Any) -> Any:
    return streams.protect(DAYS, unit=mosha.Reading(), **given)


def every_question(steps: Any, meters: Any) -> list[Any]:
    return [
        steps.counter(),
        steps.counter(release="instant"),
        steps.total(between=(0, 4), release=streams.Sliding(2)),
        steps.mean(between=(0, 4)),
        meters.histogram(keys=["hall", "roof"], column="where", release=streams.Decayed(0.5)),
        meters.series(keys=["hall", "roof"], key="where", between=(0, 5), column="kW"),
    ]


def test_a_question_about_a_stream_is_a_question_and_its_release_an_answer() -> None:
    asked = days(account=account()).counter()
    assert isinstance(asked, Question)
    answer = asked.release(epsilon=1)
    assert isinstance(answer, Answer)
    assert answer.value.shape == answer.error().shape == (4,)
    assert json.loads(json.dumps(answer.to_dict()))["value"] == answer.value.tolist()


def test_the_answer_is_that_of_the_stream() -> None:
    paid = account(epsilon=4000)
    assert days(account=paid).counter().release(epsilon=MUCH).value.tolist() == [3, 3, 8, 10]
    assert days(account=paid).counter(release="instant").release(epsilon=MUCH).value.tolist() == [3, 0, 5, 2]
    kept = streams.protect(METERS, unit=mosha.Reading(), account=paid)
    asked = kept.series(keys=["hall", "roof"], key="where", between=(0, 5), column="kW")
    assert np.allclose(asked.release(epsilon=MUCH).value, [[6, 2], [6, 2]], atol=1)  # fifty scales of its noise


def test_rows_of_a_person_count_as_often_as_was_said() -> None:
    unit = mosha.Person("who", at_most=2)
    steps = [{"who": ["a", "a", "b"], "x": [1, 1, 1]}] * 4
    asked = streams.protect(steps, unit=unit, account=account(unit)).counter(release="instant")
    assert asked.release(epsilon=MUCH).value.tolist() == [2, 2, 0, 0]


@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.5}])
def test_the_price_and_the_bars_are_those_of_the_stream(budget: Any) -> None:
    stream = streams.counter(unit=mosha.Reading(), horizon=4, **budget)
    asked = days().counter()
    assert asked.measurement_for(**budget).event == stream.event
    assert asked.forecast(**budget).tolist() == [stream.error_at(step) for step in (1, 2, 3, 4)]


def test_all_steps_are_one_payment_and_a_retry_is_free() -> None:
    paid = account(epsilon=1)
    asked = days(account=paid).counter()
    first = asked.release(epsilon=1, key="week")
    assert days(account=paid).counter().release(epsilon=1, key="week").value.tolist() == first.value.tolist()
    assert first.receipt.cost == 1
    with pytest.raises(MoshaError, match="week"):
        days(account=paid).counter(release="instant").release(epsilon=1, key="week")


def test_the_least_budget_for_a_bar_is_the_least() -> None:
    asked = days().counter()
    found = asked.plan(within=6).epsilon
    assert asked.forecast(epsilon=found).max() <= 6 < asked.forecast(epsilon=0.98 * found).max() + 0.5
    answer = days(account=account()).counter().release(within=6)
    assert answer.receipt.cost == pytest.approx(found)


def test_every_question_survives_json() -> None:
    meters = streams.protect(METERS, unit=mosha.Reading())
    questions = every_question(days(), meters)
    assert len({asked.fingerprint for asked in questions}) == len(questions)
    for asked in questions:
        again = streams.Question.from_dict(asked.steps, json.loads(json.dumps(asked.to_dict())))
        assert again.fingerprint == asked.fingerprint
        assert asked.explain(epsilon=1).startswith(f"-- {asked.title}: ")


JUNK = [
    3,
    {},
    {"stream": "look"},
    {"stream": ["counter"]},
    {"options": {"release": {"sliding": 2, "decayed": 1}}},
    {"options": {"release": {"other": 2}}},
    {"options": {"wrong": 1}},
    {"options": 5},
    {"horizon": 5},
    {"unit": {"unit": "Row"}},
]


@pytest.mark.parametrize("change", JUNK, ids=repr)
def test_other_data_are_no_question(change: Any) -> None:
    data = days().counter().to_dict() | change if change and isinstance(change, dict) else change
    with pytest.raises(InvalidParameter):
        streams.Question.from_dict(days(), data)


def test_a_column_that_is_not_there_costs_nothing() -> None:
    paid = account()
    kept = streams.protect(METERS, unit=mosha.Reading(), account=paid)
    with pytest.raises(DataError, match="watt"):
        kept.total(between=(0, 1), column="watt").release(epsilon=1)
    assert paid.remaining == 2000


def test_what_cannot_be_asked_is_refused_where_it_is_said() -> None:
    with pytest.raises(InvalidParameter):
        days().counter(release="sometimes")
    with pytest.raises(InvalidParameter):
        days().total(between=(1, 0))
    with pytest.raises(InvalidParameter, match="no account"):
        days().counter().release(epsilon=1)
    with pytest.raises(InvalidParameter):
        days().mean(between=(0, 1)).forecast(epsilon=1)


def test_what_is_shown_of_steps_has_no_number_of_rows() -> None:
    few, many = days(), streams.protect([[1] * 999] * 4, unit=mosha.Reading())
    assert repr(few) == repr(many)
    assert repr(few.counter()) == repr(many.counter())


def test_an_answer_is_drawn_with_its_bands() -> None:
    pytest.importorskip("matplotlib")
    kept = streams.protect(METERS, unit=mosha.Reading(), account=account())
    drawn = kept.histogram(keys=["hall", "roof"], column="where").release(epsilon=1).plot()
    assert [text.get_text() for text in drawn.axes[0].get_legend().get_texts()] == ["hall", "roof"]
    assert len(days(account=account()).counter().release(epsilon=1).plot().axes[0].lines) == 1


class Watched(list):
    """Rows that nobody may read as yet."""

    def __iter__(self) -> NoReturn:
        raise AssertionError("a row was read before anything was paid")

    def __getitem__(self, place: Any) -> list[Any]:
        assert place == slice(None, 0)
        return []


def read_too_soon() -> Iterator[None]:
    raise AssertionError("a row was read before anything was paid")
    yield  # type: ignore[unreachable]


@pytest.mark.parametrize(
    "batch", [Watched([1, 1]), {"x": Watched([1.0, 2.0])}, read_too_soon()], ids=["list", "dict", "generator"]
)
def test_nothing_is_read_before_it_is_paid_for(batch: Any) -> None:
    """What is tried before payment took whole columns, and a row that could not be read would have told of itself."""
    steps = streams.protect([batch], unit=mosha.Reading(), account=account(epsilon=0.1))
    asked = steps.total(between=(0, 4), column="x") if isinstance(batch, dict) else steps.counter()
    with pytest.raises(mosha.errors.BudgetExceeded):
        asked.release(epsilon=1)
