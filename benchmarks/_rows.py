"""What a benchmark answers: rows of ratios, each beside the bar it is meant to clear."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Row", "best_cpu", "table"]


@dataclass(frozen=True)
class Row:
    """One comparison.

    `ratio` is how many times better we are than `peer` (above 1: better), `bar` what was promised
    (None: only shown; two numbers where it may be too large as well, as the share of bars that hold). `ours` and
    `theirs` say the same in the unit of the thing, for orientation.
    """

    what: str
    peer: str
    ratio: float
    bar: float | tuple[float, float] | None = None
    ours: str = ""
    theirs: str = ""

    @property
    def ends(self) -> tuple[float, float]:
        if self.bar is None:
            return -math.inf, math.inf
        return self.bar if isinstance(self.bar, tuple) else (self.bar, math.inf)

    @property
    def cleared(self) -> bool:
        least, most = self.ends
        return least <= self.ratio <= most


def best_cpu(work: Sequence[Callable[[], object]], *, repeats: int = 7) -> list[float]:
    """The least CPU seconds of each piece of work; the pieces take turns, so that a busy moment hits all alike."""
    best = [float("inf")] * len(work)
    for _ in range(repeats):
        for i, run in enumerate(work):
            start = time.process_time()
            run()
            best[i] = min(best[i], time.process_time() - start)
    return best


def table(rows: Sequence[Row]) -> str:
    """The rows as aligned text."""
    head = ("what", "ours", "peer", "theirs", "ratio", "bar", "")
    body = [
        (
            row.what,
            row.ours,
            row.peer,
            row.theirs,
            f"{row.ratio:,.0f}" if row.ratio >= 100 else f"{row.ratio:.3g}",
            " to ".join(f"{end:g}" for end in row.ends if math.isfinite(end)),
            "" if row.cleared else "ABOVE" if row.ratio > row.ends[1] else "BELOW",
        )
        for row in rows
    ]
    widths = [max(len(line[i]) for line in (head, *body)) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i in {1, 3, 4, 5} else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (head, *body)
    )
