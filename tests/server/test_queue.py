"""The queue is fair, and what a process held that is gone is queued again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mosha.server.clock import now
from mosha.server.store.database import open_database
from mosha.server.store.migrations import migrate
from mosha.server.work.queue import beat, claim, finish, requeue_lost
from mosha.server.work.ticks import tick


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Any]:
    found = open_database(tmp_path / "server.db")
    migrate(found)
    yield found
    found.close()


def put_request(database: Any, name: Any, principal: Any, person: Any = None) -> None:
    database.run(
        "INSERT INTO requests (id, principal, person, grant_id, dataset, body_hash, question, price, purpose,"
        " fingerprint, version, cost, measure, state, accounts, attempts, created, expires, hidden)"
        " VALUES (?, ?, ?, 'g', 'd', '', '{}', '{}', '', '', 1, 0.1, 'epsilon', 'queued', '[]', 0, ?, ?, 0)",
        *(name, principal, person or principal, now(), now() + 10**9),
    )


def test_one_who_has_many_agents_has_one_share_with_them(database: Any) -> None:
    for number in range(6):
        put_request(database, f"a{number}", f"agent {number}", "a")
    put_request(database, "b0", "b")
    order = []
    for _ in range(3):
        row = claim(database, "i", most_running=2)
        order.append(row["id"])
        finish(database, row, "i", "answered", {}, now())
    assert order == ["a0", "b0", "a1"]
    for _ in range(2):
        claim(database, "i", most_running=2)
    assert claim(database, "i", most_running=2) is None


def test_one_who_asks_a_lot_does_not_keep_others_waiting(database: Any) -> None:
    for number in range(6):
        put_request(database, f"a{number}", "a")
    put_request(database, "b0", "b")
    put_request(database, "c0", "c")
    order = []
    for _ in range(4):
        row = claim(database, "i", most_running=2)
        order.append(row["id"])
        finish(database, row, "i", "answered", {}, now())
    assert order == ["a0", "b0", "c0", "a1"]


def count_operations(database: Any) -> int:
    """How many operations of SQLite a claim takes."""
    seen = []
    database._writer.set_progress_handler(lambda: seen.append(1), 1)
    claim(database, "i", most_running=2)
    database._writer.set_progress_handler(None, 1)
    return len(seen)


def test_what_waits_behind_others_costs_nothing(database: Any) -> None:
    """Each waiting request was looked at, at every claim: 10 ms where 2,000 waited."""
    for number in range(20):
        put_request(database, f"a{number}", f"{number % 4}")
    few = count_operations(database)
    for number in range(20, 400):
        put_request(database, f"a{number}", f"{number % 4}")
    assert count_operations(database) < 1.5 * few


def test_nobody_has_more_running_than_allowed(database: Any) -> None:
    for number in range(3):
        put_request(database, f"a{number}", "a")
    assert [bool(claim(database, "i", most_running=2)) for _ in range(3)] == [True, True, False]


def test_what_a_silent_process_held_is_queued_again_and_it_can_no_longer_finish_it(database: Any) -> None:
    put_request(database, "a0", "a")
    row = claim(database, "gone", most_running=2)
    beat(database, "gone")
    assert requeue_lost(database, alone=False) == 0
    database.run("UPDATE instances SET seen = 0")
    assert requeue_lost(database, alone=False) == 1
    again = claim(database, "here", most_running=2)
    assert again["attempts"] == 2
    assert not finish(database, row, "gone", "failed", {}, now())
    assert finish(database, again, "here", "answered", {}, now())


@pytest.mark.parametrize("deadline", [1, 5, 30, 3600])
def test_a_ladder_has_few_rungs_and_never_shows_an_end_before_it_is_there(deadline: int) -> None:
    seconds = [deadline * place / 1000 for place in range(1, 1001)]
    shown = {tick("ladder", seconds=s, deadline=deadline) for s in seconds}
    assert all(tick("ladder", seconds=s, deadline=deadline) >= min(s, deadline) for s in seconds)
    assert len(shown) <= 2 + deadline.bit_length()
    assert {tick("fixed", seconds=s, deadline=deadline) for s in seconds} == {deadline}
