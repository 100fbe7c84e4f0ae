"""The index is made from the rows: an edited balance is refused at once, an earlier layout is renewed once."""

from typing import Any

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
def test_an_edited_balance_is_refused_at_the_next_charge(place: Any, edit: str) -> None:
    ledger = place.open()
    account = ledger.account("visits", unit=PERSON, epsilon=3)
    for _ in range(2):
        account.open(asking()).step(None)
    place.tamper(f"UPDATE accounts SET {edit}")
    for book in (ledger, place.open()):
        with pytest.raises(errors.LedgerTampered, match="balance of account 'visits'"):
            book.account("visits").open(asking(step=lambda *_: pytest.fail("data was read")))


def test_an_edited_balance_is_refused_where_something_is_handed_back(place: Any) -> None:
    account = place.open().account("visits", unit=PERSON, epsilon=3)
    run = account.open(asking(events.Laplace(2) * 4, horizon=4))
    place.tamper("UPDATE accounts SET amount = '999'")
    with pytest.raises(errors.LedgerTampered, match="balance"):
        run.close()


def set_back(place: Any) -> None:
    """Lay the index out as the first version did."""
    statements = []
    for table, columns in FIRST_LAYOUT.items():
        statements += [
            f"CREATE TABLE earlier AS SELECT {columns} FROM {table}",
            f"DROP TABLE {table}",
            f"ALTER TABLE earlier RENAME TO {table}",
        ]
    place.tamper(*statements, "DROP TABLE purchases")


def test_the_index_of_an_earlier_version_is_renewed_once(place: Any) -> None:
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


def test_an_edited_index_of_an_earlier_version_is_not_healed_in_silence(place: Any) -> None:
    make_book(place.open()).close()
    set_back(place)
    place.tamper("UPDATE accounts SET amount = '0' WHERE name = 'visits'")
    with pytest.raises(errors.LedgerTampered, match="it was edited"):
        place.open()


def test_opening_a_book_of_the_present_layout_reads_no_rows(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make_book(place.open()).close()
    monkeypatch.setattr("mosha.ledger.checking.index.replay", lambda transaction: pytest.fail("all rows were read"))
    place.open().account("visits").open(asking(unit=EVENT))


def test_a_book_with_many_accounts_lists_them_with_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = mosha.Ledger.memory()
    root = ledger.account("visits", unit=PERSON, epsilon=1)
    for number in range(5):
        root.child(f"{number}", epsilon=1)
    readings = []
    read = ledger._storage.read
    monkeypatch.setattr(ledger._storage, "read", lambda operation: (readings.append(1), read(operation))[1])
    assert len(ledger.accounts()) == 6
    assert len(readings) == 1


BLOCKS = ("may", "june")
LANE_EDITS = [
    "UPDATE lanes SET amount = '0' WHERE lane = 'visits/may'",
    "DELETE FROM lanes WHERE lane = 'visits/may'",
    "DELETE FROM lanes",
    "UPDATE lanes SET amount = '9' WHERE lane = ''",
    "UPDATE lanes SET amount = '1' || amount WHERE lane = ''",  # every charge would be free
    "UPDATE lanes SET delta = '1' WHERE lane = ''",
    "INSERT INTO lanes VALUES ('visits', 'visits', 'visits/july', '0', '0')",
]


@pytest.fixture
def blocks(place: Any) -> Any:
    visits = place.open().account("visits", unit=EVENT, epsilon=20, disjoint_blocks=True)
    for name in BLOCKS:
        visits.block(name).open(asking(unit=EVENT)).step(None)
    visits.block("july")
    visits.open(asking(events.Laplace(10), unit=EVENT)).step(None)  # a row about no block
    return visits


@pytest.mark.parametrize("edit", LANE_EDITS)
def test_an_edited_lane_is_refused_at_the_next_charge(place: Any, blocks: Any, edit: Any) -> None:
    place.tamper(edit)
    name = "july" if "july" in edit else "may"
    with pytest.raises(errors.LedgerTampered, match="Nothing was spent"):
        blocks.block(name).open(asking(unit=EVENT, step=lambda *_: pytest.fail("data was read")))


def test_an_edited_lane_is_refused_where_something_is_handed_back(place: Any, blocks: Any) -> None:
    run = blocks.block("may").open(asking(events.Laplace(2) * 4, unit=EVENT, horizon=4))
    place.tamper("UPDATE lanes SET amount = '1' || amount WHERE lane = 'visits/may'")
    with pytest.raises(errors.LedgerTampered, match="Nothing was spent"):
        run.close()


def test_a_lease_that_hands_back_to_one_payer_alone_leaves_a_book_that_pays(place: Any) -> None:
    """The block is spent to its end, its parent is not: the sum of the lane then stands apart."""
    ledger = place.open()
    visits = ledger.account("visits", unit=EVENT, rho=5, disjoint_blocks=True)
    block = visits.block("may", epsilon=8)
    with block.lease(events.Pure(1.0) * 2) as lease:
        lease.open(asking(events.Laplace(1) * 2, unit=EVENT)).step(None)
    closed = ledger.entries()[-1].content()
    assert [back["account"] for back in closed["returned"]] == ["visits"]
    assert list(closed["lanes"]["visits"]["apart"]) == ["visits/may"]
    for _ in range(2):
        block.open(asking(unit=EVENT)).step(None)
        visits.block("june", epsilon=8).open(asking(unit=EVENT)).step(None)
    assert ledger.verify().ok
    assert "apart" not in ledger.entries()[-2].content().get("lanes", {}).get("visits", {})


def test_rows_of_an_earlier_version_state_no_lanes_and_are_paid_on(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("mosha.ledger.paying.charge.state_lanes", lambda *_: {})
        ledger = make_book(place.open())
        assert all("lanes" not in row.content() for row in ledger.entries())
    for name in BLOCKS:
        ledger.account("visits").block(name).open(asking(unit=EVENT)).step(None)
    assert ledger.verify().ok
    place.tamper("UPDATE lanes SET amount = '0' WHERE lane = 'visits/may' AND account = 'visits'")
    with pytest.raises(errors.LedgerTampered):
        ledger.account("visits").block("may").open(asking(unit=EVENT))


def test_a_row_that_misstates_lanes_is_found(blocks: Any) -> None:
    from mosha.ledger.storage.chain import follow
    from tests.ledger.test_second_opinion import read

    rows = blocks._ledger.entries()
    last = max(row.sequence for row in rows if "sums" in str(row.content().get("lanes")))
    for part, where in (("sums", "visits/june"), ("tops", "visits")):
        forged, previous = [], None
        for row in rows[:last]:
            content = row.content()
            if row.sequence == last:
                content["lanes"]["visits"][part][where][0] = "7"
            forged.append(row if previous is None else follow(previous, row.at, row.kind, content))
            previous = forged[-1].head
        assert any("paid for its blocks" in problem for problem in read(forged).problems)
