"""Who reads keeps no payer waiting, and does not let the log grow without end."""

import threading
from pathlib import Path
from typing import Any, NoReturn

import pytest

import mosha
from mosha import errors, events
from mosha.ledger.storage import sqlite
from mosha.ledger.storage import transactions as storage
from tests.ledger.place import PERSON, asking


@pytest.fixture
def account(place: Any) -> Any:
    return place.open(patience=5).account("visits", unit=PERSON, epsilon=1000)


def test_a_payment_is_made_while_somebody_reads(place: Any, account: Any) -> None:
    """In one thread even: the reading is still going on when the payment returns."""
    storage = account._ledger._storage

    def read(transaction: Any) -> Any:
        before = transaction.rows("SELECT COUNT(*) FROM entries")
        account.open(asking(answer=3)).step(None)
        return before == transaction.rows("SELECT COUNT(*) FROM entries")

    assert storage.read(read)  # and the view has not changed
    assert account.spent == 1.0


def test_a_statement_is_read_while_somebody_pays(place: Any, account: Any) -> None:
    ledger = account._ledger

    def pay(transaction: Any) -> None:
        transaction.append("retire", {"account": "nobody"})
        seen.append((len(ledger.entries()), ledger.statement("visits").spent, ledger.verify().ok))

    seen: list[Any] = []
    with pytest.raises(errors.LedgerUnavailable, match="on purpose"):
        ledger._storage.write(lambda transaction: pay(transaction) or refuse())
    assert seen[0][0] == 2
    assert seen[0][2]


def refuse() -> NoReturn:
    raise errors.LedgerUnavailable("on purpose")


def test_many_threads_read_and_pay_at_once(place: Any, account: Any) -> None:
    ledger, found = account._ledger, []  # type: ignore[var-annotated]

    def read() -> None:
        found.extend(ledger.verify().ok and ledger.statement("visits").spent is not None for _ in range(5))

    def pay() -> None:
        found.extend(account.open(asking(answer=1)).step(None).value for _ in range(5))

    threads = [threading.Thread(target=work) for work in (read, pay) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 40
    assert account.spent == 20.0


def test_readers_that_follow_each_other_do_not_let_the_log_grow_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every moment somebody reads; the log begins anew all the same."""
    monkeypatch.setattr(sqlite, "LONG_LOG", 300_000)
    with mosha.Ledger(tmp_path / "privacy.db") as ledger:
        account = ledger.account("visits", unit=PERSON, epsilon=1e6)
        log, sizes, going = tmp_path / "privacy.db-wal", [], threading.Event()  # type: ignore[var-annotated]

        def chain() -> None:
            while not going.is_set():
                ledger._storage.read(read)

        def read(transaction: Any) -> None:
            for _ in range(5):
                transaction.rows("SELECT COUNT(*) FROM entries")
                going.wait(0.002)

        threads = [threading.Thread(target=chain) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(150):
            account.open(asking(answer="x" * 4000), key=str(len(sizes))).step(None)
            sizes.append(log.stat().st_size)
        going.set()
        for thread in threads:
            thread.join()
        written = sum(len(entry.body) for entry in ledger.entries())
    assert written > 600_000
    assert max(sizes) < 1_500_000  # each row rewrites several pages: it would be 7 MB without end
    assert sizes != sorted(sizes)


def test_a_reading_in_a_book_that_was_set_back_is_refused_and_verify_tells_why(place: Any, account: Any) -> None:
    ledger = account._ledger
    account.open(asking()).step(None)
    place.tamper("DELETE FROM entries WHERE sequence >= 3", "DELETE FROM payments", "DELETE FROM steps")
    place.tamper("UPDATE accounts SET amount = '0'")
    for read in (lambda: account.spent, lambda: ledger.statement("visits"), account.event):
        with pytest.raises(errors.LedgerTampered, match="older copy"):
            read()
    with pytest.raises(errors.LedgerTampered):
        account.open(asking(step=lambda *_: pytest.fail("data was read")))
    ledger.verify()  # can still be asked


def test_readers_give_way_to_a_payment_and_go_on_where_it_lasts(
    place: Any, account: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "COURTESY", 0.01)
    ledger = account._ledger
    ledger._storage._committed.clear()  # as if somebody were paying for ever
    assert ledger.verify().ok


def test_a_measurement_of_a_book_in_memory_takes_turns() -> None:
    ledger = mosha.Ledger.memory()
    account = ledger.account("visits", unit=PERSON, epsilon=3)
    account.open(asking(events.Laplace(2))).step(None)
    with pytest.raises(errors.LedgerUnavailable, match="inside one of its own operations"):
        ledger._storage.read(lambda _: account.open(asking()))
    assert ledger.verify().ok
