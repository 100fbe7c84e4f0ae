"""Who holds a payment: a secret in the memory of the holder, and its hash in the book.

The row that gives a payment to a holder (`pay`, `lease`, `claim`) carries a lock, the hash of a secret that was drawn
for it. The rows that give something away on the word of the holder alone (`unreached`: the step did not meet the data;
`close`: these steps were never started) carry the secret that opens the lock. Whoever can write the book and was not
the holder cannot write such a row: `verify` finds it, also in a book without a key. Proof: `payment.md`, 9.

Guarantee:
    Forging one of these rows takes a preimage of 128 bits of SHA-256. A secret is shown once its holder has given the
    payment up: after `unreached` the next start needs a new lock, after `close` there is none.

Inside of one process a step that is being answered is noted too: a second thread under the same key is told to ask
again. Other processes (and other `Ledger` objects) are not seen here; between those the book decides (`payment.py`).

Failures of paid steps are counted at every account that paid, until the account is frozen and its owner lifts it. An
error that leaves a step may depend on the rows, and then its existence tells something that no noise covers. Engines
are kept from failing at a row (`connect/sql/expressions.py`); this is the second line behind that one. Each failure
is a row of the book (`failure`), written before the error leaves. An account whose failures since its last `lift`
have reached its allowance is frozen: it pays for nothing, and neither an answer nor an error leaves a step that was
under way.

Guarantee:
    Between two lifts of an account, at most `allowance` steps that it paid for end in an error (and one more for each
    lease that was open when it froze). Proof: `payment.md`.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Sequence
from typing import Any

from mosha.core.errors import AccountFrozen, AnswerPending, UnknownAccount
from mosha.ledger.storage.transactions import Storage, Transaction
from mosha.ledger.terms.payers import Payer
from mosha.ledger.terms.terms import Terms

__all__ = [
    "begin",
    "count_failure",
    "draw_secret",
    "end",
    "failures_of",
    "is_frozen",
    "lift",
    "make_lock",
    "opens",
    "refuse_frozen",
]

DIGITS = 32  # hexadecimal: 128 bits


def draw_secret() -> str:
    """A secret for one holder of one payment."""
    return secrets.token_hex(DIGITS // 2)


def make_lock(secret: str) -> str:
    """What the book shows of a secret.

    >>> opens(make_lock("5e"), "5e"), opens(make_lock("5e"), "5f"), opens(make_lock("5e"), None)
    (True, False, False)
    """
    return hashlib.sha256(b"holder of a payment: " + secret.encode()).hexdigest()[:DIGITS]


def opens(lock: str, secret: object) -> bool:
    """Whether this is the secret behind a lock."""
    return isinstance(secret, str) and make_lock(secret) == lock


_lock = threading.Lock()
_holders: dict[tuple[int, int, int], int] = {}  # process, ledger and row of the payment -> who answers it


def begin(storage: Storage, payment: int, holder: object, *, name: str) -> None:
    """Note that `holder` answers a step of a payment (the number of its row); AnswerPending where another one does."""
    with _lock:
        if _holders.setdefault((os.getpid(), id(storage), payment), id(holder)) != id(holder):
            raise AnswerPending("ledger.being_answered", measurement=name, spent="nothing")


def end(storage: Storage, payment: int, holder: object) -> None:
    """The step is over, whatever became of it."""
    place = (os.getpid(), id(storage), payment)
    with _lock:
        if _holders.get(place) == id(holder):
            del _holders[place]


def _counts(transaction: Transaction, payers: Sequence[Payer]) -> dict[str, int]:
    """The failures of each payer since its last lift."""
    names = [payer.terms.name for payer in payers]
    marks = ", ".join("?" * len(names))
    rows = transaction.rows(f"SELECT account, count FROM failures WHERE account IN ({marks})", *names)  # noqa: S608
    return dict.fromkeys(names, 0) | {name: int(count) for name, count in rows}


def is_frozen(transaction: Transaction, payers: Sequence[Payer]) -> bool:
    """Whether one of the payers has used up its allowance."""
    counts = _counts(transaction, payers)
    return any(counts[payer.terms.name] >= payer.terms.failures for payer in payers)


def refuse_frozen(transaction: Transaction, payers: Sequence[Payer], *, paid: bool) -> None:
    """Raise AccountFrozen where one of the payers is frozen; of several, the one nearest to the root.

    `paid` tells whether the step was paid for already. Nothing else about it is told: not whether it has an answer.
    """
    counts = _counts(transaction, payers)
    for payer in payers:  # parents come before their children
        if counts[payer.terms.name] >= payer.terms.failures:
            raise AccountFrozen(account=payer.terms.name, failures=payer.terms.failures, paid=paid)


def count_failure(transaction: Transaction, payers: Sequence[Payer], payment: int, step: int) -> Terms | None:
    """Note a failure at every payer, or raise AccountFrozen; the account that is frozen from now on, if one is."""
    refuse_frozen(transaction, payers, paid=True)
    counts = {name: count + 1 for name, count in _counts(transaction, payers).items()}
    transaction.append("failure", {"payment": payment, "step": step, "failures": counts})
    statement = "INSERT INTO failures VALUES (?, ?) ON CONFLICT (account) DO UPDATE SET count = excluded.count"
    for name, count in counts.items():
        transaction.run(statement, name, count)
    return next((payer.terms for payer in payers if counts[payer.terms.name] >= payer.terms.failures), None)


def failures_of(transaction: Transaction, name: str) -> int:
    """How many steps that an account paid for have failed since its last lift."""
    row = transaction.row("SELECT count FROM failures WHERE account = ?", name)
    return 0 if row is None else int(row[0])


def lift(transaction: Transaction, name: str) -> dict[str, int]:
    """Forget the failures of an account and of all beneath it; what was forgotten, by account."""
    if transaction.row("SELECT name FROM accounts WHERE name = ?", name) is None:
        raise UnknownAccount("ledger.no_account", account=name)
    rows = transaction.rows("SELECT account, count FROM failures")
    lifted: dict[str, Any] = {a: int(n) for a, n in rows if a == name or a.startswith(name + "/")}
    if lifted:
        transaction.append("lift", {"account": name, "failures": lifted})
        for account in lifted:
            transaction.run("DELETE FROM failures WHERE account = ?", account)
    return lifted
