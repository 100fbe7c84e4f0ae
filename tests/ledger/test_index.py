"""The index is made from the rows: an edited balance is refused at once, an earlier layout is renewed once."""

import pytest

import mosha
from mosha import errors, events
from tests.ledger.place import PERSON, asking
from tests.ledger.test_second_opinion import EVENT, make_book

FIRST_LAYOUT = {
    "accounts": "name, terms, amount, delta, retired",
    "lanes": "account, family, lane, amount, delta",
    "payments": "entry, scope, key, claim, attempts, closed",
    "steps": "payment, step, entry",
}


@pytest.mark.parametrize(
    "edit", ["amount = '0'", "amount = '1'", "entry = 2", "amount = '0', delta = '0'", "entry = 3"]
)
def test_an_edited_balance_is_refused_at_the_next_charge(place, edit):
    ledger = place.open()
    account = ledger.account("visits", unit=PERSON, epsilon=3)
    for _ in range(2):
        account.open(asking()).step(None)
    place.tamper(f"UPDATE accounts SET {edit}")
    for book in (ledger, place.open()):
        with pytest.raises(errors.LedgerTampered, match="balance of account 'visits'"):
            book.account("visits").open(asking(step=lambda *_: pytest.fail("data was read")))


def test_an_edited_balance_is_refused_where_something_is_handed_back(place):
    account = place.open().account("visits", unit=PERSON, epsilon=3)
    run = account.open(asking(events.Laplace(2) * 4, horizon=4))
    place.tamper("UPDATE accounts SET amount = '999'")
    with pytest.raises(errors.LedgerTampered, match="balance"):
        run.close()


def set_back(place):
    """Lay the index out as the first version did."""
    statements = []
    for table, columns in FIRST_LAYOUT.items():
        statements += [
            f"CREATE TABLE earlier AS SELECT {columns} FROM {table}",
            f"DROP TABLE {table}",
            f"ALTER TABLE earlier RENAME TO {table}",
        ]
    place.tamper(*statements, "DROP TABLE purchases")


def test_the_index_of_an_earlier_version_is_renewed_once(place):
    first = make_book(place.open())
    rows, statement = first.entries(), first.statement("visits")
    first.close()
    set_back(place)
    ledger = place.open()
    assert ledger.verify().ok
    assert ledger.entries() == rows
    assert ledger.statement("visits").to_dict() == statement.to_dict()
    ledger.account("visits").open(asking(unit=EVENT)).step(None)
    assert ledger.verify().ok
    assert place.open().verify().ok


def test_an_edited_index_of_an_earlier_version_is_not_healed_in_silence(place):
    make_book(place.open()).close()
    set_back(place)
    place.tamper("UPDATE accounts SET amount = '0' WHERE name = 'visits'")
    with pytest.raises(errors.LedgerTampered, match="it was edited"):
        place.open()


def test_opening_a_book_of_the_present_layout_reads_no_rows(place, monkeypatch):
    make_book(place.open()).close()
    monkeypatch.setattr("mosha.ledger.index.replay", lambda transaction: pytest.fail("all rows were read"))
    place.open().account("visits").open(asking(unit=EVENT))


def test_a_book_with_many_accounts_lists_them_with_one_reading(monkeypatch):
    ledger = mosha.Ledger.memory()
    root = ledger.account("visits", unit=PERSON, epsilon=1)
    for number in range(5):
        root.child(f"{number}", epsilon=1)
    readings = []
    read = ledger._storage.read
    monkeypatch.setattr(ledger._storage, "read", lambda operation: (readings.append(1), read(operation))[1])
    assert len(ledger.accounts()) == 6
    assert len(readings) == 1
