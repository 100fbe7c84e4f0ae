"""What an attack found: consistent, broken or no power, with the evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mosha.audit.claims.claim import Claim
from mosha.audit.reporting.report import Report

__all__ = ["Outcome", "Verdict", "Witness"]


class Outcome(StrEnum):
    """What may be concluded at the stated confidence."""

    CONSISTENT = "consistent"
    BROKEN = "broken"
    NO_POWER = "no power"


@dataclass(frozen=True)
class Witness:
    """One event, chosen beforehand, counted on fresh answers of both worlds.

    `likely` and `unlikely` name the data sets in which the event was the more and the less likely. Of all pairs
    of probabilities that the counts leave believable, (`probability`, `probability_against`) is the one that
    needs the smallest amount of the claimed measure: `least`.
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
        return (
            f"event: {self.event}\n"
            f"  {self.count} of {self.trials} runs on {self.likely}\n"
            f"  {self.count_against} of {self.trials_against} runs on {self.unlikely}\n"
            f"  explained at best by probabilities {self.probability:.6g} and {self.probability_against:.6g}"
        )


@dataclass(frozen=True)
class Verdict(Report):
    """The result of an attack.

    Guarantee:
        If the mechanism keeps its claim on these neighbours, P(outcome is BROKEN) <= 1 - confidence, and
        with the same confidence its true amount is not below `lower`.

    Fields:
        lower: the least amount of the claimed measure that explains what was seen.
        ceiling: what `lower` would be had the mechanism published its data: the most that so many runs can show.
        runs_needed: runs a world that could show a breach of this claim (math.inf: more than 10^15).
        curve: (false positives, true positives) of the best attack on fresh answers, for a picture.
    """

    outcome: Outcome
    name: str
    claim: Claim
    lower: float
    ceiling: float
    confidence: float
    runs: int
    runs_needed: float
    neighbours: tuple[str, str]
    witness: Witness | None
    curve: tuple[tuple[float, float], ...] = field(default=(), repr=False)

    @property
    def broken(self) -> bool:
        return self.outcome is Outcome.BROKEN

    @property
    def tightness(self) -> float:
        """The lower bound over the claim: near 1 where the attack was as strong as the claim allows."""
        return self.lower / self.claim.amount if self.claim.amount else math.inf

    def __str__(self) -> str:
        head = f"{self.name}: {self.outcome.upper()}. Claimed {self.claim.describe()}; "
        match self.outcome:
            case Outcome.BROKEN:
                head += f"what was seen needs at least {self.lower:.4g}"
            case Outcome.CONSISTENT:
                head += f"the attack shows at least {self.lower:.4g}"
            case Outcome.NO_POWER:
                head += (
                    f"{self.runs} runs a world could show at most {self.ceiling:.4g}, whatever the mechanism does; "
                    f"{_runs_needed(self.runs_needed)}"
                )
        lines = [f"{head} (confidence {self.confidence:.6g}, {self.runs} runs a world)."]
        return "\n".join([*lines, *([str(self.witness)] if self.witness else [])])

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain data; stable keys."""
        return {
            "mechanism": self.name,
            "outcome": str(self.outcome),
            "claim": self.claim.to_dict(),
            "lower": self.lower,
            "ceiling": self.ceiling,
            "confidence": self.confidence,
            "runs": self.runs,
            "runs_needed": self.runs_needed if math.isfinite(self.runs_needed) else None,
            "neighbours": list(self.neighbours),
            "witness": vars(self.witness).copy() if self.witness else None,
            "curve": [list(point) for point in self.curve],
        }

    def to_html(self) -> str:
        """One self-contained page with pictures."""
        from mosha.audit.reporting.page import verdict_page  # noqa: PLC0415  (loaded when it is needed)

        return verdict_page([self])


def _runs_needed(runs: float) -> str:
    return f"{runs:,.0f} could show a breach" if math.isfinite(runs) else "no affordable number could show a breach"
