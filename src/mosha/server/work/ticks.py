"""When the end of a question may be seen, whatever its end is.

How long a paid step takes depends on the data, so the moment of its answer is a release too. Three rules:

    fixed    exactly at the deadline
    ladder   at the first of 1, 2, 4, 8, ... seconds that has not passed, and at the deadline at the latest
    off      at once: for rooms in which everybody may see the data

Guarantee:
    Under `fixed` the moment is the same for all data. Under `ladder` it has at most 2 + log2(deadline) values. Answers
    and failures follow the same rule. They go into the book at the tick (`withheld.py`), and a slot is free again at
    the tick and no earlier, so that nobody else's question starts at a moment which tells more.
"""

from __future__ import annotations

__all__ = ["FIRST", "tick"]

FIRST = 1.0


def tick(timing: str, *, seconds: float, deadline: float) -> float:
    """When a question that took so many seconds appears, in seconds after its start.

    >>> [tick("ladder", seconds=s, deadline=30) for s in (0.01, 1.5, 3, 9, 29)]
    [1.0, 2.0, 4.0, 16.0, 30.0]
    >>> tick("fixed", seconds=0.01, deadline=30), tick("off", seconds=0.01, deadline=30)
    (30.0, 0.01)
    """
    if timing == "off":
        return seconds
    if timing == "fixed":
        return float(deadline)
    rung = FIRST
    while rung < seconds:
        rung *= 2
    return min(rung, float(deadline))
