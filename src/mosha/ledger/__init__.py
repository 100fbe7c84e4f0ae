"""The book of accounts: who may spend how much privacy, who has, and the proof of both.

mosha.Ledger("privacy.db")       a book in a file (SQLite), at a URL (PostgreSQL), or in memory
ledger.account(...)              a purse with a unit and a limit; accounts form a tree
account.open(measurement)        pay, or be refused; then step through the data
ledger.verify()                  is every row untouched and every sum right?
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.ledger.account import JointAccount as JointAccount
    from mosha.ledger.account import LedgerAccount as LedgerAccount
    from mosha.ledger.checking.verify import Report as Report
    from mosha.ledger.ledger import Ledger as Ledger
    from mosha.ledger.paying.lease import Lease as Lease
    from mosha.ledger.showing import draw_ledger as draw_ledger
    from mosha.ledger.storage.chain import Entry as Entry
    from mosha.ledger.storage.chain import Head as Head
    from mosha.ledger.terms.note import Note as Note

_NAMES = {
    "Entry": "storage.chain",
    "Head": "storage.chain",
    "JointAccount": "account",
    "Lease": "paying.lease",
    "Ledger": "ledger",
    "LedgerAccount": "account",
    "Note": "terms.note",
    "Report": "checking.verify",
    "draw_ledger": "showing",
}
__all__ = ["Entry", "Head", "JointAccount", "Lease", "Ledger", "LedgerAccount", "Note", "Report", "draw_ledger"]
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES)
