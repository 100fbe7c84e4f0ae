"""OpenID Connect: somebody else, whom the operator trusts, says who a person is (code flow with PKCE).

The server believes an ID token that the issuer has signed with a key it publishes, that is meant for this client, is
not over, and holds the nonce which this browser was given. A person who comes for the first time is made without a
role: what they may do is decided here, never by a claim.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

from mosha.core.language import phrase
from mosha.core.names.extras import load_guest
from mosha.server.clock import now
from mosha.server.errors import BadRequest, Conflict, SignInNeeded
from mosha.server.people.principals import create_principal
from mosha.server.settings import Settings
from mosha.server.store.database import Database

load_guest("joserfc", extra="oidc", needed_for=phrase("server.openid_connect"))

from joserfc import jwt  # noqa: E402
from joserfc.errors import JoseError  # noqa: E402
from joserfc.jwk import KeySet  # noqa: E402

__all__ = ["Attempt", "begin", "find_or_make_person", "finish"]

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
LARGEST = 1_000_000


@dataclass(frozen=True)
class Attempt:
    """What a browser carries from the start of signing in to its end."""

    state: str
    nonce: str
    verifier: str

    def to_text(self) -> str:
        return f"{self.state}.{self.nonce}.{self.verifier}"

    @classmethod
    def from_text(cls, text: str) -> Attempt:
        parts = text.split(".")
        if len(parts) != 3 or not all(len(part) >= 40 for part in parts):
            raise SignInNeeded("server.oidc_failed")
        return cls(*parts)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def _read(url: str, data: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A JSON object from the provider; whatever goes wrong is one refusal."""
    body = None if data is None else urlencode(data).encode()
    request = urllib.request.Request(url, body, {"Accept": "application/json", **(headers or {})})  # noqa: S310
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=10) as reply:
            found = json.loads(reply.read(LARGEST))
    except (OSError, urllib.error.URLError, ValueError):
        raise SignInNeeded("server.oidc_failed") from None
    if not isinstance(found, dict):
        raise SignInNeeded("server.oidc_failed")
    return found


@lru_cache(maxsize=8)
def _provider(issuer: str) -> dict[str, Any]:
    """What the provider says of itself; it must call itself by the name that the operator wrote down."""
    found = _read(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if found.get("issuer") != issuer or not all(isinstance(found.get(name), str) for name in ENDPOINTS):
        raise SignInNeeded("server.oidc_failed")
    return found


def begin(settings: Settings, redirect: str) -> tuple[str, Attempt]:
    """Where to send the browser, and what it carries."""
    attempt = Attempt(*(secrets.token_urlsafe(32) for _ in range(3)))
    digest = hashlib.sha256(attempt.verifier.encode()).digest()
    question = {
        "response_type": "code",
        "client_id": settings.oidc_client,
        "redirect_uri": redirect,
        "scope": "openid profile email",
        "state": attempt.state,
        "nonce": attempt.nonce,
        "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": "S256",
    }
    place = _provider(settings.oidc_issuer)["authorization_endpoint"]
    return f"{place}{'&' if '?' in place else '?'}{urlencode(question)}", attempt


def finish(settings: Settings, redirect: str, attempt: Attempt, *, code: str, state: str) -> dict[str, Any]:
    """The claims of whoever came back with a code; refused where anything does not fit."""
    if not secrets.compare_digest(attempt.state.encode(), state.encode()):
        raise SignInNeeded("server.oidc_failed")
    provider = _provider(settings.oidc_issuer)
    said = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect}
    said |= {"code_verifier": attempt.verifier, "client_id": settings.oidc_client}
    pair = f"{quote(settings.oidc_client, safe='')}:{quote(settings.oidc_secret, safe='')}"
    headers = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"} if settings.oidc_secret else {}
    token = _read(provider["token_endpoint"], said, headers).get("id_token")
    try:
        keys = KeySet.import_key_set(_read(provider["jwks_uri"]))  # type: ignore[arg-type]
        claims: dict[str, Any] = jwt.decode(str(token), keys, algorithms=ALGORITHMS).claims
        wanted = jwt.JWTClaimsRegistry(
            leeway=60,
            iss={"essential": True, "value": settings.oidc_issuer},
            aud={"essential": True, "value": settings.oidc_client},
            sub={"essential": True},
            exp={"essential": True},
            nonce={"essential": True, "value": attempt.nonce},
        )
        wanted.validate(claims)
    except (JoseError, ValueError, TypeError, KeyError):
        raise SignInNeeded("server.oidc_failed") from None
    if claims.get("azp", settings.oidc_client) != settings.oidc_client:
        raise SignInNeeded("server.oidc_failed")
    return claims


def find_or_make_person(database: Database, claims: Mapping[str, object]) -> str:
    """The principal of an issuer's subject; one who comes for the first time is made, without any role."""
    issuer, subject = str(claims["iss"]), str(claims["sub"])
    find = "SELECT principal FROM identities WHERE issuer = ? AND subject = ?"
    if (row := database.row(find, issuer, subject)) is not None:
        return str(row["principal"])
    said = str(claims.get("preferred_username") or claims.get("email") or claims.get("name") or subject)
    name = "".join(letter for letter in said if letter.isprintable() and letter != "/").strip()[:80] or "somebody"
    identity = _make(database, name)
    keep = "INSERT INTO identities (issuer, subject, principal) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    database.run(keep, issuer, subject, identity)
    row = database.row(find, issuer, subject)
    assert row is not None
    return str(row["principal"])


def _make(database: Database, name: str) -> str:
    """A person of that name; where somebody has it already, with a number behind it: nobody becomes another by it."""
    for number in range(1, 1000):
        try:
            return create_principal(database, kind="person", name=name if number == 1 else f"{name} ({number})")
        except Conflict:
            continue
    raise BadRequest("server.exists", parameter="name", name=f"{name} {now()}")
