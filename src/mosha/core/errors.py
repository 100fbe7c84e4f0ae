"""Everything that can go wrong, in one tree.

    MoshaError
    ├── InvalidParameter (ValueError)      a public argument is wrong; nothing was spent
    │   ├── Refused                        a query that cannot be made private as it stands
    │   ├── Unbounded                      a statistic that one person could move without limit
    │   └── Unpriced                       this event has no price under the measure that was asked for
    ├── WrongUnit                          the account protects somebody else
    ├── BudgetExceeded                     the account cannot pay; no data was read
    ├── InsecureRandomness                 a seeded generator was offered where people are at stake
    ├── RunError
    │   ├── HorizonExceeded                one step more than was paid for
    │   ├── RunClosed                      the run has ended
    │   ├── AlreadyReleased                this payment has had its release
    │   ├── StateRefused                   the kept state of a run is another's, was edited or is in use
    │   ├── AnswerPending                  the same step is being answered elsewhere; ask again under its key
    │   └── StepFailed                     the step broke; its price stays paid
    ├── DataError                          the data do not have the declared shape
    │   ├── SourceUnavailable              the place where the data live did not answer, before anything was read
    │   └── Interrupted                    a question was broken off in the middle; its key may ask once more
    │       └── DeadlineExceeded           the time that was given for it was over
    ├── LedgerError
    │   ├── UnknownAccount                 no account of that name
    │   ├── AccountMismatch                the account exists under other terms
    │   ├── AccountRetired                 the account is closed for good
    │   ├── AccountExpired                 the account was granted until a date, which has passed
    │   ├── PolicyViolation                the policy of the book allows no such account
    │   ├── AccountFrozen                  too many paid steps failed; its owner looks, and lifts it
    │   ├── LedgerKeyRefused               the book is written with a key that was not given; nothing was spent
    │   ├── LedgerUnavailable              locked, full or unreadable storage; nothing was spent
    │   └── LedgerTampered                 rows were edited, removed, reordered or rolled back
    └── MissingExtra (ImportError)         an optional part is not installed

A message says what, why and what next. It holds public numbers only: never a value, a count or
a choice that depends on private data. Attributes are for programs, `str(error)` is for people.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AccountExpired",
    "AccountFrozen",
    "AccountMismatch",
    "AccountRetired",
    "AlreadyReleased",
    "AnswerPending",
    "BudgetExceeded",
    "DataError",
    "DeadlineExceeded",
    "HorizonExceeded",
    "InsecureRandomness",
    "Interrupted",
    "InvalidParameter",
    "LedgerError",
    "LedgerKeyRefused",
    "LedgerTampered",
    "LedgerUnavailable",
    "MissingExtra",
    "MoshaError",
    "PolicyViolation",
    "Refused",
    "RunClosed",
    "RunError",
    "SourceUnavailable",
    "StateRefused",
    "StepFailed",
    "Unbounded",
    "UnknownAccount",
    "Unpriced",
    "WrongUnit",
]


class MoshaError(Exception):
    """The root: `except MoshaError` catches all that Mosha raises on purpose."""

    def to_dict(self) -> dict[str, Any]:
        """The error for programs: its name, its sentence and its public attributes."""
        public = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return {"error": type(self).__name__, "message": str(self), **public}

    def __reduce__(self) -> tuple[Any, ...]:
        """An error must survive the way back from a worker process, whatever its constructor looks like."""
        return _revived, (type(self), self.args, vars(self))


def _revived(kind: type[MoshaError], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> MoshaError:
    error = kind.__new__(kind, *arguments)
    vars(error).update(attributes)
    return error


class InvalidParameter(MoshaError, ValueError):
    """A public argument is wrong. Nothing was spent."""


class Refused(InvalidParameter):
    """A query that cannot be made private as it stands; the message says why and what can. Nothing was spent.

    `nearest` is a query like it that is answered, where one was found.
    """

    nearest: str | None = None


class Unbounded(InvalidParameter):
    """A statistic that one person could move without limit."""


class Unpriced(InvalidParameter):
    """This event has no (finite) price under the measure that was asked for."""


class WrongUnit(MoshaError):
    """One account protects one unit. Nothing was spent."""


class BudgetExceeded(MoshaError):
    """The account cannot pay. No data was read, nothing was spent.

    `asked`, `spent` and `limit` are in the unit named by `measure` ("epsilon", "rho", "delta", ...), and so is
    `reached`: what would be spent with this release, the sum of the two or less. `advice` is one more sentence.
    """

    def __init__(
        self,
        *,
        account: str,
        measure: str,
        asked: float,
        spent: float,
        limit: float,
        reached: float | None = None,
        advice: str = "",
    ) -> None:
        self.account = account
        self.measure = measure
        self.asked = asked
        self.spent = spent
        self.limit = limit
        self.reached = asked + spent if reached is None else reached
        super().__init__(
            f"account {account!r} cannot pay: this release would bring {measure} to {self.reached:.6g} "
            f"of {limit:.6g} (spent {spent:.6g}). No data was read, nothing was spent." + (advice and f" {advice}")
        )


class InsecureRandomness(MoshaError):
    """A predictable generator was offered where people are at stake. Nothing was spent."""


class RunError(MoshaError):
    """A run was used in a way that was not paid for."""


class HorizonExceeded(RunError):
    """One step more than was paid for. No data was read."""


class RunClosed(RunError):
    """The run has ended. No data was read."""


class AlreadyReleased(RunError):
    """This payment has had its release, which was not kept. No data was read."""


class StateRefused(RunError):
    """The kept state of a run is another's, is older than its ledger, was edited or is in use. Nothing is answered."""


class AnswerPending(RunError):
    """The same step is being answered elsewhere, for the same payment. Ask again with the same key in a moment."""


class StepFailed(RunError):
    """The step broke on its way. A failure may depend on the data, so its price stays paid."""


class DataError(MoshaError):
    """The data do not have the declared shape (public facts only: columns, types, files)."""


class SourceUnavailable(DataError):
    """The place where the data live did not answer, before the question began; a retry with the same key is free."""


class Interrupted(DataError):
    """A question was broken off in the middle, for a reason that may depend on the data.

    It counts as a failure of the account, like any other (`AccountFrozen`). The payment stays, and a release with the
    same key asks once more.
    """


class DeadlineExceeded(Interrupted):
    """The time that was given for a question was over before the engine had an answer."""


class LedgerError(MoshaError):
    """The book of accounts refuses or is not well."""


class UnknownAccount(LedgerError):
    """No account of that name."""


class AccountMismatch(LedgerError):
    """The account exists under other terms; opening a book again never changes a promise."""


class AccountRetired(LedgerError):
    """The account is closed for good."""


class AccountExpired(LedgerError):
    """The account was granted until a date, which has passed. No data was read, nothing was spent."""

    def __init__(self, *, account: str, ended: str) -> None:
        self.account = account
        self.ended = ended
        super().__init__(
            f"account {account!r} was granted until {ended}, and that has passed: it pays for nothing more. What "
            "was released under a key can still be read. Its owner can make a new grant. No data was read, nothing was "
            "spent."
        )


class PolicyViolation(LedgerError):
    """The policy of the book allows no such account. Nothing was opened, nothing was spent."""


class AccountFrozen(LedgerError):
    """So many paid steps failed that the account answers nothing until its owner has looked and lifts it.

    `failures` is the allowance that was used up.
    """

    def __init__(self, *, account: str, failures: int, paid: bool = False) -> None:
        self.account = account
        self.failures = failures
        spent = "What was paid stays paid, and its key asks again afterwards." if paid else "Nothing was spent."
        super().__init__(
            f"account {account!r} is frozen: {failures} paid questions failed on the private side since it was last "
            "looked at, and a failure may tell something about a row. Its owner finds the reasons in the private log "
            f"and lifts it: account.lift(), or `mosha ledger lift`. {spent}"
        )


class LedgerKeyRefused(LedgerError):
    """The book is written with a key, and none or another one was given, or it has none. Nothing was spent.

    `needed` and `given` are the names of keys, or None.
    """

    def __init__(self, message: str, *, needed: str | None = None, given: str | None = None) -> None:
        self.needed = needed
        self.given = given
        super().__init__(message)


class LedgerUnavailable(LedgerError):
    """Locked, full or unreadable storage. Nothing was spent, no data was read."""


class LedgerTampered(LedgerError):
    """Rows were edited, removed, reordered or rolled back."""


class MissingExtra(MoshaError, ImportError):
    """An optional part is not installed."""

    def __init__(self, extra: str, *, needed_for: str) -> None:
        self.extra = extra
        super().__init__(f"{needed_for} needs the extra {extra!r}: pip install '.[{extra}]' in a clone of mosha.")
