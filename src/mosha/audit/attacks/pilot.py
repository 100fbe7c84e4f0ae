"""Which neighbors to attack: try every proposal a little, then the most telling one in earnest."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from mosha.audit.attacks.black_box import LEAST_RUNS, attack
from mosha.audit.claims.claim import Claim
from mosha.audit.claims.neighbors import Proposal
from mosha.audit.claims.priced import claim_of
from mosha.audit.reporting.verdict import Verdict
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.guarantee import Guarantee
from mosha.core.measurement import Measurement
from mosha.core.number import positive

__all__ = ["affordable", "search"]


def search(
    target: Measurement | Callable[..., Any],
    proposals: Sequence[Proposal],
    *,
    claim: Claim | Guarantee | Event | None = None,
    confidence: float = 0.999,
    runs: int = 200_000,
    pilot: int | None = None,
    **how: Any,
) -> Verdict:
    """Attack the proposal that a small pilot attack found most telling.

    Guarantee:
        That of `attack`: the pilots only choose the pair, and the verdict rests on runs made after the choice.

    Args:
        target: as for `attack`.
        proposals: pairs of neighbors, see `mosha.audit.neighbors`.
        claim: as for `attack`.
        confidence: as for `attack`.
        runs: runs a world of the attack in earnest.
        pilot: runs a world for each pilot; a twentieth of `runs` by default.
        **how: further arguments of `attack`.

    >>> from mosha.core.guarantee import Pure
    >>> pairs = [Proposal("nobody", 0, 0), Proposal("somebody", 0, 1)]
    >>> search(lambda data: data, pairs, claim=Pure(1), runs=1000).neighbors
    ('0', '1')
    """
    if not proposals:
        raise InvalidParameter("audit.no_proposals", parameter="proposals")
    if claim is None and isinstance(target, Measurement):
        claim = target.event
    if claim is not None:
        claim = claim_of(claim, delta=how.pop("delta", None))
    best = proposals[0]
    if len(proposals) > 1:
        small = max(LEAST_RUNS, runs // 20) if pilot is None else pilot
        pilots = [attack(target, neighbors=p.pair, claim=claim, confidence=0.5, runs=small, **how) for p in proposals]
        best = proposals[max(range(len(pilots)), key=lambda i: pilots[i].lower)]
    return attack(target, neighbors=best.pair, claim=claim, confidence=confidence, runs=runs, **how)


def affordable(
    target: Measurement | Callable[..., Any], proposals: Sequence[Proposal], *, runs: int, seconds: float, **how: Any
) -> int:
    """How many runs, at most `runs`, a search makes in about so many seconds of CPU, with answers thrown away.

    CPU time, and not the clock: on a busy machine an attack would get fewer runs and less power, and nobody would know.
    The first attack warms up, the second is timed. What it saw is forgotten, so a verdict that follows is as valid as
    with any other number of runs.
    """
    limit = positive("seconds", seconds)
    for _ in range(2):
        before = time.process_time()
        attack(target, neighbors=proposals[0].pair, confidence=0.5, runs=LEAST_RUNS, **how)
        spent = max(time.process_time() - before, 1e-6)
    pilots = len(proposals) if len(proposals) > 1 else 0
    earnest = (limit / spent * LEAST_RUNS) / (1 + pilots / 20)
    return max(LEAST_RUNS, min(runs, int(earnest)))
