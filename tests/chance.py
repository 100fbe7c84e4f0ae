"""No test fails by chance or for want of time: no attack finds a fault every time, no machine is always quick."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import pytest

from mosha.core.errors import DeadlineExceeded

TRIES = 3


class Judged(Protocol):
    """A verdict of any attack."""

    @property
    def broken(self) -> Any: ...


Found = TypeVar("Found", bound=Judged)


def look_for_fault(attack: Callable[[], Found]) -> Found:
    """The first verdict of `TRIES` independent attacks that calls the target broken, or else the last one.

    Where one attack misses the fault with probability m, all of them do with probability m ** 3. A correct target is
    called broken three times as often: tests of correct ones attack once.
    """
    for _ in range(TRIES):
        verdict = attack()
        if verdict.broken:
            break
    return verdict


def release_too_late(question: Any, **words: Any) -> Any:
    """The error of a release whose deadline is over once it was paid for.

    A busy machine may not come as far as paying in a short time; then nothing was spent, and there is longer to wait.
    """
    for seconds in (1.5, 12.0, 90.0):
        with pytest.raises(DeadlineExceeded) as late:
            question.release(**words, deadline=seconds)
        if late.value.spent != "nothing":
            break
    return late.value
