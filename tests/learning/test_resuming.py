"""A crash costs nothing twice: the payment is found again, and no step is drawn twice."""

import copy

import pytest
import torch
from torch import nn

import mosha
from mosha.core.errors import InvalidParameter, RunClosed
from mosha.learning.plan import DPFTRL, DPSGD

torch.set_num_threads(1)
LOSS = nn.CrossEntropyLoss(reduction="none")
PLAN = DPSGD(steps=8, rate=0.2, clip=1.0, batch=20).calibrate(epsilon=1, delta=1e-5)
BANDED = DPFTRL(steps=8, rate=0.2, clip=1.0, batch=20, bands=2).calibrate(epsilon=1, delta=1e-5)


def begun(plan, account, path, every=1, model=None):
    model = model or nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    inputs = torch.randn(100, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    how = {"account": account, "key": "run", "checkpoint": {"path": path, "every": every}}
    return plan.train(model, (inputs, (inputs[:, 0] > 0).long()), LOSS, optimizer, **how)


def opened(place):
    ledger = mosha.Ledger(str(place / "privacy.db"))
    return ledger.account("test", unit=mosha.Example(), epsilon=1, delta=1e-5, rule="pure")


@pytest.mark.parametrize("plan", [PLAN, BANDED], ids=["independent", "correlated"])
def test_a_training_goes_on_after_a_crash_and_is_paid_once(plan, tmp_path):
    training = begun(plan, opened(tmp_path), tmp_path / "model.pt")
    for _ in range(3):
        training.step()
    learned = copy.deepcopy(training.model.state_dict())
    momentum = copy.deepcopy(training.optimizer.state_dict()["state"])
    training._gradients.engine.detach()  # the process is gone; nothing was closed
    account = opened(tmp_path)
    again = begun(plan, account, tmp_path / "model.pt")
    assert again.number == 3
    assert all(torch.equal(learned[k], v) for k, v in again.model.state_dict().items())
    for key, state in again.optimizer.state_dict()["state"].items():
        assert torch.equal(state["momentum_buffer"], momentum[key]["momentum_buffer"])
    steps = list(again)
    again.close()
    assert [step.number for step in steps] == [4, 5, 6, 7, 8]
    assert all(step.skipped is None for step in steps)
    assert account.spent <= 1


def test_steps_released_after_the_checkpoint_are_lost_and_not_drawn_again(tmp_path):
    training = begun(PLAN, opened(tmp_path), tmp_path / "model.pt", every=2)
    for _ in range(3):
        training.step()
    training._gradients.engine.detach()
    again = begun(PLAN, opened(tmp_path), tmp_path / "model.pt", every=2)
    assert again.number == 2
    steps = list(again)
    again.close()
    assert [step.number for step in steps if step.skipped] == [3]
    assert "not drawn twice" in steps[0].skipped


def test_correlated_noise_cannot_go_on_without_its_last_state(tmp_path):
    training = begun(BANDED, opened(tmp_path), tmp_path / "model.pt", every=2)
    for _ in range(3):
        training.step()
    training._gradients.engine.detach()
    again = begun(BANDED, opened(tmp_path), tmp_path / "model.pt", every=2)
    with pytest.raises(RunClosed, match="every=1"):
        list(again)
    again.close()


def test_a_checkpoint_of_another_plan_is_refused(tmp_path):
    training = begun(PLAN, opened(tmp_path), tmp_path / "model.pt")
    training.step()
    training.close()
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(InvalidParameter, match="another"):
        begun(
            DPSGD(steps=4, rate=0.2, clip=1.0, noise_multiplier=90.0, delta=1e-6), opened(other), tmp_path / "model.pt"
        )
