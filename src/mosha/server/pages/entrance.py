"""The entrance: a first page that says what this is, signing in and out, the language; and everybody's home."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import FileResponse, RedirectResponse, Response

from mosha.server.cookies import set_session
from mosha.server.demo import PEOPLE, leave_demo_question, open_demo_survey
from mosha.server.errors import NotFound, SignInNeeded
from mosha.server.pages.book import list_unsigned
from mosha.server.pages.glossary import WORDS
from mosha.server.pages.paying import is_usable
from mosha.server.pages.site import FOLDER, PAGE, PRIVATE, Visit
from mosha.server.people.credentials import issue

__all__ = ["ROUTES"]

DEMO_PEOPLE = {"li": "analyst", "wang": "curator", "zhao": "reviewer", "sun": "auditor"}
_FEW = 12
_OIDC_MINUTES = 10  # in which somebody comes back from their provider
_SOON = 14  # days before its end at which a grant is mentioned
_LITTLE = 0.1  # of a dataset's budget that is left
_STATIC = {
    "mosha.css": "text/css; charset=utf-8",
    "swap.js": "text/javascript; charset=utf-8",
    "survey.js": "text/javascript; charset=utf-8",
    "mosha.svg": "image/svg+xml",
}


def _has_demo_doors(visit: Visit) -> bool:
    """Whether everybody may enter as one of the made-up people: in a demo, on this machine, on made-up data."""
    settings = visit.service.settings
    return settings.demo and settings.is_loopback and (settings.folder / "demo-tokens.json").is_file()


def show_front(visit: Visit) -> Response:
    if visit.principal.is_public:
        published = visit.do("listPublished")["publications"]
        doors = DEMO_PEOPLE if _has_demo_doors(visit) else {}
        oidc = bool(visit.service.settings.oidc_issuer)
        return visit.render("front.html", doors=doors, published=published[:3], oidc=oidc)
    return _show_home(visit)


def _show_home(visit: Visit) -> Response:
    """What needs me today, and what I did last."""
    reviews, audits = visit.has("reviewer"), visit.has("auditor")
    listed = visit.do("listDatasets", query={"limit": PAGE})
    found: dict[str, Any] = {
        "datasets": [_with_budget(visit, one) for one in listed["datasets"]],
        "few": _FEW,
        "more": listed["next"] or len(listed["datasets"]) > _FEW,
        "grants": [grant for grant in visit.do("listMyGrants")["grants"] if is_usable(grant)],
        "mine": visit.do("listRequests", query={"mine": "true", "limit": 8})["requests"],
        "waiting": [],
        "proposed": [],
        "head": "",
        "guide": [],
    }
    if visit.has("administrator") or visit.has("curator"):
        found["guide"] = _guide(visit, found["datasets"])
    if reviews:
        found["waiting"] = visit.do("listRequests", query={"state": "waiting"})["requests"]
        found["proposed"] = visit.do("listProposedPublications")["publications"]
    found["needs"] = _list_needs(visit, found)
    found["people"] = visit.read_names(one["principal"] for one in found["waiting"])
    found["known"] = _read_known(visit, found)
    if reviews or audits:
        found["head"] = visit.read_head()
    return visit.render("home.html", **found)


def _read_known(visit: Visit, found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The datasets of somebody's grants: what they are called, and whether they answer."""
    known = {one["name"]: one for one in found["datasets"]}
    for name in {grant["dataset"] for grant in found["grants"]} - known.keys():
        known[name] = visit.do("readDataset", path={"dataset": name})
    return known


def _with_budget(visit: Visit, one: dict[str, Any]) -> dict[str, Any]:
    """A dataset with what is spent of it, for those who may see that."""
    sees = one["state"] in ("open", "frozen") and visit.may("budget.see", one["name"])
    return one | {"budget": visit.do("readDataset", path={"dataset": one["name"]}).get("budget") if sees else None}


Need = tuple[str, str, dict[str, Any]]
"""A sentence, where it is dealt with, and the fields of the sentence."""


def _list_needs(visit: Visit, found: dict[str, Any]) -> list[Need]:
    """What needs somebody today."""
    waits = sum(one["state"] == "waiting" for one in found["mine"])
    counted = (
        ("need_decision", "/review", len(found["waiting"])),
        ("need_publication", "/review", len(found["proposed"])),
        ("need_patience", "/requests", waits),
    )
    needs: list[Need] = [(code, place, {"count": count}) for code, place, count in counted if count]
    names = (name for name in list_unsigned(visit) if visit.may("dataset.countersign", name))
    needs += [("need_signature", f"/datasets/{name}", {"name": name}) for name in names]
    for one in found["datasets"]:
        needs += [(code, f"/datasets/{one['name']}", {"name": one["name"]}) for code in _needs_of(visit, one)]
    soon = (datetime.now(UTC).date() + timedelta(days=_SOON)).isoformat()
    for grant in (grant for grant in found["grants"] if grant["expires"][:10] <= soon):
        place, day = f"/ask/{grant['dataset']}?grant={grant['id']}", grant["expires"][:10]
        needs.append(("need_hurry", place, {"name": grant["dataset"], "day": day}))
    return needs


def _needs_of(visit: Visit, one: dict[str, Any]) -> Iterator[str]:
    """What a dataset needs from whoever looks."""
    budget = one["budget"]
    if one["state"] == "frozen" and visit.may("dataset.thaw", one["name"]):
        yield "need_thaw"
    if budget and budget["left"] < _LITTLE * budget["limit"] and visit.may("grant.create", one["name"]):
        yield "need_budget"


def _guide(visit: Visit, datasets: list[dict[str, object]]) -> list[tuple[str, str, bool]]:
    """What is left to do until the first answer, with where it is done; nothing once there was one."""
    database = visit.service.database
    is_done = {
        "people": database.row("SELECT 1 AS found FROM principals WHERE id <> ?", visit.principal.id) is not None,
        "dataset": bool(datasets) or database.row("SELECT 1 AS found FROM datasets") is not None,
        "signed": database.row("SELECT 1 AS found FROM datasets WHERE version > 0") is not None,
        "grant": database.row("SELECT 1 AS found FROM grants") is not None,
        "answer": database.row("SELECT 1 AS found FROM requests WHERE outcome = 'answered'") is not None,
    }
    places = {"people": "/people", "dataset": "/register", "signed": "/datasets", "grant": "/datasets", "answer": ""}
    return [] if is_done["answer"] else [(step, places[step], is_done[step]) for step in is_done]


def show_enter(visit: Visit) -> Response:
    """A link is used by a button, so that whoever only looks at it (a scanner of mail) does not use it up."""
    return visit.render("enter.html", link=visit.read_field("link"))


def _is_from_elsewhere(visit: Visit) -> bool:
    return visit.request.headers.get("sec-fetch-site") not in (None, "same-origin", "none")


def sign_in(visit: Visit) -> Response:
    if _is_from_elsewhere(visit):
        return Response("", 403)
    from mosha.server.api.operation import Call, perform  # noqa: PLC0415
    from mosha.server.api.table import BY_NAME  # noqa: PLC0415

    body = {"link": visit.read_field("link")[:200] or " "}
    reply = perform(BY_NAME["openSession"], Call(visit.service, body=body, language=visit.language))
    response = visit.go("/")
    set_session(visit.service, response, reply.session or "")
    return response


def enter_demo(visit: Visit) -> Response:
    """One of the made-up people of the demo, by one click."""
    name = visit.read_field("person")
    if _is_from_elsewhere(visit) or not _has_demo_doors(visit) or name not in DEMO_PEOPLE or name not in PEOPLE:
        raise NotFound("server.not_found")
    row = visit.service.database.row("SELECT id FROM principals WHERE name = ? AND state = 'active'", name)
    if row is None:
        raise NotFound("server.not_found")
    if DEMO_PEOPLE[name] == "reviewer":
        leave_demo_question(visit.service)
    seconds = visit.service.settings.session_hours * 3600
    made = issue(visit.service.database, row["id"], "session", seconds=seconds)
    response = visit.go("/")
    set_session(visit.service, response, made.secret)
    return response


def enter_demo_survey(visit: Visit) -> Response:
    """The survey of the demo, where anybody sees what leaves a browser."""
    if _is_from_elsewhere(visit) or not _has_demo_doors(visit):
        raise NotFound("server.not_found")
    return visit.go(f"/survey/{open_demo_survey(visit.service)}")


def leave(visit: Visit) -> Response:
    if not visit.principal.is_public:
        visit.do("closeSession")
    response = visit.go("/")
    set_session(visit.service, response, "")
    return response


def choose_language(visit: Visit) -> Response:
    """Keep the language in a cookie, and go back to where one was."""
    back, chosen = visit.read_field("back"), visit.read_field("language")
    own = back.startswith("/") and not back.startswith(("//", "/\\")) and back.isprintable()
    response = visit.go(back if own else "/")
    if chosen in ("zh", "en"):
        secure = visit.service.settings.secure
        response.set_cookie("mosha-language", chosen, max_age=31_536_000, samesite="lax", secure=secure, path="/")
    return response


def show_static(visit: Visit) -> Response:
    name = visit.path["name"]
    file = FOLDER / "static" / name
    if name not in _STATIC or not file.is_file():
        raise NotFound("server.not_found")
    return FileResponse(file, media_type=_STATIC[name], headers={"Cache-Control": "no-cache"})


def show_glossary(visit: Visit) -> Response:
    return visit.render("glossary.html", words=list(WORDS))


def _oidc_cookie(visit: Visit) -> str:
    return "__Host-mosha-oidc" if visit.service.settings.secure else "mosha-oidc"


def _way_back(visit: Visit) -> str:
    return f"{str(visit.request.base_url).rstrip('/')}/oidc/callback"


def go_to_provider(visit: Visit) -> Response:
    """Send the browser to the provider."""
    from mosha.server.people.oidc import begin  # noqa: PLC0415  (an extra)

    settings = visit.service.settings
    if not settings.oidc_issuer:
        raise NotFound("server.not_found")
    visit.service.rates.take("", "openid", per_minute=120)
    address, attempt = begin(settings, _way_back(visit))
    response = RedirectResponse(address, 303, PRIVATE)
    options = {"path": "/", "secure": settings.secure, "httponly": True, "samesite": "lax"}
    response.set_cookie(_oidc_cookie(visit), attempt.to_text(), max_age=_OIDC_MINUTES * 60, **options)  # type: ignore[arg-type]
    return response


def come_back_from_provider(visit: Visit) -> Response:
    """Believe what the provider signed, and open a session."""
    from mosha.server.people.oidc import Attempt, find_or_make_person, finish  # noqa: PLC0415  (an extra)

    settings, database = visit.service.settings, visit.service.database
    if not settings.oidc_issuer:
        raise NotFound("server.not_found")
    visit.service.rates.take("", "openid", per_minute=120)
    attempt = Attempt.from_text(visit.request.cookies.get(_oidc_cookie(visit), ""))
    claims = finish(settings, _way_back(visit), attempt, code=visit.read_field("code"), state=visit.read_field("state"))
    person = find_or_make_person(database, claims)
    row = database.row("SELECT 1 AS found FROM principals WHERE id = ? AND state = 'active'", person)
    if row is None:
        raise SignInNeeded("server.oidc_failed")
    made = issue(database, person, "session", seconds=settings.session_hours * 3600)
    response = visit.go("/")
    response.delete_cookie(_oidc_cookie(visit), path="/", secure=settings.secure, httponly=True, samesite="lax")
    set_session(visit.service, response, made.secret)
    return response


ROUTES = (
    ("GET", "/", show_front),
    ("GET", "/enter", show_enter),
    ("POST", "/enter", sign_in),
    ("POST", "/demo", enter_demo),
    ("POST", "/demo/survey", enter_demo_survey),
    ("POST", "/leave", leave),
    ("POST", "/language", choose_language),
    ("GET", "/static/{name}", show_static),
    ("GET", "/words", show_glossary),
    ("GET", "/oidc/start", go_to_provider),
    ("GET", "/oidc/callback", come_back_from_provider),
)
