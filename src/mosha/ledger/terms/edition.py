"""The edition of a book: which habits its rows keep, from which row on.

    1    the first one
    2    a row `fail` is followed by the row `failure` that counts it; holders lock their payments (`holder.py`)

A book says its edition in its first row. One that was begun earlier says it in a note, written with the first payment
of a version that keeps these habits: rows before the note are judged by the habits of their time.
"""

from __future__ import annotations

import json

from mosha.ledger.storage.chain import Content
from mosha.ledger.storage.transactions import Transaction
from mosha.ledger.terms.note import OWN, append_note

__all__ = ["EDITION", "TOPIC", "begin_edition", "read_edition"]

EDITION = 2
TOPIC = f"{OWN}edition"


def read_edition(content: Content) -> int:
    """The edition that a first row, or the content of a note, names."""
    named = content.get("edition", 1)
    return named if isinstance(named, int) else 1


def begin_edition(transaction: Transaction) -> None:
    """Note in a book of an earlier edition that it is of this one from now on."""
    first = transaction.row("SELECT body FROM entries WHERE sequence = 1")
    if first is None or read_edition(json.loads(first[0])) >= EDITION:
        return
    notes = transaction.rows("SELECT body FROM entries WHERE kind = 'note' ORDER BY sequence")
    said = [note for note in (json.loads(row[0]) for row in notes) if note["topic"] == TOPIC]
    if not any(read_edition(note["content"]) >= EDITION for note in said):
        append_note(transaction, TOPIC, {"edition": EDITION})
