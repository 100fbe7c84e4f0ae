"""Webhooks: another program is told that something happened, never what an answer was.

A message names an event, a moment and public names. It is signed with a key that the receiver was given once:

    Mosha-Signature: t=1794906000,v1=<HMAC-SHA256 of "t.body" by the key, in hexadecimal digits>

The end of a question is told at its tick and no earlier, and with one word for all ends.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import secrets
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from mosha.server.clock import as_text, now
from mosha.server.errors import BadRequest, NotFound
from mosha.server.store.database import Database, Row

__all__ = [
    "EVENTS",
    "announce",
    "create_webhook",
    "delete_webhook",
    "deliver_due",
    "describe_webhook",
    "is_https_or_here",
    "is_wanted",
    "list_webhooks",
    "sign",
]

EVENTS = (
    "request.waiting",
    "request.decided",
    "request.ended",
    "dataset.proposed",
    "publication.proposed",
    "budget.low",
)
MOST_ATTEMPTS = 8
SECOND = 1_000_000


def is_https_or_here(url: str) -> bool:
    """Whether an address is reached by HTTPS, or by plain HTTP on this machine alone."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if not host or parts.username or parts.password or parts.fragment:
        return False
    if parts.scheme == "https":
        return True
    try:
        here = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = False
    return parts.scheme == "http" and here


def create_webhook(database: Database, said: Mapping[str, Any], author: str) -> tuple[Row, str]:
    """Write a webhook down; its row, and the key that signs, which is shown this once."""
    if not is_https_or_here(said["url"]):
        raise BadRequest("server.field_wrong", parameter="url", expected="https://...")
    identity, key = f"w-{secrets.token_hex(6)}", secrets.token_urlsafe(32)
    statement = "INSERT INTO webhooks (id, url, secret, events, author, created) VALUES (?, ?, ?, ?, ?, ?)"
    database.run(statement, identity, said["url"], key, json.dumps(said["events"]), author, now())
    row = database.row("SELECT * FROM webhooks WHERE id = ?", identity)
    assert row is not None
    return row, key


def list_webhooks(database: Database) -> list[Row]:
    return database.rows("SELECT * FROM webhooks ORDER BY created")


def delete_webhook(database: Database, identity: str) -> None:
    if database.run("DELETE FROM webhooks WHERE id = ?", identity) == 0:
        raise NotFound("server.not_found")
    database.run("DELETE FROM deliveries WHERE webhook = ?", identity)


def describe_webhook(row: Row) -> dict[str, Any]:
    described = {"id": row["id"], "url": row["url"], "events": json.loads(row["events"])}
    return described | {"created": as_text(row["created"])}


def is_wanted(database: Database, event: str) -> bool:
    """Whether anybody is told of an event."""
    return any(event in json.loads(row["events"]) for row in list_webhooks(database))


def announce(database: Database, event: str, *, due: int | None = None, **public: str) -> None:
    """Write a message for everybody who wants to know of an event, to be sent from `due` on."""
    moment = now() if due is None else due
    body = {"event": event, "at": as_text(moment)} | public
    for row in list_webhooks(database):
        if event in json.loads(row["events"]):
            identity = f"d-{secrets.token_hex(8)}"
            text = json.dumps({"id": identity} | body, sort_keys=True)
            statement = "INSERT INTO deliveries (id, webhook, body, attempts, due) VALUES (?, ?, ?, 0, ?)"
            database.run(statement, identity, row["id"], text, moment)


def sign(key: str, moment: int, body: str) -> str:
    """The header that a receiver checks.

    >>> sign("key", 1, "{}")[:10]
    't=1,v1=1ba'
    """
    made = hmac.new(key.encode(), f"{moment}.{body}".encode(), hashlib.sha256).hexdigest()
    return f"t={moment},v1={made}"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def deliver_due(database: Database, *, most: int = 20) -> int:
    """Send what is due; how many were taken. What fails is tried again, later each time, and given up after a while."""
    statement = "SELECT * FROM deliveries WHERE due <= ? ORDER BY due LIMIT ?"
    done = 0
    for row in database.rows(statement, now(), most):
        later = now() + 2 ** row["attempts"] * 30 * SECOND
        change = "UPDATE deliveries SET attempts = attempts + 1, due = ? WHERE id = ? AND due = ?"
        if database.run(change, later, row["id"], row["due"]) != 1:
            continue  # another process has taken it
        hook = database.row("SELECT * FROM webhooks WHERE id = ?", row["webhook"])
        if hook is None or _send(hook, row["body"]) or row["attempts"] + 1 >= MOST_ATTEMPTS:
            database.run("DELETE FROM deliveries WHERE id = ?", row["id"])
        done += 1
    return done


def _send(hook: Row, body: str) -> bool:
    headers = {"Content-Type": "application/json", "Mosha-Signature": sign(hook["secret"], now() // SECOND, body)}
    request = urllib.request.Request(hook["url"], body.encode(), headers, method="POST")  # noqa: S310  (checked)
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=10) as reply:
            return bool(200 <= reply.status < 300)
    except (OSError, urllib.error.URLError, ValueError):
        return False
