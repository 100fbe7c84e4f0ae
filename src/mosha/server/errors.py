"""What the server refuses, each with a stable code and a status of HTTP.

MoshaError
└── ServerError
    ├── NotFound            404: there is no such thing, or it is none of the caller's business
    ├── SignInNeeded        401
    ├── Forbidden           403: what everybody may know to be forbidden, such as a form from another site
    ├── Conflict            409: the state of a thing does not allow it
    ├── BadRequest          422: the body, a parameter or a header is wrong
    ├── TooSlow             408: the body did not come in time
    ├── TooLarge            413: the body is too large
    ├── TooMany             429: a rate or a queue is full
    └── StoreUnavailable    503: the server's own database is out of reach
"""

from __future__ import annotations

from typing import Any, ClassVar

from mosha.core.errors import MoshaError
from mosha.core.language import is_known, phrase

__all__ = [
    "BadRequest",
    "Conflict",
    "Forbidden",
    "NotFound",
    "ServerError",
    "SignInNeeded",
    "StoreUnavailable",
    "TooLarge",
    "TooMany",
    "TooSlow",
]


class ServerError(MoshaError):
    """The root of what the server itself refuses."""

    status: ClassVar[int] = 500

    def _fields(self) -> dict[str, Any]:
        """What a sentence names; the state of a thing in words, where programs get its name."""
        fields = super()._fields()
        code = f"server.state_{str(fields.get('state', '')).replace(' ', '_')}"
        return fields | {"state": phrase(code)} if is_known(code) else fields


class NotFound(ServerError):
    status = 404


class SignInNeeded(ServerError):
    status = 401


class Forbidden(ServerError):
    status = 403


class Conflict(ServerError):
    status = 409


class BadRequest(ServerError):
    status = 422


class TooLarge(ServerError):
    status = 413


class TooSlow(ServerError):
    status = 408


class TooMany(ServerError):
    status = 429


class StoreUnavailable(ServerError):
    status = 503
