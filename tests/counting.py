"""How much work a function does, counted instead of timed: a busy machine changes nothing."""

import sys
from collections.abc import Callable


def calls(work: Callable[[], object]) -> int:
    """How many functions of Python and of C are called."""
    count = 0

    def seen(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
