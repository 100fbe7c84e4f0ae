"""Every way to falsify a book is found; an honest book, however it was used, is well."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha import errors, events
from mosha.ledger.storage.chain import GENESIS, follow
from tests.ledger.place import PERSON, asking


@pytest.fixture
def book(place: Any) -> Any:
    """A book in which everything has happened once."""
    ledger = place.open()
    visits = ledger.account("visits", unit=PERSON, epsilon=10)
    zhang = visits.child("zhang", epsilon=5)
    zhang.open(asking(answer=1), key="a").step(None)
    with visits.open(asking(events.Laplace(10) * 4, horizon=4)) as run:
        run.step(None)
    with pytest.raises(errors.StepFailed):
        visits.open(asking(answer=lambda data: 1 / 0), key="b").step(None)
    with visits.lease(events.Laplace(10) * 5) as lease:
        lease.open(asking(events.Laplace(10))).step(None)
    visits.open(asking(), key="c")
    zhang.retire()
    assert ledger.verify().ok
    return ledger


def found(place: Any) -> Any:
    """What verify says, to whoever opens the book without trusting its index."""
    return place.open().verify().problems


def test_an_honest_book_is_well(book: Any) -> None:
    report = book.verify()
    assert report.to_dict() == {
        "ok": True, "entries": len(book.entries()), "head": str(book.head), "problems": [], "notes": list(report.notes)
    }  # fmt: skip
    assert bool(report.notes) == (book._storage.witnessed is None)  # said where nothing would show an older copy


def test_the_guards_refuse_changes(place: Any, book: Any) -> None:
    for statement in ("UPDATE entries SET body = '{}' WHERE sequence = 3", "DELETE FROM entries WHERE sequence = 3"):
        with pytest.raises(Exception, match="appended"):
            place.query(statement)
    assert book.verify().ok


@pytest.mark.parametrize("column", ["at = at + 1", "kind = 'claim'", "body = '{}'", "hash = '" + "0" * 64 + "'"])
def test_an_edited_row_is_found(place: Any, book: Any, column: Any) -> None:
    for sequence in (1, 4, 5, 7, len(book.entries())):
        kept = place.query("SELECT at, kind, body, hash FROM entries WHERE sequence = ?", sequence)[0]
        place.tamper(f"UPDATE entries SET {column} WHERE sequence = {sequence}")
        assert any(f"row {sequence}" in problem for problem in book.verify().problems)
        at, kind, body, digest = kept
        body = body.replace("'", "''")
        place.tamper(
            f"UPDATE entries SET at = {at}, kind = '{kind}', body = '{body}', hash = '{digest}' "
            f"WHERE sequence = {sequence}"
        )
    assert book.verify().ok


def test_a_price_that_was_lowered_is_found(place: Any, book: Any) -> None:
    row = next(entry for entry in book.entries() if entry.kind == "pay")
    content = row.content()
    content["charges"][0]["price"][0] = "1"
    place.tamper(f"UPDATE entries SET body = '{json.dumps(content)}' WHERE sequence = {row.sequence}")
    assert any("hash" in problem for problem in book.verify().problems)


def test_a_removed_row_is_found(place: Any, book: Any) -> None:
    place.tamper("DELETE FROM entries WHERE sequence = 5")
    assert any("rows 5 to 5 are missing" in problem for problem in found(place))


def test_reordered_rows_are_found(place: Any, book: Any) -> None:
    place.tamper(
        "UPDATE entries SET sequence = -4 WHERE sequence = 4",
        "UPDATE entries SET sequence = 4 WHERE sequence = 5",
        "UPDATE entries SET sequence = 5 WHERE sequence = -4",
    )
    assert {f"row {n} was edited, moved, or written by another hand: its hash is wrong" for n in (4, 5)} <= set(
        found(place)
    )


def test_a_truncated_tail_is_found_by_the_index(place: Any, book: Any) -> None:
    place.tamper(f"DELETE FROM entries WHERE sequence >= {book.head.sequence - 1}")
    with pytest.raises(errors.LedgerTampered):
        book.account("visits").open(asking())  # a ledger that saw more refuses to go on
    assert any("index" in problem for problem in book.verify().problems)


def test_a_tail_that_was_cut_with_its_index_is_found_by_a_head_kept_elsewhere(place: Any, book: Any) -> None:
    head = str(book.head)
    place.tamper(
        f"DELETE FROM entries WHERE sequence = {book.head.sequence}",
        "UPDATE accounts SET retired = 0",  # the last row had retired an account
    )
    if place.engine == "sqlite":
        place.path.with_name("privacy.db.head").unlink()
    ledger = place.open()
    assert ledger.verify().ok  # nothing inside the book tells
    for known in (head, head.partition(":")[2]):
        assert any("elsewhere" in problem for problem in ledger.verify(head=known).problems)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accounts SET amount = '0'",
        "UPDATE accounts SET retired = 0",
        "UPDATE accounts SET terms = replace(terms, '10.0', '99.0')",
        "DELETE FROM accounts WHERE name = 'visits'",
        "DELETE FROM payments",
        "UPDATE payments SET attempts = 0",
        "UPDATE payments SET key = 'z' WHERE key = 'a'",
        "DELETE FROM steps",
        "INSERT INTO lanes VALUES ('visits', 'visits', 'x', '0', '0')",
        "DELETE FROM purchases",
        "UPDATE payments SET released = released + 1",
        "UPDATE accounts SET entry = 2",
    ],
)
def test_an_edited_index_is_found(place: Any, book: Any, statement: str) -> None:
    place.tamper(statement)
    assert any("index" in problem for problem in book.verify().problems)


def test_a_history_that_was_rewritten_with_good_hashes_is_found_by_what_it_says(place: Any, book: Any) -> None:
    """A thief who recomputes every hash must still tell a story that adds up."""
    entries, previous, rows = book.entries(), GENESIS, []
    for entry in entries:
        content = entry.content()
        if entry.kind == "pay":
            content["charges"] = content["charges"][:-1]
        rows.append(follow(previous, entry.at, entry.kind, content))
        previous = rows[-1].head
    bodies = [
        f"UPDATE entries SET body = '{row.body}', hash = '{row.hash}' WHERE sequence = {row.sequence}" for row in rows
    ]
    place.tamper(*bodies)
    problems = book.verify().problems
    assert not any("hash" in problem for problem in problems)
    assert any("does not charge exactly the accounts it must" in problem for problem in problems)


@pytest.mark.parametrize(
    ("kind", "content", "sentence"),
    [
        ("release", {"payment": 4, "step": 1, "claim": 1}, "second time"),
        ("release", {"payment": 4, "step": 2, "claim": 1}, "not paid for"),
        ("release", {"payment": 999, "step": 1, "claim": 1}, "no sense"),
        ("claim", {"payment": 4, "step": 1, "claim": 9}, "cannot be claimed"),
        ("unreached", {"payment": 4, "step": 1, "claim": 9}, "overtaken"),
        ("retire", {"account": "visits/zhang"}, "second time"),
        ("open", {"account": "x"}, "no sense"),
        ("ledger", {"version": 1}, "another kind"),
        ("gift", {}, "no sense"),
    ],
)
def test_a_row_that_was_forged_behind_the_last_one_is_found(
    place: Any, book: Any, kind: str, content: Any, sentence: str
) -> None:
    entry = follow(book.head, 2**60, kind, content)
    place.tamper(f"INSERT INTO entries VALUES ({entry.sequence}, {entry.at}, '{kind}', '{entry.body}', '{entry.hash}')")
    assert any(sentence in problem for problem in book.verify().problems)


def test_a_forged_gift_above_the_limit_is_found(place: Any, book: Any) -> None:
    paid = next(entry for entry in book.entries() if entry.kind == "pay").content()
    for charge in paid["charges"]:
        charge["price"][0] = str(2**140)
    entry = follow(book.head, 2**60, "pay", paid)
    place.tamper(f"INSERT INTO entries VALUES ({entry.sequence}, {entry.at}, 'pay', '{entry.body}', '{entry.hash}')")
    sentences = " ".join(book.verify().problems)
    for part in ("overspends account 'visits'", "pays a second time under one key", "retired account 'visits/zhang'"):
        assert part in sentences


@pytest.mark.parametrize("head", ["", "7", "x:y", "0" * 63, "-1:" + "0" * 64, 7])
def test_a_head_that_is_none_is_refused(book: Any, head: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        book.verify(head=head)


def test_time_in_the_book_never_runs_backwards(place: Any) -> None:
    clock = iter([2_000, 1_000, 3_000, 500, 400, 300, 200, 100, 50])
    ledger = place.open(clock=lambda: next(clock))
    account = ledger.account("visits", unit=PERSON, epsilon=5)
    account.open(asking()).step(None)
    account.open(asking())
    times = [entry.at for entry in ledger.entries()]
    assert times == sorted(times) == [2_000, 2_000, 3_000, 3_000, 3_000]
    assert ledger.verify().ok


class TestOlderCopies:
    """A copied-back file is noticed as long as one witness was not copied back with it."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Any:
        return tmp_path / "privacy.db"

    def spend(self, path: Any, times: Any = 1) -> Any:
        with mosha.Ledger(path) as ledger:
            account = ledger.account("visits", unit=PERSON, epsilon=100)
            for _ in range(times):
                account.open(asking()).step(None)
            return str(ledger.head)

    def test_the_witness_notices_an_older_copy(self, path: Any, tmp_path: Path) -> None:
        self.spend(path)
        shutil.copy(path, tmp_path / "old.db")
        self.spend(path)
        shutil.copy(tmp_path / "old.db", path)
        with pytest.raises(errors.LedgerTampered, match="older copy"):
            mosha.Ledger(path)

    def test_the_witness_notices_another_book_of_the_same_length(self, path: Any, tmp_path: Path) -> None:
        self.spend(path)
        self.spend(tmp_path / "other.db")
        shutil.copy(tmp_path / "other.db", path)
        with pytest.raises(errors.LedgerTampered, match="another book"):
            mosha.Ledger(path)

    def test_both_files_copied_back_are_noticed_by_a_head_kept_elsewhere_alone(self, path: Any, tmp_path: Path) -> None:
        self.spend(path)
        for name in ("privacy.db", "privacy.db.head"):
            shutil.copy(tmp_path / name, tmp_path / f"{name}.old")
        head = self.spend(path)
        for name in ("privacy.db", "privacy.db.head"):
            shutil.copy(tmp_path / f"{name}.old", tmp_path / name)
        with mosha.Ledger(path) as ledger:
            assert ledger.verify().ok
            assert not ledger.verify(head=head).ok

    def test_a_file_that_was_swapped_under_a_living_ledger_is_noticed(self, path: Any, tmp_path: Path) -> None:
        self.spend(path)
        shutil.copy(path, tmp_path / "old.db")
        ledger = mosha.Ledger(path)
        account = ledger.account("visits")
        shutil.move(tmp_path / "old.db", path)
        with pytest.raises(errors.LedgerTampered, match="replaced"):
            account.open(asking())

    def test_a_witness_that_lags_behind_is_no_alarm(self, path: Any, tmp_path: Path) -> None:
        self.spend(path)
        shutil.copy(tmp_path / "privacy.db.head", tmp_path / "lagging")
        self.spend(path, 3)
        shutil.copy(tmp_path / "lagging", tmp_path / "privacy.db.head")
        self.spend(path)

    def test_a_missing_witness_begins_anew(self, path: Any, tmp_path: Path) -> None:
        self.spend(path)
        (tmp_path / "privacy.db.head").unlink()
        self.spend(path)
        assert (tmp_path / "privacy.db.head").exists()

    def test_a_torn_witness_still_holds_its_other_slot(self, path: Any, tmp_path: Path) -> None:
        self.spend(path)
        witness = tmp_path / "privacy.db.head"
        content = witness.read_bytes()
        for torn in (b"x" * 128 + content[128:], content[:128] + b"x" * 128, content[:200]):
            witness.write_bytes(torn)
            mosha.Ledger(path).close()
        witness.write_bytes(b"nonsense")
        with pytest.raises(errors.LedgerTampered, match="witness"):
            mosha.Ledger(path)

    def test_a_witness_may_stand_elsewhere(self, path: Any, tmp_path: Path) -> None:
        witness = tmp_path / "elsewhere" / "visits.head"
        witness.parent.mkdir()
        with mosha.Ledger(path, witness=witness) as ledger:
            ledger.account("visits", unit=PERSON, epsilon=1)
        assert witness.exists()
        assert not (tmp_path / "privacy.db.head").exists()


def test_a_witness_watches_over_postgresql_where_it_is_given_one(postgres_server: Any, tmp_path: Path) -> None:
    from tests.ledger.place import PostgreSQLPlace

    place = PostgreSQLPlace(postgres_server)
    try:
        ledger = place.open(witness=tmp_path / "head")
        ledger.account("visits", unit=PERSON, epsilon=5).open(asking())
        place.tamper(
            "DELETE FROM entries WHERE sequence >= 3",
            "DELETE FROM payments",
            "DELETE FROM purchases",
            "UPDATE accounts SET amount = '0', entry = 2",
        )
        with pytest.raises(errors.LedgerTampered, match="older copy"):
            place.open(witness=tmp_path / "head")
        assert place.open().verify().ok  # without a witness nothing tells
    finally:
        place.close()


def test_a_report_is_true_if_the_book_is_well_and_false_otherwise(place: Any) -> None:
    ledger = place.open()
    assert ledger.verify()
    report = ledger.verify()
    assert not dataclasses.replace(report, problems=("row 1 was edited.",))
