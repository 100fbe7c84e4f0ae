"""An event that is priced for one kind of neighbors is refused where the unit has the other."""

from typing import Any

import pytest

import mosha
from mosha.core.unit import Neighbors
from mosha.events import FixedSizeSampled, Gaussian, Group, Laplace, Parallel, Plan

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
SUITED = {
    Gaussian(1) + Laplace(2): {ADD, REPLACE},
    Gaussian(1).sample(0.1) * 10: {ADD},
    Plan(Gaussian(1).sample(0.1, neighbors="replace-one") * 10, 1e-6): {REPLACE},
    FixedSizeSampled(Gaussian(1), 10, 100): {REPLACE},
    Group(Parallel((Laplace(1), Laplace(2))), 2): {ADD},
}


@pytest.mark.parametrize(
    ("event", "suited"), SUITED.items(), ids=lambda part: None if isinstance(part, set) else repr(part)
)
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_the_door_admits_an_event_for_its_own_neighbors_only(event: Any, suited: Any, neighbors: Any) -> None:
    assert event.suits(neighbors) is (neighbors in suited)
    unit = mosha.Row(neighbors=neighbors)
    account = mosha.Ledger.memory().account("a", unit=unit, epsilon=100, delta=1e-3)
    measurement = mosha.Measurement(unit=unit, event=event, step=lambda state, data, ask, rng: (0, state))
    if neighbors in suited:
        account.open(measurement)
    else:
        with pytest.raises(mosha.errors.InvalidParameter, match="neighbo"):
            account.open(measurement)
        assert account.spent == 0


def test_the_door_takes_no_generator_that_can_be_made_again() -> None:
    unit = mosha.Row()
    account = mosha.Ledger.memory().account("a", unit=unit, epsilon=1)
    measurement = mosha.Measurement(unit=unit, event=Laplace(2), step=lambda state, data, ask, rng: (0, state))
    with pytest.raises(mosha.errors.InsecureRandomness, match="made again"):
        account.open(measurement, rng=mosha.noise.KeyedRandom(bytes(32), "visits", 7))
    assert account.spent == 0
