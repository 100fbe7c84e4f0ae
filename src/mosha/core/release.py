"""What leaves the private side, and the receipt for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from mosha.core.canvas import draw_as_asked
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.guarantee import Approx, Guarantee
from mosha.core.language import Language, say
from mosha.core.number import strict_probability
from mosha.core.showing import Card, Shown, make_value_card, summarize_value
from mosha.core.unit import Unit

__all__ = ["PaidShare", "Quote", "Receipt", "Release", "describe_as", "write_left"]


NOTHING = 1e-5  # of a limit: below the digits that texts show


@dataclass(frozen=True, kw_only=True)
class PaidShare:
    """What one account paid for a release, what it has spent with it, and what it has left, in its own measure.

    `left_as` is that as epsilon at the delta of the account, where it has one and counts in another measure.

    Of an account that others share a server tells what it paid, and nothing more: the other numbers are NaN.
    """

    account: str
    measure: str
    cost: float
    delta: float
    spent: float
    limit: float
    left: float
    left_as: Approx | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {"left_as": None if self.left_as is None else self.left_as.to_dict()}

    def __str__(self) -> str:
        cost = _write_cost(self.measure, self.cost, self.delta)
        if math.isnan(self.limit):
            return say("core.share_of_others", cost=cost, account=self.account)
        numbers = {
            "spent": f"{self.spent:.4g}",
            "limit": f"{self.limit:.4g}",
            "left": write_left(self.left, self.limit, self.measure),
        }
        return say("core.share_paid", cost=cost, account=self.account, **numbers) + describe_as(self.left_as)


@dataclass(frozen=True, kw_only=True)
class Quote:
    """What a release would cost each account that pays for it, as things stand now; nothing was paid.

    `spent` and `left` of each share are as they would be afterwards. `lacking` names the accounts that cannot pay.
    """

    shares: tuple[PaidShare, ...]
    lacking: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        return not self.lacking


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """Proof of payment: which account paid what, before the data was read.

    `cost`, `spent` and `limit` are in the measure of the account's rule ("epsilon", "rho", ...), `spent` includes
    this payment. `entry` finds the payment in the ledger again. `spent_as` is what all spending so far means as epsilon
    and delta, where the account's measure is another one and its limit was given with a delta. `payers` are all who
    paid, each by its own rule: the accounts of the release, those above them, and their population. `more` is how many
    more payments like this one fitted when it was made; None where it is free, or where that is not known.

    `account` paid `event` for `unit`; `measure` is what its rule counts in, `delta` what this payment adds where
    the rule counts in a delta too, `left` what the rule says is left (None: `limit` less `spent`), `left_as` the same
    as epsilon at the delta of the account, where the measure is another one.

    >>> import mosha
    >>> from mosha.mechanisms import Count, laplace
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=2)
    >>> release = account.open(laplace(Count(), unit=mosha.Row(), epsilon=1)).step([1, 2, 3])
    >>> release.receipt.account
    'visits'
    """

    account: str
    entry: str
    unit: Unit
    event: Event
    measure: str
    cost: float
    spent: float
    limit: float
    delta: float = 0.0
    spent_as: Guarantee | None = None
    left: float | None = None
    left_as: Approx | None = None
    payers: tuple[PaidShare, ...] = ()
    more: int | None = None

    @property
    def remaining(self) -> float:
        """What was left of the account after this payment."""
        return max(0.0, self.limit - self.spent) if self.left is None else self.left

    def __str__(self) -> str:
        cost = _write_cost(self.measure, self.cost, self.delta)
        cost += say("core.receipt_so_far", spent=str(self.spent_as)) if self.spent_as else ""
        numbers = {
            "spent": f"{self.spent:.4g}",
            "limit": f"{self.limit:.4g}",
            "left": write_left(self.remaining, self.limit, self.measure, self.more),
        }
        paid = say("core.receipt_paid", cost=cost, account=self.account, **numbers) + describe_as(self.left_as)
        more = "" if self.more is None else say("core.receipt_more", count=f"{self.more:,}")
        others = "".join(f"; {share}" for share in self.payers if share.account != self.account)
        return f"{paid}{more}{others}{say('core.receipt_hidden', unit=self.unit.describe())}"

    def __repr__(self) -> str:
        return f"<Receipt {self}>"

    def _repr_html_(self) -> str:
        shares = [share for share in self.payers or (self,) if not math.isnan(share.limit)]
        gauges = [
            (share.account, share.spent / share.limit if share.limit else 1.0, _write_share(share)) for share in shares
        ]
        also = f" (delta {self.delta:.3g})" if self.delta else ""
        facts = [
            (say("core.shown_paid"), f"{self.measure} {self.cost:.4g}{also}"),
            (say("core.shown_hidden"), self.unit.describe()),
            *([(say("core.shown_all_spending"), str(self.spent_as))] if self.spent_as else []),
            (say("core.shown_payment"), self.entry),
        ]
        notes = () if self.more is None else (say("core.shown_more", count=f"{self.more:,}"),)
        title = f"{say('core.shown_receipt')} {self.account}"
        return Card(title=title, facts=facts, gauges=gauges, notes=notes).write_html()

    def write_footer(self, lang: Language | None = None) -> str:
        """What stands beneath a picture: what was paid, whose presence is hidden, and the day.

        Args:
            lang: "en" or "zh"; the chosen language where it is left out.
        """
        said = {"paid": f"{self.measure} {self.cost:.4g}", "account": self.account, "hidden": self.unit.describe(lang)}
        return say("core.picture_footer", lang, date=datetime.now(UTC).date().isoformat(), **said)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for programs and registries."""
        described = {name: getattr(self, name) for name in ("account", "entry", "measure", "cost", "delta")}
        described |= {name: getattr(self, name) for name in ("spent", "limit", "remaining", "more")}
        described["spent_as"] = None if self.spent_as is None else self.spent_as.to_dict()
        described["left_as"] = None if self.left_as is None else self.left_as.to_dict()
        described["payers"] = [share.to_dict() for share in self.payers]
        return described | {"unit": self.unit.to_dict(), "event": self.event.to_dict()}


def _write_share(share: PaidShare | Receipt) -> str:
    """What an account has spent and has left, in its own measure."""
    left, more = (share.remaining, share.more) if isinstance(share, Receipt) else (share.left, None)
    numbers = {
        "spent": f"{share.spent:.4g}",
        "limit": f"{share.limit:.4g}",
        "left": write_left(left, share.limit, share.measure, more),
    }
    return say("core.shown_spent_of", measure=share.measure, **numbers) + describe_as(share.left_as)


def write_left(left: float, limit: float, measure: str, more: int | None = None, digits: int = 4) -> str:
    """What is left, for people: 0 where it is too little for the digits of a text and pays for nothing like the last.

    Whoever reads "1 of 1 spent" must not read that something is left. A rho or a squared mu goes with the square of
    epsilon.

    >>> write_left(6.7e-07, 1.0, "epsilon"), write_left(6.7e-07, 1.0, "epsilon", more=3), write_left(1e-6, 1.0, "rho")
    ('0', '6.7e-07', '1e-06')
    """
    nothing = NOTHING if measure == "epsilon" else NOTHING**2
    return "0" if left < nothing * limit and not more else f"{left:.{digits}g}"


def describe_as(left: Approx | None, lang: Language | None = None) -> str:
    """What is left in the one currency of all texts, to stand behind the account's own; nothing where that is it.

    >>> describe_as(Approx(0.97, 1e-6)), describe_as(None)
    (' (epsilon 0.97 at delta 1e-06)', '')
    """
    return "" if left is None else say("core.left_as", lang, epsilon=f"{left.epsilon:.4g}", delta=f"{left.delta:.3g}")


@dataclass(frozen=True, repr=False)
class Release(Shown):
    """An answer that has been paid for: use it, publish it, compute with it, as often as you like.

    `receipt` says who paid how much; `step` is which step of a run this answers, from 1.

    Guarantee:
        Whatever is computed from `value` alone is as private as `value` (post-processing), so `map`, `error` and
        `plot` are free.

    >>> import mosha
    >>> from mosha.mechanisms import Count, laplace
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=2)
    >>> release = account.open(laplace(Count(), unit=mosha.Row(), epsilon=1)).step([1, 2, 3])
    >>> release.error(0.95), release.map(lambda count: max(0, count)).value >= 0
    (3.0, True)
    """

    value: Any
    receipt: Receipt
    step: int = 1
    _error: Callable[[float, Any], Any] | None = field(default=None, repr=False, compare=False)
    _draw: Callable[[Any, Any], Any] | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"Release({summarize_value(self.value, self.error_or_none())})"

    def make_card(self) -> Card:
        return make_value_card(self.value, self.error_or_none(), notes=(str(self.receipt),))

    def error(self, confidence: float = 0.95) -> Any:
        """Half-width of the error bar: the noise stays within it with probability `confidence`."""
        if self._error is None:
            raise InvalidParameter("core.no_error_bar")
        return self._error(strict_probability("confidence", confidence), self.value)

    def map(self, function: Callable[[object], object]) -> Release:
        """The value passed through `function`: post-processing, free, under the same receipt."""
        return replace(self, value=function(self.value), _error=None, _draw=None)

    def plot(
        self, *, ax: object | None = None, title: str | None = None, unit: str | None = None,
        lang: Language | None = None,
    ) -> Any:  # fmt: skip
        """A picture of the answer with its error bars (needs the extra `plot`).

        Args:
            ax: axes of matplotlib to draw on.
            title: what stands above, in place of what was asked.
            unit: what the numbers are counted in.
            lang: "en" or "zh"; the chosen language where it is left out.
        """
        draw = self._draw
        if draw is None:
            raise InvalidParameter("core.no_picture")
        value, bars = self.value, self.error_or_none()
        footer = self.receipt.write_footer
        return draw_as_asked(lambda: draw(value, bars), ax=ax, title=title, unit=unit, lang=lang, footer=footer)

    def to_dict(self, confidence: float = 0.95) -> dict[str, Any]:
        """Plain data: the value, its error bar (None if it has none) and the receipt.

        Args:
            confidence: of the error bar.
        """
        bar = None if self._error is None else _to_plain(self.error(confidence))
        return {"value": _to_plain(self.value), "error": bar, "receipt": self.receipt.to_dict()}

    def error_or_none(self) -> Any:
        """What a picture shows: nothing where an answer has no error bar, whose picture may be drawn all the same."""
        try:
            return self.error(0.95)
        except InvalidParameter:
            return None


def _to_plain(value: Any) -> Any:
    """Arrays and their numbers as lists and plain numbers."""
    return value.tolist() if hasattr(value, "tolist") else value


def _write_cost(measure: str, cost: float, delta: float) -> str:
    return f"{measure} {cost:.4g}" + (say("core.receipt_delta", delta=f"{delta:.3g}") if delta else "")
