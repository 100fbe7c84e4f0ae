"""Every plan is attacked on its worst neighbors; a planted fault of the kind is found."""

from typing import Any

import numpy as np
import pytest

from mosha.audit.own.federated import own_entries
from mosha.federated import Analytics, DistributedExamples, ServerSide
from tests.chance import look_for_fault

RUNS = 2000
ENTRIES = {entry.name: entry for entry in own_entries()}


@pytest.mark.parametrize("name", ENTRIES)
def test_no_attack_finds_more_than_was_claimed(name: Any) -> None:
    """A correct plan is called broken with probability 1e-9 at most."""
    verdict = ENTRIES[name].attack(runs=RUNS, confidence=1 - 1e-9)
    assert not verdict.broken


def test_clipping_after_summing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault of summing first: one client moves the sum without limit. The attack must see it."""

    def unclipped(updates: Any, norms: Any, clip: Any, shares: Any = None) -> Any:
        return (np.minimum(updates, 50.0) * 2**20).astype(np.int64)

    monkeypatch.setattr("mosha.federated.plans.server_side.scaled_steps", unclipped)
    assert look_for_fault(lambda: ENTRIES["ServerSide: everybody"].attack(runs=RUNS, confidence=1 - 1e-6)).broken


def test_noise_for_half_the_clip_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise with the wrong norm, as an adaptive clip that noises with the next clip has it, but more so."""
    honest = ServerSide._sigma
    monkeypatch.setattr(ServerSide, "_sigma", lambda self, noise: honest(self, noise) / 4)
    assert look_for_fault(lambda: ENTRIES["ServerSide: everybody"].attack(runs=RUNS, confidence=1 - 1e-6)).broken


def test_shares_of_a_sixteenth_of_the_noise_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that add too small a share, as if far more took part; the sums are then never alike."""
    honest = Analytics._share.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(Analytics, "_share", property(lambda self: honest(self) / 16))
    assert look_for_fault(lambda: ENTRIES["Analytics: histogram"].attack(runs=RUNS, confidence=1 - 1e-6)).broken


def test_silos_that_add_too_small_a_share_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = DistributedExamples._share
    monkeypatch.setattr(DistributedExamples, "_share", lambda self, width: honest(self, width) / 4)
    entry = ENTRIES["DistributedExamples: one silo"]
    assert look_for_fault(lambda: entry.attack(runs=RUNS // 2, confidence=1 - 1e-6)).broken
