"""The book beside the data, and who pays from it: the same for every command, so that nobody is in two books."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from mosha.core.errors import InvalidParameter

if TYPE_CHECKING:
    from mosha.core.unit import Unit
    from mosha.ledger import Ledger

__all__ = ["find_account", "find_known_account", "find_known_book", "place_book"]

SERVERS = ("postgresql://", "postgres://", "mariadb://", "mysql://")


def place_book(data: str) -> str:
    """Where the book of these data is, or would be: `visits.csv.privacy.db`, or `visits.privacy.db` where that is.

    >>> place_book("lake/visits/*")
    'lake/visits.privacy.db'
    """
    if data.startswith(SERVERS):
        raise InvalidParameter("cli.no_ledger_beside_server", parameter="--ledger")
    return find_known_book(data) or f"{data.rstrip('/*')}.privacy.db"


def find_known_book(data: str) -> str | None:
    """The book that some command began for these data, or None."""
    path = Path(data.rstrip("/*"))
    places = [path.with_name(f"{name}.privacy.db") for name in (path.name, path.name.split(".")[0])]
    return next((str(place) for place in places if place.is_file()), None)


def find_account(book: Ledger, name: str, unit: Unit) -> str:
    """The account of this name; where there is none, the only one that the book has, if it hides the same."""
    known = [account for account in book.accounts() if "/" not in account.name]
    if len(known) == 1 and known[0].name != name and known[0].unit.protects_same(unit):
        return known[0].name
    return name


def find_known_account(place: str, name: str, unit: Unit) -> str:
    """The same in a book that is there already."""
    import mosha  # noqa: PLC0415  (a command that fails early loads nothing)
    from mosha.ledger.storage.key import find_key_file  # noqa: PLC0415

    with closing(mosha.Ledger(place, key=find_key_file(), create=False)) as book:
        return find_account(book, name, unit)
