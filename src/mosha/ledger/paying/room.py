"""Room for more: how often an account, and all who pay with it, could pay for the same as last time."""

from __future__ import annotations

from collections.abc import Sequence

from mosha.core.errors import AccountExpired, AccountRetired
from mosha.ledger.paying.charge import Charge, check_ends, count_room
from mosha.ledger.storage.chain import Entry
from mosha.ledger.storage.transactions import Transaction
from mosha.ledger.terms.payers import Payer

__all__ = ["count_like_last"]


def count_like_last(transaction: Transaction, payers: Sequence[Payer], account: str) -> int | None:
    """How often the last payment that charged `account` would fit once more into it and those that pay with it.

    None where nothing was paid yet, where the last payment was free, and where nothing can be paid any more because an
    account has ended or is retired. Reads one row or two, however long the book is.
    """
    last = _find_last(transaction, account)
    if last is None:
        return None
    charges = {stored["account"]: Charge.from_dict(stored) for stored in last.content()["charges"]}
    try:
        check_ends(payers, transaction.now())
        return count_room(transaction, payers, [charges[payer.terms.name] for payer in payers])
    except (AccountExpired, AccountRetired):
        return None


def _find_last(transaction: Transaction, account: str) -> Entry | None:
    """The last payment or lease that charged an account; of one that handed something back, the payment itself."""
    row = transaction.row("SELECT entry FROM accounts WHERE name = ?", account)
    last = None if row is None else transaction.entry(row[0])
    if last is not None and last.kind == "close":
        last = transaction.entry(last.content()["payment"])
    return None if last is None or last.kind == "open" else last
