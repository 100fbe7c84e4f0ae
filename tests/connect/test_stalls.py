"""No question waits for ever: DuckDB's optimiser comes back from every kind of statement."""

import subprocess
import sys

import pytest

PATIENCE = 1500  # seconds for all of them, which take a few together: enough for a machine that is ten times slower


def test_every_aggregate_by_two_keys_and_by_many_comes_back() -> None:
    """A covariance by two keys never did: its layers were written into each other beside the join of the keys."""
    with subprocess.Popen([sys.executable, "-m", "tests.connect.stalls"], stdout=subprocess.PIPE, text=True) as asked:
        try:
            said, _ = asked.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            asked.kill()
            said, _ = asked.communicate()
            pytest.fail(f"did not come back from: {said.splitlines()[-1]}")
    assert asked.returncode == 0, f"failed at: {said.splitlines()[-1]}"
    assert said.splitlines()[-1] == "done"
