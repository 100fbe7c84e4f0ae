"""Every mechanism of Mosha signs the contract of steps, and every statistic that of sensitivities."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mosha import Measurement, Person, Row, events, mechanisms
from mosha.audit import entries, neighbors, statistic_contract, step_contract
from mosha.core.errors import InvalidParameter
from mosha.mechanisms import ClippedSum, Count, Histogram, VectorSum

ADD, REPLACE = Row(), Row(neighbors="replace-one")  # type: ignore[arg-type]
PERSON = Person("id", at_most=2)
KEYS = ["a", "b", "c"]


def own() -> list[Any]:
    return [entry for entry in entries() if entry.kind == "mechanisms"]


@pytest.mark.parametrize("entry", own(), ids=lambda entry: entry.name)
def test_every_mechanism_keeps_the_contract_of_steps(entry: Any) -> None:
    """False-alarm rate 1e-9 each."""
    contract = step_contract(entry.build(), entry.proposals, runs=120, **entry.how)
    assert contract.kept, str(contract)


STATISTICS = [
    (Count(), ADD, neighbors.of_numbers(ADD, between=(0, 8))),
    (ClippedSum(between=(-3, 8)), ADD, neighbors.of_numbers(ADD, between=(-3, 8))),
    (ClippedSum(between=(-3, 8)), REPLACE, neighbors.of_numbers(REPLACE, between=(-3, 8))),
    (ClippedSum(between=(-3, 8), column="value"), PERSON, neighbors.of_numbers(PERSON, between=(-3, 8))),
    (Histogram(keys=KEYS), ADD, neighbors.of_categories(ADD, keys=KEYS)),
    (Histogram(keys=KEYS), REPLACE, neighbors.of_categories(REPLACE, keys=KEYS)),
    (VectorSum(norm=1.0, coordinates=2), ADD, [([[3e9, 4e9]], []), ([[0.6, -0.8]], [])]),
]


@pytest.mark.parametrize(("statistic", "unit", "pairs"), STATISTICS, ids=lambda part: type(part).__name__)
def test_every_statistic_moves_no_further_than_it_says(statistic: Any, unit: Any, pairs: Any) -> None:
    contract = statistic_contract(statistic, unit=unit, neighbors=pairs)
    assert contract.kept, str(contract)


class OffByTwo:
    """A sum whose sensitivity under replacement is that of adding a row."""

    inner = ClippedSum(between=(-3, 8))

    def evaluate(self, data: Any, unit: Any) -> Any:
        return self.inner.evaluate(data, unit)

    def sensitivity(self, unit: Any) -> Any:
        return self.inner.sensitivity(ADD)


def test_a_sensitivity_that_is_too_small_is_found() -> None:
    pairs = neighbors.of_numbers(REPLACE, between=(-3, 8))
    broken = statistic_contract(OffByTwo(), unit=REPLACE, neighbors=pairs).broken
    assert "l1 at most what is derived" in broken
    with pytest.raises(InvalidParameter):
        statistic_contract(Count(), unit=ADD, neighbors=[])


COUNT = mechanisms.laplace(Count(), unit=ADD, epsilon=1)


def own_generator(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
    return len(data) + np.random.default_rng().laplace(), state


def in_place(state: Any, data: Any, ask: Any, rng: Any) -> Any:
    data.sort()
    return COUNT.step(state, data, ask, rng)


def fails_on_nan(state: Any, data: Any, ask: Any, rng: Any) -> Any:
    if any(value != value for value in data):
        raise ValueError
    return COUNT.step(state, data, ask, rng)


class Remembers:
    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        self.seen += 1
        return self.seen, state


def truth(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
    return len(data), state


@pytest.mark.parametrize(
    ("step", "clause"),
    [
        (own_generator, "same randomness, same answer"),
        (Remembers(), "same randomness, same answer"),
        (in_place, "data are left as they were"),
        (fails_on_nan, "an answer for all data"),
        (truth, "the price allows what is seen"),
    ],
)
def test_a_step_that_breaks_its_contract_is_found(step: Any, clause: str) -> None:
    faulty = replace(COUNT, step=step)
    pairs = [([2.0, 1.0], [2.0, 1.0, float("nan")]), ([], [1.0])]
    assert clause in step_contract(faulty, pairs, runs=400).broken


class SharedNoise:
    """The state is drawn once, for all runs."""

    def __init__(self) -> None:
        self.state = {"step": 0}

    def init(self) -> Any:
        return self.state

    def step(self, state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        state["step"] += 1
        return state["step"] % 2, state


def test_a_state_that_is_shared_by_runs_is_found() -> None:
    shared = SharedNoise()
    two = Measurement(unit=ADD, event=events.Pure(1.0), init=shared.init, step=shared.step, horizon=2)
    assert "nothing is kept between runs" in step_contract(two, [([], [1])], runs=200).broken


def test_nothing_to_check_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        step_contract(COUNT, [])
