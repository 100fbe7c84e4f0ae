"""The queue of requests: claimed one by one, fairly, by slots of one or several server processes.

A claim names the process that holds it. A process says every few seconds that it is alive; what a silent one held is
queued again, under the same ledger key, so that nothing is paid twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from mosha.server.clock import now
from mosha.server.store.database import Database, Row

__all__ = ["SILENT", "beat", "claim", "finish", "forget_instance", "requeue_lost", "waiting_numbers"]

SILENT = 10_000_000  # microseconds after which a process that said nothing is taken to be gone
MOST_ATTEMPTS = 2

_FIRST_OF_ALL = "SELECT MIN(person) FROM requests WHERE state = 'queued'"
_RUNNING = "(SELECT COUNT(*) FROM requests b WHERE b.person = w.person AND b.state = 'running')"
_UNSEEN = "(SELECT COUNT(*) FROM requests b WHERE b.person = w.person AND b.visible > ?)"
_SERVED = "(SELECT COALESCE(MAX(s.started), 0) FROM requests s WHERE s.person = w.person)"
_OLDEST = "(SELECT MIN(q.created) FROM requests q WHERE q.state = 'queued' AND q.person = w.person)"
# From person to person along an index: whoever has much waiting costs no more than whoever has little.
_NEXT = f"""
WITH RECURSIVE waiting (person) AS (
    {_FIRST_OF_ALL} UNION ALL SELECT ({_FIRST_OF_ALL} AND person > w.person) FROM waiting w WHERE w.person IS NOT NULL
), turns AS (
    SELECT w.person, {_RUNNING} + {_UNSEEN} AS busy, {_SERVED} AS served, {_OLDEST} AS oldest
    FROM waiting w WHERE w.person IS NOT NULL
), turn AS (SELECT person FROM turns WHERE busy < ? ORDER BY busy, served, oldest LIMIT 1)
SELECT r.id FROM requests r WHERE r.state = 'queued' AND r.person = (SELECT person FROM turn)
ORDER BY r.created LIMIT 1
"""  # noqa: S608


def claim(database: Database, holder: str, *, most_running: int) -> Row | None:
    """Take the next request: of whoever has the fewest running, and among those of whoever waited longest.

    Whoever has agents waits and runs together with them.

    A question runs until its tick, here as everywhere: else the start of the next one would tell when it ended.
    """
    with database.transaction() as transaction:
        if database.shared:
            transaction.rows("SELECT pg_advisory_xact_lock(?)", 0x6D6F7132)
        moment = now()
        found = transaction.row(_NEXT, moment, most_running)
        if found is None:
            return None
        change = "UPDATE requests SET state = 'running', holder = ?, started = ?, attempts = attempts + 1 WHERE id = ?"
        transaction.run(change, holder, moment, found["id"])
        return transaction.row("SELECT * FROM requests WHERE id = ?", found["id"])


def finish(database: Database, row: Row, holder: str, outcome: str, result: Mapping[str, object], visible: int) -> bool:
    """Write down how a request ended, to be seen from `visible` on; False where another process has taken it over."""
    change = (
        "UPDATE requests SET state = 'done', outcome = ?, result = ?, visible = ?"
        " WHERE id = ? AND state = 'running' AND holder = ?"
    )
    return database.run(change, outcome, json.dumps(result), visible, row["id"], holder) == 1


def beat(database: Database, holder: str) -> None:
    """Say that this process is alive."""
    statement = "INSERT INTO instances (id, seen) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET seen = excluded.seen"
    database.run(statement, holder, now())


def forget_instance(database: Database, holder: str) -> None:
    database.run("DELETE FROM instances WHERE id = ?", holder)


def requeue_lost(database: Database, *, alone: bool) -> int:
    """Queue what a process held that is gone. `alone`: this process has just begun and is the only one."""
    gone = "" if alone else " AND (holder IS NULL OR holder NOT IN (SELECT id FROM instances WHERE seen > ?))"
    statement = f"UPDATE requests SET state = 'queued', holder = NULL WHERE state = 'running'{gone}"  # noqa: S608
    return database.run(statement, *(() if alone else (now() - SILENT,)))


def waiting_numbers(database: Database) -> dict[str, int]:
    """How many requests are in each state that is not an end; what has ended runs until its tick."""
    statement = (
        "SELECT CASE WHEN state = 'done' THEN 'running' ELSE state END AS shown, COUNT(*) AS many FROM requests"
        " WHERE state IN ('waiting', 'queued', 'running') OR visible > ? GROUP BY 1"
    )
    return {str(row["shown"]): int(row["many"]) for row in database.rows(statement, now())}
