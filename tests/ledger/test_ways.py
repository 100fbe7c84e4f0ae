"""An account of epsilon and delta adds up in one of three ways: its first payment chooses, and the book shows it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import SystemRandom
from typing import Any

import pytest

import mosha
from mosha import errors, events
from mosha.accounting.rules import EitherRule
from mosha.ledger.checking.replay import Replay
from mosha.ledger.storage.chain import canonical
from tests.ledger.place import PERSON, asking

HALF = events.Approx(0.5, 5e-7)  # of an account of (1, 1e-6)
FIRST = {"either": events.Laplace(10), "sums": HALF, "concentrated": events.ZeroConcentrated(0.001)}


def opened(ledger: Any, name: str = "visits", **terms: Any) -> Any:
    return ledger.account(name, unit=PERSON, epsilon=1, delta=1e-6, **terms)


@pytest.mark.parametrize("way", FIRST)
def test_the_first_payment_chooses_the_way_and_the_book_recomputes_it(ledger: Any, way: Any) -> None:
    account = opened(ledger)
    assert account.way == ""
    account.open(asking(FIRST[way]))
    assert account.way == way
    assert ledger.verify().ok
    (row,) = (entry.content() for entry in ledger.entries() if entry.kind == "pay")
    assert row["charges"][0]["way"] == way


@pytest.mark.parametrize("way", FIRST)
def test_a_first_payment_that_is_handed_back_in_full_does_not_reopen_the_choice(ledger: Any, way: Any) -> None:
    account = opened(ledger)
    with account.open(asking(FIRST[way])):
        pass
    assert (account.spent, account.way) == (0.0, way)
    other = events.ZeroConcentrated(0.001) if way == "sums" else events.Approx(1, 1e-6)
    with pytest.raises(errors.BudgetExceeded):
        account.open(asking(other))
    assert account.way == way
    assert ledger.verify().ok


def test_a_refused_first_payment_chooses_nothing(ledger: Any) -> None:
    account = opened(ledger)
    with pytest.raises(errors.BudgetExceeded):
        account.open(asking(events.Approx(2, 1e-6)))
    assert account.way == ""
    account.open(asking(events.Approx(1, 1e-6)))
    assert account.way == "sums"


def test_a_lease_chooses_like_a_payment_and_what_it_returns_does_not_reopen_the_choice(ledger: Any) -> None:
    account = opened(ledger)
    with account.lease(events.ZeroConcentrated(0.0001) * 50) as lease:
        lease.open(asking(events.ZeroConcentrated(0.0001))).step(None)
    assert account.way == "concentrated"
    assert ledger.verify().ok


def test_every_account_on_the_path_goes_its_own_way(ledger: Any) -> None:
    root = ledger.account("root", unit=PERSON, epsilon=4, delta=1e-5)
    root.child("small", epsilon=0.5, delta=5e-7).open(asking(HALF))
    assert ledger.account("root/small").way == "sums"
    assert root.way == "either"
    joint = ledger.together([ledger.account("root/small"), opened(ledger, "apart")])
    with pytest.raises(errors.BudgetExceeded):
        joint.open(asking(HALF))
    assert ledger.account("apart").way == ""
    assert ledger.verify().ok


def test_blocks_are_counted_by_their_dearest_lane_in_both_sums(ledger: Any) -> None:
    root = ledger.account("root", unit=PERSON, epsilon=1, delta=1e-6, disjoint_blocks=True)
    months = [root.block(f"m{k}") for k in range(3)]
    for month, event in zip(months, (events.Laplace(2), events.Laplace(50), events.Exponential(0.9)), strict=True):
        month.open(asking(event))
    rule = root.rule
    dear, narrow = (rule.price(event) for event in (events.Laplace(2), events.Exponential(0.9)))
    assert root.spent_price.amount == narrow.amount > dear.amount
    assert root.spent_price.rho == max(dear.rho, narrow.rho)
    with months[1].open(asking(events.Laplace(50) * 30, horizon=30)) as run:
        run.step(None)
    assert ledger.verify().ok


def test_many_first_payments_at_once_agree_on_one_way(ledger: Any) -> None:
    account = opened(ledger)
    random = SystemRandom()
    asked = [*FIRST.values()] * 6
    random.shuffle(asked)

    def attempt(event: Any) -> bool:
        try:
            account.open(asking(event))
        except errors.BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert any(pool.map(attempt, asked))
    ways = {row["charges"][0]["way"] for row in (e.content() for e in ledger.entries() if e.kind == "pay")}
    assert ways == {account.way}
    assert ledger.verify().ok


def test_a_row_that_claims_another_way_is_found(ledger: Any, tmp_path: Path) -> None:
    del ledger
    book = mosha.Ledger(tmp_path / "p.db")
    account = opened(book)
    account.open(asking(events.Approx(1, 1e-6)))
    storage = book._storage
    storage.write(lambda t: t.run("UPDATE accounts SET amount = REPLACE(amount, 'sums', 'either')"))
    assert any("accounts" in problem for problem in book.verify().problems)


def test_a_pay_row_that_misstates_the_way_is_found() -> None:
    book = mosha.Ledger.memory()
    opened(book).open(asking(events.Approx(1, 1e-6)))
    said = Replay()
    for entry in book.entries():
        content = entry.content()
        if entry.kind == "pay":
            content["charges"][0]["way"] = "either"
        said.read(replace(entry, body=canonical(content)))
    assert said.problems == ["row 3 misstates how 'visits' adds up"]


@pytest.mark.parametrize("rule", ["pure", "zero-concentrated", "renyi", "gaussian"])
def test_rows_of_the_other_rules_are_written_as_before(ledger: Any, rule: str) -> None:
    account = opened(ledger, rule=rule)
    account.open(asking(events.Approx(0.1, 1e-8)))
    (row,) = (entry.content() for entry in ledger.entries() if entry.kind == "pay")
    assert set(row["charges"][0]) == {"account", "price", "spent"}
    assert len(row["charges"][0]["price"]) == 2
    assert account.way == ""


@pytest.mark.parametrize("rule", ["pure", "zero-concentrated", "renyi", "gaussian"])
def test_an_account_that_was_opened_under_another_rule_keeps_it_and_is_reopened_by_its_promise(
    ledger: Any, rule: str
) -> None:
    before = opened(ledger, rule=rule)
    assert opened(ledger).rule == before.rule
    with pytest.raises(errors.AccountMismatch):
        opened(ledger, rule="either")
    with pytest.raises(errors.AccountMismatch):
        ledger.account("visits", unit=PERSON, epsilon=1, delta=2e-6)


def test_random_payments_refunds_and_leases_leave_a_book_that_verifies_within_its_limits(ledger: Any) -> None:
    random = SystemRandom()
    account = opened(ledger)
    assert isinstance(account.rule, EitherRule)
    for _ in range(40):
        size = 10 ** random.uniform(-2.5, -0.3)
        event = random.choice([events.Laplace(1 / size), events.Gaussian(9 / size), events.Approx(size, 1e-8)])
        steps = random.choice([1, 3])
        try:
            with account.open(asking(event * steps, horizon=steps)) as run:
                for _ in range(random.randint(0, steps)):
                    run.step(None)
        except errors.BudgetExceeded:
            continue
        assert account.rule.admits(account.spent_price, account.way)
    assert account.way
    assert ledger.verify().ok
