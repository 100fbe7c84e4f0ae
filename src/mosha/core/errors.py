"""Everything that can go wrong, in one tree.

    MoshaError
    ├── InvalidParameter (ValueError)      a public argument is wrong; nothing was spent
    │   ├── Refused                        a query that cannot be made private as it stands
    │   ├── Unbounded                      a statistic that one person could move without limit
    │   ├── WrongCall (TypeError)          an argument too many, missing or unknown; the function did not run
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
    │       └── StepGivenUp                it was lost twice; the run goes on with the next step
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

from typing import Any

from mosha.core.faults.error import MoshaError, Spent
from mosha.core.faults.ledger_errors import (
    AccountExpired,
    AccountFrozen,
    AccountMismatch,
    AccountRetired,
    LedgerError,
    LedgerKeyRefused,
    LedgerTampered,
    LedgerUnavailable,
    PolicyViolation,
    UnknownAccount,
)
from mosha.core.language import Language, Phrase, current_language, translate

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
    "StepGivenUp",
    "Unbounded",
    "UnknownAccount",
    "Unpriced",
    "WrongCall",
    "WrongUnit",
]


class InvalidParameter(MoshaError, ValueError):
    """A public argument is wrong. Nothing was spent.

    >>> import mosha
    >>> try:
    ...     mosha.events.Laplace(noise_multiplier=0)
    ... except mosha.errors.InvalidParameter as error:
    ...     print(error.parameter, error.code)
    noise_multiplier core.not_positive
    """


class Refused(InvalidParameter):
    """A query that cannot be made private as it stands; the message says why and what can. Nothing was spent.

    `nearest` is a query like it that is answered, where one was found.

    >>> error = Refused("core.not_positive", parameter="epsilon", value=0.0, spent="nothing")
    >>> error.spent, error.nearest
    ('nothing', None)
    """


class Unbounded(InvalidParameter):
    """A statistic that one person could move without limit.

    >>> import mosha
    >>> visits = mosha.protect({"days": [3, 5]}, unit=mosha.Row())
    >>> visits.sum("days").release(epsilon=1)
    Traceback (most recent call last):
    mosha.core.errors.Unbounded: sum('days') needs between=(low, high): ...
    """


class Unpriced(InvalidParameter):
    """This event has no (finite) price under the measure that was asked for.

    >>> import mosha
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1)
    >>> account.how_many(mosha.events.Gaussian(noise_multiplier=2))
    Traceback (most recent call last):
    mosha.core.errors.Unpriced: ...
    """


class WrongCall(InvalidParameter, TypeError):
    """A function was called with an argument too many, without one that it needs or with one that it does not know.

    The function did not run. The sentence says how to write the call; it knows the names of arguments, never a value.

    >>> import mosha
    >>> mosha.Person("patient", atmost=3)
    Traceback (most recent call last):
    mosha.core.errors.WrongCall: Person has no argument atmost: write at_most=... instead. Nothing was spent.
    """

    options: tuple[str, ...] = ()
    """Where an argument was unknown: those that the function takes by name alone."""


class WrongUnit(MoshaError):
    """One account protects one unit. Nothing was spent.

    >>> import mosha
    >>> from mosha.mechanisms import Count, laplace
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Person("who"), epsilon=1)
    >>> account.open(laplace(Count(), unit=mosha.Row(), epsilon=1))
    Traceback (most recent call last):
    mosha.core.errors.WrongUnit: ...
    """


class BudgetExceeded(MoshaError):
    """The account cannot pay. No data was read, nothing was spent.

    `asked`, `used` and `limit` are in the unit named by `measure` ("epsilon", "rho", "delta", ...), as is `reached`:
    what would be used with this release, the sum of the two or less. `advice` is one more sentence.

    >>> import mosha
    >>> from mosha.mechanisms import Count, laplace
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1)
    >>> try:
    ...     account.open(laplace(Count(), unit=mosha.Row(), epsilon=2))
    ... except mosha.errors.BudgetExceeded as error:
    ...     print(error.asked, error.limit, error.spent)
    2.0 1.0 nothing
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

    def render(self, lang: Language | None = None) -> str:
        """The sentence in the language `lang` (None: the chosen one), and the advice after it."""
        advice = translate(self.advice, lang or current_language())
        return super().render(lang) + (advice and f" {advice}")

    def _fields(self) -> dict[str, Any]:
        numbers = {"asked": self.asked, "used": self.used, "limit": self.limit, "reached": self.reached}
        return super()._fields() | {"measure": self.measure} | numbers


class InsecureRandomness(MoshaError):
    """A predictable generator was offered where people are at stake. Nothing was spent.

    >>> import mosha
    >>> from mosha.mechanisms import Count, laplace
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1)
    >>> account.open(laplace(Count(), unit=mosha.Row(), epsilon=1), rng=mosha.noise.SeededRandom(7))
    Traceback (most recent call last):
    mosha.core.errors.InsecureRandomness: ...
    """


class RunError(MoshaError):
    """A run was used in a way that was not paid for.

    >>> [kind.__name__ for kind in RunError.__subclasses__()][:2]
    ['HorizonExceeded', 'RunClosed']
    """


class HorizonExceeded(RunError):
    """One step more than was paid for. No data was read.

    >>> import mosha
    >>> from mosha.mechanisms import Count, laplace
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1)
    >>> run = account.open(laplace(Count(), unit=mosha.Row(), epsilon=1))
    >>> first = run.step([1, 2, 3])
    >>> run.step([1, 2, 3])
    Traceback (most recent call last):
    mosha.core.errors.HorizonExceeded: ...
    """


class RunClosed(RunError):
    """The run has ended. No data was read.

    >>> import mosha
    >>> from mosha.mechanisms import Count, laplace
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1)
    >>> run = account.open(laplace(Count(), unit=mosha.Row(), epsilon=1))
    >>> run.close()
    >>> run.step([1, 2, 3])
    Traceback (most recent call last):
    mosha.core.errors.RunClosed: ...
    """


class AlreadyReleased(RunError):
    """This payment has had its release, which was not kept. No data was read.

    >>> issubclass(AlreadyReleased, RunError)
    True
    """


class StateRefused(RunError):
    """The kept state of a run is another's, is older than its ledger, was edited or is in use. Nothing is answered.

    >>> issubclass(StateRefused, RunError)
    True
    """


class AnswerPending(RunError):
    """The same step is being answered elsewhere, for the same payment. Ask again with the same key in a moment.

    >>> issubclass(AnswerPending, RunError)
    True
    """


class StepFailed(RunError):
    """The step broke on its way. A failure may depend on the data, so its price stays paid.

    >>> from dataclasses import replace
    >>> import mosha
    >>> from mosha.mechanisms import Count, laplace
    >>> def break_off(state, data, ask, rng):
    ...     raise ValueError(data)
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1)
    >>> run = account.open(replace(laplace(Count(), unit=mosha.Row(), epsilon=1), step=break_off))
    >>> try:
    ...     run.step([1, 2, 3])
    ... except StepFailed as error:
    ...     print(error.spent)
    paid
    """


class StepGivenUp(StepFailed):
    """The step was lost as often as it may be started, and is over. Its price stays paid; the run goes on after it.

    >>> issubclass(StepGivenUp, StepFailed)
    True
    """


class DataError(MoshaError):
    """The data do not have the declared shape (public facts only: columns, types, files).

    >>> import mosha
    >>> mosha.protect({"days": [3, 5]}, unit=mosha.Row()).where(mosha.col("ward") == "a")
    Traceback (most recent call last):
    mosha.core.errors.DataError: ...
    """


class SourceUnavailable(DataError):
    """The place where the data live did not answer, before the question began; a retry with the same key is free.

    >>> issubclass(SourceUnavailable, DataError)
    True
    """


class Interrupted(DataError):
    """A question was broken off in the middle, for a reason that may depend on the data.

    It counts as a failure of the account, like any other (`AccountFrozen`). The payment stays, and a release with the
    same key asks once more.

    >>> issubclass(Interrupted, DataError)
    True
    """


class DeadlineExceeded(Interrupted):
    """The time that was given for a question was over before the engine had an answer.

    >>> issubclass(DeadlineExceeded, Interrupted)
    True
    """


class MissingExtra(MoshaError, ImportError):
    """An optional part, `extra`, is not installed; it is `needed_for` what was asked.

    >>> from mosha.core.language import phrase
    >>> print(MissingExtra("pandas", needed_for=phrase("core.table_of", kind="pandas")))
    a table of pandas ...
    """

    def __init__(self, extra: str, *, needed_for: Phrase) -> None:
        self.extra = extra
        self.needed_for = needed_for
        super().__init__("core.missing_extra")

    def _fields(self) -> dict[str, Any]:
        return super()._fields() | {"extra": self.extra, "needed_for": self.needed_for}
