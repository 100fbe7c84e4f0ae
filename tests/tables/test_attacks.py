"""Every kind of question is attacked where it is weakest; a fault that is planted in one is found.

False alarm: each attack calls a mechanism that keeps its claim broken with probability at most 1e-10.
"""

from dataclasses import replace

import pytest

from mosha.audit.attacks.pilot import search
from mosha.audit.own.tables import BETWEEN, CROWD, TWO, own_entries, rows_of, show_numbers
from mosha.tables import Budget, protect
from mosha.tables.parts.bounds import Limits

ENTRIES = own_entries()
CONFIDENCE = 1 - 1e-10


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.name for entry in ENTRIES])
def test_no_more_is_found_than_was_claimed(entry):
    few = replace(entry, proposals=entry.proposals[1:3])  # `mosha audit all` tries every pair, and more often
    assert not few.attack(runs=200, confidence=CONFIDENCE).broken


def attacked(monkeypatch, ask, change):
    """The verdict on a question whose reach is half of what one person moves."""
    whole = Limits.reach
    monkeypatch.setattr(Limits, "reach", lambda *a, **k: [max(1, change(r)) for r in whole(*a, **k)])
    measurement = ask(protect(rows_of(CROWD), unit=TWO)).measurement(Budget(epsilon=1)).map(show_numbers)
    pairs = next(entry.proposals[2:3] for entry in ENTRIES if entry.name == "tables: sum")
    return search(measurement, pairs, runs=1500, confidence=CONFIDENCE)


@pytest.mark.parametrize(
    "ask",
    [lambda t: t.count(), lambda t: t.sum("x", between=BETWEEN), lambda t: t.group_by("g", keys=["a", "b"]).count()],
    ids=["count", "sum", "by group"],
)
def test_a_reach_that_is_too_short_is_found(monkeypatch, ask):
    # At a fifth of the reach the loss is 5. Missing it: the best event has probabilities 0.5 and 0.997, and a bound on
    # their ratio from 1000 runs in each world fails to pass e^1 with probability far below 1e-10.
    assert attacked(monkeypatch, ask, lambda r: r // 5).broken


def test_the_whole_reach_passes_the_same_attack(monkeypatch):
    assert not attacked(monkeypatch, lambda t: t.sum("x", between=BETWEEN), lambda r: r).broken
