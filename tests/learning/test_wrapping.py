"""The wrapping that users of Opacus know, optimisers, and what importing costs."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import mosha
from mosha import learning
from mosha.core.errors import HorizonExceeded, InvalidParameter, RunClosed

torch.set_num_threads(1)


@pytest.fixture
def account(tmp_path: Path) -> Any:
    ledger = mosha.Ledger(str(tmp_path / "privacy.db"))
    return ledger.account("test", unit=mosha.Example(), epsilon=1, delta=1e-5, rule="pure")


def parts(rows: int = 120) -> tuple[Any, ...]:
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    inputs = torch.randn(rows, 4)
    loader = DataLoader(TensorDataset(inputs, (inputs[:, 0] > 0).long()), batch_size=8)
    return model, torch.optim.SGD(model.parameters(), lr=0.5), loader


@pytest.mark.parametrize("rate", [0.3, 0.01])
def test_a_loop_as_opacus_has_it_pays_for_every_batch_and_ends_with_the_plan(rate: float, account: Any) -> None:
    plan = learning.DPSGD(steps=9, rate=rate, clip=1.0, batch=30, physical=16).calibrate(epsilon=1, delta=1e-5)
    model, optimizer, loader = learning.private(*parts(), plan=plan, account=account)
    before = model[0].weight.clone()  # type: ignore[index]
    criterion = nn.CrossEntropyLoss()
    while loader.taken < plan.steps:
        for inputs, targets in loader:
            assert len(inputs) <= 16
            criterion(model(inputs), targets).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert optimizer.run.remaining == 0
    assert account.spent <= 1
    assert not torch.equal(before, model[0].weight)  # type: ignore[index]
    assert list(loader) == []
    with pytest.raises(HorizonExceeded):
        optimizer.finish()


def test_a_mean_over_the_batch_is_undone_before_clipping(account: Any) -> None:
    """The sum of what was clipped is the same whether the loss takes the mean or the sum."""
    plan = learning.DPSGD(steps=2, rate=0.3, clip=0.5, noise_multiplier=30.0, physical=64, delta=1e-6)
    found = []
    torch.manual_seed(1)
    model, optimizer, loader = parts()
    for reduction in ("mean", "sum"):
        engine = learning.private(model, optimizer, loader, plan=plan, account=account, reduction=reduction)[1]
        inputs, targets = next(iter(loader))
        engine.begin(np.ones(len(inputs), np.bool_))
        engine.last_piece = False
        nn.CrossEntropyLoss(reduction=reduction)(model(inputs), targets).backward()
        engine.step()
        found.append(engine._sums.finish().clone())
        engine._gradients.engine.detach()
    assert float((found[0] - found[1]).abs().max()) <= 2.0**4  # steps of 2**-17
    assert float(found[0].abs().max()) > 2.0**12


def test_the_loop_cannot_skip_or_repeat_a_step(account: Any) -> None:
    plan = learning.DPSGD(steps=4, rate=0.9, clip=1.0).calibrate(epsilon=1, delta=1e-5)
    _, optimizer, loader = learning.private(*parts(60), plan=plan, account=account)
    with pytest.raises(RunClosed, match="next one"):
        optimizer.step()
    with pytest.raises(RunClosed, match="not called"):
        for _ in loader:
            pass


def test_what_does_not_fit_is_refused_and_nothing_is_spent(account: Any) -> None:
    plan = learning.DPSGD(steps=4, rate=0.5, clip=1.0).calibrate(epsilon=1, delta=1e-5)
    model, optimizer, loader = parts()
    for wrong in (
        {"reduction": "none"},
        {"plan": learning.DPFTRL(steps=4, rate=0.2, clip=1.0, noise_multiplier=1.0)},
    ):
        with pytest.raises(InvalidParameter):
            learning.private(model, optimizer, loader, **({"plan": plan, "account": account} | wrong))
    with pytest.raises(InvalidParameter):
        learning.private(model, optimizer, [1, 2], plan=plan, account=account)
    with pytest.raises(InvalidParameter):
        learning.private(model, parts()[1], loader, plan=plan, account=account)
    assert account.spent == 0


def test_adam_takes_the_variance_of_the_noise_out_of_the_second_moment() -> None:
    plan = learning.DPSGD(steps=1, rate=0.1, clip=1.0, noise_multiplier=1.0, batch=10)
    signal, scale = 0.02, plan.noise_deviation
    weights = [nn.Parameter(torch.zeros(20_000)) for _ in range(2)]
    ours = learning.Adam([weights[0]], plan=plan, lr=0.001, betas=(0.9, 0.999), floor=0.01)
    usual = torch.optim.Adam([weights[1]], lr=0.001)
    for _ in range(60):
        gradient = signal + scale * torch.randn(20_000)
        for weight, optimizer in zip(weights, (ours, usual), strict=True):
            weight.grad = gradient.clone()
            optimizer.step()
    moved = [-float(weight.detach().mean()) for weight in weights]
    assert moved[0] > 1.2 * moved[1] > 0
    with pytest.raises(InvalidParameter):
        ours.step(lambda: 0.0)
    with pytest.raises(InvalidParameter):
        learning.AdamW(weights, plan=plan, lr=0)


def test_adamw_shrinks_weights() -> None:
    plan = learning.DPSGD(steps=1, rate=0.1, clip=1.0, noise_multiplier=1.0, batch=10)
    weight = nn.Parameter(torch.ones(1))
    optimizer = learning.AdamW([weight], plan=plan, lr=0.1, weight_decay=0.5)
    weight.grad = torch.zeros(1)
    optimizer.step()
    assert float(weight.detach()) == pytest.approx(0.95)


def test_batch_norms_are_replaced() -> None:
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.InstanceNorm2d(6, track_running_stats=True))
    assert set(learning.mixing_layers(model)) == {"1", "2"}
    assert learning.mixing_layers(learning.without_batch_norm(model)) == {}
    assert set(learning.mixing_layers(model)) == {"1", "2"}


def test_a_plan_needs_no_torch() -> None:
    script = (
        "import sys, mosha\n"
        "plan = mosha.learning.DPSGD(steps=10, rate=0.1, clip=1.0).calibrate(epsilon=1, delta=1e-5)\n"
        "assert plan.epsilon() <= 1\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_a_wrapped_model_is_given_back_and_can_be_wrapped_again(account: Any) -> None:
    plan = learning.DPSGD(steps=3, rate=0.3, clip=1.0, batch=30).calibrate(epsilon=0.4, delta=1e-6)
    model, optimizer, loader = parts()
    for _ in range(2):
        wrapped = learning.private(model, optimizer, loader, plan=plan, account=account)[1]
        wrapped.close()
        assert "forward" not in vars(model[0])
        torch.optim.lr_scheduler.StepLR(wrapped.optimizer, 1)
