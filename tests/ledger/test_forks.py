"""Forks at every moment: nobody waits for ever, and a child has a connection of its own or none."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha import errors, events
from tests.ledger.place import PERSON, asking

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
HALF = events.Laplace(2)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Any]:
    with mosha.Ledger(tmp_path / "privacy.db", patience=60) as opened:
        opened.account("visits", unit=PERSON, epsilon=3)
        yield opened


def in_child(work: Any) -> Any:
    """What `work()` returns, or the name of its error, in a fork of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            try:
                said = work()
            except errors.MoshaError as error:
                said = f"{type(error).__name__}: {error}"
            os.write(writing, str(said).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as heard:
        said = heard.read()
    os.waitpid(child, 0)
    return said


def pay(account: Any) -> Any:
    return account.open(asking(HALF, answer=7)).step(None).value


def test_a_ledger_in_memory_is_refused_in_a_child() -> None:
    ledger = mosha.Ledger.memory()
    account = ledger.account("visits", unit=PERSON, epsilon=3)
    for work in (lambda: pay(account), lambda: account.spent, ledger.verify):
        assert in_child(work).startswith("LedgerUnavailable: a ledger in memory belongs to the process that began it")
    assert in_child(lambda: mosha.Ledger.memory().account("visits", unit=PERSON, epsilon=1).spent) == "0.0"
    assert pay(account) == 7


def test_a_parent_and_its_child_go_on_with_one_book(ledger: Any) -> None:
    account = ledger.account("visits")
    pay(account)
    assert in_child(lambda: (pay(account), account.spent)) == "(7, 1.0)"
    assert in_child(lambda: in_child(lambda: pay(account))) == "7"
    pay(account)
    assert account.spent == 2.0
    assert ledger.verify().ok


def test_a_fork_waits_for_the_payment_of_another_thread(tmp_path: Path) -> None:
    inside, onward, forked = threading.Event(), threading.Event(), threading.Event()

    def clock() -> int:
        if threading.current_thread() is payer:
            inside.set()
            onward.wait(120)
            assert not forked.is_set()
        return 0

    payer = threading.Thread(target=lambda: pay(account))
    with mosha.Ledger(tmp_path / "privacy.db", clock=clock) as ledger:
        account = ledger.account("visits", unit=PERSON, epsilon=3)
        payer.start()
        inside.wait(120)
        threading.Timer(0.3, onward.set).start()
        found = in_child(lambda: forked.set() or pay(account))
        payer.join()
        assert found == "7"
        assert account.spent == 1.0
        assert ledger.verify().ok


def test_a_fork_that_waited_too_long_leaves_a_child_that_is_refused(tmp_path: Path) -> None:
    """The other thread may wait for something that the forking one has: nobody hangs, and the child may not pay."""
    inside, onward = threading.Event(), threading.Event()

    def clock() -> int:
        if threading.current_thread() is payer:
            inside.set()
            onward.wait(120)
        return 0

    payer = threading.Thread(target=lambda: pay(account))
    with mosha.Ledger(tmp_path / "privacy.db", clock=clock, patience=0.1) as ledger:
        account = ledger.account("visits", unit=PERSON, epsilon=3)
        payer.start()
        inside.wait(120)
        found = in_child(lambda: pay(account))
        anew = in_child(lambda: mosha.Ledger(tmp_path / "privacy.db"))
        onward.set()
        payer.join()
        assert found.startswith("LedgerUnavailable: this process was forked in the middle")
        assert anew.startswith("LedgerUnavailable")
        assert pay(account) == 7
        assert account.spent == 1.0
        assert ledger.verify().ok


def test_a_fork_breaks_off_a_reading_which_begins_again(ledger: Any) -> None:
    account = ledger.account("visits")
    begun, forked, beginnings, found = threading.Event(), threading.Event(), [], []

    def count(transaction: Any) -> int:
        beginnings.append(transaction)
        while not forked.is_set():
            begun.set()
            transaction.rows("SELECT * FROM entries")
        return len(transaction.rows("SELECT * FROM entries"))

    reader = threading.Thread(target=lambda: found.append(ledger._storage.read(count)))
    reader.start()
    begun.wait(120)
    said = in_child(lambda: pay(account))
    forked.set()
    reader.join()
    assert said == "7"
    assert len(beginnings) == 2
    assert len(found) == 1
    assert account.spent == 0.5


def test_a_fork_inside_a_reading_leaves_a_child_that_is_refused(ledger: Any) -> None:
    account = ledger.account("visits")
    assert ledger._storage.read(lambda _: in_child(lambda: pay(account))).startswith("LedgerUnavailable")

    def split(transaction: Any) -> tuple[Any, ...]:
        rows = transaction.rows("SELECT * FROM entries")
        child = os.fork()
        return child, len(rows), len(transaction.rows("SELECT * FROM entries"))

    try:
        child, before, after = ledger._storage.read(split)
    except errors.LedgerUnavailable:
        os._exit(7)  # the child, whose reading cannot go on
    if child == 0:
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert before == after
    assert pay(account) == 7


def test_a_turn_that_another_thread_had_does_not_stop_a_child(place: Any) -> None:
    """Locks are copied locked, and those who held them are not copied."""
    ledger = place.open(patience=60 if place.engine == "postgresql" else 1)
    account = ledger.account("visits", unit=PERSON, epsilon=3)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with ledger._storage._turn:
            held.set()
            done.wait(120)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(120)
    said = in_child(lambda: pay(account))
    done.set()
    holder.join()
    assert said == "7" if place.engine == "postgresql" else said.startswith("LedgerUnavailable")
    assert pay(account) == 7


def test_a_child_refuses_a_lease_whose_lock_was_held(ledger: Any) -> None:
    lease = ledger.account("visits").lease(HALF * 2)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lease._lock:
            held.set()
            done.wait(120)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(120)
    said = in_child(lambda: lease.open(asking(HALF)))
    closed = in_child(lease.close)
    done.set()
    holder.join()
    assert said.startswith("RunClosed")
    assert closed == "None"
    lease.close()


def test_a_child_of_a_process_that_uses_postgresql_has_a_socket_of_its_own(postgres_server: Any) -> None:
    from tests.ledger.place import PostgreSQLPlace

    place = PostgreSQLPlace(postgres_server)
    try:
        ledger = place.open()
        account = ledger.account("visits", unit=PERSON, epsilon=3)

        def backend() -> tuple[Any, ...]:
            ask = lambda transaction: transaction.row("SELECT pg_backend_pid()")[0]
            return ledger._storage.read(ask), ledger._storage.write(ask)

        first = backend()
        assert set(map(str, first)).isdisjoint(in_child(backend).strip("()").split(", "))
        assert in_child(lambda: ledger.close() or "closed") == "closed"
        assert backend() == first  # neither of the parent's sockets was used or closed
        assert pay(account) == 7
    finally:
        place.close()


def test_two_threads_fork_at_once(ledger: Any) -> None:
    account, said = ledger.account("visits"), []  # type: ignore[var-annotated]

    def fork() -> None:
        said.extend(in_child(lambda: pay(account)) for _ in range(3))

    threads = [threading.Thread(target=fork) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == ["7"] * 6
    assert account.spent == 3.0
    assert ledger.verify().ok


def test_a_command_that_prepares_itself_in_a_fork_disturbs_nobody(ledger: Any) -> None:
    account = ledger.account("visits")
    subprocess.run([sys.executable, "-c", ""], preexec_fn=lambda: None, check=True)
    assert pay(account) == 7
    assert ledger.verify().ok


def test_an_operation_inside_an_operation_is_refused(ledger: Any) -> None:
    account = ledger.account("visits")
    with pytest.raises(errors.LedgerUnavailable, match="inside one of its own operations"):
        ledger._storage.write(lambda _: pay(account))
    assert pay(account) == 7
    assert account.spent == 0.5
