"""One payment as the rows of a book describe it: which starts were announced, which steps ended, what was kept.

pay ──► live ──release, fail──► live for the next step; a `fail` with a lock gives up, and comes from a new holder
          │▲
unreached ▼│ claim
         idle                   a start that did not reach the data; the next one is announced by a claim
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from mosha.ledger.paying.charge import Charge
from mosha.ledger.paying.holder import opens
from mosha.ledger.paying.payment import ATTEMPTS
from mosha.ledger.storage.chain import Content, Entry, canonical

__all__ = ["PaymentState"]


@dataclass(slots=True)
class PaymentState:
    """One payment; `event` is the canonical text of what stays paid."""

    sequence: int
    at: int
    label: str
    kind: str
    name: str
    event: str
    scope: tuple[str, ...]
    key: str | None
    horizon: int
    charges: list[Charge]
    replays: bool = False
    claim: int = 1
    attempts: int = 1
    closed: int = 0
    live: bool = True  # the last announced start was not declared unreached
    claimed: int = 0  # the step that was claimed since the last one ended
    last: int = 0  # the last step that ended
    steps: dict[int, tuple[int, str]] = field(default_factory=dict)  # the row that ended a step, and its kind
    lock: str | None = None  # of the present holder; None where an earlier edition wrote none
    returned: list[Charge] = field(default_factory=list)
    purchase: str = ""

    @staticmethod
    def of(entry: Entry, content: Content, charges: list[Charge]) -> PaymentState:
        what = entry.sequence, entry.at, entry.label, entry.kind, content.get("name", entry.kind)
        text = sys.intern(canonical(content["event"]))  # many payments are for one event
        scope = tuple(content["scope"])
        terms = content.get("key"), content.get("horizon", 1), charges, content.get("replays", False)
        return PaymentState(*what, text, scope, *terms, lock=content.get("lock"))

    @property
    def bought(self) -> tuple[str, int, int]:
        """Which purchase this is, and how many of its steps were released and failed."""
        ended = [kind for _, kind in self.steps.values()]
        return self.purchase, ended.count("release"), ended.count("fail")

    @property
    def is_open(self) -> bool:
        """Whether steps can be started at all: a lease keeps no book of its runs."""
        return self.kind == "pay" and not self.closed

    @property
    def touched(self) -> int:
        """The last step that may have met the data, as far as rows can tell: what is kept must cover it."""
        return max(self.last, self.claimed if self.attempts > 0 else 0)

    def is_word_of_holder(self, content: Content) -> bool:
        """Whether a row that gives something away comes from whoever holds the payment."""
        return self.lock is None or opens(self.lock, content.get("unlock"))

    def take_claim(self, claim: int, step: int, lock: str | None) -> bool:
        """A start is announced. Whether it may be."""
        self.claim += 1
        self.attempts += 1
        few = self.attempts <= ATTEMPTS or self.replays
        fair = claim == self.claim and few and self.is_open and self.last < step <= self.horizon
        self.live, self.claimed, self.lock = True, max(self.claimed, step), lock
        return fair

    def take_back_start(self, claim: int, step: int) -> bool:
        """The last announced start did not reach the data. Whether its holder may say so: once."""
        fair = claim == self.claim and self.live and self.is_open and step not in self.steps
        self.attempts -= 1
        self.live = False
        return fair

    def give_up(self, claim: int, step: int, row: int, lock: str | None) -> bool:
        """A new holder ends a step that was started as often as it may be. Whether it was, and never answered."""
        fair = claim == self.claim + 1 and self.attempts >= ATTEMPTS and not self.replays and step == self.claimed
        self.claim, self.lock = self.claim + 1, lock
        return self.end_step(claim, step, row, "fail") and fair

    def end_step(self, claim: int, step: int, row: int, kind: str) -> bool:
        """A step is answered or broke. Whether it was paid for and started."""
        fair = claim == self.claim and 1 <= step <= self.horizon and self.is_open and self.live
        self.steps[step] = row, kind
        self.last, self.attempts, self.live, self.claimed = max(self.last, step), 1, True, 0
        return fair
