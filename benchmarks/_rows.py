"""What a benchmark answers: rows of ratios, each beside the bar it is meant to clear."""

from __future__ import annotations

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
    (None: only shown), `most` what it may be at most (a share of bars that hold, which should not be wider than they
    say). `ours` and `theirs` say the same in the unit of the thing, for orientation.
    """

    what: str
    peer: str
    ratio: float
    bar: float | None = None
    ours: str = ""
    theirs: str = ""
    most: float | None = None

    @property
    def cleared(self) -> bool:
        return (self.bar is None or self.ratio >= self.bar) and (self.most is None or self.ratio <= self.most)


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
            ("" if row.bar is None else f"{row.bar:g}") + ("" if row.most is None else f" to {row.most:g}"),
            "" if row.cleared else "BELOW" if row.bar is not None and row.ratio < row.bar else "ABOVE",
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
