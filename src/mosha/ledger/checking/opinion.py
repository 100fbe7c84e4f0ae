"""A second opinion on prices and refunds: what a row says was paid, against what its event costs.

Later versions may price an event lower than an earlier one did (a tighter proof) or higher (a mistake was found, or a
bound became looser). So the price of today is no law for rows of the past:

    paid at least today's price                     well
    paid less, not below what is certain            a note: look at it, or charge the difference
    paid less than the event certainly costs        a problem: no valid rule of any version can have asked so little

What is certain is the lower bound of the tight accountant: some mechanism that the event describes costs as much.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

from mosha.accounting.rules import Price, Rule
from mosha.core.errors import MoshaError, Unpriced
from mosha.core.event import NOTHING, Event, from_json
from mosha.core.guarantee import Approx, Gaussian, Pure, ZeroConcentrated
from mosha.core.language import phrase

__all__ = ["Opinion", "is_below_certain", "keeps_enough"]

DELTAS = (1e-2, 1e-6, 1e-10)  # where a promise that holds at every delta is tried
MANY = 1000  # how many such events are looked at together, where so many fit into a limit
SHOWN = 3  # rows that a note names
_LAST_DIGIT = 1 + 2.0**-49  # a limit admits that much more than the number that it promises

Purchase = tuple[str, str, Price]  # an account, the text of an event, what was paid for it


class Opinion:
    """Prices every event again, each kind once; remembers which rows paid less than this version would ask."""

    def __init__(self) -> None:
        self._verdicts: dict[Purchase, str] = {}
        self._events: dict[str, Event] = {}
        self.cheap: dict[str, list[int]] = {}  # account -> rows

    def event(self, text: str) -> Event:
        """The event of this text, read once."""
        found = self._events.get(text)
        if found is None:
            found = self._events[text] = from_json(text)
        return found

    def judge(self, row: int, account: str, rule: Rule, text: str, paid: Price) -> bool:
        """Whether this may have been the price of the event; where today's is higher, the row is remembered."""
        known = account, text, paid
        verdict = self._verdicts.get(known)
        if verdict is None:
            verdict = self._verdicts[known] = _verdict(rule, self.event(text), paid)
        if verdict == "low":
            self.cheap.setdefault(account, []).append(row)
        return verdict != "impossible"

    def notes(self) -> list[str]:
        """What is not wrong for certain, and worth a look."""
        return [_describe(account, rows) for account, rows in sorted(self.cheap.items())]


def _describe(account: str, rows: list[int]) -> str:
    first = ", ".join(map(str, rows[:SHOWN])) + (", ..." if len(rows) > SHOWN else "")
    return phrase("ledger.note_paid_less", number=len(rows), account=account, rows=first)


def _verdict(rule: Rule, event: Event, paid: Price) -> str:
    try:
        if rule.price(event) <= paid:
            return "fair"
    except Unpriced:
        pass
    return "impossible" if is_below_certain(rule, event, paid) else "low"


@lru_cache(maxsize=256)
def is_below_certain(rule: Rule, event: Event, paid: Price) -> bool:
    """Whether `event` certainly costs more than `paid` promises, whatever rule or version asked for it.

    Guarantee:
        Prices of a rule add up: were `paid` valid for the event, then n times as much would be for n such events, and
        everything that they describe would keep what `rule.spent_as` promises for it. The lower bound of the tight
        accountant is attained by something that they describe. A promise below it is none, and the price is not valid.

    >>> from mosha.accounting.rules import PureRule
    >>> from mosha.core.events import Pure as PureEvent
    >>> rule = PureRule(1.0)
    >>> is_below_certain(rule, PureEvent(0.5), Price.of(0.25)), is_below_certain(rule, PureEvent(0.5), Price.of(0.5))
    (True, False)
    """
    from mosha.accounting import bounds  # noqa: PLC0415  (numerical, and only where a price looks low)

    most = rule.repeats(paid, rule.way(paid)) or MANY
    for times in {1, max(1, min(MANY, most))}:
        for delta, epsilon in _promises(rule, paid * times):
            with suppress(MoshaError):  # an event without any price has no certain one either
                if bounds(event * times, delta=delta)[0] > epsilon * _LAST_DIGIT:
                    return True
    return False


def _promises(rule: Rule, paid: Price) -> list[tuple[float, float]]:
    """What this price promises: (delta, epsilon) at some places where it is easy to compare."""
    from mosha.accounting.measures import concentrated, gaussian  # noqa: PLC0415  (as above)

    said = rule.spent_as(paid)
    if isinstance(said, ZeroConcentrated):
        return [(delta, concentrated.epsilon_from_rho(said.rho, delta)) for delta in DELTAS]
    if isinstance(said, Gaussian):
        return [(delta, gaussian.epsilon(said.mu, delta)) for delta in DELTAS]
    if isinstance(said, Pure | Approx):
        least = said.delta if isinstance(said, Approx) else 0.0
        return [(delta, said.epsilon) for delta in {least, *DELTAS} if delta >= least and delta > 0]
    return []


def keeps_enough(event: Event, horizon: int, kept: Event, needed: int) -> bool:
    """Whether `kept` is what a run of `event` costs that started at least `needed` of its steps.

    >>> from mosha.core.events import Gaussian
    >>> [keeps_enough(Gaussian(2) * 10, 10, Gaussian(2) * 3, needed) for needed in (0, 3, 4)]
    [True, True, False]
    """
    if kept == NOTHING:
        return needed == 0
    if kept == event:
        return True
    each = event.per_step(horizon)
    if each is None:
        return False
    (part, one), *_ = each.parts()
    count = dict(kept.parts()).get(part, 0)
    return count % one == 0 and needed <= count // one <= horizon and each * (count // one) == kept
