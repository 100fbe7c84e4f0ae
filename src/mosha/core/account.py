"""The door: the one place where a measurement is paid for, and the one line where data meets randomness."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Protocol, Self

from mosha.core.errors import (
    AccountFrozen,
    HorizonExceeded,
    InsecureRandomness,
    Interrupted,
    InvalidParameter,
    LedgerUnavailable,
    MoshaError,
    RunClosed,
    SourceUnavailable,
    StepFailed,
    StepGivenUp,
    WrongUnit,
)
from mosha.core.language import say
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.private_log import note_privately
from mosha.core.release import Receipt, Release
from mosha.core.showing import Card, Shown
from mosha.core.unit import Unit

__all__ = ["Account", "Reservation", "Run"]


class Reservation(Protocol):
    """A durable payment for all steps of one run."""

    @property
    def receipt(self) -> Receipt: ...

    def find_answer(self, step: int) -> tuple[bool, Any]:
        """Whether this step was released before (under the same key), and what was kept of it.

        Raises AlreadyReleased where a release was made and not kept, StepFailed where the step broke.
        """

    def note_start(self, step: int) -> None:
        """Durably note that a step is about to touch the data.

        Raises StepGivenUp where it was lost too often and has ended now: the next step may be taken.
        """

    def note_answer(self, step: int, answer: object) -> None:
        """Durably note that a step was answered; the answer leaves only after this returns.

        Where it cannot be noted, the error passes and the answer waits: `find_answer` notes and gives it later, so
        that no step is drawn twice.
        """

    def note_unreached(self, step: int) -> None:
        """Durably note that a started step did not get to the data: it may be started again."""

    def note_failure(self, step: int) -> None:
        """Durably note that a step broke: it stays paid, and counts as a failure; the error leaves only after this.

        Where it cannot be noted, or the account may not tell one failure more (AccountFrozen), the failure waits as an
        answer would, and `find_answer` notes it later. Raises AlreadyReleased if another holder has taken the step.
        """

    def note_interruption(self, step: int) -> None:
        """As `failed`, of a step that was broken off in the middle and may be started once more."""

    def note_cancellation(self, step: int) -> None:
        """The caller broke the step off. It may have met the data, and has told nothing."""

    def close(self, unused: int) -> None:
        """The run is over; `unused` steps never touched the data."""


@explain_wrong_calls
class Account(ABC):
    """A purse with a limit, for one unit. Ledgers make them (see `mosha.Ledger`).

    >>> import mosha
    >>> from mosha.mechanisms import Count, laplace
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=2)
    >>> run = account.open(laplace(Count(), unit=mosha.Row(), epsilon=0.5))
    >>> account.spent, run.remaining
    (0.5, 1)
    """

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def unit(self) -> Unit: ...

    def describe_room(self) -> str:
        """What is left, in a few words for people; empty where that is not known."""
        return ""

    def is_same(self, other: Account) -> bool:
        """Whether paying here is paying at `other`. A name does not tell: every ledger has names of its own.

        >>> import mosha
        >>> account, other = (mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=2) for _ in range(2))
        >>> account.is_same(account), account.is_same(other)
        (True, False)
        """
        return self is other

    @abstractmethod
    def _reserve(self, measurement: Measurement, key: str | None) -> Reservation:
        """Charge the whole event in one transaction, or refuse (BudgetExceeded)."""

    def holds(self, key: str) -> bool:  # noqa: ARG002
        """Whether a payment was made under this `key`, so that opening it again is free."""
        return False

    @abstractmethod
    def _randomness(self) -> Rng:
        """A secure generator."""

    def open(self, measurement: Measurement, *, key: str | None = None, rng: Rng | None = None) -> Run:
        """Pay for `measurement`, or refuse. No data is read here.

        Args:
            measurement: what to run.
            key: makes the payment idempotent: opening again with the same key and the same event finds the
                payment (and a release that was kept) instead of paying twice.
            rng: a secure generator; the operating system's by default.
        """
        if not isinstance(measurement, Measurement):
            raise InvalidParameter("core.not_a_measurement", parameter="measurement", kind=type(measurement).__name__)
        if not self.unit.covers(measurement.unit):
            raise WrongUnit(
                "core.wrong_unit",
                account=self.name,
                spent="nothing",
                protected=self.unit.phrase(),
                measurement=measurement.name,
                needed=measurement.unit.phrase(),
            )
        if not measurement.event.suits(measurement.unit.neighbors):
            unit = measurement.unit.phrase()
            raise InvalidParameter(
                "core.price_for_other_neighbors", spent="nothing", measurement=measurement.name, unit=unit
            )
        rng = self._randomness() if rng is None else rng
        if not (isinstance(rng, Rng) and rng.secure is True):
            raise InsecureRandomness("core.predictable_randomness", account=self.name, parameter="rng", spent="nothing")
        if getattr(rng, "replayable", False):
            raise InsecureRandomness("core.replayable_randomness", account=self.name, parameter="rng", spent="nothing")
        if key is not None and (not isinstance(key, str) or not key):
            raise InvalidParameter("core.empty_key", parameter="key")
        return Run(measurement, self._reserve(measurement, key), rng)


class Run(Shown):
    """A measurement that has been paid for: `horizon` steps, each answered once.

    A step that breaks stays paid, for a failure may depend on the data; what broke it is not told, for the
    same reason. The words of Mosha's own errors are data-free and pass. That there was an error may depend on the
    data all the same: it counts against the account's allowance of failures, whatever it was, unless the source was
    gone before anything was read (`SourceUnavailable`). Debug on public data, with `measurement.step`.

    It is made by `Account.open`: `reservation` is the payment that was made, and `rng` draws the noise.

    >>> import mosha
    >>> from mosha.mechanisms import Count, laplace
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=2)
    >>> run = account.open(laplace(Count(), unit=mosha.Row(), epsilon=0.5))
    >>> release = run.step([1, 2, 3])
    >>> run.remaining
    0
    """

    def __init__(self, measurement: Measurement, reservation: Reservation, rng: Rng) -> None:
        self.measurement = measurement
        self._reservation = reservation
        self._rng = rng
        self._state = measurement.init()
        self._state_after = 0  # the step that the state follows; ahead of `_taken` while an answer waits to be noted
        self._taken = 0
        self._lost = 0  # steps that broke: paid, and not among those that the state has passed
        self._met = 0  # the steps that may have met the data, answered or not
        self._unsettled = 0  # the steps whose outcome is not in the book: till then nobody may see what it is
        self._broken_off = False  # and that outcome is an interruption, after which the step may be started again
        self._open = True
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Run({self.measurement.name}, {self.remaining} of {self.measurement.horizon} steps left)"

    def make_card(self) -> Card:
        """What was paid for, whom it hides, how many steps are left, and the receipt."""
        steps = say("core.shown_steps_left", left=f"{self.remaining:,}", steps=f"{self.measurement.horizon:,}")
        facts = [(say("core.shown_hidden"), self.measurement.unit.describe()), (say("core.shown_steps"), steps)]
        return Card(title=self.measurement.name, facts=facts, notes=(say("core.shown_run"), str(self.receipt)))

    @property
    def receipt(self) -> Receipt:
        return self._reservation.receipt

    @property
    def remaining(self) -> int:
        """How many paid steps have not been taken."""
        return self.measurement.horizon - self._met if self._unsettled else self._left

    @property
    def _left(self) -> int:
        """The same, for whoever may know what became of the last step."""
        passed = self.measurement.state.passed
        taken = self._taken if passed is None else max(self._taken, self._lost + passed(self._state))
        return self.measurement.horizon - taken

    def find_next(self) -> tuple[int, bool] | None:
        """The number of the next step, and whether it has its answer already; None after the last.

        Steps that broke in an earlier process are passed by.

        >>> import mosha
        >>> from mosha.mechanisms import Count, laplace
        >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=2)
        >>> account.open(laplace(Count(), unit=mosha.Row(), epsilon=0.5)).find_next()
        (1, False)
        """
        with self._lock:
            if self._left <= 0:
                return None
            try:
                known, _ = self._read_stored()
            except HorizonExceeded:
                return None
            return self._taken + 1, known

    def step(self, data: object, ask: object = None) -> Release:
        """The next step: the only line where private data meets randomness.

        `ask` is the public part of what is asked.
        """
        with self._lock:
            if not self._open:
                raise RunClosed("core.run_closed", measurement=self.measurement.name)
            if not self._unsettled:
                self._admit(1)
            known, answer = self._read_stored()  # what waits to be noted, answer or failure, goes before anything else
            number = self._taken + 1
            if not known:
                self._unsettled = 0 if self._broken_off else self._unsettled
                steps = 1 if self.measurement.state.covers is None else self.measurement.state.covers(data)
                self._admit(steps)
                answer = self._answer(number, steps, data, ask)
            elif self.measurement.state.resume is not None and self._state_after < number:
                self._state = self.measurement.state.resume(self._state, answer)
                self._state_after = number
            self._taken, self._unsettled = number, 0
            error = self.measurement.error if known else self.measurement.find_error(self._state)
            return Release(answer, self.receipt, number, error, self.measurement.draw)

    def _admit(self, steps: int) -> None:
        if self.remaining <= 0:
            raise HorizonExceeded(
                "core.horizon_reached", measurement=self.measurement.name, horizon=self.measurement.horizon
            )
        if steps > self.remaining:
            raise HorizonExceeded(
                "core.horizon_too_short",
                measurement=self.measurement.name,
                horizon=self.measurement.horizon,
                steps=steps,
                remaining=self.remaining,
            )

    def _read_stored(self) -> tuple[bool, Any]:
        """What was kept of the next step; one that broke is passed by where others follow it.

        It broke in an earlier process, or in this one, which could not note it before.
        """
        while True:
            try:
                return self._reservation.find_answer(self._taken + 1)
            except StepFailed:
                ours, steps = self._unsettled > 0, max(1, self._unsettled)
                if not (ours or self.measurement.state.replays or self.measurement.state.resume is not None):
                    raise
                self._pass_by(steps)
                if ours and self._left <= 0:
                    raise
            self._admit(1)

    def _pass_by(self, steps: int) -> None:
        """A step broke: it is paid, and the state stays."""
        self._taken, self._lost, self._unsettled = self._taken + 1, self._lost + steps, 0

    def _answer(self, number: int, steps: int, data: object, ask: object) -> Any:
        try:
            self._reservation.note_start(number)
        except StepGivenUp:  # earlier holders started it, this one did not
            self._pass_by(1)
            raise
        met, self._met = self._met, self.measurement.horizon - self._left + steps
        self._unsettled, self._broken_off = steps, False
        problem: MoshaError
        try:
            answer, state = self.measurement.step(self._state, data, ask, self._rng)
        except (KeyboardInterrupt, SystemExit):
            self._reservation.note_cancellation(number)
            self._unsettled = 0
            raise
        except MoshaError as error:  # data-free by the rule of the house; what it was raised from need not be
            self._note(number, error)
            problem = error.with_traceback(None)
            problem.__cause__ = problem.__context__ = None
            vars(problem).pop("__notes__", None)
        except BaseException as error:  # noqa: BLE001  (even a panic of native code: its text may hold data)
            self._note(number, error)
            problem = StepFailed("core.step_failed", step=number, measurement=self.measurement.name)
        else:
            self._state = state  # first: where noting fails, the reservation keeps the answer and not the state
            self._state_after = number
            self._reservation.note_answer(number, answer)
            return answer
        if isinstance(problem, SourceUnavailable):  # the payment waits for a retry
            self._reservation.note_unreached(number)
            self._met, self._unsettled = met, 0
        elif isinstance(problem, Interrupted):
            self._interrupt(number)
            problem.spent = "waits"
        else:
            self._reservation.note_failure(number)
            self._pass_by(steps)
            problem.spent = "paid"
        raise problem

    def _interrupt(self, number: int) -> None:
        try:
            self._reservation.note_interruption(number)
        except (AccountFrozen, LedgerUnavailable):
            self._broken_off = True  # once it is noted, the step may be started again
            raise
        self._unsettled = 0

    def _note(self, number: int, error: BaseException) -> None:
        """For the owner of the data; nothing of it leaves."""
        name = str(self.measurement.name)
        note_privately("step", error, measurement=name, step=number, payment=self.receipt.entry)

    def close(self) -> None:
        """End the run; steps that were never taken are handed back where the account's rule allows it."""
        with self._lock:
            if self._open:
                self._open = False
                self._reservation.close(min(self._left, self.measurement.horizon - self._met))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
