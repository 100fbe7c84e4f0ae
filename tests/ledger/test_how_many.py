"""`how_many` is exact: so many are paid for, and not one more, whatever was paid before and whoever else pays."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import SystemRandom
from typing import Any, NoReturn

import pyarrow as pa
import pytest

import mosha
from mosha import errors, events, streams
from mosha.core.measurement import Measurement
from mosha.federated import ServerSide, analytics
from mosha.learning import DPSGD
from mosha.local import Frequency
from mosha.mechanisms import Histogram, gaussian
from tests.ledger.place import PERSON, asking

random = SystemRandom()


def some_event() -> Any:
    size = 10 ** random.uniform(-1.2, -0.2)
    return random.choice(
        [events.Laplace(1 / size), events.Approx(size, 1e-8), events.Gaussian(4 / size), events.Exponential(size)]
    )


def drain(account: Any, paid: Any) -> Any:
    measurement = paid if isinstance(paid, Measurement) else asking(paid)
    count = 0
    while True:
        try:
            account.open(measurement)
        except errors.BudgetExceeded:
            return count
        count += 1


@pytest.mark.parametrize("limits", [{}, {"rule": "pure"}, {"rule": "zero-concentrated"}, {"rule": "gaussian"}])
@pytest.mark.parametrize("_", range(3))
def test_so_many_are_paid_and_not_one_more(limits: Any, _: Any) -> None:
    root = mosha.Ledger.memory().account("r", unit=PERSON, epsilon=2, delta=1e-6, disjoint_blocks=True, **limits)
    blocks = [root.block("a"), root.block("b", epsilon=1.5, delta=1e-6), root.child("c", epsilon=1, delta=1e-6)]
    for _ in range(3):
        account, event = random.choice(blocks), some_event()
        try:
            account.open(asking(event))
        except errors.MoshaError:
            continue
    account, event = random.choice(blocks), some_event()
    try:
        expected = account.how_many(event)
    except errors.Unpriced:
        return
    assert drain(account, event) == expected
    assert account.how_many(event) == 0


def test_what_is_free_has_no_number() -> None:
    account = mosha.Ledger.memory().account("a", unit=PERSON, epsilon=1, delta=1e-6)
    assert account.how_many(events.Pure(0)) is None


def test_a_measurement_is_counted_as_it_would_be_sold() -> None:
    account = mosha.Ledger.memory().account("a", unit=mosha.Row(), epsilon=1, delta=1e-6)
    assert account.how_many(gaussian(Histogram(keys=["x"]), unit=mosha.Row(), epsilon=1, delta=1e-6)) == 1
    assert account.how_many(gaussian(Histogram(keys=["x"]), unit=mosha.Row(), epsilon=0.5, delta=5e-7)) == 3


def test_a_receipt_names_every_payer_with_what_it_has_left_in_short_numbers() -> None:
    root = mosha.Ledger.memory().account("root", unit=PERSON, epsilon=3, delta=1e-6)
    receipt = root.child("zhang", epsilon=1).open(asking(events.Laplace(10))).step(None).receipt
    assert [(share.account, share.limit) for share in receipt.payers] == [("root", 3.0), ("root/zhang", 1.0)]
    assert [share.left for share in receipt.payers] == [pytest.approx(2.9), pytest.approx(0.9)]
    assert "epsilon 0.1 from account 'root': 0.1 of 3 spent, 2.9 left" in str(receipt)
    assert "0000000" not in str(receipt) + repr(receipt)
    assert [share["left"] for share in receipt.to_dict()["payers"]] == [share.left for share in receipt.payers]


def test_a_refusal_names_a_price_that_fits_and_that_price_is_paid() -> None:
    account = mosha.Ledger.memory().account("a", unit=PERSON, epsilon=1, delta=1e-6)
    account.open(asking(events.Laplace(2)))
    with pytest.raises(errors.BudgetExceeded, match=r"A release of epsilon 0\.5 would fit"):
        account.open(asking(events.Laplace(1)))
    with pytest.raises(errors.BudgetExceeded, match=r"A release of epsilon 0\.5 and delta 1e-07 would fit"):
        account.open(asking(events.Approx(0.6, 1e-7)))
    account.open(asking(events.Approx(0.5, 1e-7)))
    with pytest.raises(errors.BudgetExceeded, match="Nothing of this kind fits any more"):
        account.open(asking(events.Approx(0.5, 1e-7)))


def test_a_measurement_counts_by_the_offer_that_would_be_paid() -> None:
    """A plan needs a delta that this account has not; the same run without it can be paid."""
    account = mosha.Ledger.memory().account("visits", unit=PERSON, epsilon=1, delta=1e-6)
    account.open(asking(events.Gaussian(100)))
    asked = asking(events.Sampled(events.Gaussian(6), 0.001), delta=1e-6)
    expected = account.how_many(asked)
    for _ in range(expected):
        account.open(asked)
    assert expected == 1
    with pytest.raises(errors.BudgetExceeded):
        account.open(asked)


def test_an_account_that_pays_for_nothing_says_so_instead_of_a_number(tmp_path: Path) -> None:
    now = [0]
    ledger = mosha.Ledger(tmp_path / "privacy.db", clock=lambda: now[0])
    account = ledger.account("visits", unit=PERSON, epsilon=1)
    grant = account.grant("zhang", epsilon=1, expires="1970-01-02")
    assert grant.how_many(events.Pure(0.5)) == 2
    now[0] = 3 * 24 * 3600 * 10**6
    for ask in (grant.how_many, lambda event: grant.open(asking(event))):
        with pytest.raises(errors.AccountExpired):
            ask(events.Pure(0.5))
    for _ in range(3):
        with pytest.raises(errors.StepFailed):
            account.open(asking(events.Pure(0), answer=lambda _: 1 / 0)).step(None)
    for ask in (account.how_many, lambda event: account.open(asking(event))):
        with pytest.raises(errors.AccountFrozen):
            ask(events.Pure(0.5))


@pytest.mark.parametrize("limits", [{"epsilon": 1, "delta": 1e-6}, {"epsilon": 1}, {"rho": 1}, {"mu": 1}])
@pytest.mark.parametrize("event", [events.Approx(0.1, 0.5) * 3, events.Approx(0.1, 0.9) * 10**400])
def test_more_delta_than_there_is_at_all_is_refused_like_any_other_price(limits: Any, event: Any) -> None:
    account = mosha.Ledger.memory().account("visits", unit=PERSON, **limits)
    lease = account.lease(events.Laplace(1000))
    for purse in (account, lease):
        with pytest.raises(errors.BudgetExceeded):
            purse.open(asking(event))
    with pytest.raises(errors.BudgetExceeded):
        account.lease(event)
    assert account.how_many(event) == 0


def everything_that_has_a_price() -> Iterator[tuple[Any, ...]]:
    """Something of every kind, with the budget that it takes, and what an account would open for it."""
    table = mosha.protect(pa.table({"patient_id": [1, 2, 3], "days": [3, 1, 9]}), unit=PERSON, account=None)
    asked = table.sum("days", between=(0, 30))
    yield asked, {"epsilon": 0.3}, asked.measurement_for(epsilon=0.3)
    yield asked, {"rho": 0.01}, asked.measurement_for(rho=0.01)
    yield asked, {"epsilon": 0.3, "delta": 1e-7}, asked.measurement_for(epsilon=0.3, delta=1e-7)
    graph = mosha.graphs.protect([(0, 1), (1, 2)], unit=mosha.Edge(), vertices=3, account=None).triangles()
    yield graph, {"epsilon": 0.4}, graph.measurement(epsilon=0.4)
    stream = streams.counter(unit=mosha.Reading(), horizon=8, epsilon=0.3)
    yield stream, {}, stream
    bell = streams.alarm(unit=mosha.Reading(), threshold=50, alarms=500, horizon=None, epsilon=0.9, delta=1e-6)
    yield bell, {}, bell
    plan = DPSGD(steps=20, rate=0.1, clip=1.0)
    sold = plan.calibrate(epsilon=0.4, delta=1e-7)
    yield plan, {"epsilon": 0.4, "delta": 1e-7}, asking(sold.event, unit=mosha.Example())
    yield sold, {}, asking(sold.event, unit=mosha.Example())
    rounds = ServerSide(rounds=5, clients=1000, rate=0.1, clip=1.0).calibrate(epsilon=0.5, delta=1e-7)
    yield rounds, {}, asking(rounds.event, unit=mosha.Client())
    federated = analytics.histogram(keys=["a", "b"], clients=100, survivors=80, epsilon=0.5, delta=1e-7)
    yield federated, {}, federated.measurement()
    survey = Frequency(["a", "b"], epsilon=0.3)
    yield survey, {}, survey.measurement


def test_everything_that_has_a_price_is_counted_as_it_is_paid() -> None:
    for asked, budget, measurement in everything_that_has_a_price():
        account = mosha.Ledger.memory().account("a", unit=measurement.unit, epsilon=1, delta=1e-6)
        expected = account.how_many(asked, **budget)
        assert drain(account, measurement) == expected > 0, asked


class Unreadable:
    def __getattribute__(self, name: Any) -> NoReturn:
        raise AssertionError(name)


def test_counting_reads_no_data() -> None:
    account = mosha.Ledger.memory().account("a", unit=mosha.Edge(), epsilon=1)
    asked = mosha.graphs.protect([(0, 1)], unit=mosha.Edge(), vertices=3, account=account).edges()
    assert account.how_many(replace(asked, graph=Unreadable()), epsilon=0.1) == 10
    assert account.spent == 0


@pytest.mark.parametrize("asked", ["count", 3, None, object(), Frequency, mosha.Ledger])
def test_what_has_no_price_is_refused(asked: Any) -> None:
    account = mosha.Ledger.memory().account("a", unit=PERSON, epsilon=1)
    with pytest.raises(errors.InvalidParameter, match="price"):
        account.how_many(asked)


def test_a_budget_beside_a_price_is_refused_and_a_question_without_one() -> None:
    account = mosha.Ledger.memory().account("a", unit=PERSON, epsilon=1)
    with pytest.raises(errors.InvalidParameter, match="its own price"):
        account.how_many(events.Laplace(2), epsilon=1)
    table = mosha.protect(pa.table({"patient_id": [1]}), unit=PERSON, account=account)
    with pytest.raises(errors.InvalidParameter, match="epsilon"):
        account.how_many(table.count())
