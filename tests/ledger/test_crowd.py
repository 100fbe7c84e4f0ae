"""Races and crashes with real processes: the exact number wins, and nothing leaves unpaid."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from mosha import errors, events
from tests.ledger.place import PERSON, PostgreSQLPlace, asking

ROOT = Path(__file__).parents[2]


def crowd(scene: Any, place: Any, number: Any) -> Any:
    command = [sys.executable, "-m", "tests.ledger.crowd", scene, place.where, str(number)]
    settings = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=settings, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_eight_processes_begin_one_book(place: Any) -> None:
    found = crowd("birth", place, 2)
    assert found == {"books": 1, "accounts": 1, "spent": 2.0, "problems": []}


def test_eight_processes_racing_for_the_last_unit_win_it_exactly_once(place: Any) -> None:
    found = crowd("race", place, 40)
    assert found["problems"] == []
    assert found["won"] == {"cake": 40} | {f"last {number}": 1 for number in range(40)}
    assert found["spent"] == 40 / 16


def test_eight_processes_with_one_key_let_one_answer_leave(place: Any) -> None:
    found = crowd("one_key", place, 20)
    assert found["problems"] == []
    assert found["left"] == {str(key): 1 for key in range(20)}
    assert found["spent"] == 20.0


def test_kill_nine_at_random_moments(place: Any) -> None:
    """200 trials over both engines: nothing leaves unpaid or twice, nothing is overspent, the chain is whole."""
    trials = {"sqlite": 140, "postgresql": 60}[place.engine]
    found = crowd("killed", place, trials)
    assert found["kills"] >= trials
    assert found["problems"] == []
    assert (found["unpaid"], found["doubled"], found["paid twice"]) == ([], [], 0)
    assert found["within"]
    assert found["paid"] > 0


def test_threads_share_a_commit_and_never_overspend(place: Any) -> None:
    ledger = place.open()
    account = ledger.account("visits", unit=PERSON, epsilon=3)
    outcomes = []

    def ask() -> None:
        for _ in range(10):
            try:
                account.open(asking(events.Laplace(10))).step(None)
                outcomes.append("paid")
            except errors.BudgetExceeded:
                outcomes.append("refused")

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count("paid"), outcomes.count("refused")) == (30, 50)
    assert ledger.verify().ok


def test_what_waits_for_a_commit_is_committed_with_it(place: Any) -> None:
    """While one thread holds the book, all others queue; they then share one transaction."""
    ledger = place.open()
    account = ledger.account("visits", unit=PERSON, epsilon=30)
    storage, commits = ledger._storage, []
    transaction = storage.transaction
    storage.transaction = lambda: commits.append(1) or transaction()
    with storage._turn:
        threads = [threading.Thread(target=account.open, args=(asking(),)) for _ in range(20)]
        for thread in threads:
            thread.start()
        while len(storage._queue) < 20:
            pass
    for thread in threads:
        thread.join()
    assert len(commits) == 1
    assert account.spent == 20.0
    assert ledger.verify().ok


def test_a_refusal_does_not_spoil_the_commit_it_shares(place: Any) -> None:
    ledger = place.open()
    account = ledger.account("visits", unit=PERSON, epsilon=2)
    storage, refused = ledger._storage, []

    def ask(scale: Any) -> None:
        try:
            account.open(asking(events.Laplace(scale)))
        except errors.BudgetExceeded:
            refused.append(scale)

    with storage._turn:
        threads = [threading.Thread(target=ask, args=(scale,)) for scale in (2, 0.1, 2, 0.2, 2)]
        for thread in threads:
            thread.start()
        while len(storage._queue) < 5:
            pass
    for thread in threads:
        thread.join()
    assert sorted(refused) == [0.1, 0.2]
    assert account.spent == 1.5
    assert ledger.verify().ok


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_opens_the_book_anew_and_shares_no_answer(place: Any) -> None:
    ledger = place.open()
    account = ledger.account("visits", unit=PERSON, epsilon=30)
    run = account.open(asking(answer=lambda data: data))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            account.open(asking()).step(None)
            try:
                run.step("child")
                os.write(writing, b"child ")
            except errors.AlreadyReleased:
                os.write(writing, b"refused ")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as heard:
        assert heard.read() == b"child "
    with pytest.raises(errors.AlreadyReleased):
        run.step("parent")
    assert account.open(asking(answer=8)).step(None).value == 8
    assert account.spent == 3.0
    assert ledger.verify().ok


def test_a_server_that_crashed_has_kept_every_payment(postgres_server: Any) -> None:
    place = PostgreSQLPlace(postgres_server)
    try:
        account = place.open().account("visits", unit=PERSON, epsilon=10)
        account.open(asking(answer=5), key="k").step(None)
        run = account.open(asking(answer=6), key="l")
        postgres_server.stop(signal.SIGQUIT)
        try:
            with pytest.raises(errors.LedgerUnavailable):
                account.open(asking())
            with pytest.raises(errors.LedgerUnavailable):
                run.step(None)
        finally:
            postgres_server.start()
        assert run.step(None).value == 6  # the connection comes back by itself, the answer had waited
        assert account.open(asking(), key="k").step(None).value == 5
        assert account.spent == 2.0
        assert place.open().verify().ok
    finally:
        place.close()
