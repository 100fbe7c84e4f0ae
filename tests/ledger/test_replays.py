"""A measurement that replays may be started again as often as it takes; its book still verifies."""

import dataclasses
from typing import Any, NoReturn

import pytest

from tests.ledger.test_resumption import account, counting


def test_a_step_that_replays_survives_any_number_of_crashes(place: Any) -> None:
    def killed(state: Any, data: Any, ask: Any, rng: Any) -> NoReturn:
        raise KeyboardInterrupt

    whole = dataclasses.replace(counting(), state=dataclasses.replace(counting().state, replays=True))
    run = account(place).open(whole, key="k")
    run.step(1)
    for _ in range(4):
        again = account(place).open(dataclasses.replace(whole, step=killed), key="k")
        again.step(None)
        with pytest.raises(KeyboardInterrupt):
            again.step(10)
    last = account(place).open(whole, key="k")
    assert [last.step(n).value for n in (None, 10)] == [1, 11]
    assert place.open().verify().ok
