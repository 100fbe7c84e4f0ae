"""Verification goes on from a checkpoint: later rows are read alone, and as if all had been read."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha import errors
from mosha.ledger.checking.checkpoint import OWN, SHARED, Checkpoint
from mosha.ledger.checking.replay import Replay
from mosha.ledger.checking.verify import TABLES
from mosha.ledger.storage.chain import follow
from mosha.ledger.storage.key import LedgerKey
from tests.ledger.place import asking
from tests.ledger.test_second_opinion import EVENT, GIFTS, Forger, make_book, read

KEY = os.urandom(32)


@pytest.fixture(scope="module")
def rows() -> Any:
    return make_book(mosha.Ledger.memory()).entries()


def resume(rows: Any, after: Any) -> Any:
    """Read the rows after a place, from a checkpoint that was written down there."""
    before = read(rows[:after])
    state = json.loads(json.dumps(Checkpoint.of(before, rows[0].head, after, 0).state))
    said = Checkpoint(rows[0].head, after, 0, state).replay()
    for row in rows[after:]:
        said.read(row)
    said.finish()
    return said


def test_reading_on_from_any_row_finds_what_reading_everything_finds(rows: Any) -> None:
    whole = read(rows)
    for after in range(len(rows) + 1):
        said = resume(rows, after)
        assert said.problems == []
        assert {table: said.table(table) for table in TABLES} == {table: whole.table(table) for table in TABLES}
        assert said.keys == whole.keys


@pytest.mark.parametrize("gift", GIFTS)
def test_a_row_that_gives_something_away_is_found_from_a_checkpoint_too(rows: Any, gift: Any) -> None:
    forger = Forger(rows)
    kind, content = getattr(forger, gift)()
    found = forger.forge(kind, content)
    forged = follow(rows[-1].head, rows[-1].at, kind, content)
    for after in (1, len(rows) // 2, len(rows)):
        assert resume([*rows, forged], after).problems == found != []


def test_every_part_of_a_payment_is_kept() -> None:
    from dataclasses import fields

    from mosha.ledger.checking.state import PaymentState

    assert sorted((*OWN, *SHARED)) == sorted(field.name for field in fields(PaymentState))


def test_only_later_rows_are_read_and_priced(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = make_book(place.open())
    checkpoint = ledger.verify().checkpoint
    ledger.account("visits").open(asking(unit=EVENT)).step(None)
    seen, read_row = [], Replay.read
    monkeypatch.setattr(Replay, "read", lambda said, entry: (seen.append(entry.sequence), read_row(said, entry))[1])
    report = ledger.verify(since=checkpoint)
    assert report.ok
    assert seen == [checkpoint.head.sequence + 1, checkpoint.head.sequence + 2]
    assert (report.entries, report.head) == (len(ledger.entries()), ledger.head)
    assert any("not read again" in note for note in report.notes)
    assert ledger.verify(since=report.checkpoint).ok
    assert ledger.verify(since=checkpoint).ok  # which reading on from has not changed


@pytest.mark.parametrize("key", [None, KEY], ids=["without a key", "with a key"])
def test_a_checkpoint_in_a_file(place: Any, tmp_path: Path, key: Any) -> None:
    (tmp_path / "elsewhere").mkdir()
    file = tmp_path / "elsewhere" / "checkpoint"
    ledger = make_book(place.open() if key is None else place.open(key=key))
    with pytest.raises(errors.InvalidParameter, match="cannot be read"):
        ledger.verify(since=file)
    for _ in range(3):
        assert ledger.verify(since=file, keep=True).ok
        ledger.account("visits").open(asking(unit=EVENT)).step(None)
    assert any("were checked before" in note for note in ledger.verify(since=file).notes)
    place.tamper("UPDATE accounts SET amount = '0' WHERE name = 'visits'")
    before = file.read_bytes()
    assert ledger.verify(since=file, keep=True).problems
    assert file.read_bytes() == before  # what is not well is not remembered as checked


def test_a_book_that_lacks_the_head_of_the_checkpoint_is_found(place: Any, tmp_path: Path) -> None:
    ledger = make_book(place.open())
    checkpoint = ledger.verify().checkpoint
    place.tamper(f"UPDATE entries SET hash = '{'0' * 64}' WHERE sequence = {checkpoint.head.sequence}")
    assert any("head of the checkpoint" in problem for problem in ledger.verify(since=checkpoint).problems)
    place.tamper(f"DELETE FROM entries WHERE sequence = {checkpoint.head.sequence}")
    assert any("head of the checkpoint" in problem for problem in ledger.verify(since=checkpoint).problems)


def test_heads_from_before_the_checkpoint_are_still_compared(place: Any) -> None:
    ledger = make_book(place.open())
    early, checkpoint = ledger.entries()[3], ledger.verify().checkpoint
    for head in (str(early.head), early.hash):
        assert ledger.verify(since=checkpoint, head=head).ok
    for head in (f"4:{'1' * 64}", "1" * 64, f"99999:{early.hash}"):
        assert any("from elsewhere" in problem for problem in ledger.verify(since=checkpoint, head=head).problems)


def test_a_book_that_is_not_well_gives_no_checkpoint(place: Any) -> None:
    ledger = make_book(place.open())
    place.tamper("DELETE FROM steps")
    assert ledger.verify().checkpoint is None


def test_without_a_key_a_checkpoint_beside_the_book_is_refused(tmp_path: Path) -> None:
    ledger = mosha.Ledger(tmp_path / "privacy.db")
    with pytest.raises(errors.InvalidParameter, match="Keep it elsewhere"):
        ledger.verify(since=tmp_path / "checkpoint", keep=True)
    keyed = mosha.Ledger(tmp_path / "keyed.db", key=KEY)
    assert keyed.verify(since=tmp_path / "checkpoint", keep=True).ok


def test_a_checkpoint_of_another_hand_is_refused(tmp_path: Path) -> None:
    file, book = tmp_path / "checkpoint", tmp_path / "book"
    book.mkdir()
    keyed = mosha.Ledger(book / "privacy.db", key=KEY)
    keyed.account("visits", unit=EVENT, epsilon=1)
    made = keyed.verify().checkpoint
    made.save(file, LedgerKey(os.urandom(32)))
    with pytest.raises(errors.InvalidParameter, match="saved with the key"):
        keyed.verify(since=file)
    made.save(file, None)
    with pytest.raises(errors.InvalidParameter, match="saved without a key"):
        keyed.verify(since=file)
    made.save(file, LedgerKey(KEY))
    assert keyed.verify(since=file).ok
    with pytest.raises(errors.InvalidParameter, match="saved with the key"):
        mosha.Ledger(book / "privacy.db").verify(since=file)
    file.write_text(file.read_text().replace('"retired":false', '"retired":true'))
    with pytest.raises(errors.InvalidParameter, match="edited"):
        keyed.verify(since=file)
    file.write_text("{}")
    with pytest.raises(errors.InvalidParameter, match="not a checkpoint"):
        keyed.verify(since=file)


def test_a_row_without_its_tag_is_found_from_a_checkpoint(place: Any) -> None:
    ledger = place.open(key=KEY)
    ledger.account("visits", unit=EVENT, epsilon=3)
    checkpoint = ledger.verify().checkpoint
    ledger.note("approval", "yes")
    assert ledger.verify(since=checkpoint).ok
    place.tamper(f"UPDATE tags SET tag = '{'0' * 64}' WHERE sequence = {ledger.head.sequence}")
    assert any("not written with the key" in problem for problem in ledger.verify(since=checkpoint).problems)
