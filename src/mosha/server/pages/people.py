"""People: who there is and what they may do; inviting somebody by a link, giving and taking roles, letting go."""

from __future__ import annotations

from starlette.responses import Response

from mosha.server.pages.site import Data, Visit, check_name
from mosha.server.people.permissions import EVERYWHERE, ROLES

__all__ = ["ROUTES"]

_PAGE = 100


def show_people(visit: Visit) -> Response:
    return _show(visit)


def _show(visit: Visit, link: Data | None = None) -> Response:
    after = visit.read_field("after") if not visit.form else ""
    found = visit.do("listPrincipals", query={"limit": _PAGE} | ({"after": after[:300]} if after else {}))["principals"]
    return visit.render(
        "people.html",
        found=found,
        more=found[-1]["name"] if len(found) == _PAGE else "",
        link=link,
        roles=ROLES,
        datasets=[one["name"] for one in visit.do("listDatasets")["datasets"]],
        can_create=visit.may("principal.create"),
        can_change=visit.may("principal.change"),
    )


def create(visit: Visit) -> Response:
    """Make somebody and, where it is a person, a link by which they come in."""
    kind = "team" if visit.read_field("kind") == "team" else "person"
    made = visit.do("createPrincipal", body={"name": visit.read_field("name").strip(), "kind": kind})
    return visit.go("/people") if kind == "team" else _invite(visit, made["id"], made["name"])


def invite(visit: Visit) -> Response:
    return _invite(visit, visit.path["principal"], visit.read_field("name"))


def _invite(visit: Visit, principal: str, name: str) -> Response:
    made = visit.do("invitePrincipal", path={"principal": principal}, body={"minutes": 60 * 24.0})
    address = f"{str(visit.request.base_url).rstrip('/')}{made['link']}"
    return _show(visit, link={"address": address, "name": name, "expires": made["expires"]})


def change(visit: Visit) -> Response:
    """Give a role, take one, add to a team, remove from one, disable, enable."""
    body: Data = {}
    what = visit.read_field("do")
    role = {"role": visit.read_field("role"), "dataset": visit.read_field("dataset") or EVERYWHERE}
    if what in ("give", "take"):
        body[what] = [role]
    elif what in ("members", "remove"):
        body[what] = [visit.read_field("member").strip()]
    elif what in ("active", "disabled"):
        body["state"] = what
    if what == "members":
        check_name(visit, "member")
    visit.do("changePrincipal", path=visit.path, body=body)
    return visit.go("/people")


ROUTES = (
    ("GET", "/people", show_people),
    ("POST", "/people", create, show_people),
    ("POST", "/people/{principal}/links", invite, show_people),
    ("POST", "/people/{principal}/changes", change, show_people),
)
