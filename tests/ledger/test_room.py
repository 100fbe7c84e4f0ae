"""How many more payments like the last one fit, and numbers as people gave them, wherever an account is told of."""

import json
import re
from random import SystemRandom
from typing import Any

import pytest

import mosha
from mosha import errors, events
from tests.ledger.place import PERSON, asking
from tests.ledger.test_how_many import drain, some_event

random = SystemRandom()
LAST_DIGITS = re.compile(r"\d\.\d*0{9}\d|9{10}")  # 3.0000000000000013, 0.9999999999999998

LIMITS = [
    {"epsilon": 1},
    {"epsilon": 3, "delta": 1e-6},
    {"epsilon": 1, "delta": 1e-6, "rule": "pure"},
    {"epsilon": 3, "delta": 1e-6, "rule": "zero-concentrated"},
    {"rho": 0.5},
    {"rho": 0.1},
    {"mu": 1},
    {"mu": 0.3},
]


def told_by(ledger: Any, account: Any) -> Any:
    """All that people and programs read about an account."""
    found = ledger.statement(account)
    last = account.promise, account.spent_as, account.spent, account.limit
    return "\n".join([json.dumps(found.to_dict()), found.markdown(), found.to_html(), found.to_html("zh"), repr(last)])


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_a_promise_is_the_number_that_it_was_opened_with(limits: Any) -> None:
    ledger = mosha.Ledger.memory()
    account = ledger.account("a", unit=PERSON, **limits)
    promised = account.promise.to_dict()
    assert {name: promised[name] for name in limits if name != "rule"} == {
        n: v for n, v in limits.items() if n != "rule"
    }
    assert not LAST_DIGITS.search(told_by(ledger, account))


@pytest.mark.parametrize("event", [events.Pure(0.1), events.Laplace(10), events.Approx(0.1, 1e-7)], ids=str)
@pytest.mark.parametrize("limits", [{"epsilon": 1, "delta": 1e-6}, {"epsilon": 1, "delta": 1e-6, "rule": "pure"}])
def test_ten_times_a_tenth_are_one_and_are_shown_as_one(event: Any, limits: Any) -> None:
    ledger = mosha.Ledger.memory()
    account = ledger.account("a", unit=PERSON, **limits)
    receipt = [account.open(asking(event)).receipt for _ in range(10)][-1]
    assert (account.spent, account.limit, receipt.spent) == (1.0, 1.0, 1.0)
    told = told_by(ledger, account) + str(receipt) + json.dumps(receipt.to_dict())
    assert not LAST_DIGITS.search(told)
    with pytest.raises(errors.BudgetExceeded) as refusal:
        account.open(asking(events.Approx(2.0, 1e-7)))
    assert (refusal.value.used, refusal.value.limit) == (1.0, 1.0)


def test_a_delta_that_does_not_fit_is_compared_with_the_delta_that_was_given() -> None:
    account = mosha.Ledger.memory().account("a", unit=PERSON, epsilon=1, delta=1e-6, rule="pure")
    with pytest.raises(errors.BudgetExceeded) as refusal:
        account.open(asking(events.Approx(0.1, 1e-3)))
    assert (refusal.value.measure, refusal.value.limit) == ("delta", 1e-6)


@pytest.mark.parametrize("noise", [40, 15])
def test_what_concentrated_releases_have_spent_is_never_above_the_limit(noise: int) -> None:
    ledger = mosha.Ledger.memory()
    account = ledger.account("a", unit=PERSON, epsilon=3, delta=1e-6)
    with account.open(asking(events.Gaussian(noise) * account.how_many(events.Gaussian(noise)))):
        assert account.way == "concentrated"
        assert 2.8 < account.spent <= 3
        assert account.spent_as <= account.promise


@pytest.mark.parametrize("limits", [{}, {"rule": "pure"}, {"rule": "zero-concentrated"}, {"rule": "gaussian"}])
def test_so_many_more_like_the_last_one_are_paid_and_not_one_more(limits: Any) -> None:
    ledger = mosha.Ledger.memory()
    root = ledger.account("r", unit=PERSON, epsilon=2, delta=1e-6, disjoint_blocks=True, **limits)
    assert (root.more_like_last, ledger.statement(root).more) == (None, None)
    places = [root.block("a"), root.block("b", epsilon=1.5, delta=1e-6), root.child("c", epsilon=1, delta=1e-6)]
    paid = None
    for _ in range(4):
        account, event = random.choice(places), some_event()
        try:
            account.open(asking(event))
        except errors.MoshaError:
            continue
        paid = account, event
    if paid is None:
        return
    account, event = paid
    more = account.more_like_last
    assert more == ledger.statement(account).more == account.how_many(event)
    assert drain(account, event) == more
    assert account.more_like_last == 0


def test_a_run_that_handed_steps_back_is_counted_as_it_was_asked_for() -> None:
    account = mosha.Ledger.memory().account("a", unit=PERSON, epsilon=1)
    with account.open(asking(events.Laplace(10) * 4, horizon=4)) as run:
        run.step(None)
    assert (account.spent, account.more_like_last) == (pytest.approx(0.1), 2)  # type: ignore[comparison-overlap]


def test_an_account_that_pays_no_more_says_nothing() -> None:
    ledger = mosha.Ledger.memory()
    root = ledger.account("a", unit=PERSON, epsilon=1)
    child = root.child("c", epsilon=1)
    child.open(asking(events.Laplace(10)))
    assert (root.more_like_last, child.more_like_last) == (9, 9)
    child.retire()
    assert (root.more_like_last, child.more_like_last) == (9, None)
    assert ledger.statement(child).to_dict()["more_like_last"] is None


def test_receipts_and_statements_say_how_many_more_there_are() -> None:
    ledger = mosha.Ledger.memory()
    account = ledger.account("a", unit=PERSON, epsilon=1)
    receipt = account.child("c", epsilon=0.5).open(asking(events.Laplace(10))).receipt
    assert (receipt.more, receipt.to_dict()["more"]) == (4, 4)
    assert ", about 4 more like this one; epsilon 0.1 from account 'a'" in str(receipt)
    found = ledger.statement(account)
    assert "| left | epsilon 0.9, about 9 more like the last one |" in found.markdown()
    assert "Left: epsilon 0.9, about 9 more like the last one" in found.to_html()
    assert "约可再付 9 次" in found.to_html("zh")


def test_a_lease_does_not_say_how_many_more_fit_beside_it() -> None:
    account = mosha.Ledger.memory().account("a", unit=PERSON, epsilon=1)
    with account.lease(events.Laplace(10) * 5) as lease:
        assert lease.open(asking(events.Laplace(10))).receipt.more is None
