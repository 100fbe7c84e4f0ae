"""A book with a key: whoever can write it and lacks the key pays nothing, and every row of theirs is found."""

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

import mosha
from mosha import errors, events
from mosha.ledger.storage.chain import follow
from mosha.ledger.storage.key import LedgerKey, make_key_file
from tests.ledger.place import PERSON, asking
from tests.ledger.test_second_opinion import EVENT, GIFTS, SECRETS, WORDS, Forger, append, make_book, overheard

KEY, NEXT, OTHER = (os.urandom(32) for _ in range(3))


def tampering(problems: Any) -> list[Any]:
    return [problem for problem in problems if "was not written with the key" in problem]


def test_a_book_with_a_key_works_and_is_well(place: Any) -> None:
    ledger = make_book(place.open(key=KEY))
    report = ledger.verify()
    assert report.ok
    assert all("key" not in note for note in report.notes)
    assert ledger.key_id == LedgerKey(KEY).id
    assert count_tags(place) == len(ledger.entries())
    assert ledger.entries()[0].content()["key"] == ledger.key_id
    assert KEY.hex() not in str(place.query("SELECT * FROM entries")) + str(place.query("SELECT * FROM tags"))


def count_tags(place: Any) -> Any:
    return place.query("SELECT COUNT(*) FROM tags")[0][0]


def test_books_without_a_key_are_what_they_were(place: Any) -> None:
    ledger = make_book(place.open())
    first = ledger.entries()[0]
    assert set(first.content()) == {"version", "book", "edition"}
    assert first.content()["version"] == 1
    with pytest.raises(Exception, match="tags"):
        place.query("SELECT * FROM tags")
    assert ledger.key_id is None


def every_write() -> dict[str, Any]:
    """Everything that writes a row, on a book that has an account."""
    return {
        "pay": lambda ledger: ledger.account("visits").open(asking(step=lambda *_: pytest.fail("data was read"))),
        "lease": lambda ledger: ledger.account("visits").lease(events.Laplace(10)),
        "open": lambda ledger: ledger.account("new", unit=PERSON, epsilon=1),
        "retire": lambda ledger: ledger.account("visits").retire(),
        "note": lambda ledger: ledger.note("approval", "yes"),
        "rotate": lambda ledger: ledger.rotate_key(os.urandom(32)),
    }


@pytest.mark.parametrize("write", every_write())
def test_whoever_lacks_the_key_writes_nothing(place: Any, write: Any) -> None:
    owner = place.open(key=KEY)
    owner.account("visits", unit=PERSON, epsilon=1)
    before = owner.entries()
    with pytest.raises(errors.LedgerKeyRefused, match="Nothing was spent") as refused:
        every_write()[write](place.open())
    assert (refused.value.needed, refused.value.given) == (owner.key_id, None)
    with pytest.raises(errors.LedgerKeyRefused, match="Nothing was spent") as refused:
        place.open(key=OTHER)
    assert refused.value.given == LedgerKey(OTHER).id
    assert owner.entries() == before


def test_whoever_had_the_book_open_when_it_got_a_key_is_refused(place: Any) -> None:
    early, owner = place.open(), place.open()
    account = early.account("visits", unit=PERSON, epsilon=5)
    owner.rotate_key(KEY)
    with pytest.raises(errors.LedgerKeyRefused):
        account.open(asking())
    owner.account("visits").open(asking()).step(None)
    late = place.open(key=KEY)
    owner.rotate_key(NEXT)
    with pytest.raises(errors.LedgerKeyRefused):  # the row that changed the key bears the tag of both
        late.account("visits").open(asking())
    assert owner.verify(keys=[KEY]).ok


def test_without_the_key_a_book_is_shown_and_verified_and_that_is_said(place: Any) -> None:
    make_book(place.open(key=KEY))
    ledger = place.open()
    assert ledger.account("visits").spent > 0
    report = ledger.verify()
    assert report.ok
    assert any("which was not given" in note for note in report.notes)


@pytest.mark.parametrize("named", ["another", "none"])
def test_a_key_that_no_row_names_is_a_problem(place: Any, named: str) -> None:
    """Somebody has put another book in this place."""
    ledger = make_book(place.open(key=OTHER) if named == "another" else place.open())
    assert any("no row of the book names a key" in problem for problem in ledger.verify(keys=[KEY]).problems) == (
        named == "none"
    )
    assert any("no row of the book names a key" in problem for problem in place.open().verify(keys=[KEY]).problems)
    with pytest.raises(errors.LedgerKeyRefused):
        place.open(key=KEY)


class Giver(Forger):
    """Also gives away what no honest reader can tell without a key."""

    def limit_opened_anew(self) -> tuple[Any, ...]:
        _, content = self.some("open", lambda content: content["name"] == "old")
        return "open", content | {"name": "new"}

    def note_of_a_decision(self) -> tuple[Any, ...]:
        return "note", {"topic": "approval", "content": "yes"}

    def key_of_the_thief(self) -> tuple[Any, ...]:
        return "key", {"key": LedgerKey(OTHER).id, "previous": LedgerKey(KEY).id}


UNSEEN = [*WORDS, "limit_opened_anew", "note_of_a_decision"]  # the first by whoever knows the secret of the holder


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, ...]]:
    """A keyed book with a lease that is still open, its place, and its rows."""
    from tests.ledger.place import SQLitePlace

    made = SQLitePlace(tmp_path_factory.mktemp("keyed") / "privacy.db")
    ledger = make_book(made.open(key=KEY))
    yield made, ledger.entries()
    made.close()


@pytest.mark.parametrize("gift", [*GIFTS, *UNSEEN, "key_of_the_thief"])
@pytest.mark.parametrize("tag", ["none", "own", "former"])
def test_a_row_of_whoever_lacks_the_key_is_found_and_nothing_is_paid_after_it(book: Any, gift: Any, tag: str) -> None:
    place, rows = book
    forger = Giver(rows)
    kind, content = getattr(forger, gift)()
    found = forger.forge(kind, content)
    row = follow(rows[-1].head, rows[-1].at, kind, content)
    if gift in UNSEEN:
        assert found == []  # without a key nothing tells it from an honest row, whose secrets are known here
    kept = place.query("SELECT tag FROM tags WHERE sequence = ?", rows[-1].sequence)[0][0]
    bearing = {"none": None, "own": LedgerKey(OTHER).tag(row.head), "former": kept}[tag]
    named = f"INSERT INTO tags VALUES ({row.sequence}, '{LedgerKey(KEY).id}', '{bearing}')"
    append(place, rows[-1].head, rows[-1].at, kind, content, *([named] if bearing else []))
    try:
        assert tampering(place.open().verify(keys=[KEY]).problems)
        with pytest.raises((errors.LedgerTampered, errors.LedgerKeyRefused)):
            place.open(key=KEY).account("visits").open(asking(step=lambda *_: pytest.fail("data was read"), unit=EVENT))
    finally:
        for table in ("entries", "tags"):
            place.tamper(f"DELETE FROM {table} WHERE sequence > {rows[-1].sequence}")
    assert place.open().verify(keys=[KEY]).ok


def test_an_open_lease_settled_as_unused_is_found_by_the_key_alone(place: Any) -> None:
    """With every balance and the whole index set right, by a thief who knows the holder's secret; on both engines."""
    ledger = place.open(key=KEY)
    account = ledger.account("visits", unit=PERSON, epsilon=1)
    with overheard():
        lease = account.lease(events.Pure(0.5) * 2)
    lease.open(asking(events.Pure(0.5))).step(None)
    honest = {table: place.query(f"SELECT * FROM {table}") for table in ("accounts", "payments", "purchases")}
    taken = ledger.entries()[-1]
    back = dict(taken.content()["charges"][0], spent=["0", "0"])
    content = {"payment": taken.sequence, "void": True, "kept": events.NOTHING.to_dict(), "returned": [back]}
    content["unlock"] = SECRETS[taken.content()["lock"]]
    named = f"INSERT INTO tags VALUES ({taken.sequence + 1}, '{ledger.key_id}', '{os.urandom(32).hex()}')"
    append(place, taken.head, taken.at, "close", content, named)
    said = replayed(ledger)
    index = []
    for table in honest:
        values = [", ".join("NULL" if v is None else "'" + str(v).replace("'", "''") + "'" for v in row)
                  for row in said.table(table)]  # fmt: skip
        index += [f"DELETE FROM {table}", *(f"INSERT INTO {table} VALUES ({row})" for row in values)]
    place.tamper(*index)
    assert place.open().verify().ok  # without the key it is an honest row
    assert tampering(place.open().verify(keys=[KEY]).problems)
    with pytest.raises(errors.LedgerTampered, match="Nothing was spent"):
        account.open(asking())


def replayed(ledger: Any) -> Any:
    from mosha.ledger.checking.verify import replay

    return ledger._storage.read(replay)


def test_a_rewritten_history_is_found(place: Any) -> None:
    """All rows from the second on are written anew with good hashes, and keep their tags."""
    ledger = place.open(key=KEY)
    account = ledger.account("visits", unit=PERSON, epsilon=3)
    account.open(asking()).step(None)
    rows, previous, statements = ledger.entries(), None, []
    for row in rows:
        previous = row.head if previous is None else follow(previous, row.at + 1, row.kind, row.content()).head
        statements.append(f"UPDATE entries SET at = at + {int(row.sequence > 1)}, hash = '{previous.hash}' "
                          f"WHERE sequence = {row.sequence}")  # fmt: skip
    place.tamper(*statements)
    if place.engine == "sqlite":
        place.path.with_name("privacy.db.head").unlink()
    other = place.open()
    assert other.verify().ok
    assert len(tampering(other.verify(keys=[KEY]).problems)) == len(rows) - 1


@pytest.mark.parametrize("edit", [
    "UPDATE tags SET tag = '0' WHERE sequence = 3", "DELETE FROM tags WHERE sequence = 3", "DROP TABLE tags",
    "UPDATE tags SET key = '0' WHERE sequence = 3", "INSERT INTO tags VALUES (999, 'a', 'b')",
    "INSERT INTO tags VALUES (3, 'a', 'b')",
])  # fmt: skip
def test_edited_tags_are_found(place: Any, edit: str) -> None:
    make_book(place.open(key=KEY)).close()
    place.tamper(edit)
    assert place.open().verify(keys=[KEY]).problems
    if "tag =" not in edit:
        assert place.open().verify().problems  # that tags are missing is seen without the key


def test_an_edited_last_row_is_refused_at_the_next_charge(place: Any) -> None:
    ledger = place.open(key=KEY)
    ledger.account("visits", unit=PERSON, epsilon=3)
    place.tamper("UPDATE entries SET body = replace(body, '3.0', '9.0') WHERE sequence = 2")
    with pytest.raises(errors.LedgerTampered, match="last one"):
        place.open(key=KEY).note("approval", "yes")


def test_keys_change_and_the_book_stays_well(place: Any) -> None:
    ledger = place.open()
    account = ledger.account("visits", unit=PERSON, epsilon=9)
    account.open(asking()).step(None)
    before = ledger.entries()
    ledger.rotate_key(KEY)
    account.open(asking()).step(None)
    ledger.rotate_key(NEXT)
    account.open(asking()).step(None)
    assert ledger.entries()[: len(before)] == before
    assert ledger.verify(keys=[KEY]).ok
    assert any(f"Rows up to {len(before)} " in note for note in ledger.verify(keys=[KEY]).notes)
    assert any("which was not given" in note for note in ledger.verify().notes)
    for once in (KEY, NEXT):
        with pytest.raises(errors.InvalidParameter, match="each key once"):
            ledger.rotate_key(once)
    reopened = place.open(key=NEXT)
    reopened.account("visits").open(asking()).step(None)
    assert reopened.verify(keys=[KEY]).ok


def test_a_former_key_is_of_no_use(place: Any) -> None:
    """Whoever stole the former key writes a row with it after the change."""
    ledger = place.open(key=KEY)
    ledger.rotate_key(NEXT)
    last = ledger.entries()[-1]
    row = follow(last.head, last.at, "note", {"topic": "approval", "content": "yes"})
    tag = f"INSERT INTO tags VALUES ({row.sequence}, '{LedgerKey(KEY).id}', '{LedgerKey(KEY).tag(row.head)}')"
    append(place, last.head, last.at, "note", {"topic": "approval", "content": "yes"}, tag)
    with pytest.raises(errors.LedgerTampered):
        ledger.note("approval", "no")
    assert tampering(place.open().verify(keys=[KEY, NEXT]).problems)


def test_a_key_that_could_not_be_changed_stays(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = place.open(key=KEY)

    def broken(*_: Any) -> NoReturn:
        raise errors.LedgerUnavailable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("mosha.ledger.storage.seal.write_tag", broken)
        with pytest.raises(errors.LedgerUnavailable):
            ledger.rotate_key(NEXT)
    ledger.note("approval", "yes")
    assert ledger.verify().ok
    assert ledger.key_id == LedgerKey(KEY).id


def test_key_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    made = make_key_file(tmp_path / "key")
    assert LedgerKey.of(tmp_path / "key").id == made.id
    with pytest.raises(errors.InvalidParameter, match="never overwritten"):
        make_key_file(tmp_path / "key")
    (tmp_path / "key").chmod(0o640)
    with pytest.raises(errors.InvalidParameter, match="chmod 600"):
        mosha.Ledger(tmp_path / "privacy.db", key=tmp_path / "key")
    (tmp_path / "short").write_bytes(b"x" * 31)
    (tmp_path / "short").chmod(0o600)
    for bad in (tmp_path / "short", b"x" * 31, tmp_path / "none", "", 7):
        with pytest.raises(errors.InvalidParameter):
            mosha.Ledger(tmp_path / "privacy.db", key=bad)  # type: ignore[arg-type]
    assert not (tmp_path / "privacy.db").exists()


def test_a_key_is_shown_by_its_name_alone() -> None:
    key = LedgerKey(KEY)
    assert KEY.hex() not in repr(key) + str(key)
    assert key.id != LedgerKey(OTHER).id
    with pytest.raises(errors.InvalidParameter):
        pickle.dumps(key)
