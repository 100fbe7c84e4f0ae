"""The ledger: one book for every account, which nobody can overspend."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

from mosha.core.errors import InvalidParameter, WrongUnit
from mosha.core.guarantee import Guarantee
from mosha.core.names.calls import explain_wrong_calls, renamed_argument
from mosha.core.number import positive
from mosha.core.options import RuleName
from mosha.core.showing import Shown
from mosha.core.unit import Member, Neighbors, Unit, is_population_name
from mosha.ledger.account import JointAccount, LedgerAccount
from mosha.ledger.book import Book
from mosha.ledger.checking.checkpoint import Checkpoint
from mosha.ledger.checking.verify import Report, entries, verify_book
from mosha.ledger.opening import choose_storage, protect_same, read_terms
from mosha.ledger.paying.receipts import compose_purchases, find_purchases
from mosha.ledger.publishing.statement import Statement, draw_up, price_tightly, read_balances
from mosha.ledger.showing import make_ledger_card
from mosha.ledger.storage.chain import Entry, Head, Witness
from mosha.ledger.storage.key import LedgerKey
from mosha.ledger.storage.seal import key_in_force, rotate
from mosha.ledger.storage.sqlite import SQLiteStorage
from mosha.ledger.storage.transactions import read_clock
from mosha.ledger.terms.note import OWN, Note, append_note, check_content, check_topic, find_notes
from mosha.ledger.terms.policy import Policy, find_policy, set_policy
from mosha.ledger.terms.wanted import Limits

__all__ = ["Ledger"]


@explain_wrong_calls
class Ledger(Shown, Book):
    """A book of privacy accounts in one SQLite file, or in PostgreSQL (`postgresql://...`).

    Guarantee:
        No account is ever charged above its limit, whatever races, crashes or retries happen: the check and the
        charge are one serialised, durable transaction of whole numbers, made before any data is read. Nothing is
        released that was not paid for, because an answer leaves only after its payment and then its release are
        on disk.

    >>> import mosha
    >>> ledger = mosha.Ledger.memory()
    >>> account = ledger.account("visits", unit=mosha.Person("patient_id"), epsilon=3)
    >>> print(account.promise)
    epsilon 3
    """

    def __init__(
        self,
        place: str | os.PathLike[str],
        *,
        patience: float = 10.0,
        witness: str | os.PathLike[str] | None = None,
        create: bool = True,
        clock: Callable[[], int] = read_clock,
        policy: Policy | Mapping[str, object] | str | os.PathLike[str] | None = None,
        key: LedgerKey | bytes | str | os.PathLike[str] | None = None,
    ) -> None:
        """Open the book, or begin one.

        Args:
            place: a file, or the URL of a PostgreSQL database.
            patience: how many seconds to wait for another writer before giving up (LedgerUnavailable).
            witness: the file that remembers the last row, so that an older copy of the book is noticed; beside
                an SQLite file by default (`privacy.db.head`), none for PostgreSQL.
            create: begin a book where there is none; otherwise that is LedgerUnavailable.
            clock: microseconds since 1970; entries keep their order whatever it says.
            policy: ceilings that accounts obey when they are opened (a file such as mosha-policy.toml): noted in the
                chain, and in force from then on for whoever opens this book.
            key: at least 32 bytes that nobody else has, or the path of a file (mode 0600) that holds them. A book that
                is begun with a key pays nobody without it, and `verify` finds every row that was written without it.
        """
        if place == ":memory:":
            raise InvalidParameter("ledger.memory_as_place", parameter="place")
        seen = Witness(Path(witness).absolute()) if witness is not None else None
        options = {"patience": positive("patience", patience), "witness": seen, "create": create, "clock": clock}
        said = None if policy is None else Policy.of(policy)
        secret = None if key is None else LedgerKey.of(key)
        self._begin(choose_storage(place, options), secret)
        if said is not None:
            self._storage.write(lambda transaction: set_policy(transaction, said))

    @classmethod
    def memory(cls) -> Self:
        """A ledger that is forgotten when the process ends: for play and for tests."""
        ledger = cls.__new__(cls)
        ledger._begin(SQLiteStorage(None, clock=read_clock, patience=1.0))  # noqa: SLF001
        return ledger

    @property
    def policy(self) -> Policy | None:
        """The policy that holds for new accounts of this book: the last one that was noted in the chain."""
        return self._storage.read(find_policy)

    @property
    def head(self) -> Head:
        """The last row: keep `str(ledger.head)` elsewhere, and no row up to it can change unnoticed."""
        return self._storage.read(lambda transaction: transaction.head)

    def account(
        self,
        name: str,
        *,
        unit: Unit | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
        rule: RuleName | None = None,
        delta_for_events: float | None = None,
        disjoint_blocks: bool | None = None,
        size: int | None = None,
        failures: int | None = None,
        parent: LedgerAccount | str | None = None,
    ) -> LedgerAccount:
        """Open an account, or reopen it under the same terms; the name alone reopens it.

        Args:
            name: its name; `parent/child` names a child.
            unit: whose presence is hidden; a child inherits it. One that says `of=` is charged together with that
                population (see `population`).
            epsilon: the limit as (epsilon, delta), or one of
            rho: the limit in zero-concentrated, or
            mu: in Gaussian differential privacy.
            delta: zero, or the probability that the promise may fail with.
            rule: how releases are admitted (see `mosha.accounting.rules.rule_for`).
            delta_for_events: how much of delta is kept for events that carry their own.
            disjoint_blocks: every unit lies in at most one block of this account (see `LedgerAccount.block`).
            size: how many units there are about, where that is public knowledge.
            failures: how many paid questions may fail before the account is frozen (see `LedgerAccount.lift`); as many
                as the parent's where there is one, else 3.
            parent: the account above, which pays for every release beneath it.
        """
        limits = Limits(
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            mu=mu,
            rule=rule,
            delta_for_events=delta_for_events,
            disjoint_blocks=disjoint_blocks,
            size=size,
            failures=failures,
        )
        if isinstance(parent, LedgerAccount):
            self._check_ours(parent)
            parent = parent.name
        return LedgerAccount(self, self._open(parent, name, unit, limits))

    @renamed_argument(neighbours="neighbors")
    def population(
        self,
        name: str,
        *,
        neighbors: Neighbors | None = None,
        **limits: Unpack[Limits],
    ) -> LedgerAccount:
        """Open the account of a population, or reopen it: one cap over all that is ever asked about these people.

        Every account whose unit says `of=name` is charged together with it, wherever it lies in the tree.

        Guarantee:
            For every person of the population, all releases from all of its tables, graphs, streams and trainings are
            together as private as its limit says (see `payers.md`).

        Args:
            name: the name that units give as `of=`; no '/' in it.
            neighbors: 'add-remove' (the default) or 'replace-one'; all units of the population agree with it.
            limits: as for `account`: epsilon and delta, rho or mu, rule, delta_for_events, disjoint_blocks, size.
        """
        if not is_population_name(name):
            raise InvalidParameter("ledger.bad_population_name", parameter="name")
        if neighbors is None:
            known = self._storage.read(lambda transaction: read_terms(transaction, [name]))
            neighbors = known[name].unit.neighbors if name in known else Neighbors.ADD_REMOVE
        return LedgerAccount(self, self._open(None, name, Member(of=name, neighbors=neighbors), limits))

    def _check_ours(self, account: LedgerAccount) -> None:
        if not isinstance(account, LedgerAccount) or account._ledger is not self:  # noqa: SLF001
            raise InvalidParameter("ledger.account_of_another_ledger")

    def accounts(self) -> list[LedgerAccount]:
        """Every account of the book, by name."""
        return [LedgerAccount(self, terms) for terms in self._read_all_terms()]

    def together(self, accounts: Iterable[LedgerAccount]) -> JointAccount:
        """The `accounts` that pay for each release as one: the blocks it reads, the analyst who asks."""
        leaves = {}
        for account in accounts:
            self._check_ours(account)
            leaves[account.name] = account.terms
        if not leaves:
            raise InvalidParameter("ledger.no_accounts_together", parameter="accounts")
        terms = tuple(leaves[name] for name in sorted(leaves))
        for other in terms[1:]:
            if not protect_same(other.unit, terms[0].unit):
                raise WrongUnit(
                    "ledger.units_differ",
                    account=other.name,
                    other=terms[0].name,
                    protected=other.unit.phrase(),
                    other_protected=terms[0].unit.phrase(),
                )
        return JointAccount(self, terms)

    def note(self, topic: str, content: object, *, about: LedgerAccount | str | None = None) -> Note:
        """Write down a decision in the chain. It costs nothing, and nothing is ever paid or refused because of it.

        Args:
            topic: words in lower case, such as 'approval' or 'approval/report'; 'mosha/...' is the ledger's own.
            content: JSON data of at most 16 kB: who decided, what, why, the hash of a document.
            about: the account that the note is about.
        """
        if check_topic(topic).startswith(OWN):
            raise InvalidParameter("ledger.reserved_topic", parameter="topic", prefix=OWN)
        check_content(content)
        name = about.name if isinstance(about, LedgerAccount) else about
        return self._storage.write(lambda transaction: append_note(transaction, topic, content, name))

    def notes(self, *, topic: str | None = None, about: LedgerAccount | str | None = None) -> list[Note]:
        """The notes in the chain, in order.

        Args:
            topic: this topic and those under it; all by default.
            about: those about this account alone.
        """
        if topic is not None:
            check_topic(topic)
        name = about.name if isinstance(about, LedgerAccount) else about
        return self._storage.read(lambda transaction: find_notes(transaction, topic, name))

    def entries(self, after: int = 0, *, most: int | None = None) -> list[Entry]:
        """The rows of the book `after` a place, in order, at most `most` of them: nothing private, as plain data."""
        return self._storage.read(lambda transaction: list(islice(entries(transaction, after), most)), recognise=False)

    @property
    def key_id(self) -> str | None:
        """The name of the key that rows are written with now; None where the book has no key."""
        return self._storage.read(key_in_force)

    def rotate_key(self, new: LedgerKey | bytes | str | os.PathLike[str]) -> str:
        """Write all rows from now on with the key `new`, or with a first one; its name. A book takes each key once."""
        key = LedgerKey.of(new)
        self._storage.write(lambda transaction: rotate(transaction, key))
        return key.id

    def verify(
        self,
        *,
        head: Head | str | None = None,
        keys: Iterable[LedgerKey | bytes | str | os.PathLike[str]] = (),
        since: Checkpoint | str | os.PathLike[str] | None = None,
        keep: bool = False,
    ) -> Report:
        """Read the whole book again: every hash, every sum, every limit, every tag.

        Args:
            head: a head that was kept elsewhere ('sequence:hash', or the hash alone); the book must hold it.
            keys: keys that rows were written with, besides the one that the ledger was opened with.
            since: `report.checkpoint` of an earlier verification, or the file that keeps it, outside of the book: only
                later rows are read. Signed with the key where there is one.
            keep: write the file `since` anew where the book is intact; it need not be there yet.
        """
        known = [LedgerKey.of(key) for key in keys]
        return verify_book(self._storage, head=head, keys=known, since=since, keep=keep)

    def reprice(self, account: LedgerAccount | str, *, delta: float | None = None) -> Guarantee:
        """What an account's releases cost together by the tightest accounting of today. For reading only.

        It would be a promise had all releases been fixed in advance; under adaptive choice the promise is that of
        the rule (`LedgerAccount.spent_as`).

        Args:
            account: the account, or its name.
            delta: where to read epsilon; the account's own delta by default.
        """
        name = account.name if isinstance(account, LedgerAccount) else account
        balance, bought = self._storage.read(lambda t: (read_balances(t, name)[name], find_purchases(t, name)))
        today = price_tightly(compose_purchases(bought), balance, delta=delta)
        return today or balance.terms.rule.spent_as(balance.spent, balance.way)

    def statement(self, account: LedgerAccount | str) -> Statement:
        """What was promised and released under `account`, for people (Markdown) and registries (JSON)."""
        name = account.name if isinstance(account, LedgerAccount) else account
        return self._storage.read(lambda transaction: draw_up(transaction, name))

    def close(self) -> None:
        """Give the file or the connection back; accounts of this ledger can no longer pay."""
        self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger {self.place!r}>"

    make_card = make_ledger_card
