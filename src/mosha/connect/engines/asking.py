"""How a question is asked just now: only looked at, and until when; known to the engines of this thread alone.

The look before payment runs the very code that will run afterwards, with one difference: the engine analyses each
statement and reads no row, and the answer is that of an empty table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Event, Thread
from typing import TypeVar

from mosha.core.errors import DeadlineExceeded

__all__ = ["is_look", "look_only", "seconds_left", "stop_at", "stopping", "too_late", "wait_for"]

Result = TypeVar("Result")
AGAIN = 0.25  # seconds

_looking: ContextVar[bool] = ContextVar("looking", default=False)
_end: ContextVar[float | None] = ContextVar("end", default=None)


def is_look() -> bool:
    """Whether statements are analysed and not run."""
    return _looking.get()


@contextmanager
def look_only() -> Iterator[None]:
    """Inside, engines analyze statements and answer as an empty table would."""
    token = _looking.set(True)
    try:
        yield
    finally:
        _looking.reset(token)


@contextmanager
def stop_at(seconds: float | None) -> Iterator[None]:
    """Inside, engines break a statement off when so many seconds are over (None: never)."""
    token = _end.set(None if seconds is None else time.monotonic() + seconds)
    try:
        yield
    finally:
        _end.reset(token)


def seconds_left() -> float | None:
    """How long a statement may take from now on, at least a millisecond; None for ever."""
    end = _end.get()
    return None if end is None else max(0.001, end - time.monotonic())


@contextmanager
def stopping(interrupt: Callable[[], object], grace: float | None = None) -> Iterator[Callable[[], bool]]:
    """Inside, `interrupt` is called when the time is over; the value tells whether it was.

    It is called again and again until the block ends, for an engine that is between two statements has nothing to break
    off; and never afterwards, when it would meet the question of somebody else.

    Args:
        interrupt: breaks off what the engine is doing for this question.
        grace: how many seconds to wait for a call of `interrupt` that does not come back (None: for ever). Only where
            it names the question that it breaks off.
    """
    left = seconds_left()
    if left is None:
        yield lambda: False
        return
    ended, struck = Event(), Event()

    def strike() -> None:
        pause = left
        while not ended.wait(pause):
            struck.set()
            interrupt()
            pause = AGAIN

    thread = Thread(target=strike, name="mosha-deadline", daemon=True)
    thread.start()
    try:
        yield struck.is_set
    finally:
        ended.set()
        thread.join(grace)


def wait_for(work: Callable[[], Result], grace: float) -> Result:
    """What `work` returns or raises; TimeoutError where it is not back `grace` seconds after the deadline.

    For engines on another machine, whose client may wait for a server that is gone. `work` is then left to itself.
    """
    found: list[Result] = []
    raised: list[BaseException] = []
    context, left = copy_context(), seconds_left()

    def attempt() -> None:
        try:
            found.append(context.run(work))
        except BaseException as error:  # noqa: BLE001  (raised again by the thread that waits)
            raised.append(error)

    thread = Thread(target=attempt, name="mosha-waiting", daemon=True)
    thread.start()
    thread.join(None if left is None else left + grace)
    if raised:
        raise raised[0]
    if not found:
        raise TimeoutError
    return found[0]


def too_late() -> DeadlineExceeded:
    """The error of a statement that was broken off; the same on every engine."""
    return DeadlineExceeded("connect.deadline", spent="nothing" if is_look() else None)
