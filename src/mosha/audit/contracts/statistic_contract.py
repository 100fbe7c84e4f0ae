"""The contract of a statistic: one unit moves it by no more than it says, in every norm.

With the noise taken away (the same for both neighbors) what remains of a mechanism is its statistic: this is
sensitivity under common random numbers, for all mechanisms at once that are built on the statistic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mosha.audit.claims.neighbors import Proposal
from mosha.audit.contracts.contract import Check, Contract
from mosha.core.errors import InvalidParameter
from mosha.core.names.calls import renamed_argument
from mosha.core.unit import Unit

__all__ = ["statistic_contract"]


@renamed_argument(neighbours="neighbors")
def statistic_contract(
    statistic: Any, *, unit: Unit, neighbors: Sequence[Proposal | tuple[object, object]]
) -> Contract:
    """Check a statistic on pairs of neighbors: each norm of its movement against its derived sensitivity.

    Guarantee:
        Exact: whole numbers are compared, so a clause that is called broken is broken.

    Args:
        statistic: anything with `evaluate(data, unit)` and `sensitivity(unit)`, see `mosha.mechanisms`.
        unit: whose presence is hidden.
        neighbors: pairs of data sets that differ in one unit.

    >>> from mosha import Row, mechanisms
    >>> print(statistic_contract(mechanisms.Count(), unit=Row(), neighbors=[([], [1])]).kept)
    True
    """
    pairs = [item.pair if isinstance(item, Proposal) else item for item in neighbors]
    if not pairs:
        raise InvalidParameter("audit.contract_without_pairs", parameter="neighbors")
    allowed = statistic.sensitivity(unit)
    moves = [_evaluate(statistic, one, unit) - _evaluate(statistic, two, unit) for one, two in pairs]
    seen = {
        "l0": max(int(np.count_nonzero(move)) for move in moves),
        "l1": max(int(np.abs(move).sum()) for move in moves),
        "l2": max(float(np.sqrt(float((move * move).sum()))) for move in moves),
        "linf": max(int(np.abs(move).max(initial=0)) for move in moves),
        "span": max(int(max(0, move.max(initial=0)) - min(0, move.min(initial=0))) for move in moves),
    }
    checks = [
        Check(
            f"{norm} at most what is derived",
            found <= getattr(allowed, norm) * (1 + 1e-12),
            _compare(norm, found, allowed),
        )
        for norm, found in seen.items()
    ]
    if allowed.monotone:
        mixed = any((move > 0).any() and (move < 0).any() for move in moves)
        checks.append(Check("all coordinates move one way", not mixed, "signs of the movements"))
    return Contract(type(statistic).__name__, tuple(checks), 0.0)


def _evaluate(statistic: Any, data: object, unit: Unit) -> Any:
    """Python's whole numbers, which cannot overflow."""
    return np.array([int(value) for value in np.asarray(statistic.evaluate(data, unit)).ravel()], dtype=object)


def _compare(norm: str, found: float, allowed: object) -> str:
    return f"{found:.6g} seen, {getattr(allowed, norm):.6g} allowed (steps of the grid)"
