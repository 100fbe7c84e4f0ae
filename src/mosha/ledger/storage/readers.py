"""Connections that read alone, so that whoever reads a long statement keeps no payer waiting."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from mosha.core.errors import LedgerUnavailable

__all__ = ["Disturbed", "Readers"]

SPARE = 3  # connections that are kept for the next reader


class Disturbed(Exception):
    """A reading was broken off, for this process is about to fork: it may simply begin again."""


class Readers:
    """A few connections, lent to one reader each."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._idle: list[Any] = []
        self._busy: dict[int, Any] = {}  # what is lent out; None where it is not open yet
        self._threads: Counter[int] = Counter()
        self._numbers = iter(range(2**62))
        self._parked = False
        self._over = False
        self._process = os.getpid()

    @property
    def connections(self) -> list[Any]:
        """Every connection that is open, lent or not; None stands for one that is being opened."""
        return [*self._idle, *self._busy.values()]

    def must_stop(self) -> bool:
        """Whether every reading has to end now, for the process is about to fork."""
        return self._parked

    @contextmanager
    def lend(self, patience: float, connect: Callable[[], Any], begin: Callable[[Any], None]) -> Iterator[Any]:
        """A connection inside a reading that just began.

        Args:
            patience: how many seconds to wait for the end of a fork.
            connect: opens a connection that only reads.
            begin: begins a reading; raises where the connection went bad while it waited.
        """
        me = threading.get_ident()
        with self._change:
            if not self._change.wait_for(lambda: not self._parked or self._threads[me] > 0, patience):
                raise LedgerUnavailable("ledger.forking_too_long", spent="nothing")
            number = next(self._numbers)
            found = self._busy[number] = self._idle.pop() if self._idle else None
            self._threads[me] += 1
        sound = False
        try:
            self._busy[number] = connection = _begin_reading(found, connect, begin)
            yield connection
            sound = True
        finally:
            if os.getpid() == self._process:  # what a fork copied is not ours to give back
                self._return(number, sound=sound)

    def _return(self, number: int, *, sound: bool) -> None:
        with self._change:
            lent = self._busy[number]
            if sound and not self._parked and not self._over and len(self._idle) < SPARE:
                self._idle.append(lent)
            elif lent is not None:
                _close(lent)  # before it is struck off: a fork waits for that
            del self._busy[number]
            self._threads[threading.get_ident()] -= 1
            self._change.notify_all()

    def park(self, patience: float, interrupt: Callable[[Any], None]) -> bool:
        """Lend nothing more, break off what is being read, close everything. Whether that came to an end in time."""
        deadline = time.monotonic() + patience
        with self._change:
            self._parked = True
            if self._threads[threading.get_ident()] > 0:  # a fork from inside a reading: it cannot end before the fork
                return False
            while self._busy:
                for lent in self._busy.values():
                    if lent is not None:
                        with suppress(Exception):
                            interrupt(lent)
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._change.wait(min(left, 0.05))
            self.clear()
        return True

    def unpark(self) -> None:
        with self._change:
            self._parked = False
            self._change.notify_all()

    def wait_until_alone(self, patience: float) -> None:
        """Wait until no other reading goes on, or until patience ends."""
        with self._change:
            self._change.wait_for(lambda: len(self._busy) <= self._threads[threading.get_ident()], patience)

    def clear(self) -> None:
        """Close what nobody uses."""
        while self._idle:
            _close(self._idle.pop())

    def close(self) -> None:
        """Lend what is asked for no longer than it is needed, and keep nothing."""
        self._over = True
        self.clear()


def _close(connection: Any) -> None:
    with suppress(Exception):
        connection.close()


def _begin_reading(found: Any, connect: Callable[[], Any], begin: Callable[[Any], None]) -> Any:
    if found is not None:
        try:
            begin(found)
        except Exception:  # noqa: BLE001  (it waited for long, and its server may be another one by now)
            _close(found)
        else:
            return found
    connection = connect()
    try:
        begin(connection)
    except BaseException:
        _close(connection)
        raise
    return connection
