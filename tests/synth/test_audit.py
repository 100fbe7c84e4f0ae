"""The audit attacks what leaves, and finds the uncentred table where that is planted."""

from typing import Any

import numpy as np
import pytest

from mosha.audit.own.synth import own_entries
from mosha.mechanisms.residuals import residuals
from mosha.synth.measuring.selection import KeyNoise
from tests.chance import look_for_fault

ENTRIES = {entry.name: entry for entry in own_entries()}


@pytest.mark.parametrize("name", ENTRIES)
def test_the_attack_finds_no_more_than_was_claimed(name: Any) -> None:
    verdict = ENTRIES[name].attack(runs=600, confidence=1 - 1e-9)
    assert not verdict.broken, verdict


def test_an_uncentred_table_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: counts in place of residuals, with the noise of residuals. It shows a mu of about 1.27.

    What 8,000 runs show is 1.166 with a deviation of 0.045 (60 attacks; the least of them 1.036): one attack misses it
    less than once in a thousand times, three attacks less than once in 1e9.
    """
    honest = residuals.residual_of

    def uncentred(axes: Any, term: Any, counts: Any, factor: Any) -> Any:
        common = honest(axes, term, np.zeros_like(counts), factor)
        scale = factor
        for column, level in term:
            scale *= axes[column].levels[level - 1].common
        return common + np.asarray(counts, np.int64) * scale

    def keep(self: Any, axes: Any, factors: Any, noisy: Any) -> Any:
        return residuals.Measured(tuple(axes), dict(noisy), self._deviations(axes, factors))

    monkeypatch.setattr(residuals, "residual_of", uncentred)
    monkeypatch.setattr(residuals.ResidualNoise, "read", keep)
    assert look_for_fault(lambda: ENTRIES["synth: marginals"].attack(runs=8000, confidence=0.999)).broken


def test_a_value_of_one_row_that_is_shown_too_often_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: no threshold. The value is shown with probability 1/2 with its row, and never without it.

    A bound of 0.2 on that is missed where 300 runs show it in fewer than 0.3: seven standard deviations.
    """
    monkeypatch.setattr(KeyNoise, "threshold", 0)
    entry = ENTRIES["synth: synthetic table, values from the data"]
    assert look_for_fault(lambda: entry.attack(runs=600, confidence=0.999)).broken
