"""A random history of payments, with books of its own: which steps met the data, and which answers left.

Whatever is opened, stepped, broken, lost, retried and closed, also while the ledger itself is out of reach:

- no account is above its limit, and `verify` finds nothing;
- one payment's step has one answer, whoever asks;
- a step meets the data at most twice, and a second time only after a row `claim` of that very step;
- no answer of a step that failed or was given up has left, whoever held it;
- what stays charged for a payment covers every step that met the data, at every account and by its own rule, in each
  of the sums that it keeps;
- an account that keeps two sums goes the way that its first payment chose, whatever is handed back.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import mosha
from mosha import errors, events
from mosha.accounting.rules import FREE
from mosha.core.measurement import StatePolicy
from mosha.ledger.paying.charge import Charge
from tests.ledger.place import PERSON, asking

EVENTS = [events.Laplace(40), events.Laplace(12), events.RandomizedResponse(0.07)]
DELTAS = [events.Approx(0.05, 1e-8), events.Gaussian(60), events.Plan(events.Gaussian(30), 1e-8)]
PLACES = {  # two trees: one of pure events alone, one of accounts that keep two sums, with disjoint blocks and without
    "top": ["top", "top/pure", "top/renyi"],
    "two": ["two", "two/child", "two/a", "two/b"],
}
ACCOUNTS = [name for names in PLACES.values() for name in names]
REFUSALS = (
    errors.BudgetExceeded,
    errors.Unpriced,
    errors.RunError,
    errors.AccountFrozen,
    errors.AccountRetired,
    errors.InvalidParameter,
    errors.DataError,
    errors.LedgerUnavailable,
)
TROUBLES = ["none"] * 4 + ["away", "broken", "broken off", "interrupted"] * 2
KINDS = {"ledger", "open", "pay", "lease", "release", "fail", "failure", "lift", "unreached", "claim", "close"}


class History:
    def __init__(self, dice: Any) -> None:
        self.dice = dice
        self.ledger = mosha.Ledger.memory()
        self.ledger.population("everybody", rho=0.35)
        self.ledger.account("top", unit=replace(PERSON, of="everybody"), rho=0.4)
        self.ledger.account("top/pure", epsilon=6)
        self.ledger.account("top/renyi", epsilon=6, delta=1e-6, rule="renyi")
        two = self.ledger.account("two", unit=PERSON, epsilon=1, delta=1e-6, disjoint_blocks=True)
        two.child("child", epsilon=0.5, delta=1e-6)
        two.block("a")
        two.block("b", epsilon=0.6, delta=1e-7)
        self.ways = {}  # type: ignore[var-annotated]
        self.runs, self.leases = [], []  # type: ignore[var-annotated]
        self.met = {}  # type: ignore[var-annotated]  # payment -> how often each step met the data, with the event of one step
        self.left = {}  # type: ignore[var-annotated]  # (payment, step) -> the answer that left
        self.leased = set()  # type: ignore[var-annotated]
        self.given_up = 0
        self.write, self.ledger._storage.write = self.ledger._storage.write, self.write_or_not

    def write_or_not(self, operation: Any) -> Any:
        """The ledger is out of reach now and then, before it wrote or after."""
        fate = self.dice.randrange(40)
        if fate == 0:
            raise errors.LedgerUnavailable("the disk is full.")
        done = self.write(operation)
        if fate == 1:
            raise errors.LedgerUnavailable("the confirmation was lost.")
        return done

    def open(self, account: Any, event: Any, horizon: Any, key: Any = None) -> None:
        def step(state: Any, data: Any, trouble: Any, rng: Any) -> tuple[Any, ...]:
            if trouble == "away":
                raise errors.SourceUnavailable("away.")
            place = (run if leased else None, run._taken + 1)
            self.met.setdefault(run.receipt.entry, Counter())[place, event] += 1
            if trouble == "broken":
                raise ValueError
            if trouble == "broken off":
                raise errors.Interrupted("broken off.")
            if trouble == "interrupted":
                raise KeyboardInterrupt
            return self.dice.getrandbits(60), state

        leased = account in self.leases
        asked = asking(event * horizon, horizon=horizon, step=step)
        if self.dice.random() < 0.5:  # found again by its key, the run goes on after its last answer
            asked = replace(asked, state=StatePolicy(resume=lambda state, answer: state))
        run = account.open(asked, key=key)
        self.runs.append(run)

    def choose_event(self, tree: Any) -> Any:
        return self.dice.choice(EVENTS if tree == "top" else EVENTS + DELTAS)

    def pay(self) -> None:
        tree = self.dice.choice(list(PLACES))
        scope = tuple(self.dice.sample(PLACES[tree], self.dice.choice([1, 1, 2])))
        account = self.ledger.together([self.ledger.account(name) for name in scope])
        event, horizon = self.choose_event(tree), self.dice.randint(1, 3)
        key = self.dice.choice([None, *(f"{n} {event} {horizon}" for n in range(2))])
        self.open(account, event, horizon, key)

    def lease(self) -> None:
        name = self.dice.choice(ACCOUNTS)
        event = self.choose_event(name.partition("/")[0])
        lease = self.ledger.account(name).lease(event * self.dice.randint(1, 4))
        self.leased.add(lease._entry.label)
        self.leases.append(lease)

    def pay_from_lease(self) -> None:
        if self.leases:
            lease = self.dice.choice(self.leases[-3:])
            self.open(lease, self.choose_event(lease.name.partition("/")[0]), self.dice.randint(1, 2))

    def step(self) -> None:
        if self.runs:
            run = self.dice.choice(self.runs[-6:])
            release = run.step("data", ask=self.dice.choice(TROUBLES))
            if run.receipt.entry not in self.leased:
                assert self.left.setdefault((run.receipt.entry, release.step), release.value) == release.value

    def close(self) -> None:
        if self.runs:
            self.dice.choice(self.runs[-6:]).close()

    def settle(self) -> None:
        if self.leases:
            self.dice.choice(self.leases[-3:]).close()

    def lift(self) -> None:
        self.ledger.account(self.dice.choice(ACCOUNTS)).lift()

    def go_on(self) -> None:
        actions = [self.pay, self.lease, self.pay_from_lease, self.step, self.close, self.settle, self.lift]
        action = self.dice.choices(actions, [5, 1, 3, 12, 3, 1, 2])[0]
        try:
            action()
        except (*REFUSALS, KeyboardInterrupt):
            pass

    def check(self) -> None:
        for account in self.ledger.accounts():
            assert account.rule.admits(account.spent_price, account.way)
            assert account.spent <= account.limit
            if account.way:
                assert self.ways.setdefault(account.name, account.way) == account.way
        report = self.ledger.verify()
        assert report.ok, report.problems
        rows = self.ledger.entries()
        claimed = {(row.content()["payment"], row.content()["step"]) for row in rows if row.kind == "claim"}
        closed = {row.content()["payment"]: row.content()["returned"] for row in rows if row.kind == "close"}
        labels = {row.sequence: row.label for row in rows}
        for row in rows:
            if row.kind == "fail":
                assert (labels[row.content()["payment"]], row.content()["step"]) not in self.left
                self.given_up += "lock" in row.content()
            if row.kind in ("pay", "lease"):
                met = self.met.get(row.label, {})
                for ((_, step), _), times in met.items():
                    assert times <= (2 if (row.sequence, step) in claimed else 1), (row, step, times)
                self.check_kept(row, [event for _, event in met], closed.get(row.sequence, []))

    def check_kept(self, row: Any, met: Any, returned: Any) -> None:
        """The one stated assumption: a step that was lost is started once more at no further price."""
        given = {back["account"]: Charge.from_dict(back).price for back in returned}
        for charge in row.content()["charges"]:
            price = self.ledger.account(charge["account"]).rule.price
            kept = Charge.from_dict(charge).price - given.get(charge["account"], FREE)
            assert sum((price(event) for event in met), FREE) <= kept, row


def live(dice: Any, actions: Any, checks: Any) -> Any:
    """One whole history, as these dice fall."""
    history = History(dice)
    for _ in range(checks):
        for _ in range(actions):
            history.go_on()
        history.check()
    return history
