"""How somebody proves who they are: tokens for programs, sessions for browsers, links that work once.

A secret has 256 bits from the operating system. Only its SHA-256 is kept: nobody can guess 256 bits, so nothing
slower is needed. It is written as `mosha_<id>_<secret>`; the id finds the row, the hash is compared in constant time.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
from dataclasses import dataclass

from mosha.server.clock import now
from mosha.server.errors import SignInNeeded
from mosha.server.people.permissions import Principal, Scope
from mosha.server.people.principals import load_principal
from mosha.server.store.database import Database, Row

__all__ = ["Credential", "find_by_secret", "issue", "revoke", "seconds_left", "use_link"]

SECOND = 1_000_000
_WRITTEN = re.compile(r"mosha_([a-z2-7]{16})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class Credential:
    """A credential that was just made: the only time that its secret is seen."""

    id: str
    secret: str
    expires: int
    csrf: str = ""


def issue(
    database: Database,
    principal: str,
    kind: str,
    *,
    seconds: float,
    label: str = "",
    scope: Scope | None = None,
) -> Credential:
    """Make a token, a session or a link of a principal."""
    name = base64.b32encode(secrets.token_bytes(10)).decode().lower()
    secret = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=")
    expires = now() + int(seconds * SECOND)
    csrf = secrets.token_urlsafe(32) if kind == "session" else ""
    stored = json.dumps((scope or Scope()).to_dict())
    database.run(
        "INSERT INTO credentials (id, principal, kind, hash, scope, label, created, expires, csrf)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        *(name, principal, kind, _hash(secret), stored, label, now(), expires, csrf),
    )
    if (
        kind != "link"
    ):  # whoever has had a token or a session is somebody: no new link of a curator's makes another them
        database.run("UPDATE principals SET entered = ? WHERE id = ? AND entered IS NULL", now(), principal)
    return Credential(name, f"mosha_{name}_{secret}", expires, csrf)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _find(database: Database, written: object, kind: str) -> Row | None:
    found = _WRITTEN.fullmatch(written) if isinstance(written, str) else None
    if found is None:
        return None
    row = database.row("SELECT * FROM credentials WHERE id = ? AND kind = ?", found[1], kind)
    if row is None or not hmac.compare_digest(row["hash"], _hash(found[2])) or row["expires"] <= now():
        return None
    return row


def find_by_secret(database: Database, written: object, kind: str, *, idle: float | None = None) -> Principal | None:
    """Who this token or session belongs to; None where it is nobody's, is over, or was idle for too long (seconds)."""
    row = _find(database, written, kind)
    if row is None:
        return None
    moment = now()
    if idle is not None and moment - (row["used"] or row["created"]) > idle * SECOND:
        revoke(database, row["id"])
        return None
    if moment - (row["used"] or 0) > 60 * SECOND:  # to the minute is enough, and spares a write for each request
        database.run("UPDATE credentials SET used = ? WHERE id = ?", moment, row["id"])
    stored = json.loads(row["scope"])
    lists = {name: tuple(stored[name]) if name in stored else None for name in ("datasets", "verbs")}
    scope = Scope(**lists, most_per_question=stored.get("most_per_question"))
    return load_principal(
        database, row["principal"], scope=scope, signed_by=kind, credential=row["id"], csrf=row["csrf"] or ""
    )


def use_link(database: Database, written: object) -> str:
    """The principal of a link that was never used; it is used up by this."""
    row = _find(database, written, "link")
    if row is not None and database.run("DELETE FROM credentials WHERE id = ? AND kind = 'link'", row["id"]) == 1:
        return str(row["principal"])
    raise SignInNeeded("server.wrong_credentials")


def seconds_left(database: Database, credential: str) -> float:
    """How long a credential is good for."""
    row = database.row("SELECT expires FROM credentials WHERE id = ?", credential)
    return max(0.0, (row["expires"] - now()) / SECOND) if row else 0.0


def revoke(database: Database, credential: str) -> None:
    """End a credential, and the sessions that were opened with it."""
    database.run("DELETE FROM credentials WHERE id = ? OR (kind = 'session' AND label = ?)", credential, credential)
