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

An error is data first: a `code` that never changes, the `parameter` that was wrong, the `account`, what was `spent`,
and `public` fields. Its sentence is made of them when somebody reads it, in the reader's language (`mosha/sentences`):
it says what, why and what next. Nothing in it depends on private data: no value, no count, no choice.
"""

from __future__ import annotations

import re
from typing import Any, Literal, Self

from mosha.core.language import Language, current_language, is_code, say, translate

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


Spent = Literal["nothing", "paid", "waits"]


class MoshaError(Exception):
    """The root: `except MoshaError` catches all that Mosha raises on purpose.

    Args:
        code: which error it is (`folder.words`, listed in the reference); it never changes.
        parameter: the name of the argument that is wrong.
        account: the name of the account that it is about.
        spent: "nothing", "paid" (the price stays paid) or "waits" (the payment waits for its key); None if money does
            not come into it.
        public: the public facts that the sentence names.

    >>> error = InvalidParameter("core.not_positive", parameter="epsilon", value=-1.0)
    >>> error.code, error.parameter, error.public
    ('core.not_positive', 'epsilon', {'value': -1.0})
    >>> print(error)
    epsilon must be above zero, not -1.
    """

    spent: Spent | None = None

    def __init__(
        self,
        code: str = "",
        /,
        *,
        parameter: str | None = None,
        account: str | None = None,
        spent: Spent | None = None,
        **public: object,
    ) -> None:
        super().__init__(code)
        self.code = code if is_code(code) else re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()
        self.parameter = parameter
        self.account = account
        if spent is not None:
            self.spent = spent
        self.public = public

    def render(self, language: Language | None = None) -> str:
        """The sentence, in a language of your choice.

        >>> InvalidParameter("core.not_positive", parameter="epsilon", value=-1.0).render("zh")
        'epsilon 必须大于零，不能是 -1。'
        """
        language = language or current_language()
        closing = "" if self.spent is None else say(f"core.closing_{self.spent}", language)
        if is_code(self.args[0] if self.args else ""):
            said = say(self.code, language, **self._fields())
        else:
            said = str(self.args[0]) if self.args else say(f"core.{self.code}", language)
            if self.spent not in {None, "nothing"}:
                said = said.replace(" Nothing was spent.", "")
            closing = "" if closing in said or ("nothing was spent" in said and self.spent == "nothing") else closing
        return f"{said}{'' if language == 'zh' or not closing else ' '}{closing}"

    def _fields(self) -> dict[str, Any]:
        named = {"parameter": self.parameter, "account": self.account}
        return {name: value for name, value in named.items() if value is not None} | self.public

    def __str__(self) -> str:
        return self.render()

    def to_dict(self) -> dict[str, Any]:
        """The error for programs: its kind, its code, its sentence and its public fields."""
        own = {name: value for name, value in vars(self).items() if not name.startswith("_") and name != "public"}
        named = {"code": self.code, "spent": self.spent} | own
        said = {name: value for name, value in named.items() if value is not None}
        return {"error": type(self).__name__, "message": str(self), **said, **self.public}

    def with_spent(self, spent: Spent) -> Self:
        """The same error, where something else became of the money."""
        self.spent = spent
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """An error must survive the way back from a worker process, whatever its constructor looks like."""
        return _revive, (type(self), self.args, vars(self))


def _revive(kind: type[MoshaError], arguments: tuple[object, ...], attributes: dict[str, object]) -> MoshaError:
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

    def render(self, language: Language | None = None) -> str:
        """The sentence, and after it what would be answered."""
        said = super().render(language)
        if self.nearest is None:
            return said
        return f"{said} {say('core.ask_instead', language or current_language(), nearest=self.nearest)}"


class Unbounded(InvalidParameter):
    """A statistic that one person could move without limit."""


class Unpriced(InvalidParameter):
    """This event has no (finite) price under the measure that was asked for."""


class WrongUnit(MoshaError):
    """One account protects one unit. Nothing was spent."""


class BudgetExceeded(MoshaError):
    """The account cannot pay. No data was read, nothing was spent.

    `asked`, `used` and `limit` are in the unit named by `measure` ("epsilon", "rho", "delta", ...), as is `reached`:
    what would be used with this release, the sum of the two or less. `advice` is one more sentence.
    """

    spent: Spent | None = "nothing"

    def __init__(
        self,
        *,
        account: str,
        measure: str,
        asked: float,
        used: float,
        limit: float,
        reached: float | None = None,
        advice: str = "",
    ) -> None:
        self.measure = measure
        self.asked = asked
        self.used = used
        self.limit = limit
        self.reached = asked + used if reached is None else reached
        self.advice = advice
        super().__init__("core.budget_exceeded", account=account)

    def render(self, language: Language | None = None) -> str:
        """The sentence, and the advice after it."""
        advice = translate(self.advice, language or current_language())
        return super().render(language) + (advice and f" {advice}")

    def _fields(self) -> dict[str, Any]:
        numbers = {"asked": self.asked, "used": self.used, "limit": self.limit, "reached": self.reached}
        return super()._fields() | {"measure": self.measure} | numbers


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

    spent: Spent | None = "nothing"

    def __init__(self, *, account: str, ended: str) -> None:
        self.ended = ended
        super().__init__("core.account_expired", account=account)

    def _fields(self) -> dict[str, Any]:
        return super()._fields() | {"ended": self.ended}


class PolicyViolation(LedgerError):
    """The policy of the book allows no such account. Nothing was opened, nothing was spent."""


class AccountFrozen(LedgerError):
    """So many paid steps failed that the account answers nothing until its owner has looked and lifts it.

    `failures` is the allowance that was used up.
    """

    def __init__(self, *, account: str, failures: int, paid: bool = False) -> None:
        self.failures = failures
        super().__init__("core.account_frozen", account=account, spent="waits" if paid else "nothing")

    def _fields(self) -> dict[str, Any]:
        return super()._fields() | {"failures": self.failures}


class LedgerKeyRefused(LedgerError):
    """The book is written with a key, and none or another one was given, or it has none. Nothing was spent.

    `needed` and `given` are the names of keys, or None.
    """

    spent: Spent | None = "nothing"

    def __init__(self, code: str, /, *, needed: str | None = None, given: str | None = None) -> None:
        self.needed = needed
        self.given = given
        super().__init__(code)

    def _fields(self) -> dict[str, Any]:
        return {"needed": self.needed, "given": self.given} | super()._fields()


class LedgerUnavailable(LedgerError):
    """Locked, full or unreadable storage. Nothing was spent, no data was read."""


class LedgerTampered(LedgerError):
    """Rows were edited, removed, reordered or rolled back."""


class MissingExtra(MoshaError, ImportError):
    """An optional part is not installed."""

    def __init__(self, extra: str, *, needed_for: str) -> None:
        self.extra = extra
        self.needed_for = needed_for
        super().__init__("core.missing_extra")

    def _fields(self) -> dict[str, Any]:
        return super()._fields() | {"extra": self.extra, "needed_for": self.needed_for}
