"""The index of a book: made from its rows, and made anew where an earlier version left another one."""

from __future__ import annotations

from mosha.core.errors import LedgerTampered
from mosha.ledger.checking.replay import Replay
from mosha.ledger.checking.verify import replay
from mosha.ledger.storage.transactions import INDEX, Transaction

__all__ = ["is_current", "renew"]

EARLIER = {"accounts": 5, "lanes": 5, "payments": 6, "steps": 3}  # columns of the first layout


def is_current(transaction: Transaction) -> bool:
    """Whether the index is laid out as this version keeps it."""
    return transaction.has_table("purchases")


def renew(transaction: Transaction) -> None:
    """Read all rows once and write the index as this version keeps it; refused where it said something else.

    An index that was edited is not healed in silence: what it says is compared with the rows first.
    """
    if is_current(transaction):
        return  # another process was faster
    said = replay(transaction)
    _compare(transaction, said)
    for table in EARLIER:
        transaction.run(f"DROP TABLE {table}")
    for statement in INDEX:
        transaction.run(statement)
    for table in (*EARLIER, "purchases"):
        for row in said.table(table):
            transaction.run(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)  # noqa: S608


def _compare(transaction: Transaction, said: Replay) -> None:
    for table, columns in EARLIER.items():
        stands = set(map(tuple, transaction.rows(f"SELECT * FROM {table}")))  # noqa: S608
        if stands != {row[:columns] for row in said.table(table)}:
            raise LedgerTampered("ledger.index_edited", table=table, spent="nothing")
