"""A crash costs nothing twice: the payment is found again, and no step is drawn twice."""

import copy
import os
import pickle
import secrets
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from torch import nn

import mosha
from mosha.core.errors import HorizonExceeded, InvalidParameter, RunClosed, StateRefused, StepFailed
from mosha.learning.batches import Sampler
from mosha.learning.correlated_plan import DPFTRL
from mosha.learning.plan import DPSGD

torch.set_num_threads(1)
LOSS = nn.CrossEntropyLoss(reduction="none")
PLAN = DPSGD(steps=8, rate=0.2, clip=1.0, batch=20).calibrate(epsilon=1, delta=1e-5)
BANDED = DPFTRL(steps=8, rate=0.2, clip=1.0, batch=20, bands=2).calibrate(epsilon=1, delta=1e-5)
BUFFERED = DPFTRL(steps=8, rate=0.2, clip=1.0, batch=20, buffers=2).calibrate(epsilon=1, delta=1e-5)


def begun(plan: Any, account: Any, path: Any, every: Any = 1, key: str = "run") -> Any:
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    inputs = torch.randn(100, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    how = {"account": account, "key": key, "checkpoint": {"path": path, "every": every}}
    return plan.train(model, (inputs, (inputs[:, 0] > 0).long()), LOSS, optimizer, **how)


def opened(place: Any, epsilon: Any = 1) -> Any:
    ledger = mosha.Ledger(str(place / "privacy.db"))
    return ledger.account("test", unit=mosha.Example(), epsilon=epsilon, delta=1e-4, rule="pure")


@pytest.mark.parametrize("plan", [PLAN, BANDED, BUFFERED], ids=["independent", "correlated", "buffered"])
def test_a_training_goes_on_after_a_crash_and_is_paid_once(plan: Any, tmp_path: Path) -> None:
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


def test_steps_released_after_the_checkpoint_are_lost_and_not_drawn_again(tmp_path: Path) -> None:
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


def test_correlated_noise_cannot_go_on_without_its_last_state(tmp_path: Path) -> None:
    training = begun(BANDED, opened(tmp_path), tmp_path / "model.pt", every=2)
    for _ in range(3):
        training.step()
    training._gradients.engine.detach()
    again = begun(BANDED, opened(tmp_path), tmp_path / "model.pt", every=2)
    with pytest.raises(RunClosed, match="every=1"):
        list(again)
    again.close()


def test_a_checkpoint_of_another_plan_is_refused(tmp_path: Path) -> None:
    training = begun(PLAN, opened(tmp_path), tmp_path / "model.pt")
    training.step()
    training.close()
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(InvalidParameter, match="another"):
        begun(
            DPSGD(steps=4, rate=0.2, clip=1.0, noise_multiplier=90.0, delta=1e-6), opened(other), tmp_path / "model.pt"
        )


def test_a_checkpoint_of_another_key_is_refused_before_anything_is_paid(tmp_path: Path) -> None:
    account = opened(tmp_path, epsilon=2)
    with begun(PLAN, account, tmp_path / "model.pt", key="first try") as training:
        list(training)
    spent = account.spent
    with pytest.raises(InvalidParameter, match=r"another key.*Nothing was spent"):
        begun(PLAN, account, tmp_path / "model.pt", key="second try")
    assert account.spent == spent


def test_a_checkpoint_of_another_ledger_is_refused(tmp_path: Path) -> None:
    with begun(PLAN, opened(tmp_path), tmp_path / "model.pt") as training:
        training.step()
    other = tmp_path / "other"
    other.mkdir()
    account = opened(other)
    with pytest.raises(InvalidParameter, match="another ledger"):
        begun(PLAN, account, tmp_path / "model.pt")
    spent = account.spent
    with begun(PLAN, account, other / "model.pt") as training:
        assert len(list(training)) == PLAN.steps
    assert account.spent == spent


@pytest.mark.parametrize("content", [None, b"", b"no checkpoint", b"\x80\x02}q\x00X\x04"])
def test_a_file_that_cannot_be_used_is_refused_before_anything_is_paid(tmp_path: Path, content: Any) -> None:
    path = tmp_path / ("missing/model.pt" if content is None else "model.pt")
    if content is not None:
        path.write_bytes(content)
    account = opened(tmp_path)
    with pytest.raises(InvalidParameter if content is None else StateRefused, match="Nothing was spent"):
        begun(PLAN, account, path)
    assert account.spent == 0


class Evil:
    """What a checkpoint from elsewhere could hold: unpickled, it leaves a file behind."""

    def __init__(self, place: Any) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.place),))


@pytest.mark.parametrize("write", [torch.save, lambda value, path: path.write_bytes(pickle.dumps(value))])
@pytest.mark.parametrize("with_key", [False, True])
def test_a_pickled_checkpoint_is_refused_and_runs_no_code(tmp_path: Path, write: Any, with_key: bool) -> None:
    path, ran = tmp_path / "model.pt", tmp_path / "ran"
    write({"plan": Evil(ran)}, path)
    if with_key:
        (tmp_path / "model.pt.key").write_bytes(bytes(32))
    account = opened(tmp_path)
    with pytest.raises(StateRefused, match=r"pickle.*Finish that training.*Nothing was spent"):
        begun(PLAN, account, path)
    assert not ran.exists()
    assert account.spent == 0


def test_a_checkpoint_that_was_edited_cut_or_lost_its_key_is_refused(tmp_path: Path) -> None:
    with begun(PLAN, opened(tmp_path), tmp_path / "model.pt") as training:
        training.step()
    path = tmp_path / "model.pt"
    whole = path.read_bytes()
    assert whole.startswith(b"mosha-training-1")
    assert (path.stat().st_mode & 0o777, (tmp_path / "model.pt.key").stat().st_mode & 0o777) == (0o600, 0o600)
    place = secrets.randbelow(len(whole) - 17) + 17
    for content in (whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :], whole[:-1], whole + b"\0"):
        path.write_bytes(content)
        with pytest.raises(StateRefused, match=r"edited.*Nothing was spent"):
            begun(PLAN, opened(tmp_path), path)
    path.write_bytes(whole)
    (tmp_path / "model.pt.key").unlink()
    with pytest.raises(StateRefused, match=r"secret .* is gone"):
        begun(PLAN, opened(tmp_path), path)


def test_a_checkpoint_under_a_secret_of_ones_own_needs_no_file_beside_it(tmp_path: Path) -> None:
    how = {"path": tmp_path / "model.pt", "every": 1, "secret": os.urandom(32)}
    model = nn.Linear(4, 2)
    data = torch.randn(50, 4), torch.zeros(50, dtype=torch.long)
    account = opened(tmp_path)

    def begin(how: Any) -> Any:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        return PLAN.train(model, data, LOSS, optimizer, account=account, key="run", checkpoint=how)

    with begin(how) as training:
        training.step()
    assert not (tmp_path / "model.pt.key").exists()
    with pytest.raises(StateRefused):
        begin(how | {"secret": os.urandom(32)})
    with pytest.raises(InvalidParameter, match="32"):
        begin(how | {"secret": b"short"})
    with begin(how) as again:
        assert again.number == 1


@pytest.mark.parametrize("name", ["Adam", "AdamW", "Adagrad", "RMSprop", "NAdam", "Adamax", "SGD"])
def test_the_state_of_every_optimiser_comes_back_bit_for_bit(tmp_path: Path, name: str) -> None:
    from mosha.files.packing import pack, unpack
    from mosha.learning.checkpoint import _KINDS

    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2).to(torch.bfloat16))
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1)
    for _ in range(2):
        for p in model.parameters():
            p.grad = torch.randn_like(p)
        optimizer.step()
    before = optimizer.state_dict()
    after = unpack(b"".join(pack(before, _KINDS)), _KINDS)
    assert before["param_groups"] == after["param_groups"]
    assert before["state"].keys() == after["state"].keys()
    for place, state in before["state"].items():
        for part, value in state.items():
            found = after["state"][place][part]
            assert type(found) is type(value)
            assert (found.dtype, found.shape) == (value.dtype, value.shape) if torch.is_tensor(value) else True
            assert torch.equal(found, value) if torch.is_tensor(value) else found == value
    assert type(unpack(b"".join(pack(model.state_dict(), _KINDS)), _KINDS)["1.weight"]) is torch.Tensor


def test_what_no_checkpoint_can_hold_is_told_before_anything_is_paid(tmp_path: Path) -> None:
    class Odd(nn.Linear):
        def get_extra_state(self) -> Any:
            return object()

    model, account = Odd(4, 2), opened(tmp_path)
    data = torch.randn(50, 4), torch.zeros(50, dtype=torch.long)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with pytest.raises(InvalidParameter, match="cannot be kept"):
        PLAN.train(model, data, LOSS, optimizer, account=account, key="run", checkpoint=tmp_path / "model.pt")
    assert account.spent == 0


def fail(*_arguments: Any) -> NoReturn:
    raise OSError("the disk")


@pytest.mark.parametrize("plan", [PLAN, BANDED], ids=["independent", "correlated"])
def test_a_step_that_failed_is_lost_and_the_others_go_on(
    plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = opened(tmp_path)
    training = begun(plan, account, tmp_path / "model.pt")
    training.step()
    monkeypatch.setattr(Sampler, "draw", fail)
    with pytest.raises(StepFailed) as failed:
        training.step()
    assert "disk" not in str(failed.value)
    monkeypatch.undo()
    assert training.step().number == 3  # the second was paid, and is gone
    training._gradients.engine.detach()
    with begun(plan, account, tmp_path / "model.pt") as again:
        assert again.number == 3
        assert [step.number for step in again] == [4, 5, 6, 7, 8]
        with pytest.raises(HorizonExceeded):
            again._run.step(again._data)
    assert account.spent <= 1


def test_a_training_whose_last_step_failed_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account = opened(tmp_path)
    training = begun(PLAN, account, tmp_path / "model.pt")
    for _ in range(7):
        training.step()
    monkeypatch.setattr(Sampler, "draw", fail)
    with pytest.raises(StepFailed):
        training.step()
    training._gradients.engine.detach()
    monkeypatch.undo()
    with begun(PLAN, account, tmp_path / "model.pt") as again:
        assert again.number == 7
        assert list(again) == []


def kill(*_arguments: Any) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize("plan", [PLAN, BANDED, BUFFERED], ids=["independent", "correlated", "buffered"])
def test_a_training_that_was_killed_twice_in_one_step_goes_on_without_it(
    plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = opened(tmp_path)
    first = begun(plan, account, tmp_path / "model.pt")
    first.step()
    with monkeypatch.context() as patch:
        patch.setattr(Sampler, "draw", kill)
        with pytest.raises(KeyboardInterrupt):
            first.step()
        first._gradients.engine.detach()
        second = begun(plan, account, tmp_path / "model.pt")
        with pytest.raises(KeyboardInterrupt):
            second.step()
        second._gradients.engine.detach()
    spent = account.spent
    with begun(plan, account, tmp_path / "model.pt") as third:
        assert [step.number for step in third] == [3, 4, 5, 6, 7, 8]
    assert (account.failures, account.spent) == (1, spent)
    assert account._ledger.verify().ok


def test_a_training_that_was_killed_twice_in_its_last_step_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = opened(tmp_path)
    training = begun(PLAN, account, tmp_path / "model.pt")
    for _ in range(7):
        training.step()
    monkeypatch.setattr(Sampler, "draw", kill)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            training.step()
        training._gradients.engine.detach()
        training = begun(PLAN, account, tmp_path / "model.pt")
    assert list(training) == []
    assert account.failures == 1
