"""openapi.json (3.1): the table of operations, said in the words of OpenAPI."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from mosha._version import __version__
from mosha.server.api.operation import Operation
from mosha.server.api.schemas import text
from mosha.server.api.table import OPERATIONS, PREFIX
from mosha.server.people.permissions import RULES

__all__ = ["describe_api"]

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "Stable: programs compare this."},
        "detail": {"type": "string", "description": "For people, in the language of Accept-Language (en, zh)."},
        "spent": {"enum": ["nothing", "paid", "waits"]},
        "parameter": {"type": "string"},
        "nearest": {"type": "string", "description": "A query like it that is answered."},
    },
}
_REFUSALS = {
    400: "The body is not what it should be.",
    401: "Nobody is signed in.",
    403: "The request came from another site.",
    404: "There is nothing here, or nothing that you may see.",
    409: "The state of things does not allow it.",
    408: "The body did not come in time.",
    413: "The body is too large.",
    422: "A field or a header is wrong.",
    429: "Too much at once.",
    503: "The ledger or the database is out of reach.",
}


@cache
def describe_api() -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(PREFIX + operation.path, {})[operation.method.lower()] = _describe(operation)
    for path, summary in (("/healthz", "The process is alive."), ("/readyz", "Ledger and store answer.")):
        paths[path] = {
            "get": {
                "operationId": path[1:],
                "summary": summary,
                "tags": ["operations"],
                "security": [],
                "responses": {"200": {"description": "Yes."}, "503": {"description": "No."}},
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Mosha",
            "version": __version__,
            "summary": "Questions about people, answered with differential privacy and paid from a ledger.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": _PROBLEM},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "mosha_<id>_<secret>"},
            },
        },
        "security": [{"token": []}],
    }


def _describe(operation: Operation) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": text(200)}
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    parameters += [{"name": n, "in": "query", "required": False, "schema": s} for n, s in operation.query.items()]
    if operation.spends:
        schema = text(200, pattern="^[!-~]([ -~]*[!-~])?$")
        parameters.append({"name": "Idempotency-Key", "in": "header", "required": True, "schema": schema})
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": parameters,
        "responses": _responses(operation),
    }
    if RULES[operation.verb].public:
        described["security"] = []
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": operation.body}}}
    return described


def _responses(operation: Operation) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "Done."}
    if operation.status != 204:
        good["content"] = {"application/json": {"schema": operation.answer}}
        for media in operation.media.split(" "):
            if media and media != "application/json":
                good["content"][media] = {"schema": {"type": "string"}}
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    refusals = {str(code): {"description": words, "content": problem} for code, words in _REFUSALS.items()}
    return {str(operation.status): good} | refusals
