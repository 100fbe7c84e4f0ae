"""The entrance: a first page that says what this is, and the page on which a link signs somebody in."""

from __future__ import annotations

from html import escape
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mosha.core.errors import MoshaError
from mosha.server.api.operation import Call, perform
from mosha.server.api.table import BY_NAME
from mosha.server.cookies import set_session
from mosha.server.service import Service

__all__ = ["page_routes"]

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Mosha</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><main><h1>Mosha</h1><p>{text}</p>
<p><a href="/openapi.json">openapi.json</a> &middot; <a href="/readyz">readyz</a></p></main></body></html>
"""
_ENTER = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Mosha</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><main><h1>Mosha</h1><form method="post" action="/enter"><input type="hidden" name="link" value="{link}">
<button>Sign in</button></form></main></body></html>
"""


def page_routes(service: Service) -> list[Any]:
    """The routes of all pages."""

    async def front(_: Request) -> Response:
        text = (
            "A demo hospital is registered."
            if service.settings.demo
            else "This server answers with differential privacy."
        )
        return Response(_PAGE.format(text=text), media_type="text/html")

    async def enter(request: Request) -> Response:
        """A link is used by a button, so that whoever only looks at it (a scanner of mail) does not use it up."""
        link = request.query_params.get("link", "")
        return Response(_ENTER.format(link=escape(link)), media_type="text/html", headers={"Cache-Control": "no-store"})

    async def sign_in(request: Request) -> Response:
        if request.headers.get("sec-fetch-site") not in (None, "same-origin", "none"):
            return Response("", 403)
        form = await request.form(max_fields=5, max_files=0)
        try:
            body = {"link": str(form.get("link", ""))[:200] or " "}
            reply = await run_in_threadpool(perform, BY_NAME["openSession"], Call(service, body=body))
        except MoshaError as error:
            return Response(_PAGE.format(text=escape(str(error))), 401, media_type="text/html")
        response = RedirectResponse("/", 303)
        set_session(service, response, reply.session or "")
        return response

    return [Route("/", front), Route("/enter", enter), Route("/enter", sign_in, methods=["POST"])]
