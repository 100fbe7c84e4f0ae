"""The witness never goes back, whoever writes to it at the same moment."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha import errors
from mosha.ledger.storage.chain import SLOT, Head, Witness
from tests.ledger.place import PERSON, asking


def head(number: Any) -> Any:
    return Head(number, f"{number:064x}")


@pytest.fixture
def witness(tmp_path: Path) -> Any:
    return Witness(tmp_path / "privacy.db.head")


def test_a_late_note_sets_nothing_back(witness: Any) -> None:
    for number in (7, 12, 3, 11, 12, 1):
        witness.note(head(number))
    assert witness.read() == head(12)
    witness.note(head(13))
    assert witness.read() == head(13)


def test_a_torn_note_spoils_the_older_slot_alone(witness: Any) -> None:
    """Whatever was being written when the power went: the head before it can still be read."""
    for number in (2, 4, 6, 9):  # commits of many rows: not every other number
        witness.note(head(number))
        before = witness.path.read_bytes()
        witness.note(head(number + 1))
        after = witness.path.read_bytes()
        changed = {place // SLOT for place in range(2 * SLOT) if before[place : place + 1] != after[place : place + 1]}
        assert len(changed) == 1
        (slot,) = changed
        torn = bytearray(after)
        torn[slot * SLOT : slot * SLOT + 40] = b"\0" * 40
        witness.path.write_bytes(bytes(torn))
        assert witness.read() == head(number)
        witness.path.write_bytes(after)


def test_two_processes_that_note_at_once_never_set_it_back(witness: Any) -> None:
    """Each notes rising heads; after every note the witness is at least as far as the one who noted."""
    waiting, starting = os.pipe()
    children = []
    for offset in range(3):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(starting)
                os.read(waiting, 1)
                for number in range(offset, 600, 3):
                    witness.note(head(number))
                    if witness.read().sequence < number:
                        os._exit(2)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    os.close(starting)
    os.close(waiting)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    assert witness.read() == head(599)


def test_threads_that_note_at_once_never_set_it_back(witness: Any) -> None:
    back = []

    def note(offset: Any) -> None:
        for number in range(offset, 300, 4):
            witness.note(head(number))
            back.extend([number] if witness.read().sequence < number else [])

    threads = [threading.Thread(target=note, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert back == []


def test_a_witness_that_somebody_holds_for_ever_does_not_stop_a_payment(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    with mosha.Ledger(tmp_path / "privacy.db") as ledger:
        account = ledger.account("visits", unit=PERSON, epsilon=3)
        with (tmp_path / "privacy.db.head").open("rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            account.open(asking())
        before = ledger._storage.witnessed.sequence
        account.open(asking())
        assert ledger._storage.witnessed.sequence > before  # it has caught up
        assert account.spent == 2.0


def test_a_payment_is_refused_when_another_witness_was_put_in_place(tmp_path: Path) -> None:
    with mosha.Ledger(tmp_path / "privacy.db") as ledger:
        account = ledger.account("visits", unit=PERSON, epsilon=3)
        for later in (head(2), head(99)):
            (tmp_path / "privacy.db.head").unlink()
            Witness(tmp_path / "privacy.db.head").note(later)
            with pytest.raises(errors.LedgerTampered):
                account.open(asking(step=lambda *_: pytest.fail("data was read")))
        (tmp_path / "privacy.db.head").write_bytes(b"nonsense")
        with pytest.raises(errors.LedgerTampered, match="witness"):
            account.open(asking())
        (tmp_path / "privacy.db.head").unlink()
        account.open(asking()).step(None)
        assert account.spent == 1.0
