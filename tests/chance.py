"""How often a planted fault is looked for: no attack finds a fault every time, and a test may not fail by chance."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

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
