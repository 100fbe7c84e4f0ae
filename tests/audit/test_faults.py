"""Every planted fault is found, and no correct twin is flagged."""

from typing import Any

import pytest

from mosha.audit import Outcome, attack
from mosha.core.guarantee import Pure
from tests.audit.faults import FAULTS
from tests.chance import look_for_fault

RUNS = 60_000
# what tells these apart is rare: it is found always in 200,000 runs
MORE = {"sparse vector 3", "sparse vector 4", "sparse vector 6", "the data told once in a thousand"}
SURE = 1 - 1e-9  # false-alarm rate of each twin: 1e-9


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_planted_fault_is_found_and_its_witness_is_shown(fault: Any) -> None:
    runs = 200_000 if fault.name in MORE else RUNS
    how = {"neighbors": fault.neighbors, "claim": Pure(1), "batch": True}
    verdict = look_for_fault(lambda: attack(fault.faulty, runs=runs, **how))
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.lower > 1
    witness = verdict.witness
    assert witness.least == verdict.lower
    assert {witness.likely, witness.unlikely} == set(verdict.neighbors)
    assert witness.count / witness.trials > witness.count_against / witness.trials_against
    assert float(verdict.claim.least(witness.probability, witness.probability_against)) == verdict.lower


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_the_correct_twin_of_a_fault_is_not_flagged(fault: Any) -> None:
    verdict = attack(fault.correct, neighbors=fault.neighbors, claim=Pure(1), runs=RUNS, batch=True, confidence=SURE)
    assert verdict.outcome is Outcome.CONSISTENT
