"""Which round of a run it is: counted by the run, never taken from what a caller asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from mosha.core.errors import SourceUnavailable

__all__ = ["Turn"]


@dataclass(frozen=True)
class Turn:
    """How many rounds of one run were answered, and how many broke.

    Guarantee:
        Rounds that are answered or break have distinct numbers, at most as many as the run has steps; so a plan with a
        period meets each client in at most ceil(rounds / period) of them. A round in which nobody could be reached
        (SourceUnavailable: no answer, free to retry) keeps its number. `broken` is one list for all states of a run,
        for a step that fails leaves no state behind; it holds nothing but a count.

    >>> first = Turn()
    >>> with first.round() as number:
    ...     number, first.after().number
    (1, 2)
    """

    answered: int = 0
    broken: list[None] = field(default_factory=list)

    @property
    def number(self) -> int:
        """The number of the next round."""
        return self.answered + len(self.broken) + 1

    @contextmanager
    def round(self) -> Iterator[int]:
        """Number a round; if it breaks, that number is used up."""
        try:
            yield self.number
        except (SourceUnavailable, KeyboardInterrupt, SystemExit):  # the step was not taken
            raise
        except BaseException:
            self.broken.append(None)
            raise

    def after(self) -> Turn:
        """The turn after a round that was answered."""
        return replace(self, answered=self.answered + 1)
