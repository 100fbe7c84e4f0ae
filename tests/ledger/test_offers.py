"""Who buys (epsilon, delta) pays (epsilon, delta): an account of that very limit pays for one such release."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import mosha
from mosha import accounting, errors, events
from mosha.core.unit import Example
from mosha.federated import analytics
from mosha.learning import LogisticRegression
from mosha.mechanisms import Histogram, gaussian
from mosha.streams import alarm, counter
from tests.ledger.place import PERSON, asking

BOUGHT = [(1.0, 1e-6), (0.1, 1e-9), (3.0, 1e-5)]
ROW = mosha.Row()


def measurements(epsilon: Any, delta: Any) -> Iterator[Any]:
    bought = {"epsilon": epsilon, "delta": delta}
    yield gaussian(Histogram(keys=["a", "b"]), unit=ROW, **bought)
    yield counter(unit=mosha.Reading(), horizon=64, **bought)
    yield alarm(unit=mosha.Reading(), threshold=50, alarms=500, horizon=None, **bought)
    yield analytics.histogram(keys=["a", "b"], clients=100, survivors=80, **bought).measurement()
    yield LogisticRegression(examples=4000, norm=1.0, **bought).measurement(3)


@pytest.mark.parametrize("rule", [None, "pure"])
@pytest.mark.parametrize(("epsilon", "delta"), BOUGHT)
def test_an_account_pays_for_exactly_what_it_was_opened_for(epsilon: Any, delta: Any, rule: Any) -> None:
    for measurement in measurements(epsilon, delta):
        ledger = mosha.Ledger.memory()
        account = ledger.account("a", unit=measurement.unit, epsilon=epsilon, delta=delta, rule=rule)
        receipt = account.open(measurement).receipt
        assert receipt.cost <= epsilon
        assert ledger.verify().ok


def test_small_gaussian_releases_enjoy_concentration_and_leave_the_sums_to_others() -> None:
    account = mosha.Ledger.memory().account("a", unit=ROW, epsilon=1, delta=1e-6)
    small = gaussian(Histogram(keys=["a"]), unit=ROW, epsilon=0.02, delta=1e-9)
    for _ in range(60):
        account.open(small)
    assert account.way == "either"
    sums = mosha.Ledger.memory().account("a", unit=ROW, epsilon=1, delta=1e-6, rule="pure")
    for _ in range(50):
        sums.open(small)
    with pytest.raises(errors.BudgetExceeded):
        sums.open(small)


def test_steps_of_a_repetition_are_still_handed_back() -> None:
    account = mosha.Ledger.memory().account("a", unit=PERSON, epsilon=3, delta=1e-6)
    with account.open(asking(events.Gaussian(50) * 4, horizon=4, delta=1e-7)) as run:
        run.step(None)
    assert account.event() == events.Gaussian(50)


def test_a_first_run_keeps_its_refund_or_the_sums() -> None:
    """As docs/explanation/ledger.md says: divisible steps give up the sums, one piece gives up the refund."""
    noise = accounting.calibrate(lambda z: events.Gaussian(z) * 10, epsilon=0.5, delta=1e-7)
    steps = asking(events.Gaussian(noise) * 10, horizon=10, delta=1e-7)
    whole = replace(steps, event=events.Plan(steps.event, 1e-7), delta=None)
    found = []
    for run in (steps, whole):
        account = mosha.Ledger.memory().account("a", unit=PERSON, epsilon=3, delta=1e-6)
        with account.open(run) as opened:
            opened.step(None)
            found.append((account.way, round(account.remaining, 1), account.how_many(events.Laplace(50))))
        found.append(account.event() == run.event)
    assert found == [("concentrated", 0.6, 892), False, ("either", 2.5, 839), True]


def test_a_run_that_only_fits_as_one_piece_is_sold_as_one() -> None:
    account = mosha.Ledger.memory().account("a", unit=Example(), epsilon=1, delta=1e-6)
    inner = gaussian(Histogram(keys=["a"]), unit=mosha.Row(), epsilon=1, delta=1e-6).event
    account.open(asking(inner, unit=Example(), delta=1e-6))
    assert account.event() == events.Plan(inner, 1e-6)


def test_a_payment_under_a_key_is_found_whatever_it_was_sold_as(ledger: Any) -> None:
    account = ledger.account("a", unit=PERSON, epsilon=3, delta=1e-6)
    plain = asking(events.Gaussian(20), answer=7)
    sold = asking(events.Gaussian(20), answer=8, delta=1e-7)
    assert account.open(plain, key="k").step(None).value == 7
    assert account.open(sold, key="k").step(None).value == 7
    with pytest.raises(errors.InvalidParameter):
        account.open(asking(events.Gaussian(21), delta=1e-7), key="k")
    assert ledger.verify().ok
