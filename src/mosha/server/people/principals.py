"""People, teams, agents and services: made, listed, given roles, disabled."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from mosha.core.language import phrase
from mosha.server.clock import as_text, now
from mosha.server.errors import BadRequest, Conflict, NotFound
from mosha.server.people.permissions import EVERYWHERE, ROLES, Principal
from mosha.server.store.database import Database, Row, marks

__all__ = [
    "KINDS",
    "add_member",
    "change_state",
    "check_role",
    "create_principal",
    "describe_principal",
    "find_agent_of",
    "find_member",
    "find_principal",
    "give_role",
    "list_principals",
    "load_principal",
    "members_of",
    "owners_of",
    "remove_member",
    "take_role",
]

KINDS = ("person", "team", "agent", "service")


def create_principal(database: Database, *, kind: str, name: str, parent: str | None = None) -> str:
    """A new principal; its id.

    An agent is called after its person, as in `li/helper`: whatever others call theirs, and whoever there is, the name
    is free, so that trying names tells nobody who exists.
    """
    if kind not in KINDS:
        raise BadRequest("server.field_wrong", parameter="kind", expected=", ".join(KINDS))
    if not (0 < len(name) <= 100 and name.isprintable() and name == name.strip() and "/" not in name):
        raise BadRequest("server.field_wrong", parameter="name", expected=phrase("server.name_of_person"))
    identity = f"p-{secrets.token_hex(6)}"
    if kind == "agent":
        name = f"{find_principal(database, str(parent))['name']}/{name}"
    with database.transaction() as transaction:
        if transaction.row("SELECT 1 AS found FROM principals WHERE name = ?", name):
            raise Conflict("server.exists", parameter="name", name=name)
        statement = "INSERT INTO principals (id, kind, name, parent, state, created) VALUES (?, ?, ?, ?, 'active', ?)"
        transaction.run(statement, identity, kind, name, parent, now())
    return identity


def find_principal(database: Database, said: str) -> Row:
    """The row of a principal, by its id or its name. An id means its owner, whoever else is called like that."""
    row = database.row("SELECT * FROM principals WHERE id = ?", said)
    return row or database.find("SELECT * FROM principals WHERE name = ?", said)


def find_agent_of(database: Database, person: Principal, said: str) -> Row:
    """An agent of this person, by its id, its whole name, or the part of the name that is its own."""
    find = "SELECT * FROM principals WHERE parent = ? AND (id = ? OR name = ? OR name = ?)"
    row = database.row(find, person.id, said, said, f"{person.name}/{said}")
    if row is None:
        raise NotFound("server.not_found")
    return row


def load_principal(database: Database, identity: str, **proof: Any) -> Principal | None:
    """A principal with its roles, its teams, and those of the person whom an agent belongs to.

    Who may ask as a team may ask as each of its members; teams are nothing but analysts.
    """
    row = database.row("SELECT * FROM principals WHERE id = ? AND state = 'active'", identity)
    if row is None:
        return None
    holder = identity
    if row["kind"] == "agent":
        above = database.row("SELECT state FROM principals WHERE id = ?", row["parent"])
        if above is None or above["state"] != "active":
            return None
        holder = row["parent"]
    find = "SELECT m.team FROM members m JOIN principals t ON t.id = m.team WHERE m.person = ? AND t.state = 'active'"
    teams = [str(found["team"]) for found in database.rows(find, holder)]
    find = f"SELECT * FROM roles WHERE principal IN ({marks([holder, *teams])})"  # noqa: S608
    given = [
        found
        for found in database.rows(find, holder, *teams)
        if found["principal"] == holder or found["role"] == "analyst"
    ]
    roles = {(str(found["role"]), str(found["dataset"])) for found in given}
    if row["kind"] == "agent":
        teams, roles = [], {pair for pair in roles if pair[0] == "analyst"}
    return Principal(
        *(row["id"], row["kind"], row["name"], row["parent"]),
        teams=frozenset(teams),
        roles=frozenset(roles),
        **proof,
    )


def owners_of(database: Database, identity: str) -> frozenset[str]:
    """Those whose thing it is: the principal, and the person above an agent."""
    row = database.row("SELECT parent FROM principals WHERE id = ?", identity)
    return frozenset({identity} | ({row["parent"]} if row and row["parent"] else set()))


def check_role(role: str, dataset: str = EVERYWHERE, *, kind: str = "person") -> None:
    if kind == "team" and role != "analyst":
        raise BadRequest("server.field_wrong", parameter="role", expected="analyst")
    if role not in ROLES:
        raise BadRequest("server.field_wrong", parameter="role", expected=", ".join(ROLES))
    if role == "administrator" and dataset != EVERYWHERE:
        raise BadRequest("server.field_wrong", parameter="dataset", expected="*")


def give_role(database: Database, identity: str, role: str, dataset: str = EVERYWHERE) -> None:
    check_role(role, dataset)
    statement = "INSERT INTO roles (principal, dataset, role) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    database.run(statement, identity, dataset, role)


def take_role(database: Database, identity: str, role: str, dataset: str = EVERYWHERE) -> None:
    database.run("DELETE FROM roles WHERE principal = ? AND dataset = ? AND role = ?", identity, dataset, role)


def find_member(database: Database, team: Row, said: str) -> str:
    """The id of somebody who may become a member: people, of teams."""
    person = find_principal(database, said)
    if team["kind"] != "team" or person["kind"] != "person":
        raise BadRequest("server.field_wrong", parameter="person", expected=phrase("server.person_in_team"))
    return str(person["id"])


def add_member(database: Database, team: str, person: str) -> None:
    find_member(database, find_principal(database, team), person)
    database.run("INSERT INTO members (team, person) VALUES (?, ?) ON CONFLICT DO NOTHING", team, person)


def members_of(database: Database, team: str) -> list[Row]:
    find = "SELECT p.id, p.name FROM members m JOIN principals p ON p.id = m.person WHERE m.team = ? ORDER BY p.name"
    return database.rows(find, team)


def remove_member(database: Database, team: str, person: str) -> None:
    database.run("DELETE FROM members WHERE team = ? AND person = ?", team, person)


def change_state(database: Database, identity: str, state: str) -> None:
    """Enable or disable a principal; who is disabled loses every session and token at once."""
    database.run("UPDATE principals SET state = ? WHERE id = ?", state, identity)
    if state != "active":
        database.run("DELETE FROM credentials WHERE principal = ?", identity)


def list_principals(database: Database, *, after: str = "", most: int = 100) -> list[Row]:
    return database.rows("SELECT * FROM principals WHERE name > ? ORDER BY name LIMIT ?", after, most)


def describe_principal(row: Row, roles: Iterable[Row] = (), members: Iterable[Row] = ()) -> dict[str, Any]:
    described = {name: row[name] for name in ("id", "kind", "name", "parent", "state")}
    if row["kind"] == "team":
        described["members"] = list(members)
    return described | {
        "created": as_text(row["created"]),
        "roles": [{"role": found["role"], "dataset": found["dataset"]} for found in roles],
    }
