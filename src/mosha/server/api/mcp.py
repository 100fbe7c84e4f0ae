"""The Model Context Protocol over the same operations: an agent lists, describes, previews, asks, reads and budgets.

JSON-RPC 2.0 in one POST, without a session: each tool is an operation of the table, performed with the same checks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from mosha._version import __version__
from mosha.core.errors import MoshaError
from mosha.server.api.operation import Call, perform
from mosha.server.api.schemas import Schema, check, integer, mapping, number, record, text
from mosha.server.api.table import BY_NAME
from mosha.server.errors import BadRequest, SignInNeeded
from mosha.server.problems import problem_of

__all__ = ["TOOLS", "answer_mcp", "find_wait"]

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
_PRICE = {"epsilon": number(above=0, most=1e6), "delta": number(least=0, most=1), "within": number(above=0, most=1e300)}
_QUESTION = {"dataset": text(63)}
_WAYS = {"sql": text(100_000), "plan": mapping()}


def _perform(call: Call, operation: str, **parts: Any) -> Any:
    said = {"path": {}, "query": {}, "body": {}} | parts
    done = perform(BY_NAME[operation], Call(call.service, call.principal, **said, language=call.language))
    return done.body


def _price(arguments: Mapping[str, object]) -> dict[str, Any]:
    return {name: arguments[name] for name in _PRICE if name in arguments}


def _question(arguments: Mapping[str, object]) -> dict[str, Any]:
    """A question as the operations take it: SQL text, or a plan that is data."""
    ways = {name: arguments[name] for name in _WAYS if name in arguments}
    if len(ways) != 1:
        raise BadRequest("server.one_of", names=", ".join(_WAYS))
    return {"dataset": arguments["dataset"], "price": _price(arguments)} | ways


def _list(call: Call, _: Mapping[str, object]) -> Any:
    return _perform(call, "listDatasets")


def _describe(call: Call, said: Mapping[str, object]) -> Any:
    return _perform(call, "readDataset", path={"dataset": said["dataset"]})


def _preview(call: Call, said: Mapping[str, object]) -> Any:
    return _perform(call, "preview", body=_question(said) | ({"rows": said["rows"]} if "rows" in said else {}))


def _ask(call: Call, said: Mapping[str, Any]) -> Any:
    body = _question(said)
    body |= {"purpose": said["purpose"]} if "purpose" in said else {}
    return _perform(call, "ask", body=body, key=said["key"])


def _read(call: Call, said: Mapping[str, object]) -> Any:
    return _perform(call, "readRequest", path={"request": said["request"]})


def _budget(call: Call, _: Mapping[str, object]) -> Any:
    return _perform(call, "listMyGrants")


TOOLS: dict[str, tuple[str, Schema, Callable[[Call, Mapping[str, Any]], Any]]] = {
    "list_datasets": ("The datasets that may be asked about, with their promises.", record({}), _list),
    "describe_dataset": (
        "Columns, types, declared ranges and groups of a dataset. Nothing of its rows.",
        record({"dataset": text(63)}), _describe,
    ),
    "preview": (
        "What a question (sql or plan) would cost, how wide its bars would be, what would be left. Free: before ask.",
        record(_QUESTION, {**_WAYS, **_PRICE, "rows": number(above=0, most=1e15)}), _preview,
    ),
    "ask": (
        "Pay for a question (sql or plan): noisy numbers with error bars; report both. The same key is free.",
        record(
            {**_QUESTION, "key": text(200)},
            {**_WAYS, **_PRICE, "purpose": text(2000), "wait_seconds": integer(most=60)},
        ),
        _ask,
    ),
    "read_answer": ("The state of a request, and its answer once it is there.", record({"request": text(40)}), _read),
    "budget": ("What may still be spent, on what, until when.", record({}), _budget),
}  # fmt: skip


def answer_mcp(call: Call, message: Mapping[str, object]) -> dict[str, Any] | None:
    """The response to one message; None to a notification."""
    if call.principal.is_public:
        raise SignInNeeded("server.sign_in")
    method, identity = message.get("method"), message.get("id")
    said = message.get("params") or {}
    if identity is None:
        return None
    try:
        result = _result(call, method, said if isinstance(said, dict) else {})
    except MoshaError as error:
        problem = problem_of(error, call.language)
        result = {
            "content": [{"type": "text", "text": problem["detail"]}],
            "isError": True,
            "structuredContent": problem,
        }
        if method != "tools/call":
            return {"jsonrpc": "2.0", "id": identity, "error": {"code": -32602, "message": problem["detail"]}}
    if result is None:
        return {"jsonrpc": "2.0", "id": identity, "error": {"code": -32601, "message": "unknown method"}}
    return {"jsonrpc": "2.0", "id": identity, "result": result}


def find_wait(message: Mapping[str, Any], reply: Mapping[str, Any] | None) -> tuple[float, dict[str, Any]]:
    """For how many seconds an agent wants to wait for what it asked, and the message that looks again.

    Nobody waits inside of a call: it would hold one of the few threads that everybody's calls need.
    """
    found = ((reply or {}).get("result") or {}).get("structuredContent") or {}
    if message.get("method") != "tools/call" or found.get("final", True):
        return 0.0, {}
    seconds = (message["params"].get("arguments") or {}).get("wait_seconds", 0)
    look = {"name": "read_answer", "arguments": {"request": found["id"]}}
    return float(seconds), {**message, "params": look}


def _result(call: Call, method: object, said: Mapping[str, object]) -> dict[str, Any] | None:
    if method == "initialize":
        wanted = said.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": "mosha", "version": __version__},
            "instructions": "Numbers are noisy on purpose. Preview first, ask once, keep the key, report error bars.",
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [{"name": n, "description": w, "inputSchema": s} for n, (w, s, _) in TOOLS.items()]}
    if method == "tools/call":
        return _use(call, said)
    return None


def _use(call: Call, said: Mapping[str, Any]) -> dict[str, Any] | None:
    name = said.get("name")
    if not isinstance(name, str) or name not in TOOLS:
        raise BadRequest("server.field_wrong", parameter="name", expected=", ".join(TOOLS))
    _, schema, tool = TOOLS[name]
    arguments = said.get("arguments") or {}
    check(arguments, schema, "")
    found = tool(call, arguments)
    return {"content": [{"type": "text", "text": json.dumps(found, ensure_ascii=False)}], "structuredContent": found}
