"""The book of accounts: who may spend how much privacy, who has, and the proof of both.

mosha.Ledger("privacy.db")       a book in a file (SQLite), at a URL (PostgreSQL), or in memory
ledger.account(...)              a purse with a unit and a limit; accounts form a tree
account.open(measurement)        pay, or be refused; then step through the data
ledger.verify()                  is every row untouched and every sum right?
"""

from mosha.core.names.lazy import keep_public_names
from mosha.ledger.account import JointAccount, LedgerAccount
from mosha.ledger.checking.verify import Report
from mosha.ledger.ledger import Ledger
from mosha.ledger.paying.lease import Lease
from mosha.ledger.showing import draw_ledger
from mosha.ledger.storage.chain import Entry, Head
from mosha.ledger.terms.note import Note

__all__ = ["Entry", "Head", "JointAccount", "Lease", "Ledger", "LedgerAccount", "Note", "Report", "draw_ledger"]
keep_public_names(__name__)
