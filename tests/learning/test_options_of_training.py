"""Epochs, views, averages, closures and what a checkpoint keeps besides: options that change no price."""

import copy
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import mosha
from mosha import learning
from mosha.core.errors import DataError, InvalidParameter, RunClosed
from mosha.learning.batches import Sampler
from mosha.learning.gradients.engine import Engine
from mosha.learning.noisy_gradients import Gradients
from mosha.learning.reading.examples import Examples
from mosha.learning.training import make_losses
from mosha.noise import secure

torch.set_num_threads(1)
LOSS = nn.CrossEntropyLoss(reduction="none")
PLAN = learning.DPSGD(steps=6, rate=0.5, clip=1.0, batch=20, physical=64, noise_multiplier=20.0, delta=1e-6)
INPUTS = torch.randn(40, 4)
DATA = INPUTS, (INPUTS[:, 0] > 0).long()


@pytest.fixture
def account() -> Any:
    return mosha.Ledger.memory().account("t", unit=mosha.Example(), epsilon=100, delta=1e-5, rule="pure")


def begun(account: Any, plan: Any = PLAN, model: Any = None, **options: Any) -> Any:
    model = nn.Linear(4, 2) if model is None else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    return plan.train(model, DATA, LOSS, optimizer, account=account, **options)


def test_epochs_are_steps_over_the_rate() -> None:
    plan = learning.DPSGD(epochs=3, rate=0.05, clip=1.0)
    assert plan.steps == 60
    assert plan == learning.DPSGD(steps=60, rate=0.05, clip=1.0)
    assert dataclasses.replace(plan, steps=7).steps == 7
    assert learning.DPFTRL(epochs=2, rate=0.1, clip=1.0, bands=4).steps == 20
    assert learning.DPSGD(epochs=2, sampling=learning.Shuffled(8), clip=1.0).steps == 16
    for wrong in ({}, {"steps": 5, "epochs": 2}, {"epochs": 0}, {"epochs": float("nan")}):
        with pytest.raises(InvalidParameter):
            learning.DPSGD(rate=0.05, clip=1.0, **wrong)


def test_gradients_of_views_are_averaged_before_they_are_clipped() -> None:
    """Against a loop over examples: the mean of the gradients of its views, clipped as one."""
    plan = dataclasses.replace(PLAN, rate=1.0, views=3, clip=0.5)
    model = nn.Linear(4, 2)
    engine, places = Engine(model), torch.arange(64)

    def augment(values: Any) -> Any:
        return values * (1 + 0.5 * (places[: len(values)] % 3))[:, None]  # views of an example stand side by side

    gradients = Gradients(plan, engine, make_losses(LOSS, augment=augment))
    examples = Examples(DATA)
    total, _ = gradients.sum_batch(gradients.first(), (examples, Sampler(plan, 40)), secure())
    engine.detach()
    wanted = torch.zeros(10)
    for x, y in zip(*DATA, strict=True):
        views = torch.stack([x, 1.5 * x, 2 * x])
        loss = LOSS(model(views), y.expand(3)).mean()
        gradient = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])
        wanted += gradient / gradient.norm().clamp_min(0.5)
    found = total / (gradients.grid.target * 2.0**gradients.grid.bits)
    assert np.allclose(found, wanted.numpy(), atol=1e-4)


def test_a_unit_with_views_moves_the_sum_by_one_contribution_at_most() -> None:
    far = torch.tensor([[1e6, 0.0, 0.0, 0.0]])
    plan = dataclasses.replace(PLAN, rate=1.0, views=4)
    model = nn.Linear(4, 2)
    gradients = Gradients(plan, Engine(model), make_losses(LOSS, augment=lambda v: v * (0.1 + torch.rand(len(v), 1))))
    more = torch.cat([INPUTS * 1e-9, far]), torch.cat([DATA[1], model(far).argmin(dim=1)])
    sums = []
    for some in (more, (INPUTS * 1e-9, DATA[1])):
        examples = Examples(some)
        sums.append(gradients.sum_batch(gradients.first(), (examples, Sampler(plan, examples.units)), secure())[0])
    moved = float(np.linalg.norm((sums[0] - sums[1]).astype(float))) / 2.0**gradients.grid.bits
    assert 0.9 < moved <= 1


def test_views_train_and_an_augmentation_that_mixes_rows_is_refused(account: Any) -> None:
    plan = dataclasses.replace(PLAN, views=4)
    steps = list(begun(account, plan, augment=lambda v: v + 0.1 * torch.randn_like(v)))
    assert len(steps) == 6
    spent = account.spent
    for mixes in (
        lambda v: v[torch.randperm(len(v))],
        lambda v: v - v.mean(dim=0),
        lambda v: 0.9 * v + 0.1 * v.flip(0),
    ):
        with pytest.raises(DataError, match="examples"):
            begun(account, plan, augment=mixes)
    assert account.spent == spent


def test_augmentations_take_and_give_what_the_model_takes(account: Any) -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, left: Any, right: Any) -> Any:
            return self.layer(left + right)

    model, rows = Two(), {"left": INPUTS, "right": INPUTS, "labels": DATA[1]}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for augment in (
        lambda left, right: {"left": left + torch.randn_like(left), "right": right},
        lambda left, right: {"right": left, "left": right},
    ):
        training = PLAN.train(model, rows, LOSS, optimizer, account=account, augment=augment)
        assert training.step().number == 1
        training.close()


def test_an_average_follows_the_parameters_and_is_another_model(account: Any) -> None:
    training = begun(account, dataclasses.replace(PLAN, average=0.5))
    parameters = [copy.deepcopy(training.model.state_dict())]
    parameters += [copy.deepcopy(training.model.state_dict()) for _ in training]
    wanted = parameters[0]["weight"]
    for t, now in enumerate(parameters[1:]):
        past = min(0.5, (1 + t) / (10 + t))
        wanted = past * wanted + (1 - past) * now["weight"]
    averaged = training.averaged_model()
    assert torch.allclose(averaged.weight, wanted, atol=1e-6)
    assert not torch.equal(averaged.weight, training.model.weight)
    assert averaged(INPUTS).shape == (40, 2)
    with pytest.raises(InvalidParameter, match="average"):
        begun(account).averaged_model()


def test_a_checkpoint_keeps_averages_schedulers_and_what_else_has_a_state(tmp_path: Path) -> None:
    plan = dataclasses.replace(PLAN, average=0.9)

    def begin(names: Any = ("scheduler", "ema")) -> tuple[Any, ...]:
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        ema = torch.optim.swa_utils.AveragedModel(model, use_buffers=True)
        also = {name: {"scheduler": scheduler, "ema": ema}[name] for name in names}
        account = mosha.Ledger(str(tmp_path / "p.db")).account(
            "t", unit=mosha.Example(), epsilon=100, delta=1e-5, rule="pure"
        )
        keep = {"path": tmp_path / "model.pt", "every": 1, "also": also}
        return plan.train(model, DATA, LOSS, optimizer, account=account, key="k", checkpoint=keep), scheduler, ema

    training, scheduler, ema = begin()
    for _ in range(3):
        training.step()
        scheduler.step()
        ema.update_parameters(training.model)
    training.step()  # written with three steps of the scheduler
    average = training.averaged_model().weight
    training._gradients.engine.detach()  # the process is gone
    again, restored, other = begin()
    assert (restored.last_epoch, restored.get_last_lr()) == (3, scheduler.get_last_lr())
    assert torch.equal(other.module.weight, ema.module.weight)
    assert torch.equal(again.averaged_model().weight, average)
    assert len(list(again)) == 2
    with pytest.raises(InvalidParameter, match="scheduler"):
        begin(("ema",))
    with pytest.raises(InvalidParameter, match="state_dict"):
        begun(mosha.Ledger.memory().account("t", unit=mosha.Example(), epsilon=9, delta=1e-5), key="k",
              checkpoint={"path": tmp_path / "x.pt", "also": {"rate": 0.5}})  # fmt: skip


def test_a_closure_is_called_once_a_piece_and_trains_as_a_loop_does(account: Any) -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    plan = dataclasses.replace(PLAN, physical=8)
    loader = DataLoader(TensorDataset(*DATA), batch_size=8)
    model, optimizer, loader = learning.private(model, optimizer, loader, plan=plan, account=account)  # type: ignore[assignment]
    before, calls = model.weight.detach().clone(), []
    with pytest.raises(RunClosed):
        optimizer.step(lambda: 0.0)  # no batch yet
    while loader.taken < plan.steps:  # type: ignore[attr-defined]
        for inputs, targets in loader:

            def closure(inputs: Any = inputs, targets: Any = targets) -> Any:
                optimizer.zero_grad()
                loss = LOSS(model(inputs), targets).mean()
                loss.backward()
                calls.append(len(inputs))
                return loss

            with torch.no_grad():
                assert optimizer.step(closure) is not None
    assert optimizer.run.remaining == 0  # type: ignore[attr-defined]
    assert len(calls) > plan.steps
    assert not torch.equal(model.weight, before)


def test_a_loop_of_ones_own_refuses_views_and_averages(account: Any) -> None:
    model = nn.Linear(4, 2)
    loader = DataLoader(TensorDataset(*DATA), batch_size=8)
    for change in ({"views": 2}, {"average": 0.9}):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        with pytest.raises(InvalidParameter, match="train"):
            learning.private(model, optimizer, loader, plan=dataclasses.replace(PLAN, **change), account=account)
