"""Audits that ride along with a real training in PyTorch."""

from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha.audit import Canaries, TrainingContract
from mosha.core.errors import InvalidParameter

torch = pytest.importorskip("torch", reason="the extra 'learning' is not installed")
torch.set_num_threads(1)
LOSS = torch.nn.CrossEntropyLoss(reduction="none")
WIDTH, CANARIES = 600, 400


def loud() -> tuple[Any, ...]:
    """Each canary has a direction of its own, so that one step that is not private tells it."""
    return torch.eye(WIDTH)[:CANARIES] * 4, torch.zeros(CANARIES, dtype=torch.int64)


def crowd() -> tuple[Any, ...]:
    return torch.randn(200, WIDTH) * 0.01, torch.ones(200, dtype=torch.int64)


def trained(tmp_path: Path, plan: Any, audit: Any, dataset: Any) -> None:
    example = mosha.Example()
    account = mosha.Ledger(tmp_path / "privacy.db").account("training", unit=example, epsilon=10_000, delta=1e-2)
    model = torch.nn.Linear(WIDTH, 2)
    torch.nn.init.zeros_(model.weight)  # all canaries begin alike: what tells them apart is what was learned
    with plan.train(
        model, dataset, LOSS, torch.optim.SGD(model.parameters(), lr=1.0), account=account, audit=audit
    ) as training:
        for _ in training:
            pass


def plan(noise: Any) -> Any:
    return mosha.learning.DPSGD(steps=4, rate=0.5, clip=1.0, noise_multiplier=noise, batch=200)


def test_canaries_of_a_private_training_are_not_found(tmp_path: Path) -> None:
    """False-alarm rate 1e-9."""
    canaries = Canaries(*loud(), confidence=1 - 1e-9)
    trained(tmp_path, plan(4.0), canaries, canaries.mixed_into(crowd()))
    assert not canaries.result.broken, str(canaries.result)


def test_canaries_of_a_training_with_next_to_no_noise_are_found(tmp_path: Path) -> None:
    """What leaks shows, and a price with two hundred times the noise would be called broken.

    Of the 100 guessed out about 6 were in and never drawn (4 coins); more than 40 wrong guesses: below 1e-12.
    """
    canaries = Canaries(*loud(), confidence=1 - 1e-9)
    trained(tmp_path, plan(0.02), canaries, canaries.mixed_into(crowd()))
    guesses = canaries.result.guesses
    assert guesses.correct >= 0.8 * guesses.made
    assert canaries.result.lower > 0.1
    honest = mosha.audit.claim_of(mosha.guarantees.Gaussian(canaries.result.lower / 2))
    assert mosha.audit.attacks.canary.chance_of_guesses(guesses, honest, alpha=1e-9)


def test_a_contract_is_checked_before_the_first_step(tmp_path: Path) -> None:
    contract = TrainingContract(population=100, updates=12)
    trained(tmp_path, plan(1.0), contract, crowd())
    assert contract.contract.kept, str(contract.contract)


@pytest.mark.parametrize("looked_at", [1 << 16, 240])
def test_a_trainer_that_adds_too_little_noise_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looked_at: Any
) -> None:
    from fractions import Fraction

    from mosha.audit.contracts import training_hooks
    from mosha.learning import noisy_gradients

    monkeypatch.setattr(training_hooks, "LOOKED_AT", looked_at)  # as in a model with many more coordinates
    for name in ("add_discrete_gaussian", "scaled_discrete_gaussian"):  # a step of several batches, or of one
        plain = getattr(noisy_gradients, name)
        less = lambda values, sigma, *more, plain=plain, **rest: plain(values, sigma * Fraction(9, 10), *more, **rest)
        monkeypatch.setattr(noisy_gradients, name, less)
    contract = TrainingContract(population=100)
    with pytest.raises(InvalidParameter, match="breaks its contract"):
        trained(tmp_path, plan(1.0), contract, crowd())
    assert any("noise law" in clause for clause in contract.contract.broken)


def test_what_cannot_be_audited_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter):
        Canaries(torch.zeros(3, 2), torch.zeros(2))
    shuffled = mosha.learning.DPSGD(steps=2, rate=0.5, clip=1.0, noise_multiplier=1.0, sampling="shuffled", batch=100)
    with pytest.raises(InvalidParameter, match="Poisson"):
        trained(tmp_path, shuffled, TrainingContract(), crowd())
