"""An account whose outcomes are written down at a moment that tells nothing: the tick.

A row of the book has a place among all others, and receipts, statements and heads show places. Were the end of a step
written down when it is there, whoever asks something else at the same time would learn from the numbers of two rows
which of them came first, and so how long the step took.

Guarantee:
    Between the payment and the tick nothing is written that depends on the data: an answer, a failure, an
    interruption and a source that went away wait in memory until `wait` returns. Where the process ends before that,
    the step counts as one that was started and came to no end, as the ledger counts it anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mosha.core.account import Account, Reservation
from mosha.core.measurement import Measurement, Rng
from mosha.core.release import Receipt
from mosha.core.unit import Unit

__all__ = ["WithheldAccount"]


class WithheldAccount(Account):
    """Pays as another account does, and calls `wait` before the book learns how a step ended."""

    def __init__(self, account: Account, wait: Callable[[], None]) -> None:
        self._account, self._wait = account, wait

    @property
    def name(self) -> str:
        return self._account.name

    @property
    def unit(self) -> Unit:
        return self._account.unit

    def describe_room(self) -> str:
        return self._account.describe_room()

    def is_same(self, other: Account) -> bool:
        return self._account.is_same(other._account if isinstance(other, WithheldAccount) else other)  # noqa: SLF001

    def holds(self, key: str) -> bool:
        return self._account.holds(key)

    def _reserve(self, measurement: Measurement, key: str | None) -> Reservation:
        return _Withheld(self._account._reserve(measurement, key), self._wait)  # noqa: SLF001

    def _randomness(self) -> Rng:
        return self._account._randomness()  # noqa: SLF001


class _Withheld:
    """A reservation that waits before it notes an outcome."""

    def __init__(self, reservation: Reservation, wait: Callable[[], None]) -> None:
        self._reservation, self._wait = reservation, wait

    @property
    def receipt(self) -> Receipt:
        return self._reservation.receipt

    def find_answer(self, step: int) -> tuple[bool, Any]:
        return self._reservation.find_answer(step)

    def note_start(self, step: int) -> None:
        self._reservation.note_start(step)

    def note_answer(self, step: int, answer: object) -> None:
        self._wait()
        self._reservation.note_answer(step, answer)

    def note_failure(self, step: int) -> None:
        self._wait()
        self._reservation.note_failure(step)

    def note_interruption(self, step: int) -> None:
        self._wait()
        self._reservation.note_interruption(step)

    def note_unreached(self, step: int) -> None:
        self._wait()
        self._reservation.note_unreached(step)

    def note_cancellation(self, step: int) -> None:
        self._reservation.note_cancellation(step)

    def close(self, unused: int) -> None:
        self._reservation.close(unused)
