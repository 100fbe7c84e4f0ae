"""What is to be paid for: by whom, under which key; and whether a key is used for the same thing again.

A measurement is sold as its event, or as one piece with the delta that it was asked for with. Whoever asks for noise at
(epsilon, delta) has bought a fixed event whose tight price is that pair. A rule that adds up epsilons and deltas can
charge it as a `Plan`, and the concentrated sum still sees the event inside.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

from mosha.accounting.measures import pure
from mosha.accounting.rules import EitherRule, PureRule, Rule
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import Plan
from mosha.core.measurement import Measurement
from mosha.ledger.storage.chain import Content, Entry, canonical
from mosha.ledger.terms.payers import Payer
from mosha.ledger.terms.terms import LONGEST

__all__ = ["Order", "find_same", "offers", "scope_of"]


def offers(measurement: Measurement, rule: Rule) -> tuple[Event, ...]:
    """The events by which this may be paid for, the best one first; all of them price the same run.

    What was not asked for with a delta is sold as it is. An event that has a pure price is offered as it is first: it
    needs no delta, and all of it is there for others. Steps of a repetition can be handed back, those of a plan cannot:
    such a run is offered as it is first, too.

    >>> from mosha.core.events import Gaussian
    >>> from mosha.core.unit import Row
    >>> asked = Measurement(unit=Row(), event=Gaussian(4), step=lambda *_: (None, None), delta=1e-6)
    >>> offers(asked, PureRule(1.0, 1e-5))
    (Plan(event=Gaussian(noise_multiplier=4.0), delta=1e-06), Gaussian(noise_multiplier=4.0))
    """
    event, delta = measurement.event, measurement.delta
    if delta is None:
        return (event,)
    if math.isfinite(pure.approx(event)[0]):
        return event, Plan(event, delta)
    repeats = measurement.horizon > 1 and event.per_step(measurement.horizon) is not None
    if isinstance(rule, EitherRule | PureRule) and not repeats:
        return Plan(event, delta), event
    return event, Plan(event, delta)


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
