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
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading

from mosha.core.errors import AnswerPending
from mosha.ledger.storage.transactions import Storage

__all__ = ["begin", "draw_secret", "end", "make_lock", "opens"]

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
