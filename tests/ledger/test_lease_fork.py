"""A run from a lease belongs to the process that took the lease: a fork cannot release for the same charge."""

import os
from pathlib import Path

import pytest

import mosha


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_cannot_take_the_step_of_a_leased_run(tmp_path: Path) -> None:
    unit = mosha.Row()
    ledger = mosha.Ledger(tmp_path / "privacy.db")
    account = ledger.account("a", unit=unit, epsilon=1)
    event = mosha.events.Laplace(1)
    measurement = mosha.Measurement(unit=unit, event=event, step=lambda state, data, ask, rng: (len(data), state))
    lease = account.lease(event)
    run = lease.open(measurement)
    child = os.fork()
    if child == 0:
        try:
            run.step([1])
        except mosha.errors.RunClosed:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert run.step([1]).value == 1
