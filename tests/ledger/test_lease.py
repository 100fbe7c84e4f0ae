"""Leases: one flush for many debits, never above the slice, and a crash only counts too much."""

import os
import threading
from typing import Any, NoReturn

import pytest

import mosha
from mosha import errors, events
from tests.ledger.place import PERSON, asking

SMALL = events.Laplace(100)


@pytest.fixture
def account(ledger: Any) -> Any:
    return ledger.account("visits", unit=PERSON, epsilon=2)


def test_a_lease_is_charged_at_once_and_what_is_left_comes_back(ledger: Any, account: Any) -> None:
    before = ledger.head.sequence
    with account.lease(SMALL * 100) as lease:
        assert account.spent == pytest.approx(1)
        answers = [lease.open(asking(SMALL, answer=number)).step(None).value for number in range(30)]
        assert ledger.head.sequence == before + 1  # thirty releases, one flush
    assert answers == list(range(30))
    assert account.spent == pytest.approx(0.3)
    assert account.event() == SMALL * 30
    assert ledger.head.sequence == before + 2
    assert ledger.verify().ok


def test_a_lease_cannot_be_overspent(account: Any) -> None:
    with account.lease(SMALL * 3) as lease:
        for _ in range(3):
            lease.open(asking(SMALL))
        assert not lease.affords(SMALL)
        with pytest.raises(errors.BudgetExceeded) as refusal:
            lease.open(asking(SMALL, step=lambda *_: pytest.fail("data was read")))
    assert refusal.value.account == "visits (lease)"
    assert refusal.value.limit == pytest.approx(0.03)
    assert account.spent == pytest.approx(0.03)


def test_other_events_may_be_paid_from_a_lease(account: Any) -> None:
    with account.lease(events.Laplace(1)) as lease:
        lease.open(asking(events.Laplace(2)))
        lease.open(asking(events.RandomizedResponse(0.25)))
        assert not lease.affords(events.Laplace(3))
        assert lease.affords(events.Laplace(4))
    assert account.spent == 0.75
    assert account.event() == events.Laplace(2) + events.RandomizedResponse(0.25)


def test_a_lease_that_cannot_be_paid_is_refused(ledger: Any, account: Any) -> None:
    with pytest.raises(errors.BudgetExceeded):
        account.lease(SMALL * 201)
    with pytest.raises(errors.Unpriced):
        account.lease(events.Gaussian(1))
    with pytest.raises(errors.InvalidParameter):
        account.lease(0.5)
    assert account.spent == 0


def test_a_lost_lease_stays_charged_whole(place: Any, account: Any) -> None:
    lease = account.lease(SMALL * 100)
    lease.open(asking(SMALL)).step(None)
    del lease  # the process is gone
    again = place.open().account("visits")
    assert again.spent == pytest.approx(1)
    assert again.event() == SMALL * 100
    assert place.open().verify().ok


def test_every_ancestor_leases_too_each_by_its_own_rule(ledger: Any) -> None:
    top = ledger.account("top", unit=PERSON, rho=1)
    child = top.child("pure", epsilon=1)
    with child.lease(events.Laplace(10) * 10) as lease:
        assert child.spent == pytest.approx(1)
        for _ in range(4):
            lease.open(asking(events.Laplace(10)))
    assert child.spent_price == child.rule.price(events.Laplace(10) * 4)
    assert top.spent_price == top.rule.price(events.Laplace(10) * 4)
    assert ledger.verify().ok


def test_a_lease_on_disjoint_blocks_returns_to_its_lanes(ledger: Any) -> None:
    unit = mosha.Reading()
    visits = ledger.account("visits", unit=unit, epsilon=2, disjoint_blocks=True)
    one, two = visits.block("1"), visits.block("2")
    with one.lease(events.Laplace(1)), two.lease(events.Laplace(1)) as other:
        assert visits.spent == 1.0
        other.open(asking(events.Laplace(4), unit=unit))
    assert [visits.spent, one.spent, two.spent] == [0.25, 0, 0.25]
    assert ledger.verify().ok


def test_unused_steps_return_to_the_lease(account: Any) -> None:
    with account.lease(SMALL * 19) as lease:
        for _ in range(10):
            with lease.open(asking(SMALL * 10, horizon=10)) as run:
                run.step(None)
        assert lease.affords(SMALL * 9)
        assert not lease.affords(SMALL * 10)
    assert account.spent == pytest.approx(0.1)
    assert account.event() == SMALL * 10


def test_a_lease_keeps_what_may_have_met_the_data(account: Any) -> None:
    def interrupted(*_: Any) -> NoReturn:
        raise KeyboardInterrupt

    with account.lease(SMALL * 10) as lease:
        run = lease.open(asking(SMALL * 10, horizon=10, step=interrupted))
        with pytest.raises(KeyboardInterrupt):
            run.step(None)
        with pytest.raises(errors.StepFailed):
            run.step(None)
        run.close()
    assert account.spent == pytest.approx(0.01)


def test_unreachable_data_may_be_asked_again(account: Any) -> None:
    calls = []

    def flaky(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        calls.append(1)
        if len(calls) < 3:
            raise errors.SourceUnavailable("away.")
        return 1, state

    with account.lease(SMALL) as lease:
        run = lease.open(asking(SMALL, step=flaky))
        for _ in range(2):
            with pytest.raises(errors.SourceUnavailable):
                run.step(None)
        assert run.step(None).value == 1


def test_a_lease_takes_no_keys_and_ends(account: Any) -> None:
    lease = account.lease(SMALL)
    with pytest.raises(errors.InvalidParameter, match="key"):
        lease.open(asking(SMALL), key="k")
    lease.close()
    lease.close()
    with pytest.raises(errors.RunClosed):
        lease.open(asking(SMALL))
    assert account.spent == 0


def test_a_lease_keeps_the_unit(account: Any) -> None:
    with account.lease(SMALL) as lease, pytest.raises(errors.WrongUnit):
        lease.open(asking(SMALL, unit=mosha.Row()))


def test_threads_cannot_overspend_a_lease(account: Any) -> None:
    paid = []
    with account.lease(SMALL * 150) as lease:

        def ask() -> None:
            try:
                while True:
                    lease.open(asking(SMALL)).step(None)
                    paid.append(1)
            except errors.BudgetExceeded:
                pass

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(paid) == 150
    assert account.spent == pytest.approx(1.5)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_cannot_spend_its_parents_lease(account: Any) -> None:
    with account.lease(SMALL * 3) as lease:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                lease.open(asking(SMALL))
            except errors.RunClosed:
                lease.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        lease.open(asking(SMALL))
    assert account.spent == pytest.approx(0.01)


def test_the_receipt_names_the_lease(ledger: Any, account: Any) -> None:
    with account.lease(SMALL * 3) as lease:
        receipt = lease.open(asking(SMALL)).step(None).receipt
    row = next(entry for entry in ledger.entries() if entry.kind == "lease")
    assert (receipt.account, receipt.entry, receipt.cost) == ("visits", row.label, pytest.approx(0.01))


def test_a_rule_that_keeps_what_was_paid_keeps_the_whole_slice(account: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(account.rule), "returns_unused", False)
    with account.lease(SMALL * 100) as lease:
        lease.open(asking(SMALL))
    assert account.spent == pytest.approx(1)
