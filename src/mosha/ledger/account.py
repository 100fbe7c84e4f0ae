"""Accounts in a ledger: what they promise, what they have spent, and the door that charges them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Unpack

from mosha.accounting.numerics.price import Price
from mosha.accounting.rules import Rule
from mosha.core.account import Account, Reservation
from mosha.core.errors import BudgetExceeded, InvalidParameter, MoshaError, Unpriced
from mosha.core.event import Event
from mosha.core.guarantee import Approx, Guarantee
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.question import price_tag
from mosha.core.release import Quote
from mosha.core.showing import Card, Shown
from mosha.core.unit import Member, Unit
from mosha.ledger.paying.charge import Charge, count_room, foresee, price_charges
from mosha.ledger.paying.holder import is_frozen, refuse_frozen
from mosha.ledger.paying.lease import Lease
from mosha.ledger.paying.payment import VOID, pay
from mosha.ledger.paying.receipts import Order, make_quote, offers, scope_of
from mosha.ledger.paying.room import count_like_last
from mosha.ledger.showing import describe_left, make_account_card
from mosha.ledger.storage.transactions import Transaction
from mosha.ledger.terms.moment import as_datetime
from mosha.ledger.terms.payers import ancestry, join_name, payers
from mosha.ledger.terms.terms import LONGEST, Terms
from mosha.ledger.terms.wanted import GrantTerms, Limits

if TYPE_CHECKING:
    from mosha.ledger.book import Book

__all__ = ["JointAccount", "LedgerAccount"]


def _common(leaves: tuple[Terms, ...]) -> Unit:
    """The unit that all of these protect: one unit, or the persons of one population under whatever names."""
    units = {terms.unit.identity: terms.unit for terms in leaves if not isinstance(terms.unit, Member)}
    if len(units) > 1:
        first = next(iter(units.values()))
        return Member(of=first.of, neighbors=first.neighbors)
    return next(iter(units.values()), leaves[0].unit)


@explain_wrong_calls
class JointAccount(Account):
    """Several accounts that pay for each release together: all of them and all their ancestors, or nobody.

    Methods take what is `asked` with its price as `epsilon`, `delta` or `rho`, a `key` that makes a retry free, an
    `other` account; `ledger` and `leaves` are those of the accounts.

    Guarantee:
        Each of the accounts keeps its own limit, whatever is charged to the others (see `payers.md`).

    >>> import mosha
    >>> ledger = mosha.Ledger.memory()
    >>> both = ledger.together([ledger.account(name, unit=mosha.Row(), epsilon=2) for name in ("year", "month")])
    >>> both.unit.describe()
    'one row is added or removed'
    """

    def __init__(self, ledger: Book, leaves: tuple[Terms, ...]) -> None:
        self._ledger = ledger
        self._leaves = leaves
        self._scope = tuple(terms.name for terms in leaves)
        self._unit = _common(leaves)
        self._payers = payers(self._scope, ledger._find_terms(self._scope))  # noqa: SLF001

    @property
    def name(self) -> str:
        return " + ".join(self._scope)

    @property
    def unit(self) -> Unit:
        return self._unit

    def is_same(self, other: Account) -> bool:
        if not isinstance(other, JointAccount) or self._scope != other._scope:  # noqa: SLF001
            return False
        return self._ledger._storage.is_same_book(other._ledger._storage)  # noqa: SLF001

    def _reserve(self, measurement: Measurement, key: str | None) -> Reservation:
        refusals: list[MoshaError] = []
        for event in offers(measurement, self._leaves[0].rule):
            try:
                return self._pay(measurement, event, key)
            except (BudgetExceeded, Unpriced) as error:
                refusals.append(error)
        raise min(refusals, key=lambda error: isinstance(error, Unpriced))  # the first one that speaks of money

    def _pay(self, measurement: Measurement, event: Event, key: str | None) -> Reservation:
        order = Order.of(measurement, self._scope, self._payers, key)
        return pay(self._ledger._storage, replace(order, event=event))  # noqa: SLF001

    def how_many(
        self, asked: object, *, epsilon: float | None = None, delta: float | None = None, rho: float | None = None
    ) -> int | None:
        """How often all payers together can still pay for this. None where it is free. No data is read.

        Args:
            asked: an event, a measurement, a question about a table or a graph, a plan of a training.
            epsilon: what each release may cost, for a question, and for a plan that has no noise yet; or
            rho: the same.
            delta: the same.

        Refused as `open` is where an account that pays is frozen, retired or past its end.

        >>> import mosha
        >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1, delta=1e-6)
        >>> [account.how_many(mosha.events.Laplace(noise)) for noise in (2, 10, 50)]
        [2, 10, 113]
        """
        said = {"epsilon": epsilon, "delta": delta, "rho": rho}
        tag = price_tag(asked, **{name: value for name, value in said.items() if value is not None})
        events = offers(tag, self._leaves[0].rule) if isinstance(tag, Measurement) else (tag,)
        charges, refusals = [], []
        for event in events:  # as `open` tries them: one that cannot be price_charges does not matter where another can
            try:
                charges.append(price_charges(self._payers, event))
            except Unpriced as error:
                refusals.append(error)
        if not charges:
            raise refusals[0]
        return self._ledger._storage.read(lambda transaction: self._count_room(transaction, charges))  # noqa: SLF001

    def quote(
        self, asked: object, *, epsilon: float | None = None, delta: float | None = None, rho: float | None = None
    ) -> Quote:
        """What this would cost every account that pays, and whether each can pay it now. Nothing is paid, no data read.

        Takes what `how_many` takes, and is refused where `open` would be because an account is frozen, retired or past
        its end.

        >>> import mosha
        >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1)
        >>> account.quote(mosha.events.Laplace(4)).shares[0].left
        0.75
        """
        said = {"epsilon": epsilon, "delta": delta, "rho": rho}
        tag = price_tag(asked, **{name: value for name, value in said.items() if value is not None})
        events = offers(tag, self._leaves[0].rule) if isinstance(tag, Measurement) else (tag,)

        def look(transaction: Transaction) -> Quote:
            refuse_frozen(transaction, self._payers, paid=False)
            quotes, refusals = [], []
            for event in events:
                try:
                    foreseen = foresee(transaction, self._payers, price_charges(self._payers, event))
                    quotes.append(make_quote(foreseen, self._payers))
                except Unpriced as error:
                    refusals.append(error)
            if not quotes:
                raise refusals[0]
            return next((quote for quote in quotes if quote.fits), quotes[0])

        return self._ledger._storage.read(look)  # noqa: SLF001

    def _count_room(self, transaction: Transaction, offered: list[list[Charge]]) -> int | None:
        """How often the first offer that fits can be paid; refused where `open` would be, whatever it asked for."""
        refuse_frozen(transaction, self._payers, paid=False)
        found = (count_room(transaction, self._payers, charges) for charges in offered)
        return next((count for count in found if count != 0), 0)

    def holds(self, key: str) -> bool:
        statement, place = "SELECT closed FROM payments WHERE scope = ? AND key = ?", scope_of(self._scope)
        row = self._ledger._storage.read(lambda transaction: transaction.row(statement, place, key))  # noqa: SLF001
        return row is not None and row[0] != VOID

    def lease(self, event: Event) -> Lease:
        """Reserve a slice that pays for `event`, with one flush of the disk, and spend it from memory.

        What is left goes back when the lease is closed; a crash leaves the whole slice charged.
        """
        return Lease(self._ledger._storage, self.unit, self._scope, self._payers, event)  # noqa: SLF001

    def _randomness(self) -> Rng:
        from mosha.noise import secure  # noqa: PLC0415  (opening a ledger to read it needs no noise)

        return secure()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


@explain_wrong_calls
class LedgerAccount(Shown, JointAccount):
    """One account: a unit, a rule with its limit, and what has been spent of it.

    Made by a `ledger` under `terms`. Methods take the `name` of an account beneath this one, its `unit`, its `limits`
    (those of `Ledger.account`), and a `reason` that stands in the book.

    >>> import mosha
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=2)
    >>> account.name, account.spent, account.remaining
    ('visits', 0.0, 2.0)
    """

    def __init__(self, ledger: Book, terms: Terms) -> None:
        super().__init__(ledger, (terms,))
        self.terms = terms

    def make_card(self) -> Card:
        return make_account_card(self)

    def describe_room(self) -> str:
        return describe_left(self)

    @property
    def rule(self) -> Rule:
        """The proved rule by which this account admits releases."""
        return self.terms.rule

    @property
    def promise(self) -> Guarantee:
        """What the limit promises to every unit, once all of it is spent."""
        return self.rule.promise()

    @property
    def spent_price(self) -> Price:
        """What has been spent, in exact units of 2**-128."""
        return self._ledger._balance(self.name)[0]  # noqa: SLF001

    @property
    def way(self) -> str:
        """How the account adds up, where its rule knows several ways; empty until its first payment has chosen one."""
        return self._ledger._balance(self.name)[1]  # noqa: SLF001

    @property
    def spent(self) -> float:
        """What has been spent, in the measure of the rule, rounded up."""
        return self.rule.amount_of(self.spent_price, self.way)

    @property
    def limit(self) -> float:
        """The limit, in the measure of the rule, as it was opened."""
        return self.rule.amount_limit

    @property
    def remaining(self) -> float:
        """What can still be spent here: as epsilon, in one pure release. An ancestor may have less left."""
        spent, way, _ = self._ledger._balance(self.name)  # noqa: SLF001
        return self.rule.amount_left(spent, way)

    @property
    def remaining_as(self) -> Approx | None:
        """What is left as epsilon at the delta of the account, where its rule counts in another measure, else None.

        >>> import mosha
        >>> limits = {"epsilon": 1, "delta": 1e-6, "rule": "gaussian"}
        >>> print(mosha.Ledger.memory().account("visits", unit=mosha.Row(), **limits).remaining_as)
        epsilon 1, delta 1e-06
        """
        return self.rule.left_as(self.spent_price)

    @property
    def more_like_last(self) -> int | None:
        """How many more payments like the last one that was charged here fit into this account and those above it.

        None before the first payment, where that one was free, and where nothing can be paid any more.
        """
        return self._ledger._storage.read(lambda t: count_like_last(t, self._payers, self.name))  # noqa: SLF001

    @property
    def spent_as(self) -> Guarantee:
        """What the releases so far mean together, as pure or approximate differential privacy."""
        return self.rule.spent_as(self.spent_price, self.way)

    @property
    def retired(self) -> bool:
        return self._ledger._balance(self.name)[2]  # noqa: SLF001

    @property
    def parent(self) -> LedgerAccount | None:
        path = ancestry(self.name)
        return self._reopen(path[-2]) if len(path) > 1 else None

    @property
    def population(self) -> LedgerAccount | None:
        """The account of the population that the unit names: it pays for every release as well."""
        return None if self.unit.of in (None, self.name) else self._reopen(str(self.unit.of))

    def children(self) -> list[LedgerAccount]:
        """The accounts right beneath this one, blocks included."""
        depth = len(ancestry(self.name)) + 1
        below = (terms for terms in self._ledger._read_all_terms() if terms.name.startswith(self.name + "/"))  # noqa: SLF001
        return [LedgerAccount(self._ledger, terms) for terms in below if len(ancestry(terms.name)) == depth]

    def _reopen(self, name: str) -> LedgerAccount:
        return LedgerAccount(self._ledger, self._ledger._open(None, name, None, {}))  # noqa: SLF001

    def child(self, name: str, *, unit: Unit | None = None, **limits: Unpack[Limits]) -> LedgerAccount:
        """Open (or reopen) an account beneath this one; the unit is inherited (another is refused), the limit its own.

        Takes the limits of `Ledger.account`. Every release on the child is charged here as well.
        """
        return LedgerAccount(self._ledger, self._ledger._open(self.name, name, unit, limits))  # noqa: SLF001

    def block(self, name: str, **limits: Unpack[Limits]) -> LedgerAccount:
        """Open (or reopen) the account of one block of the data, under this account's limits by default."""
        return LedgerAccount(self._ledger, self._ledger._open(self.name, name, None, limits, block=True))  # noqa: SLF001

    def grant(
        self,
        name: str,
        *,
        expires: date | datetime | str | None = None,
        purpose: str | None = None,
        **limits: Unpack[Limits],
    ) -> LedgerAccount:
        """Open (or reopen) an account beneath this one that may be used until a date.

        A grant reserves nothing: what it leaves unspent was never taken from this account. Whatever was paid before
        the end may still be released; nothing is paid from then on, whatever the clock of the machine says.

        Args:
            name: who may use it.
            expires: the last day (UTC), or a time with its zone; a grant without an end is refused.
            purpose: a sentence that stands in the book.
            limits: those of `Ledger.account`.
        """
        if expires is None:
            raise InvalidParameter("ledger.grant_without_end", parameter="expires", spent="nothing")
        terms = GrantTerms(**limits, expires=expires, purpose=purpose)
        return LedgerAccount(self._ledger, self._ledger._open(self.name, name, None, terms))  # noqa: SLF001

    def revoke(self, name: str, *, reason: str | None = None) -> None:
        """Close an account beneath this one for good; what it has not spent stays here, where it always was."""
        self._reopen(join_name(self.name, name)).retire(reason=reason)

    def retire(self, *, reason: str | None = None) -> None:
        """Close the account for good: nothing is charged to it or beneath it any more."""
        if reason is not None and not (isinstance(reason, str) and len(reason) <= LONGEST and reason.isprintable()):
            raise InvalidParameter("ledger.reason_too_long", parameter="reason", longest=LONGEST)
        self._ledger._retire(self.name, reason)  # noqa: SLF001

    @property
    def expires(self) -> datetime | None:
        """When the account ends, where it was granted until a date."""
        return None if self.terms.expires is None else as_datetime(self.terms.expires)

    @property
    def expired(self) -> bool:
        """Whether that has passed, by the clock or by the dates in the book."""
        return self.terms.expires is not None and self.terms.expires <= self._ledger._now()  # noqa: SLF001

    @property
    def purpose(self) -> str | None:
        return self.terms.purpose

    @property
    def failures(self) -> int:
        """How many paid questions have failed on the private side since the account was opened or last lifted."""
        return self._ledger._failures(self.name)  # noqa: SLF001

    @property
    def frozen(self) -> bool:
        """Whether an account that pays here has used up its allowance of failures: nothing is answered then."""
        return self._ledger._storage.read(lambda transaction: is_frozen(transaction, self._payers))  # noqa: SLF001

    def lift(self) -> int:
        """Say, as the owner, that the failures of this account and all beneath it were looked into; how many it had.

        A failure may tell one thing about one row, whatever the price was, so only who has read the private log and
        knows that the rows had no part in it should lift an account (see docs/how-to/failures.md).
        """
        return self._ledger._lift(self.name)  # noqa: SLF001

    def event(self) -> Event:
        """Everything this account has paid for so far, as one event; unused steps that were handed back left out."""
        return self._ledger._event(self.name)  # noqa: SLF001
