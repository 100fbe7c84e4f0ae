"""Payments whose step is being answered through this ledger: a second thread under the same key is told to ask again.

Other processes (and other `Ledger` objects) are not seen here; between those the book decides (`payment.py`).
"""

from __future__ import annotations

import os
import threading

from mosha.core.errors import AnswerPending
from mosha.ledger.storage.transactions import Storage

__all__ = ["begin", "end"]

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
