"""Whose turn it is where several processes write one file: nobody is passed over for long.

SQLite's own wait asks ever more rarely, so that who came last, or has just written, goes first: of sixteen processes
that write all the time, some wait for seconds. Here all of them ask equally often, at random moments, and who has just
written lets the others ask first, for about as long as a transaction takes.
"""

from __future__ import annotations

import os
import sqlite3
import time

__all__ = ["begin_in_turn"]

PAUSE = 0.004  # seconds between two questions at most; half of it on average


def begin_in_turn(connection: sqlite3.Connection, patience: float, courtesy: float) -> None:
    """Begin a transaction that writes as soon as the file is free; raises as SQLite does when `patience` is over.

    Args:
        connection: not inside a transaction.
        patience: how long to ask, in seconds.
        courtesy: how long to let others ask first, in seconds at most: 0 where nobody else writes.
    """
    if courtesy:
        _pause(min(courtesy, PAUSE))
    end = time.monotonic() + patience
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                    raise
            else:
                return
            _pause(PAUSE)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")


def _pause(most: float) -> None:
    time.sleep(most * os.urandom(1)[0] / 256)
