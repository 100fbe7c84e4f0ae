"""An operation: where it is reached, what it may be done by, what it takes and gives. And how it is performed.

`perform` is the one way to an operation's handler, for REST, for MCP and for the pages of the console: whoever calls
must be signed in where that is needed, the body must be what the schema says, and `may` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mosha.core.language import Language
from mosha.server.api.schemas import Schema, check
from mosha.server.asking.questions import load_engines
from mosha.server.clock import END_OF_TIME
from mosha.server.errors import BadRequest, NotFound, SignInNeeded
from mosha.server.people.permissions import NOBODY, RULES, Principal, Thing, may
from mosha.server.service import Service
from mosha.server.store.database import Row

__all__ = ["Call", "Operation", "Reply", "nothing_in_particular", "perform"]


@dataclass(frozen=True)
class Call:
    """One request, with everything that a handler may look at."""

    service: Service
    principal: Principal = NOBODY
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    language: Language = "en"
    secure: bool = False

    def read_page(self, read: Callable[..., list[Row]], *words: object, **more: object) -> tuple[list[Row], int | None]:
        """One page of a list that begins with the newest, and where the next one begins: None where there is none."""
        most = self.query.get("limit", 200)
        rows = read(*words, **more, before=self.query.get("before", END_OF_TIME), most=most + 1)
        return rows[:most], rows[most - 1]["created"] if len(rows) > most else None


@dataclass(frozen=True)
class Reply:
    """What goes back: JSON by default, or text of another kind. `session` is set as a cookie, or taken away."""

    body: Any = None
    status: int = 200
    media: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    session: str | None = None


def nothing_in_particular(_: Call) -> Thing:
    return Thing()


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One line of the table of operations."""

    name: str
    method: str
    path: str
    verb: str
    summary: str
    handler: Callable[[Call], Reply]
    thing: Callable[[Call], Thing] = nothing_in_particular
    body: Schema | None = None
    query: Mapping[str, Schema] = field(default_factory=dict)
    status: int = 200
    answer: Schema = field(default_factory=lambda: {"type": "object"})
    media: str = "application/json"
    spends: bool = False
    tag: str = "server"


def perform(operation: Operation, call: Call) -> Reply:
    """Check, decide, do. What is forbidden and what is not there look alike."""
    load_engines()
    if call.principal.is_public and not RULES[operation.verb].public:
        raise SignInNeeded("server.sign_in")
    if operation.body is not None:
        check(call.body, operation.body, "")
    elif call.body:
        raise BadRequest("server.field_unknown", parameter=next(iter(call.body))[:200])
    thing = operation.thing(call)
    if not may(call.principal, operation.verb, thing):
        raise NotFound("server.not_found")
    return operation.handler(call)
