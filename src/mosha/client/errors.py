"""Errors of a server, as the library's own: by the kind and the code that the problem names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mosha.core import errors
from mosha.core.errors import MoshaError
from mosha.core.language import LANGUAGES, say

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
_SPENT = ("nothing", "paid", "waits")
_LEFT_OUT = ("type", "title", "status", "code", "detail", "spent")


def _strip_ending(problem: Mapping[str, Any]) -> str:
    """The sentence of a problem without what the error says after it by itself: what was spent, what to ask instead."""
    said = str(problem.get("detail", ""))
    for language in LANGUAGES:
        if problem.get("nearest") is not None:
            said = said.removesuffix(say("core.ask_instead", language, nearest=problem["nearest"])).rstrip()
        if problem.get("spent") in _SPENT:
            said = said.removesuffix(say(f"core.closing_{problem['spent']}", language)).rstrip()
    return said


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
    sentence = _strip_ending(problem)
    error = kind.__new__(kind, sentence)
    error.args = (sentence,)
    public = {name: value for name, value in problem.items() if name not in _LEFT_OUT}
    vars(error).update(parameter=None, account=None, public=public, code=str(problem.get("code", "")), advice="")
    vars(error).update(public)
    if problem.get("spent") in _SPENT:
        error.spent = problem["spent"]
    if isinstance(error, ServerRefusal):
        error.status = int(problem.get("status", 0))
    return error
