"""Whoever can write the book can append rows with good hashes. What such a row gives away is found by what it says.

The law below takes an honest book and appends one forged row, in all the ways that would give something away; the
forger states every balance as the book would have it, and knows the secrets of all holders, so that nothing but the
gift itself can be found. What only such a secret makes a gift (`WORDS`) is forged without it.
"""

import copy
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

import pytest

import mosha
from mosha import errors, events
from mosha.accounting.numerics.price import Price
from mosha.accounting.rules import PureRule, rule_for
from mosha.ledger.checking.opinion import is_below_certain
from mosha.ledger.checking.replay import Replay
from mosha.ledger.paying import lease as leases
from mosha.ledger.paying import payment as payments
from mosha.ledger.paying.charge import Charge
from mosha.ledger.paying.holder import make_lock
from mosha.ledger.storage.chain import GENESIS, follow
from tests.ledger.place import PERSON, asking

EVENT = mosha.Reading()
SECRETS: dict[Any, Any] = {}  # of holders, by the locks that they leave in the book


@contextmanager
def overheard() -> Iterator[None]:
    """Secrets of holders become known to the forger."""

    def draw() -> Any:
        secret = f"{random.SystemRandom().getrandbits(128):032x}"
        SECRETS[make_lock(secret)] = secret
        return secret

    with pytest.MonkeyPatch.context() as patch:
        for module in (payments, leases):
            patch.setattr(module, "draw_secret", draw)
        yield


def make_book(ledger: Any) -> Any:
    with overheard():
        return fill_book(ledger)


def fill_book(ledger: Any) -> Any:
    """A book in which everything has happened: blocks, children, leases, keys, failures, claims, a retired account."""
    visits = ledger.account("visits", unit=EVENT, epsilon=20, disjoint_blocks=True)
    for name in ("may", "june"):
        block = visits.block(name)
        block.open(asking(unit=EVENT), key="first").step(None)
        with block.open(asking(events.Laplace(4) * 4, unit=EVENT, horizon=4)) as run:
            run.step(None)
            run.step(None)
    visits.child("zhang", epsilon=9).open(asking(unit=EVENT), key="k").step(None)
    visits.open(asking(events.Laplace(2) * 3, unit=EVENT, horizon=3)).step(None)
    with pytest.raises(errors.StepFailed):
        visits.open(asking(unit=EVENT, answer=lambda data: 1 / 0)).step(None)
    visits.open(asking(events.Laplace(3) * 2, unit=EVENT, horizon=2), key="claimed")
    with pytest.raises(KeyboardInterrupt):
        visits.open(asking(events.Laplace(3) * 2, unit=EVENT, horizon=2, step=interrupted), key="claimed").step(None)
    with visits.lease(events.Laplace(10) * 5) as lease:
        lease.open(asking(events.Laplace(10), unit=EVENT)).step(None)
    with visits.open(asking(events.Laplace(5), unit=EVENT), key="void"):
        pass
    visits.open(asking(events.Laplace(6), unit=EVENT), key="silent")  # whether its step was started nobody wrote down
    visits.lease(events.Laplace(10) * 3).open(asking(events.Laplace(10), unit=EVENT)).step(None)
    ledger.account("old", unit=EVENT, epsilon=1).retire()
    return ledger


def interrupted(state: Any, data: Any, ask: Any, rng: Any) -> NoReturn:
    raise KeyboardInterrupt


@pytest.fixture(scope="module")
def rows() -> Any:
    return make_book(mosha.Ledger.memory()).entries()


def read(rows: Any) -> Any:
    said = Replay()
    for row in rows:
        said.read(row)
    said.finish()
    return said


class Forger:
    """Writes one row after the last one. Balances in it are what an honest reader would work out from it."""

    def __init__(self, rows: Any) -> None:
        self.rows, self.dice = rows, random.SystemRandom()
        self.said = read(rows)

    def forge(self, kind: Any, content: Any) -> Any:
        self.settle_balances(content)
        row = follow(self.rows[-1].head, self.rows[-1].at, kind, content)
        said = read([*self.rows, row])
        return said.problems

    def settle_balances(self, content: Any) -> None:
        said = copy.deepcopy(self.said.accounts)
        for part, sign in (("charges", 1), ("returned", -1)):
            moved = [Charge.from_dict(stored) for stored in content.get(part, [])]
            for charge in moved:
                if charge.account in said:
                    said[charge.account].move(charge, sign)
            for stored, charge in zip(content.get(part, []), moved, strict=True):
                if charge.account in said:
                    spent = said[charge.account].spent
                    stored["spent"] = [str(spent.amount), str(spent.delta)]

    def some(self, kind: Any, chosen: Any = lambda content: True) -> tuple[Any, ...]:
        """The content of some honest row, to be changed at will."""
        found = [row for row in self.rows if row.kind == kind and chosen(row.content())]
        row = self.dice.choice(found)
        return row, row.content()

    def payment(self, chosen: Any) -> Any:
        return self.dice.choice([p for p in self.said.payments.values() if chosen(p)])

    def refund(
        self, payment: Any, kept: Any, price: Any = lambda paid: paid, *, void: bool = False, times: Any = 1
    ) -> tuple[Any, ...]:
        returned = []
        for charge in payment.charges:
            stored = charge.to_dict()
            stored["price"] = [str(price(charge.price.amount)), "0"]
            returned += [dict(stored) for _ in range(times)]
        content = {"payment": payment.sequence, "void": void, "kept": kept.to_dict(), "returned": returned}
        return "close", content | {"unlock": SECRETS[payment.lock]}

    def take_back(self, payment: Any, claim: Any) -> tuple[Any, ...]:
        content = {"payment": payment.sequence, "step": 1, "claim": claim}
        return "unreached", content | {"unlock": SECRETS[payment.lock]}

    # What follows gives something away, each in its own way.

    def refund_of_what_was_released(self) -> Any:
        return self.refund(self.payment(lambda p: p.steps and not p.closed), events.NOTHING)

    def refund_called_void(self) -> Any:
        return self.refund(self.payment(lambda p: p.steps and not p.closed), events.NOTHING, void=True)

    def refund_of_a_started_step(self) -> Any:
        return self.refund(self.payment(lambda p: p.claimed and not p.steps), events.NOTHING, void=True)

    def refund_of_some_released_steps(self) -> Any:
        payment = self.payment(lambda p: p.horizon == 4 and len(p.steps) == 2)
        kept = events.Laplace(4)
        payment = copy.copy(payment)
        payment.closed = 0
        return self.refund(payment, kept, lambda paid: paid * 3 // 4)

    def refund_that_keeps_another_event(self) -> Any:
        payment = self.payment(lambda p: p.steps and not p.closed)
        return self.refund(payment, events.Laplace(1e6), lambda paid: paid - 2**128 // 10**6 - 1)

    def refund_that_names_an_event_and_keeps_nothing_of_it(self) -> Any:
        payment = self.payment(lambda p: p.horizon == 3)
        return self.refund(payment, events.Laplace(2), lambda paid: paid * 5 // 6)

    def second_refund(self) -> Any:
        return self.refund(self.payment(lambda p: p.closed == payments.CLOSED and p.kind == "pay"), events.NOTHING)

    def refund_twice_in_one_row(self) -> Any:
        payment = self.payment(lambda p: p.claimed)
        return self.refund(payment, events.Laplace(3), lambda paid: paid // 2, times=2)

    def refund_above_what_was_paid(self) -> Any:
        payment = self.payment(lambda p: p.claimed)
        return self.refund(payment, events.Laplace(3), lambda paid: paid * 2)

    def refund_to_somebody_else(self) -> tuple[Any, ...]:
        kind, content = self.refund(
            self.payment(lambda p: p.horizon == 3), events.Laplace(2), lambda paid: paid * 2 // 3
        )
        content["returned"] += [dict(content["returned"][0], account="visits/zhang", price=["1", "0"])]
        return kind, content

    def refund_from_another_lane(self) -> tuple[Any, ...]:
        payment = self.payment(lambda p: p.charges[-1].account == "visits/june" and not p.closed)
        kind, content = self.refund(payment, events.NOTHING)
        for back in content["returned"]:
            if back["account"] == "visits":
                back["lanes"] = ["visits/may"]
        return kind, content

    def refund_from_another_family(self) -> tuple[Any, ...]:
        kind, content = self.refund_from_another_lane()
        for back in content["returned"]:
            back.pop("lanes", None)
            back.pop("family", None)
        return kind, content

    def settlement_below_its_price(self) -> Any:
        lease = self.payment(lambda p: p.kind == "lease")
        self.said.payments[lease.sequence].closed = 0
        return self.refund(lease, events.Laplace(10) * 4)

    def low_price(self) -> tuple[Any, ...]:
        row, content = self.some("pay", lambda content: "key" not in content)
        for charge in content["charges"]:
            charge["price"] = ["1", "0"]
        return row.kind, content

    def slightly_low_price(self) -> tuple[Any, ...]:
        row, content = self.some("pay", lambda content: "key" not in content)
        for charge in content["charges"]:
            charge["price"][0] = str(int(charge["price"][0]) * 9 // 10)
        return row.kind, content

    def low_lease(self) -> tuple[Any, ...]:
        _, content = self.some("lease")
        for charge in content["charges"]:
            charge["price"] = ["1", "0"]
        return "lease", content

    def one_payer_less(self) -> tuple[Any, ...]:
        row, content = self.some("pay", lambda content: len(content["charges"]) > 1 and "key" not in content)
        content["charges"].pop(self.dice.randrange(len(content["charges"])))
        return row.kind, content

    def another_lane(self) -> tuple[Any, ...]:
        row, content = self.some("pay", lambda c: "visits/june" in c["scope"] and "key" not in c)
        content["charges"][0]["lanes"] = ["visits/may"]
        return row.kind, content

    def charge_of_a_retired_account(self) -> tuple[Any, ...]:
        row, content = self.some("pay", lambda content: content["scope"] == ["visits"] and "key" not in content)
        content["scope"], content["charges"] = ["old"], [dict(content["charges"][0], account="old")]
        return row.kind, content

    def payment_above_the_limit(self) -> tuple[Any, ...]:
        row, content = self.some("pay", lambda content: content["scope"] == ["visits"] and "key" not in content)
        content["event"] = events.Laplace(0.01).to_dict()
        content["charges"][0]["price"] = ["100" + "0" * 38, "0"]
        return row.kind, content

    def key_used_twice(self) -> tuple[Any, ...]:
        row, content = self.some("pay", lambda content: content.get("key") in ("first", "k", "claimed"))
        return row.kind, content

    def higher_limit(self) -> tuple[Any, ...]:
        row, content = self.some("open")
        content["rule"] = PureRule(1000.0).to_dict()
        return row.kind, content

    def retirement_undone(self) -> tuple[Any, ...]:
        row, content = self.some("open", lambda content: content["name"] == "old")
        return row.kind, content

    def limit_that_breaks_its_promise(self) -> tuple[Any, ...]:
        content = self.some("open", lambda content: content["name"] == "old")[1]
        rule = rule_for(epsilon=1, delta=1e-6).to_dict() | {"rho": 50.0}
        return "open", content | {"name": "new", "rule": rule}

    def disjoint_blocks_of_who_lies_in_several(self) -> tuple[Any, ...]:
        content = self.some("open", lambda content: content["name"] == "old")[1]
        unit = mosha.Row(at_most=3).to_dict()
        return "open", content | {"name": "new", "unit": unit, "disjoint_blocks": True}

    def release_of_an_unpaid_step(self) -> tuple[Any, ...]:
        payment = self.payment(lambda p: p.kind == "pay" and not p.closed)
        return "release", {"payment": payment.sequence, "step": payment.horizon + 1, "claim": payment.claim}

    def second_release(self) -> tuple[Any, ...]:
        payment = self.payment(lambda p: p.steps and not p.closed)
        return "release", {"payment": payment.sequence, "step": min(payment.steps), "claim": payment.claim}

    def release_after_the_end(self) -> tuple[Any, ...]:
        payment = self.payment(lambda p: p.kind == "pay" and p.closed)
        return "release", {"payment": payment.sequence, "step": 4, "claim": payment.claim}

    def release_from_a_lease(self) -> tuple[Any, ...]:
        payment = self.payment(lambda p: p.kind == "lease")
        self.said.payments[payment.sequence].closed = 0
        return "release", {"payment": payment.sequence, "step": 1, "claim": 1}

    def third_start(self) -> Any:
        payment = self.payment(lambda p: p.attempts == payments.ATTEMPTS)
        return self.claim(payment, 1)

    def claim(self, payment: Any, step: Any) -> tuple[Any, ...]:
        content = {"payment": payment.sequence, "step": step, "claim": payment.claim + 1}
        return "claim", content | {"lock": make_lock("of the forger")}

    def start_of_what_ended(self) -> Any:
        return self.claim(self.payment(lambda p: p.horizon == 3), 1)

    def start_beyond_the_horizon(self) -> Any:
        return self.claim(self.payment(lambda p: p.horizon == 3), 4)

    def start_after_the_end(self) -> Any:
        return self.claim(self.payment(lambda p: p.kind == "pay" and p.closed), 3)

    def start_by_nobody(self) -> tuple[Any, ...]:
        kind, content = self.claim(self.payment(lambda p: p.horizon == 3), 2)
        return kind, {name: said for name, said in content.items() if name != "lock"}

    def payment_of_nobody(self) -> tuple[Any, ...]:
        row, content = self.some("pay", lambda content: "key" not in content and content["scope"] == ["visits"])
        return row.kind, {name: said for name, said in content.items() if name != "lock"}

    def start_taken_back_by_another(self) -> Any:
        payment = self.payment(lambda p: p.claimed)
        return self.take_back(payment, payment.claim - 1)

    def start_taken_back_after_the_answer(self) -> Any:
        payment = self.payment(lambda p: p.horizon == 1 and p.steps)
        return self.take_back(payment, payment.claim)

    def failure_that_is_not_counted(self) -> tuple[Any, ...]:
        payment = self.payment(lambda p: p.horizon == 3)
        return "fail", {"payment": payment.sequence, "step": 2, "claim": payment.claim}

    # What follows is what a holder may say, and nobody else.

    def lease_settled_as_unused(self) -> Any:
        return self.refund(self.payment(lambda p: p.kind == "lease" and not p.closed), events.NOTHING, void=True)

    def start_declared_unreached(self) -> Any:
        payment = self.payment(lambda p: p.claimed and p.live and not p.closed)
        return self.take_back(payment, payment.claim)

    def payment_that_met_the_data_in_silence_called_void(self) -> Any:
        payment = self.payment(lambda p: p.key == "silent")
        return self.refund(payment, events.NOTHING, void=True)


WORDS = [
    "lease_settled_as_unused", "payment_that_met_the_data_in_silence_called_void", "start_declared_unreached"
]  # fmt: skip
GIFTS = sorted(
    name for name, made in vars(Forger).items()
    if callable(made)
    and name not in ("__init__", "forge", "settle_balances", "some", "payment", "refund", "take_back", "claim", *WORDS)
)  # fmt: skip


def test_the_honest_book_is_well(rows: Any) -> None:
    assert read(rows).problems == []
    assert read(rows).opinion.notes() == []


@pytest.mark.parametrize("gift", GIFTS)
def test_a_row_that_gives_something_away_is_found(rows: Any, gift: Any) -> None:
    for _ in range(5):
        forger = Forger(rows)
        assert forger.forge(*getattr(forger, gift)()) != [], gift


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("secret", ["none", "a guess", "of another holder", "of the holder"])
def test_only_the_holder_of_a_payment_gives_something_back(rows: Any, word: Any, secret: str) -> None:
    """The rows are what an honest ledger writes: without the secret nobody else can write them, keyed book or not."""
    forger = Forger(rows)
    kind, content = getattr(forger, word)()
    others = [known for known in SECRETS.values() if known != content["unlock"]]
    said = {"none": {}, "a guess": {"unlock": "0" * 32}, "of another holder": {"unlock": others[0]}}
    content = {name: value for name, value in content.items() if name != "unlock"}
    honest = secret == "of the holder"
    problems = forger.forge(*getattr(forger, word)()) if honest else forger.forge(kind, content | said[secret])
    assert [problem for problem in problems if "does not hold the payment" not in problem] == []
    assert (problems == []) == honest


@pytest.mark.parametrize(
    ("chosen", "changed", "well"),
    [
        (lambda p: p.key == "claimed", {}, True),
        (lambda p: p.key == "claimed", {"lock": None}, False),
        (lambda p: p.key == "claimed", {"step": 2}, False),
        (lambda p: p.is_open and p.attempts == 1 and p.last < p.horizon, {}, False),
    ],
    ids=["started twice", "without a lock", "another step", "started once"],
)
def test_a_step_is_given_up_where_it_was_started_twice_and_by_a_holder_with_a_lock(
    rows: Any, chosen: Any, changed: Any, well: bool
) -> None:
    forger = Forger(rows)
    payment = forger.payment(chosen)
    place = {"payment": payment.sequence, "step": payment.last + 1} | {k: v for k, v in changed.items() if k == "step"}
    lock = make_lock("another holder")
    fail = follow(rows[-1].head, rows[-1].at, "fail", place | {"claim": payment.claim + 1, "lock": lock} | changed)
    counts = {paid.account: forger.said.accounts[paid.account].failures + 1 for paid in payment.charges}
    counted = follow(fail.head, fail.at, "failure", place | {"failures": counts})
    assert (read([*rows, fail, counted]).problems == []) == well


def test_rows_from_before_failures_were_counted_and_payments_locked_are_well(rows: Any) -> None:
    """Books of the first edition lack locks and counts; a note says from which row on they are there."""
    bare = [strip(row) for row in rows]
    assert read(chain(bare)).problems == []
    forger = Forger(chain([*bare, ("note", {"topic": "mosha/edition", "content": {"edition": 2}})]))
    assert forger.said.problems == []
    payment = forger.payment(lambda p: p.horizon == 3)
    fail = {"payment": payment.sequence, "step": 2, "claim": payment.claim}
    assert any("not counted" in problem for problem in forger.forge("fail", fail))


def strip(row: Any) -> Any:
    """The row as the first edition wrote it: no failure was counted there."""
    content = {name: said for name, said in row.content().items() if name not in ("lock", "unlock", "edition")}
    return ("note", {"topic": "nothing", "content": None}) if row.kind == "failure" else (row.kind, content)


def chain(said: Any) -> Any:
    rows, head = [], GENESIS
    for kind, content in said:
        rows.append(follow(head, 0, kind, content))
        head = rows[-1].head
    return rows


def test_a_book_of_the_first_edition_says_with_its_next_payment_that_it_is_of_the_second(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("mosha.ledger.opening.EDITION", 1)
        ledger = place.open()
    ledger.close()
    ledger = place.open()
    account = ledger.account("visits", unit=PERSON, epsilon=9)
    assert ledger.notes() == []
    for _ in range(2):
        account.open(asking()).step(None)
    place.open().account("visits").open(asking()).step(None)
    assert [(note.topic, note.content) for note in ledger.notes()] == [("mosha/edition", {"edition": 2})]
    assert ledger.verify().ok


@pytest.mark.parametrize(
    "said", [{"edition": 1}, {"edition": -5}, {"edition": True}, {"edition": "1"}, {"edition": None}, {}]
)
def test_no_note_sets_a_book_back_to_an_earlier_edition(rows: Any, said: Any) -> None:
    """Whoever could would write failures that nobody counts, and payments without a lock."""
    note = follow(rows[-1].head, rows[-1].at, "note", {"topic": "mosha/edition", "content": said})
    forger = Forger([*rows, note])
    assert (forger.said.edition, forger.said.problems) == (2, [])
    payment = forger.payment(lambda p: p.horizon == 3)
    fail = {"payment": payment.sequence, "step": 2, "claim": payment.claim}
    assert any("not counted" in problem for problem in forger.forge("fail", fail))
    claim = {"payment": payment.sequence, "step": 2, "claim": payment.claim + 1}
    assert any("lock" in problem for problem in forger.forge("claim", claim))


def test_a_failure_that_is_not_counted_is_found(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On both engines, in a book where it is the first failure."""
    account = (ledger := place.open()).account("visits", unit=PERSON, epsilon=1)
    run = account.open(asking(answer=lambda data: 1 / 0))
    monkeypatch.setattr(payments, "count_failure", lambda *_: None)
    with pytest.raises(errors.StepFailed):
        run.step(None)
    assert any("not counted" in problem for problem in ledger.verify().problems)


def test_a_start_is_taken_back_once(rows: Any) -> None:
    forger = Forger(rows)
    payment = forger.payment(lambda p: p.claimed)
    _, content = forger.take_back(payment, payment.claim)
    first = follow(rows[-1].head, rows[-1].at, "unreached", content)
    assert read([*rows, first]).problems == []  # as when the source was away
    second = follow(first.head, first.at, "unreached", content)
    assert read([*rows, first, second]).problems != []


def append(place: Any, head: Any, at: Any, kind: Any, content: Any, *index: Any) -> None:
    row = follow(head, at, kind, content)
    body = row.body.replace("'", "''")
    place.tamper(f"INSERT INTO entries VALUES ({row.sequence}, {at}, '{kind}', '{body}', '{row.hash}')", *index)


def test_an_appended_refund_of_what_was_released_is_found(place: Any) -> None:
    """With every balance set right, and with the head that was kept elsewhere still in the book."""
    ledger = place.open()
    account = ledger.account("visits", unit=PERSON, epsilon=1)
    run = account.open(asking(events.Pure(0.5) * 2, horizon=2))
    run.step(None)
    run.step(None)
    head, last = ledger.head, ledger.entries()[-1]
    paid = next(row for row in ledger.entries() if row.kind == "pay")
    back = dict(paid.content()["charges"][0], spent=["0", "0"])
    content = {"payment": paid.sequence, "void": False, "kept": events.NOTHING.to_dict(), "returned": [back]}
    index = "UPDATE accounts SET amount = '0'", "UPDATE payments SET closed = 1"
    append(place, head, last.at, "close", content, *index)
    assert any("hands back steps that were released" in problem for problem in ledger.verify(head=head).problems)


def test_a_payment_at_no_price_is_found(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = place.open()
    account = ledger.account("visits", unit=PERSON, epsilon=1)
    gift = lambda payers, event: [Charge(p.terms.name, p.family, p.lanes, Price(1)) for p in payers]
    with monkeypatch.context() as patch:
        patch.setattr(payments, "price_charges", gift)
        account.open(asking(events.Pure(50.0))).step(None)
    assert any("less than what was bought certainly costs" in problem for problem in ledger.verify().problems)


RENYI = {"epsilon": 2, "delta": 1e-6, "rule": "renyi"}


@pytest.mark.parametrize("limits", [{"epsilon": 3}, {"epsilon": 3, "delta": 1e-6}, {"rho": 1}, {"mu": 1}, RENYI])
def test_a_price_between_what_is_certain_and_what_is_asked_today_is_a_note(
    monkeypatch: pytest.MonkeyPatch, limits: Any
) -> None:
    """An honest book stays well when a later version asks for more; and somebody is told."""
    ledger = mosha.Ledger.memory()
    account = ledger.account("visits", unit=PERSON, **limits)
    event = events.Laplace(40) * 20
    account.open(asking(event)).step(None)
    asked = type(account.rule).price
    monkeypatch.setattr(type(account.rule), "price", lambda rule, event: asked(rule, event) + Price.of(1e-6))
    report = ledger.verify()
    assert report.ok
    assert sum("paid less than this version asks" in note for note in report.notes) == 1
    monkeypatch.setattr(type(account.rule), "price", lambda rule, event: Price(1))  # and when it asks for less
    assert all("paid less" not in note for note in ledger.verify().notes)


@pytest.mark.parametrize("event", [events.Gaussian(5), events.Laplace(4), events.RandomizedResponse(0.2)])
@pytest.mark.parametrize("limits", [{"epsilon": 3, "delta": 1e-6}, {"rho": 1}, {"mu": 1}, RENYI])
def test_no_rule_prices_below_what_is_certain_and_half_a_price_is(event: Any, limits: Any) -> None:
    rule = rule_for(**limits)
    price = rule.price(event * 3)
    assert not is_below_certain(rule, event * 3, price)
    assert is_below_certain(rule, event * 3, replace(price, amount=price.amount // 2, rho=price.rho // 2))
