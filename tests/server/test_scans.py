"""What people do costs the same however many there are: no statement on the way goes through all rows of a table."""

import re
from typing import Any

import pytest

from mosha.server.store import database as store
from tests.server.house import BY_WARD, COUNT

GROWING = {"datasets", "declarations", "principals", "credentials", "grants", "requests", "decisions", "members"}
ROLES = {"roles"}


def find_scans(database: Any, statement: str) -> set[str]:
    """The growing tables that SQLite would read from end to end: not those of which an index gives the first rows."""
    values = [1] * statement.count("?")
    plan = [row["detail"] for row in database.rows(f"EXPLAIN QUERY PLAN {statement}", *values)]
    scanned = [found for line in plan if (found := re.fullmatch(r"SCAN (\w+)(.*)", line))]
    names = {found[1] for found in scanned if "USING" not in found[2]}
    aliases = dict(re.findall(r"(?:FROM|JOIN) (\w+) (?:AS )?(\w+)", statement))
    called = {alias: table for table, alias in aliases.items()}
    return {called.get(name, name) for name in names} & (GROWING | ROLES)


def test_nothing_that_is_asked_often_reads_a_whole_table(house: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    read = store._SQLiteTransaction.rows

    def watch(self: Any, statement: str, *values: Any) -> Any:
        seen.add(statement)
        return read(self, statement, *values)

    monkeypatch.setattr(store._SQLiteTransaction, "rows", watch)
    body = {"dataset": "visits", "sql": BY_WARD, "price": {"epsilon": 0.01}}
    answered = house.answer("li", COUNT, key="without scans", epsilon=0.01)
    for who, method, path, said in (
        ("li", "POST", "/previews", body),
        ("li", "GET", "/me", None),
        ("li", "GET", "/datasets/visits", None),
        ("li", "GET", "/grants", None),
        ("li", "GET", "/requests?limit=5", None),
        ("li", "GET", f"/requests/{answered['id']}/answer", None),
        ("li", "GET", "/statements?account=visits/li", None),
        ("li", "GET", "/tokens", None),
        ("zhao", "GET", "/requests?state=waiting", None),
        ("zhao", "GET", "/statements?account=visits", None),
        ("wang", "GET", "/datasets/visits/grants?limit=5", None),
        (None, "GET", "/public", None),
    ):
        assert house.call(who, method, path, said).status_code == 200, path
    monkeypatch.undo()
    selects = {one for one in seen if one.lstrip().upper().startswith(("SELECT", "WITH"))}
    assert len(selects) > 20
    scans = {one: found for one in selects if (found := find_scans(house.service.database, one))}
    assert scans == {}


def test_a_statement_that_reads_a_whole_table_is_found(house: Any) -> None:
    assert find_scans(house.service.database, "SELECT id FROM grants WHERE purpose = ?") == {"grants"}
    assert find_scans(house.service.database, "SELECT g.id FROM grants g WHERE g.purpose = ?") == {"grants"}
    assert find_scans(house.service.database, "SELECT id FROM grants WHERE id = ?") == set()
