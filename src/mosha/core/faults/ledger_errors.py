"""What can go wrong with the book of accounts; the whole tree stands in `errors.py`."""

from __future__ import annotations

from typing import Any

from mosha.core.faults.error import MoshaError, Spent

__all__ = [
    "AccountExpired",
    "AccountFrozen",
    "AccountMismatch",
    "AccountRetired",
    "LedgerError",
    "LedgerKeyRefused",
    "LedgerTampered",
    "LedgerUnavailable",
    "PolicyViolation",
    "UnknownAccount",
]


class LedgerError(MoshaError):
    """The book of accounts refuses or is not well.

    >>> issubclass(UnknownAccount, LedgerError), issubclass(LedgerTampered, LedgerError)
    (True, True)
    """


class UnknownAccount(LedgerError):
    """No account of that name.

    >>> import mosha
    >>> mosha.Ledger.memory().account("visits")
    Traceback (most recent call last):
    mosha.core.faults.ledger_errors.UnknownAccount: ...
    """


class AccountMismatch(LedgerError):
    """The account exists under other terms; opening a book again never changes a promise.

    >>> import mosha
    >>> ledger = mosha.Ledger.memory()
    >>> account = ledger.account("visits", unit=mosha.Row(), epsilon=1)
    >>> ledger.account("visits", unit=mosha.Row(), epsilon=2)
    Traceback (most recent call last):
    mosha.core.faults.ledger_errors.AccountMismatch: ...
    """


class AccountRetired(LedgerError):
    """The account is closed for good.

    >>> import mosha
    >>> from mosha.mechanisms import Count, laplace
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1)
    >>> account.retire()
    >>> account.open(laplace(Count(), unit=mosha.Row(), epsilon=1))
    Traceback (most recent call last):
    mosha.core.faults.ledger_errors.AccountRetired: ...
    """


class AccountExpired(LedgerError):
    """The account was granted until a date (`ended`), which has passed. No data was read, nothing was spent.

    >>> print(AccountExpired(account="visits", ended="2026-01-01"))
    account 'visits' ...
    """

    spent: Spent | None = "nothing"

    def __init__(self, *, account: str, ended: str) -> None:
        self.ended = ended
        super().__init__("core.account_expired", account=account)

    def _fields(self) -> dict[str, Any]:
        return super()._fields() | {"ended": self.ended}


class PolicyViolation(LedgerError):
    """The policy of the book allows no such account. Nothing was opened, nothing was spent.

    >>> issubclass(PolicyViolation, LedgerError)
    True
    """


class AccountFrozen(LedgerError):
    """So many paid steps failed that the account answers nothing until its owner has looked and lifts it.

    `failures` is the allowance that was used up.

    `paid` says that something was paid, whose answer waits till then.

    >>> error = AccountFrozen(account="visits", failures=3)
    >>> error.failures, error.spent
    (3, 'nothing')
    """

    def __init__(self, *, account: str, failures: int, paid: bool = False) -> None:
        self.failures = failures
        super().__init__("core.account_frozen", account=account, spent="waits" if paid else "nothing")

    def _fields(self) -> dict[str, Any]:
        return super()._fields() | {"failures": self.failures}


class LedgerKeyRefused(LedgerError):
    """The book is written with a key, and none or another one was given, or it has none. Nothing was spent.

    `needed` and `given` are the names of keys, or None.

    >>> LedgerKeyRefused("ledger.key_other", needed="a1", given="b2").needed
    'a1'
    """

    spent: Spent | None = "nothing"

    def __init__(self, code: str, /, *, needed: str | None = None, given: str | None = None) -> None:
        self.needed = needed
        self.given = given
        super().__init__(code)

    def _fields(self) -> dict[str, Any]:
        return {"needed": self.needed, "given": self.given} | super()._fields()


class LedgerUnavailable(LedgerError):
    """Locked, full or unreadable storage. Nothing was spent, no data was read.

    >>> import mosha
    >>> mosha.Ledger("/proc/no/such/folder/book.sqlite")
    Traceback (most recent call last):
    mosha.core.faults.ledger_errors.LedgerUnavailable: ...
    """


class LedgerTampered(LedgerError):
    """Rows were edited, removed, reordered or rolled back.

    >>> issubclass(LedgerTampered, LedgerError)
    True
    """
