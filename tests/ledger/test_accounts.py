"""Opening, reopening and charging accounts, on both engines."""

import math
from typing import Any

import pytest

import mosha
from mosha import errors, events
from tests.ledger.place import PERSON, asking


def test_an_account_opens_with_its_promise_and_nothing_spent(ledger: Any, person: Any) -> None:
    account = ledger.account("visits", unit=person, epsilon=3, delta=1e-6)
    assert str(account.promise) == "epsilon 3, delta 1e-06"
    assert account.spent == 0
    assert account.unit == person


def test_an_account_is_found_again_by_its_name_alone(place: Any, person: Any) -> None:
    place.open().account("visits", unit=person, epsilon=3, delta=1e-6)
    again = place.open().account("visits")
    assert str(again.promise) == "epsilon 3, delta 1e-06"
    assert again.unit == person


def test_the_same_terms_reopen_an_account(place: Any, person: Any) -> None:
    first = place.open().account("visits", unit=person, epsilon=3, delta=1e-6)
    first.open(asking(events.Gaussian(10)))
    again = place.open().account("visits", unit=mosha.Person("patient_id", at_most=9), epsilon=3, delta=1e-6)
    assert again.spent == first.spent > 0


@pytest.mark.parametrize(
    ("terms", "named"),
    [
        ({"unit": mosha.Person("other"), "epsilon": 3}, "unit"),
        ({"unit": PERSON, "epsilon": 4}, "limit"),
        ({"unit": PERSON, "epsilon": 3, "delta": 1e-6}, "limit"),
        ({"unit": PERSON, "epsilon": 3, "disjoint_blocks": True}, "disjoint_blocks"),
        ({"rho": 1}, "limit"),
    ],
)
def test_other_terms_are_refused_and_named(ledger: Any, terms: Any, named: str) -> None:
    ledger.account("visits", unit=PERSON, epsilon=3)
    with pytest.raises(errors.AccountMismatch, match=named):
        ledger.account("visits", **terms)


def test_an_unknown_account_is_not_opened_without_terms(ledger: Any) -> None:
    with pytest.raises(errors.UnknownAccount, match="limit"):
        ledger.account("visits")
    with pytest.raises(errors.UnknownAccount, match="unit"):
        ledger.account("visits", epsilon=1)
    assert ledger.accounts() == []


@pytest.mark.parametrize("name", ["", " a", "a ", "a//b", "/a", "a/", "a\nb", "a\0b", "x" * 301, "\ud800", 7, None])
def test_a_name_that_cannot_be_read_aloud_is_refused(ledger: Any, name: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        ledger.account(name, unit=PERSON, epsilon=1)
    assert ledger.accounts() == []


@pytest.mark.parametrize(
    "limits",
    [
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": math.nan},
        {"epsilon": math.inf},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": -1e-9},
        {"epsilon": "1"},
        {"epsilon": 1, "rho": 1},
        {"delta": 1e-6},
        {"rho": 0},
        {"mu": math.nan},
        {"epsilon": 1, "rule": "hope"},
        {"epsilon": 1, "delta": 1e-6, "delta_for_events": 1e-6},
    ],
)
def test_a_limit_that_promises_nothing_is_refused(ledger: Any, limits: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        ledger.account("visits", unit=PERSON, **limits)
    assert ledger.accounts() == []


def test_a_unit_is_a_unit(ledger: Any) -> None:
    with pytest.raises(errors.InvalidParameter, match="unit"):
        ledger.account("visits", unit="person", epsilon=1)


def test_the_limit_is_reached_exactly_and_never_passed(ledger: Any) -> None:
    account = ledger.account("visits", unit=PERSON, epsilon=1)
    for _ in range(10):
        account.open(asking(events.Laplace(10))).step(None)
    with pytest.raises(errors.BudgetExceeded) as refusal:
        account.open(asking(events.Laplace(1e6)))
    assert refusal.value.account == "visits"
    assert refusal.value.measure == "epsilon"
    assert refusal.value.limit == pytest.approx(1)
    assert refusal.value.used == pytest.approx(1)
    assert refusal.value.asked == pytest.approx(1e-6)


def test_refused_means_unread_and_unwritten(ledger: Any) -> None:
    account = ledger.account("visits", unit=PERSON, epsilon=1)
    before = ledger.head
    with pytest.raises(errors.BudgetExceeded):
        account.open(asking(events.Laplace(0.5), step=lambda *_: pytest.fail("data was read")))
    assert ledger.head == before
    assert account.spent == 0


def test_an_event_without_a_price_is_refused(ledger: Any) -> None:
    account = ledger.account("visits", unit=PERSON, epsilon=1)
    with pytest.raises(errors.Unpriced):
        account.open(asking(events.Gaussian(1)))
    assert account.spent == 0


ASKED = [events.Laplace(1 / 3), events.Approx(3, 1e-6), events.Approx(0.1, 9e-7)]


@pytest.mark.parametrize("asked", ASKED, ids=["epsilon", "both", "delta"])
def test_an_account_pays_for_a_release_of_its_own_terms(ledger: Any, asked: Any) -> None:
    account = ledger.account("visits", unit=PERSON, epsilon=3, delta=1e-6)
    account.open(asking(asked)).step(None)
    assert ledger.verify().ok


def test_a_refusal_says_what_is_left_and_sends_nobody_to_another_rule(ledger: Any) -> None:
    account = ledger.account("visits", unit=PERSON, epsilon=3, delta=1e-6)
    account.open(asking(events.Laplace(0.5))).step(None)
    with pytest.raises(errors.BudgetExceeded, match="A release of epsilon 1 would fit") as refusal:
        account.open(asking(events.Laplace(0.5)))
    assert "rule=" not in str(refusal.value)


def test_delta_has_a_limit_of_its_own(ledger: Any) -> None:
    account = ledger.account("visits", unit=PERSON, epsilon=3, delta=1e-6, rule="zero-concentrated")
    account.open(asking(events.Approx(0.1, 9e-8)))
    with pytest.raises(errors.BudgetExceeded) as refusal:
        account.open(asking(events.Approx(0.1, 9e-8)))
    assert refusal.value.measure == "delta"
    assert refusal.value.limit == pytest.approx(1e-7)


def test_an_account_without_a_delta_sends_nobody_to_a_smaller_release_that_needs_one_too(ledger: Any) -> None:
    """A limit in mu without a delta pays for no discrete Gaussian, and said that one of the whole limit would fit."""
    needing = {"mu": events.DiscreteGaussian(10), "epsilon": events.Approx(0.1, 1e-9)}
    for limit, event in needing.items():
        account = ledger.account(limit, unit=PERSON, **{limit: 1})
        with pytest.raises(errors.BudgetExceeded, match=r"needs a delta of .* open one with delta=") as refusal:
            account.open(asking(event))
        assert "would fit" not in str(refusal.value)
        assert account.spent == 0


def test_another_unit_is_refused(ledger: Any) -> None:
    account = ledger.account("visits", unit=PERSON, epsilon=1)
    with pytest.raises(errors.WrongUnit):
        account.open(asking(unit=mosha.Row()))


def test_the_receipt_names_the_row_that_paid(ledger: Any) -> None:
    account = ledger.account("visits", unit=PERSON, epsilon=2)
    receipt = account.open(asking(events.Laplace(2))).step(None).receipt
    (row,) = [entry for entry in ledger.entries() if entry.kind == "pay"]
    assert receipt.entry == row.label
    assert (receipt.cost, receipt.spent, receipt.measure) == (0.5, 0.5, "epsilon")
    assert receipt.remaining == pytest.approx(1.5)


@pytest.mark.parametrize(
    "limits",
    [
        {"epsilon": 2},
        {"epsilon": 2, "delta": 1e-6},
        {"epsilon": 2, "delta": 1e-6, "rule": "renyi"},
        {"epsilon": 2, "delta": 1e-6, "rule": "gaussian"},
        {"rho": 0.3},
        {"mu": 0.7},
    ],
)
def test_every_rule_charges_what_it_prices_and_survives_reopening(place: Any, limits: Any) -> None:
    ledger = place.open()
    account = ledger.account("visits", unit=PERSON, **limits)
    event = events.Laplace(20) if set(limits) == {"epsilon"} else events.Gaussian(20)
    account.open(asking(event)).step(None)
    again = place.open().account("visits", **limits)
    assert again.spent_price == account.rule.price(event)
    assert again.rule == account.rule
    assert again.spent_as <= again.promise
    assert ledger.verify().ok


def test_nothing_is_paid_by_a_ledger_that_was_closed(place: Any) -> None:
    ledger = place.open()
    account = ledger.account("visits", unit=PERSON, epsilon=1)
    ledger.close()
    with pytest.raises(errors.LedgerUnavailable):
        account.open(asking(events.Laplace(10)))


def test_what_is_asked_may_be_absurdly_large(ledger: Any) -> None:
    account = ledger.account("visits", unit=PERSON, epsilon=1)
    for event in (events.Laplace(1e-300), events.Laplace(1) * 10**400, events.Laplace(1e-300) * 10**400):
        with pytest.raises(errors.BudgetExceeded):
            account.open(asking(event))
    assert account.spent == 0


@pytest.mark.parametrize("key", ["", "x" * 301, "a\0b", "\ud800", 7, b"k"])
def test_a_key_that_cannot_be_kept_is_refused(ledger: Any, key: Any) -> None:
    account = ledger.account("visits", unit=PERSON, epsilon=1)
    with pytest.raises(errors.InvalidParameter, match="key"):
        account.open(asking(events.Laplace(10)), key=key)
    assert account.spent == 0


def test_names_and_keys_may_be_in_any_script(ledger: Any) -> None:
    account = ledger.account("就诊", unit=PERSON, epsilon=1).child("张三", epsilon=1)
    assert account.open(asking(events.Laplace(10), answer="答"), key="十一月").step(None).value == "答"
    assert account.open(asking(events.Laplace(10)), key="十一月").step(None).value == "答"
    assert ledger.verify().ok


def test_accounts_of_two_ledgers_do_not_go_together(ledger: Any) -> None:
    other = mosha.Ledger.memory().account("visits", unit=PERSON, epsilon=1)
    mine = ledger.account("visits", unit=PERSON, epsilon=1)
    for mixed in ([mine, other], [mine, "visits"], []):
        with pytest.raises(errors.InvalidParameter):
            ledger.together(mixed)
    with pytest.raises(errors.InvalidParameter):
        ledger.account("zhang", parent=other, epsilon=1)


def test_hundreds_of_blocks_are_paid_at_once(ledger: Any) -> None:
    visits = ledger.account("visits", unit=mosha.Reading(), epsilon=5, disjoint_blocks=True)
    year = ledger.together([visits.block(f"2026-{day:03}") for day in range(150)])
    year.open(asking(unit=mosha.Reading(), answer=3), key="k").step(None)
    assert year.open(asking(unit=mosha.Reading()), key="k").step(None).value == 3
    assert visits.spent == 1.0
    assert ledger.verify().ok


def test_an_account_that_is_used_up_has_nothing_left() -> None:
    """It had 5.551e-17, which cards, receipts and refusals showed."""
    account = mosha.Ledger.memory().account("a", unit=mosha.Row(), epsilon=2)
    table = mosha.protect({"x": [1]}, unit=mosha.Row(), account=account)
    table.count().release(epsilon=0.5)
    for _ in range(10):
        table.count().release(epsilon=0.15)
    assert account.remaining == 0
    assert ", 0 left" in str(account)
