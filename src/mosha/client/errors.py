"""Errors of a server, as the library's own: by the kind and the code that the problem names."""

from __future__ import annotations

import json
from typing import Any

from mosha.core import errors
from mosha.core.errors import MoshaError

__all__ = ["RequestDenied", "ServerRefusal", "ServerUnreachable", "revive", "revive_problem"]


class ServerUnreachable(MoshaError):
    """The server did not answer. A release is repeated with the same key, which is free.

    >>> issubclass(ServerUnreachable, MoshaError)
    True
    """


class ServerRefusal(MoshaError):
    """The server refused, for a reason that the library itself does not know (`status`, `code`).

    >>> revive(409, b'{"code": "server.busy", "detail": "Come back later."}').status
    409
    """

    status: int = 0


class RequestDenied(ServerRefusal):
    """A reviewer denied the question, it waited too long, or it was withdrawn. Nothing was spent.

    >>> issubclass(RequestDenied, ServerRefusal)
    True
    """


_KINDS = {"server.not_enough": "BudgetExceeded"}
_LEFT_OUT = ("type", "title", "status", "code", "detail", "spent")


def revive(status: int, body: bytes) -> MoshaError:
    """The error that a response tells."""
    try:
        problem = json.loads(body)
        kind = {"status": status, **problem}
    except (ValueError, TypeError):
        kind = {"status": status, "code": "client.unknown_answer", "detail": f"HTTP {status}"}
    return revive_problem(kind)


def revive_problem(problem: dict[str, Any]) -> MoshaError:
    """The error of a problem: a kind of the library where it names one."""
    name = _KINDS.get(str(problem.get("code")), str(problem.get("title", "")))
    found = getattr(errors, name, None) if name in errors.__all__ else None
    kind: type[MoshaError] = found if isinstance(found, type) else ServerRefusal
    error = kind.__new__(kind, str(problem.get("detail", "")))
    error.args = (str(problem.get("detail", "")),)
    public = {name: value for name, value in problem.items() if name not in _LEFT_OUT}
    vars(error).update(parameter=None, account=None, public=public, code=str(problem.get("code", "")), advice="")
    vars(error).update(public)
    if isinstance(error, ServerRefusal):
        error.status = int(problem.get("status", 0))
    return error
