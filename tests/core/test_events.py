"""Laws of events: composition is a multiset, and JSON is its frozen meaning."""

import copy
import json
import math
import pickle
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosha import events
from mosha.core.errors import InvalidParameter
from tests.core.every_word import every_event

EVENTS = every_event()
some_event = st.sampled_from(EVENTS)


def test_the_list_of_events_is_complete() -> None:
    assert {type(event).__name__ for event in EVENTS} == set(events.Event.kinds)


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_an_event_survives_json(event: Any) -> None:
    assert events.from_json(event.to_json()) == event
    assert events.from_dict(json.loads(json.dumps(event.to_dict()))) == event
    assert events.from_json(event.to_json()).to_json() == event.to_json()


@pytest.mark.parametrize("event", EVENTS, ids=repr)
@pytest.mark.parametrize("count", [1, 2, 7])
def test_repeating_is_adding(event: Any, count: int) -> None:
    added = event
    for _ in range(count - 1):
        added = added + event
    assert event * count == count * event == added == sum([event] * count)
    assert hash(event * count) == hash(added)
    assert (event * count).to_json() == added.to_json()


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_zero_times_costs_nothing_and_nothing_adds_nothing(event: Any) -> None:
    assert event * 0 == events.NOTHING
    assert event + events.NOTHING == events.NOTHING + event == event


@given(some_event, some_event, some_event)
def test_adding_is_commutative_and_associative(a: Any, b: Any, c: Any) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert hash(a + b) == hash(b + a)


@given(some_event, st.integers(1, 50), st.integers(1, 50))
def test_repeating_twice_is_repeating_the_product(event: Any, m: Any, n: Any) -> None:
    assert (event * m) * n == event * (m * n)
    assert event * m + event * n == event * (m + n)


@given(some_event, some_event)
def test_equal_events_have_equal_hashes_and_equal_json(a: Any, b: Any) -> None:
    assert (a == b) == (a.to_json() == b.to_json())
    assert a != b or hash(a) == hash(b)


@given(some_event, st.integers(1, 30))
def test_a_share_per_step_adds_up_to_the_whole(event: Any, steps: Any) -> None:
    assert (event * steps).per_step(steps) == event


def test_a_whole_that_does_not_divide_has_no_share_per_step() -> None:
    assert (events.Laplace(1) * 3 + events.Gaussian(1) * 4).per_step(2) is None


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_an_event_is_frozen(event: Any) -> None:
    for field in fields(event):
        with pytest.raises(AttributeError):
            setattr(event, field.name, 1)


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_an_unknown_field_a_missing_kind_and_another_version_are_refused(event: Any) -> None:
    described = event.to_dict()
    for spoiled in (
        described | {"surprise": 1},
        described | {"kind": "Surprise"},
        described | {"kind": ["Laplace"]},
        described | {"mosha": 2},
        {key: value for key, value in described.items() if key != "kind"},
        {key: value for key, value in described.items() if key != "mosha"},
    ):
        with pytest.raises(InvalidParameter):
            events.from_dict(spoiled)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{",
        b"\xff",
        "[" * 100_000,
        '{"mosha": 1, "kind": "Laplace", "noise_multiplier": NaN}',
        '{"mosha": 1, "kind": "Laplace", "noise_multiplier": "1"}',
        '{"mosha": 1, "kind": "Composed", "items": 5}',
        '{"mosha": 1, "kind": "Composed", "items": [[]]}',
        '{"mosha": 1, "kind": "Composed", "items": [["Laplace", 1]]}',
        '{"mosha": 1, "kind": "Composed", "items": [[{"kind": "Pure", "epsilon": 1}, -1]]}',
        '{"mosha": 1, "kind": "Renyi", "orders": 2, "values": 3}',
        '{"mosha": 1, "kind": "Event"}',
    ],
    ids=lambda text: repr(text)[:60],
)
def test_what_is_no_event_is_refused_with_a_typed_error(text: Any) -> None:
    with pytest.raises(InvalidParameter):
        events.from_json(text)


@pytest.mark.parametrize("count", [-1, 1.0, 2.5, True, "2", None, math.nan], ids=repr)
def test_a_count_is_a_whole_number(count: Any) -> None:
    with pytest.raises(InvalidParameter):
        events.Laplace(1) * count


BAD_NUMBERS = [0, -1, math.nan, math.inf, -math.inf, "1", None, True, 1j, 10**400, [1.0]]


@pytest.mark.parametrize("bad", BAD_NUMBERS, ids=lambda bad: repr(bad)[:12])
@pytest.mark.parametrize(
    "make",
    [
        events.Laplace,
        events.Gaussian,
        events.DiscreteLaplace,
        events.DiscreteGaussian,
        events.RandomizedResponse,
        events.Exponential,
        lambda x: events.SparseVector(x, 1),
        lambda x: events.SparseVector(1, x),
        lambda x: events.Shuffled(x, 10),
        lambda x: events.Tree(x, 3),
        lambda x: events.Matrix(x, 1),
        lambda x: events.Matrix(1, x),
        lambda x: events.Gaussian(1).sample(x),
        lambda x: events.Plan(events.Laplace(1), x),
        lambda x: events.Renyi((x,), (1.0,)),
    ],
)
def test_a_bad_number_is_refused(make: Any, bad: Any) -> None:
    with pytest.raises(InvalidParameter):
        make(bad)


@pytest.mark.parametrize(
    "make",
    [
        lambda: events.Pure(-1e-9),
        lambda: events.Approx(1, 1.0),
        lambda: events.Approx(1, -1e-9),
        lambda: events.ZeroConcentrated(-1),
        lambda: events.Gaussian(1).sample(1.5),
        lambda: events.Gaussian(1).sample(0.5, neighbors="cousins"),
        lambda: events.Sampled("Gaussian", 0.5),  # type: ignore[arg-type]
        lambda: events.FixedSizeSampled(events.Gaussian(1), 11, 10),
        lambda: events.FixedSizeSampled(events.Gaussian(1), 5, 10, 1),  # type: ignore[arg-type]
        lambda: events.Tree(1, 1, "uniform"),  # type: ignore[arg-type]
        lambda: events.Selected(events.Laplace(1), 0.5),
        lambda: events.Selected(events.Laplace(1), 2, shape=-1),
        lambda: events.Selected(events.Laplace(1), 2, "fixed"),  # type: ignore[arg-type]
        lambda: events.Parallel(()),
        lambda: events.Parallel((1,)),  # type: ignore[arg-type]
        lambda: events.Failure(events.Laplace(1), 1),
        lambda: events.RandomizedResponse(1, 1),
        lambda: events.Renyi((2.0, 2.0), (0.1, 0.1)),
        lambda: events.Renyi((), ()),
    ],
)
def test_parameters_that_contradict_themselves_are_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()


def count_orders(monkeypatch: pytest.MonkeyPatch) -> Any:
    """How often an event is described for the canonical order: what adding costs."""
    calls = []
    described = events.Event.to_json
    monkeypatch.setattr(events.Event, "to_json", lambda event: (calls.append(1), described(event))[1])
    return calls


@pytest.mark.parametrize("fold", ["from the left", "from the right", "sum", "in halves"])
def test_adding_n_events_costs_what_n_events_cost(monkeypatch: pytest.MonkeyPatch, fold: str) -> None:
    """Counted in operations: each addition once put all that was there before in order again."""

    def add(many: Any) -> Any:
        if fold == "sum":
            return sum(many)
        if fold == "in halves":
            while len(many) > 1:
                many = [a + b for a, b in zip(many[::2], many[1::2], strict=True)]
            return many[0]
        total = events.NOTHING
        for event in many:
            total = total + event if fold == "from the left" else event + total
        return total

    calls, counted = count_orders(monkeypatch), {}
    for number in (64, 512):
        calls.clear()
        total = add([events.Laplace(1 + n) for n in range(number)])
        assert total == events.compose((events.Laplace(1 + n), 1) for n in reversed(range(number)))
        counted[number] = len(calls)
    assert counted[512] <= 8 * counted[64] * (1.5 if fold == "in halves" else 1)  # halves: n log n


def test_an_event_added_to_itself_again_and_again_stays_one_event() -> None:
    total = events.Laplace(1) + events.Laplace(2)
    for _ in range(80):
        total = total + total
    assert total == (events.Laplace(1) + events.Laplace(2)) * 2**80


def test_a_long_sum_is_an_event_like_any_other() -> None:
    total = sum((events.Laplace(1 + n % 7) for n in range(20_000)), events.NOTHING)
    again = pickle.loads(pickle.dumps(total))  # deeper than calls can be, if it were a chain
    other = sum((events.Laplace(1 + n % 7) for n in range(20_000)), events.NOTHING)
    assert again == other
    assert copy.deepcopy(other) == total
    assert hash(again) == hash(total)
    assert events.NOTHING + total + events.NOTHING == total
    assert dict(total.parts())[events.Laplace(1)] == 2858
