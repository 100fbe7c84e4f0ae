"""Notes: what was decided, beside what was paid.

A note is a row of the chain that costs nothing and moves nothing: who granted, who approved, which declaration was
in force. Nothing in the ledger ever pays, refunds or refuses because of what somebody wrote in a note. Topics under
`mosha/` are written by the ledger itself, and nobody else can write them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mosha.core.errors import InvalidParameter, UnknownAccount
from mosha.ledger.storage.chain import Content, Entry, canonical
from mosha.ledger.storage.transactions import Transaction
from mosha.ledger.terms.moment import as_text

__all__ = ["LARGEST", "OWN", "Note", "append_note", "check_content", "check_topic", "find_notes", "is_well_formed"]

LARGEST = 16_384  # characters of the canonical JSON of a note's content
DEEPEST = 32
OWN = "mosha/"
_TOPIC = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*(/[a-z0-9]+(-[a-z0-9]+)*)*")
_LONGEST_TOPIC = 100


@dataclass(frozen=True)
class Note:
    """One note, as the chain holds it; `about` names an account where the note is about one.

    A row of the book: its `sequence`, when (`at`), its `topic` and `content`, its `hash`, the `row` as it is written,
    and the `entry` of the payment it belongs to.

    >>> import mosha
    >>> mosha.Ledger.memory().note("review", {"by": "Ada"}).content
    {'by': 'Ada'}
    """

    sequence: int
    at: int
    topic: str
    content: Any
    about: str | None
    hash: str

    @property
    def entry(self) -> str:
        """How the row is named: its place and the beginning of its hash."""
        return f"{self.sequence}-{self.hash[:12]}"

    @staticmethod
    def of_row(row: Sequence[Any]) -> Note:
        """The note of a row as a database gives it."""
        return Note.of(Entry(*row))

    @staticmethod
    def of(entry: Entry) -> Note:
        """The note that a row of the book holds."""
        said = entry.content()
        return Note(entry.sequence, entry.at, said["topic"], said["content"], said.get("about"), entry.hash)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for programs."""
        described = {"entry": self.entry, "at": as_text(self.at), "topic": self.topic, "content": self.content}
        return described | ({} if self.about is None else {"about": self.about})


def check_topic(topic: object) -> str:
    """A topic: words in lower case, joined by '-' within and '/' between.

    >>> check_topic("approval/monthly-report")
    'approval/monthly-report'
    """
    if not isinstance(topic, str) or len(topic) > _LONGEST_TOPIC or not _TOPIC.fullmatch(topic):
        raise InvalidParameter("ledger.bad_topic", parameter="topic", longest=_LONGEST_TOPIC)
    return topic


def check_content(content: object) -> Any:
    """Plain JSON data of bounded size, which reads back as it was written."""
    _check_plain(content, DEEPEST)
    try:
        size = len(canonical(content))
    except ValueError:
        raise InvalidParameter("ledger.note_not_finite", parameter="content") from None
    if size > LARGEST:
        raise InvalidParameter("ledger.note_too_large", parameter="content", largest=LARGEST, size=size)
    return content


def _check_plain(value: object, depth: int) -> None:
    if depth == 0:
        raise InvalidParameter("ledger.note_too_deep", parameter="content", deepest=DEEPEST)
    if type(value) is dict:
        if not all(type(name) is str for name in value):
            raise InvalidParameter("ledger.note_names", parameter="content")
        value = list(value.values())
    if type(value) is list:
        for inner in value:
            _check_plain(inner, depth - 1)
    elif value is not None and type(value) not in (str, int, float, bool):
        raise InvalidParameter("ledger.note_not_json", parameter="content", kind=type(value).__name__)


def append_note(transaction: Transaction, topic: str, content: object, about: str | None = None) -> Note:
    """Write a note; `topic` and `content` have been checked."""
    if about is not None and transaction.row("SELECT name FROM accounts WHERE name = ?", about) is None:
        raise UnknownAccount("ledger.note_about_nothing", account=about)
    said = {"topic": topic, "content": content} | ({} if about is None else {"about": about})
    return Note.of(transaction.append("note", said))


def find_notes(transaction: Transaction, topic: str | None, about: str | None) -> list[Note]:
    """The notes of a topic and the topics under it, about an account; all of them by default."""
    rows = transaction.rows("SELECT sequence, at, kind, body, hash FROM entries WHERE kind = 'note' ORDER BY sequence")
    notes = (Note.of_row(row) for row in rows)
    return [note for note in notes if _is_under(note.topic, topic) and about in (None, note.about)]


def _is_under(topic: str, wanted: str | None) -> bool:
    return wanted is None or topic == wanted or topic.startswith(wanted + "/")


def is_well_formed(said: Content) -> bool:
    """Whether the content of a row is one that a note can have."""
    try:
        check_topic(said["topic"])
        check_content(said["content"])
    except InvalidParameter:
        return False
    return set(said) <= {"topic", "content", "about"}
