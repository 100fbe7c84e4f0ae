"""What is to be paid for: by whom, under which key; and whether a key is used for the same thing again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.measurement import Measurement
from mosha.ledger.storage.chain import Content, Entry, canonical
from mosha.ledger.terms.payers import Payer
from mosha.ledger.terms.terms import LONGEST

__all__ = ["Order", "find_same", "scope_of"]


@dataclass(frozen=True)
class Order:
    """What is to be paid for, by whom, under which key."""

    scope: tuple[str, ...]
    payers: tuple[Payer, ...]
    event: Event
    horizon: int
    name: str
    key: str | None
    question: str = ""
    resumable: bool = False  # the measurement finds its state again, so that another holder may go on
    replays: bool = False  # a step that is started again gets the same answer: no limit on attempts

    @staticmethod
    def of(measurement: Measurement, scope: tuple[str, ...], payers: tuple[Payer, ...], key: str | None) -> Order:
        if key is not None and not (len(key) <= LONGEST and key.isprintable()):
            raise InvalidParameter("ledger.bad_key", parameter="key", longest=LONGEST, spent="nothing")
        asked = str(measurement.question)
        what = measurement.event, measurement.horizon, str(measurement.name), key, asked
        state = measurement.state
        return Order(scope, payers, *what, resumable=state.resume is not None, replays=state.replays)

    def describe(self) -> dict[str, Any]:
        what = {"event": self.event.to_dict(), "horizon": self.horizon, "name": self.name}
        what |= {"question": self.question} if self.question else {}
        what |= {"replays": True} if self.replays else {}
        return what | {"scope": list(self.scope)} | ({} if self.key is None else {"key": self.key})


def scope_of(names: tuple[str, ...]) -> str:
    """What the index calls a set of accounts; of one length, however many they are."""
    return hashlib.sha256(canonical(list(names)).encode()).hexdigest()


def _open_plan(event: Content) -> dict[str, Any]:
    """The event inside a plan: what was run, whatever it was sold as."""
    return event["event"] | {"mosha": event["mosha"]} if event["kind"] == "Plan" else event


def find_same(entry: Entry, order: Order) -> Entry:
    """The payment that was made under the key of this order; refused where it was for something else."""
    stored = entry.content()
    wanted = order.describe()
    same = _open_plan(stored["event"]) == _open_plan(wanted["event"])
    if not same or any(stored.get(part) != wanted.get(part) for part in ("horizon", "name", "question", "replays")):
        raise InvalidParameter("ledger.key_of_another_payment", parameter="key", key=order.key, spent="nothing")
    return entry
