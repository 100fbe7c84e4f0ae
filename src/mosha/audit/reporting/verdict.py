"""What an attack found: consistent, broken or no power, with the evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, ClassVar

from mosha.audit.claims.claim import Claim
from mosha.audit.reporting.outcome import Outcome, Witness
from mosha.audit.reporting.page import page, table
from mosha.audit.reporting.picture import tradeoff
from mosha.audit.reporting.report import Report
from mosha.core.language import current_language, say, translate
from mosha.core.names.deprecation import renamed_attribute

__all__ = ["Verdict", "verdict_page"]


@dataclass(frozen=True)
class Verdict(Report):
    """The result of an attack.

    Guarantee:
        If the mechanism keeps its claim on these neighbors, P(outcome is BROKEN) <= 1 - confidence, and
        with the same confidence its true amount is not below `lower`.

    Fields:
        lower: the least amount of the claimed measure that explains what was seen.
        ceiling: what `lower` would be had the mechanism published its data: the most that so many runs can show.
        runs_needed: runs a world that could show a breach of this claim (math.inf: more than 10^15).
        curve: (false positives, true positives) of the best attack on fresh answers, for a picture.
        outcome: whether the claim is broken, stands, or cannot be judged with so few runs.
        name, claim: what was attacked, and what it claims.
        confidence, runs: of the verdict, and how often the mechanism ran on each data set.
        neighbors: what the two data sets are called.
        witness: the event that tells them apart best; None where nothing was found.

    >>> import mosha
    >>> from mosha.mechanisms import Count, laplace
    >>> count = laplace(Count(), unit=mosha.Row(), epsilon=1)
    >>> found = mosha.audit.attack(count, neighbors=([1, 2], [1]), runs=200, confidence=1 - 1e-9)
    >>> found.outcome is not mosha.audit.Outcome.BROKEN
    True
    """

    outcome: Outcome
    name: str
    claim: Claim
    lower: float
    ceiling: float
    confidence: float
    runs: int
    runs_needed: float
    neighbors: tuple[str, str]
    neighbours: ClassVar = renamed_attribute("neighbours", "neighbors")
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
        finite = math.isfinite(self.runs_needed)
        needed = say("audit.runs_needed", runs=self.runs_needed) if finite else say("audit.no_number_of_runs")
        head = say(
            f"audit.verdict_{self.outcome.name.lower()}",
            name=self.name,
            outcome=self.outcome.describe().upper(),
            claim=self.claim.describe(),
            lower=self.lower,
            ceiling=self.ceiling,
            needed=needed,
            confidence=self.confidence,
            runs=self.runs,
        )
        return "\n".join([head, *([str(self.witness)] if self.witness else [])])

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
            "neighbors": list(self.neighbors),
            "witness": vars(self.witness).copy() if self.witness else None,
            "curve": [list(point) for point in self.curve],
        }

    def to_html(self) -> str:
        """One self-contained page with pictures."""
        return verdict_page([self])


def verdict_page(verdicts: Sequence[Verdict]) -> str:
    """A page for one or many verdicts: a summary, then the evidence of each with its picture."""
    one = say("audit.title_of_one", name=verdicts[0].name) if len(verdicts) == 1 else None
    title = one or say("audit.title_of_several", number=len(verdicts))
    heads = ("mechanism", "outcome", "claimed", "shown", "runs", "confidence")
    summary = table(
        [say(f"audit.head_{name}") for name in heads],
        [
            (v.name, v.outcome, v.claim.describe(), v.lower, v.runs, f"{v.confidence:.9g}")
            for v in sorted(verdicts, key=lambda v: v.outcome is not Outcome.BROKEN)
        ],
    )
    return page(title, summary + "".join(_evidence(verdict) for verdict in verdicts))


def _evidence(verdict: Verdict) -> str:
    lines = [f"<h2>{escape(verdict.name)}</h2>", f"<p>{escape(str(verdict).splitlines()[0])}</p>"]
    if verdict.curve:
        drawn = tradeoff(verdict.name, verdict.claim, verdict.curve, verdict.witness)
        lines.append(f"<figure>{drawn}<figcaption>{escape(say('audit.caption'))}</figcaption></figure>")
    if verdict.witness is not None:
        w = verdict.witness
        event = escape(translate(w.event, current_language()))
        lines.append(f"<p>{say('audit.event')}: <code>{event}</code></p>")
        lines.append(
            table(
                [say(f"audit.head_{name}") for name in ("data", "happened", "trials", "probability")],
                [
                    (w.likely, w.count, w.trials, w.probability),
                    (w.unlikely, w.count_against, w.trials_against, w.probability_against),
                ],
            )
        )
    return "\n".join(lines)
