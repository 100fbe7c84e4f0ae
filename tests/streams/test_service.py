"""A stream survives crashes, answers each step in one way, pays once, and refuses copies, forgeries and other data."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha import errors
from mosha.streams import alarm, counter, histogram, serve
from tests.streams import killed

EVENT, PERSON = mosha.Reading(), mosha.Person("who", at_most=2)


@pytest.fixture
def account(tmp_path: Path) -> Any:
    return mosha.Ledger(str(tmp_path / "book.db")).account("door", unit=EVENT, rho=1.0)


def made(horizon: Any = 8) -> Any:
    return counter(unit=EVENT, horizon=horizon, rho=0.5)


def test_killed_children_publish_one_answer_a_step(tmp_path: Path) -> None:
    horizon = 12
    killed.serving(tmp_path, horizon).close()
    hits = killed.kill_until_done(tmp_path, horizon=horizon, kills=25, longest=0.12)
    assert hits > 0
    published = killed.published(tmp_path)
    assert set(published) == set(range(1, horizon + 1))
    assert all(len(values) == 1 for values in published.values())
    book = mosha.Ledger(str(tmp_path / "book.db"))
    assert book.verify().ok
    assert book.account("door").spent == pytest.approx(0.5)


def test_a_stopped_stream_goes_on_and_pays_once(tmp_path: Path, account: Any) -> None:
    with serve(account, made(), name="door", state=tmp_path / "s") as service:
        first = [service.step([1] * 5).value for _ in range(3)]
    spent = account.spent
    with serve(account, made(), name="door", state=tmp_path / "s") as service:
        assert service.taken == 3
        assert service.last.value == first[-1]
        service.step([1])
    assert account.spent == spent


def test_other_data_for_the_last_step_are_refused_and_the_same_data_get_the_same_answer(
    tmp_path: Path, account: Any
) -> None:
    with serve(account, made(), name="door", state=tmp_path / "s") as service:
        value = service.step([1, 1], number=1).value
        assert service.step([1, 1], number=1).value == value
        with pytest.raises(errors.StateRefused, match="other data"):
            service.step([1, 1, 1], number=1)
        service.step([1], number=2)
        with pytest.raises(errors.AlreadyReleased):
            service.step([1, 1], number=1)
        with pytest.raises(errors.InvalidParameter):
            service.step([1, 1], number=9)
        assert service.taken == 2


def test_a_second_process_on_the_same_file_is_refused(tmp_path: Path, account: Any) -> None:
    with serve(account, made(), name="door", state=tmp_path / "s"), pytest.raises(errors.StateRefused, match="in use"):
        serve(account, made(), name="door", state=tmp_path / "s")


def copied(tmp_path: Path) -> Any:
    for name in ("s", "s.key"):
        shutil.copy(tmp_path / name, tmp_path / f"copy{name[1:]}")
    return tmp_path / "copy"


def test_of_two_copies_one_goes_on(tmp_path: Path, account: Any) -> None:
    first = serve(account, made(), name="door", state=tmp_path / "s")
    first.step([1])
    second = serve(account, made(), name="door", state=copied(tmp_path))
    second.step([1, 1])
    with pytest.raises(errors.AlreadyReleased):
        first.step([1, 1, 1])
    second.step([1])
    assert second.taken == 3


def test_an_old_copy_is_refused(tmp_path: Path, account: Any) -> None:
    service = serve(account, made(), name="door", state=tmp_path / "s")
    service.step([1])
    old = copied(tmp_path)
    service.step([1])
    again = serve(account, made(), name="door", state=old)
    with pytest.raises(errors.StateRefused, match="another copy went on"):
        again.step([1, 1, 1])
    service.step([1])  # the newest one was not disturbed
    assert service.taken == 3


def test_a_state_that_was_lost_cannot_be_begun_again(tmp_path: Path, account: Any) -> None:
    with serve(account, made(), name="door", state=tmp_path / "s") as service:
        service.step([1])
    (tmp_path / "s").unlink()
    with pytest.raises(errors.MoshaError):
        serve(account, made(), name="door", state=tmp_path / "s").step([1])


@pytest.mark.parametrize("place", [0, 20, -1])
def test_an_edited_state_is_refused(tmp_path: Path, account: Any, place: int) -> None:
    with serve(account, made(), name="door", state=tmp_path / "s") as service:
        service.step([1])
    sealed = bytearray((tmp_path / "s").read_bytes())
    sealed[place] ^= 1
    (tmp_path / "s").write_bytes(bytes(sealed))
    with pytest.raises(errors.StateRefused):
        serve(account, made(), name="door", state=tmp_path / "s")


def test_the_state_of_another_stream_is_refused(tmp_path: Path, account: Any) -> None:
    with serve(account, made(), name="door", state=tmp_path / "s") as service:
        service.step([1])
    with pytest.raises(errors.StateRefused):
        serve(account, made(), name="window", state=tmp_path / "s")
    with pytest.raises(errors.StateRefused):
        serve(account, made(9), name="door", state=tmp_path / "s")


def test_the_state_file_shows_nothing(tmp_path: Path, account: Any) -> None:
    with serve(account, made(), name="door", state=tmp_path / "s") as service:
        service.step([1])
    text = (tmp_path / "s").read_bytes()
    assert b"time" not in text
    assert b"buffers" not in text
    assert (tmp_path / "s").stat().st_mode & 0o077 == 0
    assert (tmp_path / "s.key").stat().st_mode & 0o077 == 0


def test_a_secret_of_ones_own_leaves_no_key_behind(tmp_path: Path, account: Any) -> None:
    with serve(account, made(), name="door", state=tmp_path / "s", secret=b"k" * 32) as service:
        service.step([1])
    assert not (tmp_path / "s.key").exists()
    with pytest.raises(errors.StateRefused):
        serve(account, made(), name="door", state=tmp_path / "s", secret=b"x" * 32)
    with pytest.raises(errors.InvalidParameter):
        serve(account, made(), name="door", state=tmp_path / "t", secret=b"short")


def test_a_batch_without_its_columns_is_refused_and_the_stream_goes_on(tmp_path: Path) -> None:
    account = mosha.Ledger(str(tmp_path / "book.db")).account("p", unit=PERSON, rho=1.0)
    stream = counter(unit=PERSON, horizon=4, rho=0.5)
    with serve(account, stream, name="p", state=tmp_path / "s") as service:
        with pytest.raises(errors.DataError):
            service.step({"else": [1]})
        service.step({"who": ["a"], "value": [1]})
        assert service.taken == 1
    with serve(account, stream, name="p", state=tmp_path / "s") as service:
        assert service.taken == 1
        service.step({"who": ["a"], "value": [1]})


def test_steps_after_the_horizon_are_refused(tmp_path: Path, account: Any) -> None:
    with serve(account, made(2), name="door", state=tmp_path / "s") as service:
        service.step([1])
        service.step([1])
        with pytest.raises(errors.HorizonExceeded):
            service.step([1])


def test_alarms_and_histograms_are_served_too(tmp_path: Path, account: Any) -> None:
    bell = alarm(unit=EVENT, threshold=5, alarms=1, horizon=None, rho=0.1)
    with serve(account, bell, name="bell", state=tmp_path / "bell") as service:
        service.step([1] * 9000)
    with serve(account, bell, name="bell", state=tmp_path / "bell") as service:
        assert service.last.value["alarm"]  # missed with probability below 1e-100
        with pytest.raises(errors.HorizonExceeded):
            service.step([1])
    keys = histogram(unit=EVENT, horizon=4, keys=["a", "b"], rho=0.1)
    with serve(account, keys, name="keys", state=tmp_path / "keys") as service:
        first = service.step(["a", "b"]).value
    with serve(account, keys, name="keys", state=tmp_path / "keys") as service:
        assert (service.last.value == first).all()
        assert service.step(["a"]).value.shape == (2,)


def test_an_account_that_cannot_pay_opens_nothing(tmp_path: Path) -> None:
    poor = mosha.Ledger(str(tmp_path / "book.db")).account("poor", unit=EVENT, rho=0.1)
    with pytest.raises(errors.BudgetExceeded):
        serve(poor, made(), name="door", state=tmp_path / "s")
    with pytest.raises(errors.WrongUnit):
        serve(poor, counter(unit=PERSON, horizon=8, rho=0.05), name="door2", state=tmp_path / "t")


@pytest.mark.parametrize("state", ["no/such/folder/x", "", ".", None, 5, "a\0b", "x" * 300])
def test_a_place_that_can_hold_no_state_is_refused_before_anything_is_made(
    tmp_path: Path, account: Any, monkeypatch: pytest.MonkeyPatch, state: Any
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    before = account.spent
    with pytest.raises((errors.InvalidParameter, errors.StateRefused)):
        serve(account, made(), name="s", state=state)
    assert list((tmp_path / "empty").iterdir()) == []
    assert account.spent == before


def test_a_refusal_lets_go_of_the_state(tmp_path: Path, account: Any) -> None:
    place = tmp_path / "state"
    with pytest.raises(errors.InvalidParameter):
        serve(account, made(), name="s", state=place, secret=b"short")
    assert not place.with_name("state.lock").exists()
    key = place.with_name("state.key")
    key.write_bytes(b"short")
    with pytest.raises(errors.InvalidParameter):
        serve(account, made(), name="s", state=place)
    key.unlink()
    key.mkdir()
    with pytest.raises(errors.StateRefused, match="cannot be opened"):
        serve(account, made(), name="s", state=place)
    key.rmdir()
    serve(account, made(), name="s", state=place).close()
    key.unlink()
    with pytest.raises(errors.StateRefused, match="is gone"):
        serve(account, made(), name="s", state=place)
    with pytest.raises(errors.StateRefused, match="is gone"):  # and not: in use
        serve(account, made(), name="s", state=place)
