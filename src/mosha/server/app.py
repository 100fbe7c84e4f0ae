"""The application: routes, who is asking, limits on bodies, headers for browsers. Nothing else happens here."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from mosha.core.language import Language
from mosha.server.api.description import describe_api
from mosha.server.api.mcp import answer_mcp, find_wait
from mosha.server.api.operation import Call, Operation, Reply, perform
from mosha.server.api.schemas import check, read_json
from mosha.server.api.table import OPERATIONS, PREFIX
from mosha.server.cookies import set_session
from mosha.server.errors import BadRequest, NotFound, ServerError
from mosha.server.measures import write_metrics
from mosha.server.people.permissions import may
from mosha.server.problems import problem_of
from mosha.server.service import Service
from mosha.server.visitors import check_site, identify, language_of, read_body

__all__ = ["identify", "make_app", "respond"]

SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
LOOK_AGAIN = 0.25  # seconds between two looks at a question that an agent waits for
MOST_WAITS = 8  # calls of one person's agents that wait at a time; the next is answered at once
Endpoint = Callable[[Request], Awaitable[Response]]


def _query_of(request: Request, operation: Operation) -> dict[str, Any]:
    """Parameters of the address, each once, with its type."""
    found: dict[str, Any] = {}
    for name, said in request.query_params.multi_items():
        schema = operation.query.get(name)
        if schema is None or name in found or "\x00" in said:
            raise BadRequest("server.field_unknown", parameter=name[:200])
        value: Any = said
        if schema["type"] in ("integer", "number"):
            try:
                value = int(said) if schema["type"] == "integer" else float(said)
            except ValueError:
                raise BadRequest("server.field_wrong", parameter=name, expected=schema["type"]) from None
            if "enum" in schema and value not in schema["enum"]:
                raise BadRequest("server.field_wrong", parameter=name, expected=str(schema["enum"]))
        check(value, schema, name)
        found[name] = value
    return found


def respond(service: Service, reply: Reply) -> Response:
    if reply.media == "application/json":
        body = b"" if reply.status == 204 else json.dumps(reply.body, ensure_ascii=False, allow_nan=False).encode()
    else:
        body = reply.body if isinstance(reply.body, bytes) else str(reply.body).encode()
    response = Response(body, reply.status, dict(reply.headers), None if reply.status == 204 else reply.media)
    response.headers.setdefault("Cache-Control", "no-store")
    if reply.session is not None:
        set_session(service, response, reply.session)
    return response


def _problem(service: Service, error: Exception, language: Language) -> Response:
    described = problem_of(error, language)
    if described["status"] >= 500 and not isinstance(error, ServerError):
        service.log.error("unexpected %s", type(error).__name__, exc_info=error if service.settings.demo else None)
    headers = {"Cache-Control": "no-store"}
    if described["status"] == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="mosha"'
    if described["status"] == 429:
        headers["Retry-After"] = str(described.get("seconds", 1))
    body = json.dumps(described, ensure_ascii=False).encode()
    return Response(body, described["status"], headers, "application/problem+json")


def _endpoint(service: Service, operation: Operation) -> Endpoint:
    def handle(request: Request, body: bytes, language: Language) -> Response:
        principal = identify(request, service)
        check_site(request, principal)
        said = read_json(body) if operation.body is not None else {}
        call = Call(
            service,
            principal,
            request.path_params,
            _query_of(request, operation),
            said,
            key=request.headers.get("idempotency-key"),
            language=language,
            secure=service.settings.secure,
        )
        return respond(service, perform(operation, call))

    async def endpoint(request: Request) -> Response:
        language = language_of(request, service)
        try:
            body = await read_body(request, service.settings.body)
            response = await run_in_threadpool(handle, request, body, language)
        except Exception as error:  # noqa: BLE001  (every error becomes a problem)
            response = _problem(service, error, language)
        service.count("http", operation.name, str(response.status_code))
        return response

    return endpoint


def _plain_routes(service: Service) -> list[Route]:
    async def health(_: Request) -> Response:
        return JSONResponse({"alive": True})

    def look() -> dict[str, bool]:
        parts = {"store": False, "ledger": False, "workers": service.ready}
        try:
            parts["store"] = service.database.row("SELECT 1 AS one") is not None and service.database.lasting
            parts["ledger"] = service.ledger.head.sequence > 0
        except Exception:
            service.log.exception("not ready")
        return parts

    async def report_readiness(_: Request) -> Response:
        parts = await run_in_threadpool(look)
        return JSONResponse({"ready": all(parts.values())} | parts, 200 if all(parts.values()) else 503)

    described = JSONResponse(describe_api()).body  # said to everybody, and written once

    async def openapi(_: Request) -> Response:
        return Response(described, media_type="application/json")

    async def metrics(request: Request) -> Response:
        language = language_of(request, service)

        def handle() -> Response:
            principal = identify(request, service)
            if service.settings.metrics != "public" and not may(principal, "metrics.read"):
                raise NotFound("server.not_found")
            return Response(write_metrics(service), media_type="text/plain; version=0.0.4; charset=utf-8")

        try:
            return await run_in_threadpool(handle)
        except Exception as error:  # noqa: BLE001
            return _problem(service, error, language)

    return [
        Route("/healthz", health),
        Route("/readyz", report_readiness),
        Route("/openapi.json", openapi),
        Route("/metrics", metrics),
    ]


def _mcp_route(service: Service) -> Route:
    """Agents: the Model Context Protocol, one message a POST."""
    waits: Counter[str] = Counter()

    def answer(request: Request, message: Mapping[str, Any], language: Language) -> tuple[dict[str, Any] | None, str]:
        """What is answered, and whose share of the server is used."""
        principal = identify(request, service)
        check_site(request, principal)
        return answer_mcp(Call(service, principal, language=language), message), principal.person

    async def talk(request: Request, language: Language) -> Response:
        message = await run_in_threadpool(read_json, await read_body(request, service.settings.body))
        found, person = await run_in_threadpool(answer, request, message, language)
        seconds, again = find_wait(message, found)
        end = time.monotonic() + (seconds if waits[person] < MOST_WAITS else 0.0)
        waits[person] += 1
        try:
            while (left := end - time.monotonic()) > 0:
                await asyncio.sleep(min(left, LOOK_AGAIN))
                found, _ = await run_in_threadpool(answer, request, again, language)
                if find_wait(again, found)[1] == {}:
                    break
        finally:
            waits[person] -= 1
        return Response(None, 202) if found is None else respond(service, Reply(found))

    async def endpoint(request: Request) -> Response:
        language = language_of(request, service)
        try:
            response = await talk(request, language)
        except Exception as error:  # noqa: BLE001
            response = _problem(service, error, language)
        service.count("http", "mcp", str(response.status_code))
        return response

    return Route("/mcp", endpoint, methods=["POST"])


class _SecurityHeaders:
    """Headers that every response has, whoever made it."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                more = [(n.lower().encode(), v.encode()) for n, v in SECURITY.items()]
                message["headers"] = [*message["headers"], *(pair for pair in more if pair[0] not in present)]
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


class _KnownVersions:
    """A version of HTTP that nobody speaks is refused before anything is looked at."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        known = scope["type"] != "http" or scope["http_version"] in ("1.0", "1.1", "2")
        await (self._app if known else Response(None, 400, {"Connection": "close"}))(scope, receive, send)


def make_app(service: Service, *, pages: bool = True) -> Starlette:
    """The ASGI application of a service; it starts the workers and stops them."""

    @asynccontextmanager
    async def life(_: Starlette) -> Any:
        service.start()
        try:
            yield
        finally:
            await run_in_threadpool(service.close)

    async def http_problem(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        if status in (404, 405) and pages and "text/html" in request.headers.get("accept", ""):
            from mosha.server.pages import find_page, missing_page  # noqa: PLC0415

            if status == 404:
                shown: Response = await missing_page(service)(request)
                return shown
            if request.method == "GET" and not request.url.path.startswith(("/api/", "/mcp")):
                return RedirectResponse(find_page(request), 303)  # the address of a form, opened: the form's page
        language = language_of(request, service)
        if status == 405:
            problem = BadRequest("server.method", method=request.method[:10])
            described = problem_of(problem, language) | {"status": 405}
            headers = dict(getattr(error, "headers", None) or {})
            body = json.dumps(described).encode()
            return Response(body, 405, headers, "application/problem+json")
        return _problem(service, NotFound("server.not_found") if status == 404 else error, language)

    routes: list[Any] = _plain_routes(service)
    for path, group in _by_path().items():
        endpoints = {operation.method: _endpoint(service, operation) for operation in group}
        routes.append(Route(path, _by_method(endpoints), methods=list(endpoints)))
    routes.append(_mcp_route(service))
    if pages:
        from mosha.server.pages import page_routes  # noqa: PLC0415

        routes += page_routes(service)
    handlers: Mapping[Any, Any] = {HTTPException: http_problem, Exception: http_problem}
    app = Starlette(routes=routes, lifespan=life, exception_handlers=handlers)
    app.add_middleware(_KnownVersions)
    app.add_middleware(_SecurityHeaders)
    app.state.service = service
    return app


def _by_path() -> dict[str, list[Operation]]:
    found: dict[str, list[Operation]] = {}
    for operation in OPERATIONS:
        found.setdefault(PREFIX + operation.path, []).append(operation)
    return found


def _by_method(endpoints: Mapping[str, Endpoint]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await endpoints[method](request)

    return endpoint
