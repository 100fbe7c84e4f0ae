"""Signing in by OpenID Connect: out to the provider, and back with a session."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from mosha.server.cookies import set_session
from mosha.server.errors import NotFound, SignInNeeded
from mosha.server.pages.site import PRIVATE, Visit
from mosha.server.people.credentials import issue

__all__ = ["ROUTES"]

MINUTES = 10


def _cookie(visit: Visit) -> str:
    return "__Host-mosha-oidc" if visit.service.settings.secure else "mosha-oidc"


def _redirect(visit: Visit) -> str:
    return f"{str(visit.request.base_url).rstrip('/')}/oidc/callback"


def start(visit: Visit) -> Response:
    """Send the browser to the provider."""
    from mosha.server.people.oidc import begin  # noqa: PLC0415  (an extra)

    settings = visit.service.settings
    if not settings.oidc_issuer:
        raise NotFound("server.not_found")
    visit.service.rates.take("", "openid", per_minute=120)
    address, attempt = begin(settings, _redirect(visit))
    response = RedirectResponse(address, 303, PRIVATE)
    options = {"path": "/", "secure": settings.secure, "httponly": True, "samesite": "lax"}
    response.set_cookie(_cookie(visit), attempt.to_text(), max_age=MINUTES * 60, **options)  # type: ignore[arg-type]
    return response


def come_back(visit: Visit) -> Response:
    """Believe what the provider signed, and open a session."""
    from mosha.server.people.oidc import Attempt, find_or_make_person, finish  # noqa: PLC0415  (an extra)

    settings, database = visit.service.settings, visit.service.database
    if not settings.oidc_issuer:
        raise NotFound("server.not_found")
    visit.service.rates.take("", "openid", per_minute=120)
    attempt = Attempt.from_text(visit.request.cookies.get(_cookie(visit), ""))
    claims = finish(settings, _redirect(visit), attempt, code=visit.read_field("code"), state=visit.read_field("state"))
    person = find_or_make_person(database, claims)
    row = database.row("SELECT 1 AS found FROM principals WHERE id = ? AND state = 'active'", person)
    if row is None:
        raise SignInNeeded("server.oidc_failed")
    made = issue(database, person, "session", seconds=settings.session_hours * 3600)
    response = visit.go("/")
    response.delete_cookie(_cookie(visit), path="/", secure=settings.secure, httponly=True, samesite="lax")
    set_session(visit.service, response, made.secret)
    return response


ROUTES = (("GET", "/oidc/start", start), ("GET", "/oidc/callback", come_back))
