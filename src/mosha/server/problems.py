"""Problems as RFC 9457 has them, made from an error by an allow-list: nothing passes that was not meant to.

The sentences of the library pass where they are about public input. What a ledger says about other people's accounts,
what a source says about itself, and what nobody expected have one sentence each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from mosha.core.errors import DataError, MoshaError
from mosha.core.language import LANGUAGES, Language, is_code, say
from mosha.server.errors import ServerError

__all__ = ["LANGUAGES", "problem_of", "stored_problem"]

_FIELDS = (
    "parameter",
    "nearest",
    "measure",
    "cost",
    "most",
    "left",
    "left_as",
    "state",
    "name",
    "names",
    "seconds",
    "method",
    "expected",
    "version",
    "spent",
)
_OWN_NUMBERS = ("account", "measure", "asked", "used", "limit", "reached")
_INPUT = {"InvalidParameter": 422, "Refused": 422, "Unbounded": 422, "Unpriced": 422, "WrongUnit": 422}
_TERMS = {"AccountMismatch": 409, "PolicyViolation": 409}
_FIXED = {
    "BudgetExceeded": (409, "server.not_enough"),
    "AccountRetired": (409, "server.no_grant"),
    "AccountExpired": (409, "server.no_grant"),
    "AccountFrozen": (409, "server.frozen"),
    "UnknownAccount": (409, "server.no_grant"),
    "LedgerUnavailable": (503, "server.ledger_unavailable"),
    "LedgerTampered": (503, "server.ledger_unavailable"),
    "LedgerKeyRefused": (503, "server.ledger_unavailable"),
    "LedgerError": (503, "server.ledger_unavailable"),
    "StepFailed": (409, "server.step_failed"),
    "StepGivenUp": (409, "server.step_failed"),
    "StateRefused": (409, "server.series_state"),
    "AlreadyReleased": (409, "server.series_state"),
    "HorizonExceeded": (409, "server.series_over"),
    "DataError": (503, "server.not_run"),
    "SourceUnavailable": (503, "server.not_run"),
}


def problem_of(error: BaseException, language: Language, *, own: Collection[str] = ()) -> dict[str, Any]:
    """What may be told of an error; `own` are the accounts whose numbers the reader may see."""
    if isinstance(error, ServerError):
        fields = {**error.public, "parameter": error.parameter, "spent": error.spent}
        return _problem(error.status, error.code, type(error).__name__, error.render(language), fields)
    if type(error) is DataError:  # a column that is not there: the server's own process reads no data
        return _problem(422, error.code, "DataError", error.render(language), error.to_dict())
    if isinstance(error, MoshaError):
        return _library_problem(type(error).__name__, error.to_dict(), language, own, error.render(language))
    return _problem(500, "server.internal", "ServerError", say("server.internal", language), {})


def stored_problem(stored: Mapping[str, Any], language: Language, *, own: Collection[str] = ()) -> dict[str, Any]:
    """The problem of a request that was refused or failed, as it was written down."""
    if "code" in stored:
        kind = "StepFailed" if stored["code"] == "server.step_failed" else "Conflict"
        spent = "paid" if kind == "StepFailed" else "nothing"
        return _problem(409, stored["code"], kind, say(stored["code"], language), {"spent": spent})
    said = stored["error"]
    sentence = say(said["code"], language, **said) if is_code(said.get("code")) else str(said.get("message", ""))
    return _library_problem(stored["kind"], said, language, own, sentence)


def _library_problem(
    kind: str, said: Mapping[str, Any], language: Language, own: Collection[str], sentence: str
) -> dict[str, Any]:
    code = str(said.get("code") or f"mosha.{kind}")
    if kind in _INPUT or kind in _TERMS:
        return _problem({**_INPUT, **_TERMS}[kind], code, kind, sentence, said)
    status, fixed = _FIXED.get(kind, (500, "server.internal"))
    fields: dict[str, Any] = {"spent": "paid" if kind in ("StepFailed", "StepGivenUp") else "nothing"}
    if kind == "BudgetExceeded" and said.get("account") in own:
        fields |= {name: said[name] for name in _OWN_NUMBERS if name in said}
    return _problem(status, fixed, kind, say(fixed, language), {}) | fields


def _problem(status: int, code: str, kind: str, detail: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: fields[name] for name in _FIELDS if fields.get(name) is not None}
    return {
        "type": f"urn:mosha:problem:{code}",
        "title": kind,
        "status": status,
        "code": code,
        "detail": detail,
    } | told
