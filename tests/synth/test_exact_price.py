"""An account that is opened for exactly one release pays for it, whatever that costs."""

import pytest

import mosha
from mosha.core.budget import Budget

KEYS = {"a": [0, 1, 2], "b": [0, 1]}


@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-6, 1e-4])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 5, 8, 10, 20, 50])
def test_an_account_of_exactly_the_price_pays_for_a_synthetic_table(epsilon: float, delta: float) -> None:
    table = mosha.protect({"a": [0, 1, 2], "b": [0, 1, 1]}, unit=mosha.Row())
    measurement = table.synthesize(keys=KEYS)._measurement(Budget(epsilon=epsilon, delta=delta))
    account = mosha.Ledger.memory().account("exact", unit=mosha.Row(), epsilon=epsilon, delta=delta)
    assert account.quote(measurement).lacking == ()
    assert mosha.accounting.epsilon(measurement.event, delta) > epsilon * (1 - 1e-6)  # and little is left
