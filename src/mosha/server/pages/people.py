"""People: who there is and what they may do; inviting somebody by a link, giving and taking roles, letting go."""

from __future__ import annotations

from starlette.responses import Response

from mosha.core.errors import MoshaError
from mosha.server.errors import BadRequest
from mosha.server.pages.site import Data, Visit
from mosha.server.people.permissions import EVERYWHERE, ROLES

__all__ = ["ROUTES"]

_PAGE = 100


def show_people(visit: Visit) -> Response:
    return _show(visit)


def _show(visit: Visit, problem: Data | None = None, link: Data | None = None) -> Response:
    after = visit.typed("after") if not visit.form else ""
    found = visit.do("listPrincipals", query={"limit": _PAGE} | ({"after": after[:300]} if after else {}))["principals"]
    return visit.render(
        "people.html",
        422 if problem else 200,
        found=found,
        more=found[-1]["name"] if len(found) == _PAGE else "",
        problem=problem,
        link=link,
        roles=ROLES,
        datasets=[one["name"] for one in visit.do("listDatasets")["datasets"]],
        can_create=visit.may("principal.create"),
        can_change=visit.may("principal.change"),
    )


def create(visit: Visit) -> Response:
    """Make somebody and, where it is a person, a link by which they come in."""
    try:
        kind = "team" if visit.typed("kind") == "team" else "person"
        made = visit.do("createPrincipal", body={"name": visit.typed("name").strip(), "kind": kind})
        if kind == "team":
            return visit.go("/people")
        return _invite(visit, made["id"], made["name"])
    except (MoshaError, BadRequest) as error:
        return _show(visit, visit.problem(error))


def invite(visit: Visit) -> Response:
    try:
        return _invite(visit, visit.path["principal"], visit.typed("name"))
    except (MoshaError, BadRequest) as error:
        return _show(visit, visit.problem(error))


def _invite(visit: Visit, principal: str, name: str) -> Response:
    made = visit.do("invitePrincipal", path={"principal": principal}, body={"minutes": 60 * 24.0})
    address = f"{str(visit.request.base_url).rstrip('/')}{made['link']}"
    return _show(visit, link={"address": address, "name": name, "expires": made["expires"]})


def change(visit: Visit) -> Response:
    """Give a role, take one, add to a team, disable, enable."""
    body: Data = {}
    what = visit.typed("do")
    role = {"role": visit.typed("role"), "dataset": visit.typed("dataset") or EVERYWHERE}
    if what in ("give", "take"):
        body[what] = [role]
    elif what == "member":
        body["members"] = [visit.typed("member").strip()]
    elif what in ("active", "disabled"):
        body["state"] = what
    try:
        visit.do("changePrincipal", path=visit.path, body=body)
    except (MoshaError, BadRequest) as error:
        return _show(visit, visit.problem(error))
    return visit.go("/people")


ROUTES = (
    ("GET", "/people", show_people),
    ("POST", "/people", create),
    ("POST", "/people/{principal}/links", invite),
    ("POST", "/people/{principal}/changes", change),
)
