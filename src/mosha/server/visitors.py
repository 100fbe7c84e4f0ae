"""Who comes by: their language, who they are, whether a change came from our own pages, and what they sent."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from mosha.core.language import Language, read_language
from mosha.server import patience
from mosha.server.cookies import cookie_name
from mosha.server.errors import Forbidden, SignInNeeded, TooLarge, TooSlow
from mosha.server.people.credentials import find_by_secret
from mosha.server.people.permissions import NOBODY, Principal
from mosha.server.service import Service

__all__ = ["check_site", "identify", "language_of", "read_body"]


def language_of(request: Request, service: Service) -> Language:
    """The reader's language: the cookie, then what the browser prefers, then the server's."""
    said = request.cookies.get("mosha-language") or request.headers.get("accept-language", "")
    first = said.split(",")[0].strip()
    return read_language(first if first and first != "*" else service.settings.language)


def identify(request: Request, service: Service) -> Principal:
    """Who is asking: by a token in a header, or by a session in a cookie. A wrong token is refused, never ignored."""
    header = request.headers.get("authorization")
    if header is not None:
        scheme, _, written = header.partition(" ")
        found = find_by_secret(service.database, written.strip(), "token") if scheme.lower() == "bearer" else None
        if found is None:
            raise SignInNeeded("server.wrong_credentials")
        return found
    cookie = request.cookies.get(cookie_name(service))
    if cookie is None:
        return NOBODY
    found = find_by_secret(service.database, cookie, "session", idle=service.settings.idle_minutes * 60)
    return found or NOBODY


def check_site(request: Request, principal: Principal, form_token: str | None = None) -> None:
    """A change that a browser sends with its cookie must come from our own pages."""
    if principal.signed_by != "session" or request.method in ("GET", "HEAD"):
        return
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    host = request.headers.get("host", "")
    # Pages send no referrer; a browser then says `Origin: null` of their own forms, and the site beside it.
    ours = origin is None or origin.partition("://")[2] == host or (origin == "null" and site == "same-origin")
    same = site in (None, "same-origin", "none") and ours
    token = request.headers.get("x-csrf-token") or form_token
    if not same or token != principal.csrf or not principal.csrf:
        raise Forbidden("server.other_site")


async def read_body(request: Request, most: int) -> bytes:
    """The body, as long as it is not larger than it may be, and comes in time."""
    pieces, size = [], 0
    try:
        async with asyncio.timeout(patience.BODY):
            async for piece in request.stream():
                size += len(piece)
                if size > most:
                    raise TooLarge("server.body_too_large", most=most)
                pieces.append(piece)
    except TimeoutError:
        raise TooSlow("server.body_too_slow", seconds=int(patience.BODY)) from None
    return b"".join(pieces)
