"""Streams without an end: epochs that double, each paid for as it starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mosha.core.account import Account, Run
from mosha.core.errors import InvalidParameter
from mosha.core.number import positive_integer
from mosha.core.release import Release
from mosha.streams.batches import Batches
from mosha.streams.stream import Stream

__all__ = ["Epochs"]


class Epochs:
    """A running sum for ever: epoch i has `first` 2^i steps and a payment of its own; its last value is carried on.

    One very long horizon has a smaller error (see `best`) and one price; epochs suit whoever pays as time goes by.

    `make(steps)` makes the stream of an epoch, and `account` pays for it.

    Guarantee:
        A unit that is one event lies in one epoch; the account adds up what is paid for all of them, which covers units
        that come back. What is carried over is an answer, and adding answers is post-processing.

    >>> import mosha, tempfile
    >>> account = mosha.Ledger(f"{tempfile.mkdtemp()}/book.db").account("door", unit=mosha.Reading(), epsilon=10)
    >>> make = lambda steps: mosha.streams.counter(unit=mosha.Reading(), horizon=steps, epsilon=1)
    >>> door = Epochs(account, make, first=2)
    >>> [type(door.step([1, 1]).value).__name__ for _ in range(5)], door.epoch
    (['int', 'int', 'int', 'int', 'int'], 1)
    """

    def __init__(self, account: Account, make: Callable[[int], Stream], *, first: int = 1024) -> None:
        self._account, self._make = account, make
        self._first = positive_integer("first", first)
        self.epoch = -1
        self._run: Run | None = None
        self._carried: Any = 0
        self._last: Any = 0

    def step(self, data: object) -> Release:
        """The sum of all steps so far, this one with `data`; a new epoch is opened, and paid for, when one is full."""
        if isinstance(data, Batches):
            raise InvalidParameter("streams.epochs_one_step", spent="nothing")
        if self._run is None or self._run.remaining == 0:
            run = self._account.open(self._make(self._first << (self.epoch + 1)))
            self._carried = self._carried + self._last
            self._run, self.epoch, self._last = run, self.epoch + 1, 0
        release = self._run.step(data)
        self._last, carried = release.value, self._carried
        return release.map(lambda value: value + carried)
