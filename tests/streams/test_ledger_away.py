"""What a service does when the ledger is away, a step broke, or its state is of another day."""

import shutil
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import mosha
from mosha import Reading, errors, streams
from mosha.streams import Batches
from mosha.streams.service.checkpoint import Checkpoint


class Breaks:
    """A batch whose driver dies."""

    @property
    def columns(self) -> NoReturn:
        raise RuntimeError("secret")


@pytest.fixture
def account(tmp_path: Path) -> Any:
    return mosha.Ledger(tmp_path / "book.db").account("door", unit=Reading(), rho=9)


def made(horizon: Any = 5) -> Any:
    return streams.counter(unit=Reading(), horizon=horizon, rho=0.5)


def serving(account: Any, folder: Any, state: str = "s") -> Any:
    return streams.serve(account, made(), name="door", state=folder / state)


def away(run: Any, monkeypatch: pytest.MonkeyPatch, action: Any) -> None:
    """Do something while answers cannot be noted."""

    def unavailable(self: Any) -> NoReturn:
        raise errors.LedgerUnavailable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(type(run._reservation), "_note", unavailable)
        with pytest.raises(errors.LedgerUnavailable):
            action()


@pytest.mark.parametrize("last", [[1, 1], Batches([[1], [1], [1]])], ids=["a step", "a chunk"])
def test_the_last_answer_of_a_run_waits_until_it_is_noted(
    account: Any, monkeypatch: pytest.MonkeyPatch, last: Any
) -> None:
    run = account.open(made(3))
    for _ in range(0 if isinstance(last, Batches) else 2):
        run.step([1])
    away(run, monkeypatch, lambda: run.step(last))
    assert run.remaining == 0
    assert np.shape(run.step(last).value) == ((3,) if isinstance(last, Batches) else ())
    with pytest.raises(errors.HorizonExceeded):
        run.step([1])


@pytest.mark.parametrize("number", [None, 2])
def test_the_answer_of_a_step_that_was_not_noted_is_given_as_that_step(
    account: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: Any
) -> None:
    with serving(account, tmp_path) as service:
        first = service.step([1] * 5)
        away(service._run, monkeypatch, lambda: service.step([1] * 700))
        assert (service.taken, service.last) == (1, first)
        second = service.step([1] * 700, number=number)
        assert (second.step, service.taken, service.last) == (2, 2, second)
        assert service._durable.holds(second.value)
        assert service.step([1] * 700, number=2) is second
        assert service.step([1]).step == 3
    with serving(account, tmp_path) as service:
        assert service.taken == 3


@pytest.mark.parametrize("number", [None, 4])
def test_other_data_after_it_are_the_next_step(
    account: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: Any
) -> None:
    with serving(account, tmp_path) as service:
        service.step([1])
        away(service._run, monkeypatch, lambda: service.steps([[1], [1, 1]]))
        with pytest.raises(errors.StateRefused, match="other data"):
            service.step([7], number=2)
        assert service.step([1] * 9, number=number).step == 4
        assert (service.taken, service.remaining) == (4, 1)


def test_a_step_that_broke_does_not_end_a_service(account: Any, tmp_path: Path) -> None:
    with serving(account, tmp_path) as service:
        service.step([1])
        with pytest.raises(errors.StepFailed):
            service.step(Breaks())
        second = service.step([1, 1])
        assert (second.step, service.remaining) == (2, 2)
    with serving(account, tmp_path) as service:
        assert (service.taken, service.remaining, service.last.value) == (2, 2, second.value)
        service.step([1])
        service.step([1])
        with pytest.raises(errors.HorizonExceeded):
            service.step([1])


def copied(folder: Any, name: Any) -> None:
    for end in ("", ".key"):
        shutil.copy(folder / f"s{end}", folder / f"{name}{end}")


def test_an_old_copy_disturbs_nobody_however_often_it_tries(account: Any, tmp_path: Path) -> None:
    with serving(account, tmp_path) as service:
        service.step([1])
        copied(tmp_path, "old")
        with pytest.raises(errors.StepFailed):
            service.step(Breaks())
        service.steps([[1], [1]])
        with serving(account, tmp_path, "old") as old:
            for _ in range(3):
                with pytest.raises(errors.StateRefused, match="another copy went on"):
                    old.step([1] * 5)
        assert service.step([1]).step == 4


def test_two_copies_with_two_answers_for_one_step_are_told_apart(
    account: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving(account, tmp_path).close()
    copied(tmp_path, "other")
    with serving(account, tmp_path, "other") as other:
        away(other._run, monkeypatch, lambda: other.step([1] * 100))  # in its file, not in the ledger
    with serving(account, tmp_path) as service:
        service.step([1])  # the same noise, other data
    with pytest.raises(errors.StateRefused, match="another copy went on"):
        serving(account, tmp_path, "other")


def rewritten(folder: Any, change: Any) -> None:
    checkpoint = Checkpoint(folder / "s", "door")
    content = checkpoint.load()
    change(content)
    checkpoint.save(content)
    checkpoint.close()


def test_a_state_from_before_chunks_goes_on(account: Any, tmp_path: Path) -> None:
    with serving(account, tmp_path) as service:
        service.step([1])
        value = service.step([1, 1]).value
    rewritten(tmp_path, lambda content: (content.pop("releases"), content.pop("first")))
    with serving(account, tmp_path) as service:
        assert (service.taken, service.last.value) == (2, value)
        assert service.step([1, 1], number=2).value == value
        assert service.step([1]).step == 3


def test_a_state_that_lacks_something_is_refused(account: Any, tmp_path: Path) -> None:
    serving(account, tmp_path).close()
    rewritten(tmp_path, lambda content: content.pop("digest"))
    with pytest.raises(errors.StateRefused, match="another version"):
        serving(account, tmp_path)


def test_a_chunk_is_held_to_the_steps_that_broken_ones_left(account: Any) -> None:
    run = account.open(made())
    for _ in range(4):
        account.lift()
        with pytest.raises(errors.StepFailed):
            run.step(Breaks())
    account.lift()
    with pytest.raises(errors.HorizonExceeded, match="1 of the 5"):
        run.step(Batches([[1]] * 2))
    assert run.step(Batches([[1]])).value.shape == (1,)
    assert run.remaining == 0
    run = account.open(made())
    run.step(Batches([[1]] * 2))
    with pytest.raises(errors.StepFailed):
        run.step(Batches([[1], Breaks()]))
    assert run.remaining == 1
