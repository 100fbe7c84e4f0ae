"""What may be concluded from an attack, and the event that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mosha.core.language import say

__all__ = ["Outcome", "Witness"]


class Outcome(StrEnum):
    """What may be concluded at the stated confidence.

    >>> Outcome("broken") is Outcome.BROKEN
    True
    >>> Outcome.NO_POWER.describe()
    'no power'
    """

    CONSISTENT = "consistent"
    BROKEN = "broken"
    NO_POWER = "no power"

    def describe(self) -> str:
        """The outcome in the reader's language."""
        return say(f"audit.outcome_{self.name.lower()}")


@dataclass(frozen=True)
class Witness:
    """One event, chosen beforehand, counted on fresh answers of both worlds.

    `likely` and `unlikely` name the data sets in which the event was the more and the less likely. Of all pairs
    of probabilities that the counts leave believable, (`probability`, `probability_against`) is the one that
    needs the smallest amount of the claimed measure: `least`.

    It happened in `count` of `trials` runs on the one, in `count_against` of `trials_against` on the other.

    >>> print(Witness("count > 3", "D", "D'", 90, 100, 10, 100, 0.8, 0.2, 1.4))
    event: count > 3
      90 of 100 runs on D
      10 of 100 runs on D'
      explained at best by probabilities 0.8 and 0.2
    """

    event: str
    likely: str
    unlikely: str
    count: int
    trials: int
    count_against: int
    trials_against: int
    probability: float
    probability_against: float
    least: float

    def __str__(self) -> str:
        return say("audit.witness", **vars(self))
