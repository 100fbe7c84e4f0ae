"""Agents: programs that ask in a person's name, from a part of a grant of theirs, with a cap a day."""

from __future__ import annotations

import json

from starlette.responses import Response

from mosha.core.language import phrase
from mosha.server.catalogue.grants import describe_grant, grants_of
from mosha.server.clock import END_OF_TIME
from mosha.server.errors import BadRequest, NotFound
from mosha.server.pages.paying import check_limits, is_usable
from mosha.server.pages.site import Data, Visit

__all__ = ["ROUTES"]

_SHOWN = 5
_PAGE = 20


def show_agents(visit: Visit) -> Response:
    return _show(visit)


def _show(visit: Visit, made: Data | None = None) -> Response:
    if visit.principal.kind != "person":
        visit.do("listTokens")
        raise NotFound("server.not_found")
    grants = [grant for grant in visit.do("listMyGrants")["grants"] if is_usable(grant)]
    tokens = {token["principal"] for token in visit.do("listTokens")["tokens"]}
    rows = _list_agents(visit)
    return visit.render(
        "agents.html",
        found=[_describe(visit, row) | {"is_active": row["id"] in tokens} for row in rows],
        more=rows[-1]["created"] if len(rows) == _PAGE else None,
        grants=grants,
        made=made,
    )


_MINE = "SELECT * FROM principals WHERE parent = ? AND kind = 'agent'"


def _list_agents(visit: Visit) -> list[Data]:
    """The newest agents of whoever looks, or those before a place in the list."""
    find = f"{_MINE} AND created < ? ORDER BY created DESC LIMIT ?"
    return visit.service.database.rows(find, visit.principal.id, visit.read_place().get("before", END_OF_TIME), _PAGE)


def _own_name(row: Data) -> str:
    """The part of an agent's name that its person chose."""
    return str(row["name"]).rpartition("/")[2]


def _describe(visit: Visit, row: Data) -> Data:
    """An agent: what it may spend and has spent, today and in all, and what it asked last."""
    database, ledger = visit.service.database, visit.service.ledger
    grants = [describe_grant(grant, ledger) for grant in grants_of(database, holders=frozenset({row["id"]}), most=20)]
    find = "SELECT id FROM requests WHERE principal = ? ORDER BY created DESC LIMIT ?"
    asked = [visit.do("readRequest", path={"request": one["id"]}) for one in database.rows(find, row["id"], _SHOWN)]
    return {"id": row["id"], "name": _own_name(row), "grants": grants, "asked": asked}


def create(visit: Visit) -> Response:
    """An agent with a part of a grant of mine, and its token. What is there already is not made twice."""
    name, grant = visit.read_field("name").strip(), visit.read_field("grant")
    total, day = visit.number("epsilon"), visit.number("limit_per_day")
    for part, value in (("epsilon", total), ("limit_per_day", day)):
        if value is None or value <= 0:
            raise BadRequest("server.field_wrong", parameter=part, expected=phrase("server.above", above=0))
    mine = next((one for one in visit.do("listMyGrants")["grants"] if one["id"] == grant), {"budget": None})
    check_limits({"epsilon": total}, mine["budget"], name=visit.say("your_grant"))
    agent = visit.service.database.row(f"{_MINE} AND name = ?", visit.principal.id, f"{visit.principal.name}/{name}")
    agent = agent or visit.do("createAgent", body={"name": name})
    above = visit.do("readGrant", path={"grant": grant})
    body = {"principal": agent["id"], "epsilon": total, "expires": above["expires"], "limit_per_day": {"epsilon": day}}
    visit.do("delegateGrant", path={"grant": grant}, body=body)
    return _give_token(visit, name)


def _give_token(visit: Visit, name: str) -> Response:
    token = visit.do("createToken", body={"label": name, "agent": name})["token"]
    server = {"url": str(visit.request.base_url).rstrip("/") + "/mcp", "headers": {"Authorization": f"Bearer {token}"}}
    settings = json.dumps({"mcpServers": {"mosha": server}}, indent=2)
    visit.form = []
    return _show(visit, {"name": name, "token": token, "settings": settings})


def _find_mine(visit: Visit) -> Data:
    return visit.service.database.find(f"{_MINE} AND id = ?", visit.principal.id, visit.path["agent"])


def renew(visit: Visit) -> Response:
    return _give_token(visit, _own_name(_find_mine(visit)))


def stop(visit: Visit) -> Response:
    """Revoke every token of an agent: it cannot ask any more."""
    agent = _find_mine(visit)
    for token in visit.do("listTokens")["tokens"]:
        if token["principal"] == agent["id"]:
            visit.do("revokeToken", path={"token": token["id"]})
    return visit.go("/agents")


ROUTES = (
    ("GET", "/agents", show_agents),
    ("POST", "/agents", create, show_agents),
    ("POST", "/agents/{agent}/tokens", renew, show_agents),
    ("POST", "/agents/{agent}/stop", stop, show_agents),
)
