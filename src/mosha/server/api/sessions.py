"""Signing in and out, tokens, and who there is."""

from __future__ import annotations

from typing import Any

from mosha.server.api.operation import Call, Operation, Reply
from mosha.server.api.schemas import array, integer, number, one_of, record, text
from mosha.server.catalogue.grants import revoke_beneath
from mosha.server.clock import as_text
from mosha.server.errors import BadRequest, NotFound, SignInNeeded
from mosha.server.people.credentials import Credential, find_by_secret, issue, revoke, seconds_left, use_link
from mosha.server.people.permissions import RULES, Principal, Scope, Thing
from mosha.server.people.principals import (
    KINDS,
    add_member,
    change_state,
    check_role,
    create_principal,
    describe_principal,
    find_agent_of,
    find_member,
    find_principal,
    give_role,
    list_principals,
    members_of,
    owners_of,
    remove_member,
    take_role,
)
from mosha.server.store.database import Row

__all__ = ["OPERATIONS"]

NAME = text(100)


def open_session(call: Call) -> Reply:
    """A browser's session, for a link that was never used, or for a token."""
    if ("link" in call.body) == ("token" in call.body):
        raise BadRequest("server.one_of", names="link, token")
    try:
        principal, found = _find_caller(call)
    except SignInNeeded:  # only those who are wrong use the rate up: nobody keeps others out by guessing
        call.service.rates.take("", "sign in", per_minute=120)
        raise
    made = _begin_session(call, principal, found)
    return Reply(
        {"principal": principal, "csrf": made.csrf, "expires": as_text(made.expires)}, 201, session=made.secret
    )


def _find_caller(call: Call) -> tuple[str, Principal | None]:
    """Whose link or token it is; with a token, also what it is good for."""
    database = call.service.database
    if "link" in call.body:
        return use_link(database, call.body["link"]), None
    found = find_by_secret(database, call.body["token"], "token")
    if found is None:
        raise SignInNeeded("server.wrong_credentials")
    return found.id, found


def _begin_session(call: Call, principal: str, found: Principal | None) -> Credential:
    """A session is good for no more, and no longer, than the token that it was opened with, and ends with it."""
    seconds = call.service.settings.session_hours * 3600
    if found is None:
        return issue(call.service.database, principal, "session", seconds=seconds)
    left = seconds_left(call.service.database, found.credential)
    return issue(
        call.service.database,
        principal,
        "session",
        seconds=min(seconds, left),
        label=found.credential,
        scope=found.scope,
    )


def close_session(call: Call) -> Reply:
    if call.principal.signed_by == "session":
        revoke(call.service.database, call.principal.credential)
    return Reply(None, 204, session="")


def read_me(call: Call) -> Reply:
    who = call.principal
    roles = [{"role": role, "dataset": dataset} for role, dataset in sorted(who.roles)]
    described = {"id": who.id, "name": who.name, "kind": who.kind, "roles": roles, "signed_by": who.signed_by}
    return Reply(described | {"teams": sorted(who.teams), "csrf": who.csrf, "parent": who.parent})


def _describe_token(row: dict[str, Any]) -> dict[str, Any]:
    times = {name: as_text(row[name]) for name in ("created", "expires", "used")}
    return {"id": row["id"], "label": row["label"], "principal": row["principal"]} | times


def list_tokens(call: Call) -> Reply:
    statement = (
        "SELECT c.* FROM credentials c JOIN principals p ON p.id = c.principal"
        " WHERE c.kind = 'token' AND (p.id = ? OR p.parent = ?) ORDER BY c.created"
    )
    rows = call.service.database.rows(statement, call.principal.id, call.principal.id)
    return Reply({"tokens": [_describe_token(row) for row in rows]})


def create_token(call: Call) -> Reply:
    """A token of one's own, or of an agent of one's own."""
    said, database = call.body, call.service.database
    owner = call.principal.id
    if "agent" in said:
        owner = find_agent_of(database, call.principal, said["agent"])["id"]
    verbs = said.get("verbs")
    if verbs is not None and (unknown := [verb for verb in verbs if verb not in RULES]):
        raise BadRequest("server.field_unknown", parameter=f"verbs: {unknown[0]}")
    scope = Scope(
        tuple(said["datasets"]) if "datasets" in said else None,
        None if verbs is None else tuple(verbs),
        said.get("most_per_question"),
    )
    seconds, own = said.get("days", 90) * 86_400, call.principal.scope
    if own != Scope():  # whoever came with less hands on no more, and for no longer
        seconds = min(seconds, seconds_left(database, call.principal.credential))
    made = issue(database, owner, "token", seconds=seconds, label=said["label"], scope=own.narrow(scope))
    return Reply({"id": made.id, "token": made.secret, "expires": as_text(made.expires)}, 201)


def _token_thing(call: Call) -> Thing:
    row = call.service.database.row(
        "SELECT principal FROM credentials WHERE id = ? AND kind = 'token'", call.path["token"]
    )
    if row is None:
        raise NotFound("server.not_found")
    return Thing(owners=owners_of(call.service.database, row["principal"]))


def revoke_token(call: Call) -> Reply:
    revoke(call.service.database, call.path["token"])
    return Reply(None, 204)


def create_agent(call: Call) -> Reply:
    """An agent beneath the person who asks for it: a principal of its own, which pays from grants of its own."""
    if call.principal.kind != "person":
        raise NotFound("server.not_found")
    database = call.service.database
    identity = create_principal(database, kind="agent", name=call.body["name"], parent=call.principal.id)
    return Reply(describe_principal(find_principal(database, identity)), 201)


def list_all_principals(call: Call) -> Reply:
    database = call.service.database
    rows = list_principals(database, after=call.query.get("after", ""), most=call.query.get("limit", 100))
    roles = database.rows("SELECT * FROM roles") if rows else []
    described = [
        describe_principal(
            row,
            [r for r in roles if r["principal"] == row["id"]],
            members_of(database, row["id"]) if row["kind"] == "team" else (),
        )
        for row in rows
    ]
    return Reply({"principals": described})


def make_principal(call: Call) -> Reply:
    database, said = call.service.database, call.body
    if said["kind"] == "agent":
        raise BadRequest("server.field_wrong", parameter="kind", expected="person | team | service")
    if said.get("roles") and not call.principal.has("administrator", None):
        raise BadRequest("server.field_unknown", parameter="roles")
    for role in said.get("roles", ()):
        check_role(role["role"], role["dataset"], kind=said["kind"])
    identity = create_principal(database, kind=said["kind"], name=said["name"])
    for role in said.get("roles", ()):
        give_role(database, identity, role["role"], role["dataset"])
    call.service.ledger.note("principal/made", {"name": said["name"], "by": call.principal.name})
    roles = database.rows("SELECT * FROM roles WHERE principal = ?", identity)
    return Reply(describe_principal(find_principal(database, identity), roles), 201)


def invite(call: Call) -> Reply:
    """A link that signs somebody in, once."""
    row = find_principal(call.service.database, call.path["principal"])
    if row["kind"] != "person":
        raise BadRequest("server.field_wrong", parameter="principal", expected="person")
    if not call.principal.has("administrator", None) and _is_established(call, row):
        raise NotFound("server.not_found")
    seconds = call.body.get("minutes", call.service.settings.link_minutes) * 60
    made = issue(call.service.database, row["id"], "link", seconds=seconds)
    return Reply({"link": f"/enter?link={made.secret}", "expires": as_text(made.expires)}, 201)


def _is_established(call: Call, row: Row) -> bool:
    """Whether somebody has ever been in, has a link, or is more than an analyst: only an administrator invites them.

    What they signed in with may be gone: a session that ended leaves nothing, and their answers are theirs.
    """
    roles = call.service.database.rows("SELECT role FROM roles WHERE principal = ?", row["id"])
    invited = call.service.database.row("SELECT 1 AS found FROM credentials WHERE principal = ?", row["id"])
    return bool(row["entered"] or invited) or any(found["role"] != "analyst" for found in roles)


def change_principal(call: Call) -> Reply:
    """Give and take roles, change the members of a team, enable and disable: all, or nothing where a part is wrong.

    Whoever is removed from a team loses what was passed on to them of its grants. What was spent stays spent.
    """
    database, said = call.service.database, call.body
    row = find_principal(database, call.path["principal"])
    members = [find_member(database, row, person) for person in said.get("members", ())]
    leaving = [find_member(database, row, person) for person in said.get("remove", ())]
    if not {one["id"] for one in members_of(database, row["id"])} >= set(leaving):
        raise NotFound("server.not_found")
    for role in said.get("give", ()):
        check_role(role["role"], role["dataset"], kind=row["kind"])
    for role in said.get("give", ()):
        give_role(database, row["id"], role["role"], role["dataset"])
    for role in said.get("take", ()):
        take_role(database, row["id"], role["role"], role["dataset"])
    for person in members:
        add_member(database, row["id"], person)
    for person in leaving:
        remove_member(database, row["id"], person)
        by, left = call.principal.name, f"removed from {row['name']}"
        revoke_beneath(database, call.service.ledger, row["id"], person, author=by, reason=left)
    if "state" in said:
        change_state(database, row["id"], said["state"])
    change = {"name": row["name"], "by": call.principal.name, "change": dict(said)}
    call.service.ledger.note("principal/changed", change)
    roles = database.rows("SELECT * FROM roles WHERE principal = ?", row["id"])
    return Reply(describe_principal(find_principal(database, row["id"]), roles, members_of(database, row["id"])))


_ROLE = record({"role": one_of("administrator", "curator", "analyst", "reviewer", "auditor"), "dataset": text(64)})
_PAGE = {"after": text(300, least=0), "limit": integer(least=1, most=500)}

OPERATIONS = (
    Operation(
        name="openSession",
        method="POST",
        path="/sessions",
        verb="session.open",
        status=201,
        tag="people",
        summary="Sign in a browser, with a link that works once or with a token.",
        handler=open_session,
        body=record({}, {"link": text(200), "token": text(200)}),
    ),
    Operation(
        name="closeSession",
        method="DELETE",
        path="/sessions/current",
        verb="session.close",
        status=204,
        tag="people",
        summary="Sign out.",
        handler=close_session,
    ),
    Operation(
        name="readMe",
        method="GET",
        path="/me",
        verb="me.read",
        tag="people",
        summary="Who is signed in.",
        handler=read_me,
    ),
    Operation(
        name="listTokens",
        method="GET",
        path="/tokens",
        verb="token.list",
        tag="people",
        summary="Tokens of mine and of my agents; never their secrets.",
        handler=list_tokens,
    ),
    Operation(
        name="createToken",
        method="POST",
        path="/tokens",
        verb="token.create",
        status=201,
        tag="people",
        summary="Make a token; it is shown once.",
        handler=create_token,
        body=record(
            {"label": text(100)},
            {
                "agent": NAME,
                "days": number(above=0, most=3650),
                "datasets": array(text(64), most=100),
                "verbs": array(text(64), most=100),
                "most_per_question": number(above=0, most=1e6),
            },
        ),
    ),
    Operation(
        name="revokeToken",
        method="DELETE",
        path="/tokens/{token}",
        verb="token.revoke",
        status=204,
        tag="people",
        summary="Revoke a token.",
        handler=revoke_token,
        thing=_token_thing,
    ),
    Operation(
        name="createAgent",
        method="POST",
        path="/agents",
        verb="agent.create",
        status=201,
        tag="people",
        summary="Make an agent: a principal beneath me, with grants and tokens of its own.",
        handler=create_agent,
        body=record({"name": NAME}),
    ),
    Operation(
        name="listPrincipals",
        method="GET",
        path="/principals",
        verb="principal.list",
        tag="people",
        summary="People, teams, agents and services.",
        handler=list_all_principals,
        query=_PAGE,
    ),
    Operation(
        name="createPrincipal",
        method="POST",
        path="/principals",
        verb="principal.create",
        status=201,
        tag="people",
        summary="Make a person, a team or a service.",
        handler=make_principal,
        body=record({"name": NAME, "kind": one_of(*KINDS)}, {"roles": array(_ROLE, most=100)}),
    ),
    Operation(
        name="invitePrincipal",
        method="POST",
        path="/principals/{principal}/links",
        verb="principal.invite",
        status=201,
        tag="people",
        summary="Make a link that signs somebody in, once.",
        handler=invite,
        body=record({}, {"minutes": number(above=0, most=60 * 24 * 14)}),
    ),
    Operation(
        name="changePrincipal",
        method="POST",
        path="/principals/{principal}/changes",
        verb="principal.change",
        tag="people",
        summary="Give and take roles, add members and remove them, enable and disable.",
        handler=change_principal,
        body=record(
            {},
            {
                "give": array(_ROLE, most=100),
                "take": array(_ROLE, most=100),
                "members": array(NAME, most=1000),
                "remove": array(NAME, most=1000),
                "state": one_of("active", "disabled"),
            },
        ),
    ),
)
