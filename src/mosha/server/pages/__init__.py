"""Pages for browsers: rendered here, styled here, with nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from mosha.core.names.lazy import keep_public_names
from mosha.server.errors import NotFound
from mosha.server.pages import (
    agents,
    answers,
    asking,
    book,
    catalogue,
    declaring,
    entrance,
    people,
    plans,
    public,
    series,
    surveys,
)
from mosha.server.pages.site import Visit, endpoint, find_page
from mosha.server.service import Service

__all__ = ["find_page", "missing_page", "page_routes"]


def page_routes(service: Service) -> list[Any]:
    """The routes of all pages."""
    rooms = (
        entrance,
        people,
        agents,
        asking,
        answers,
        plans,
        series,
        declaring,
        catalogue,
        book,
        public,
        surveys,
    )
    return [
        Route(path, endpoint(service, handler, *again), methods=[method])
        for room in (*rooms, surveys)
        for method, path, handler, *again in room.ROUTES
    ]


def missing_page(service: Service) -> Any:
    """The page of an address that leads nowhere."""

    def show(_: Visit) -> Response:
        raise NotFound("server.not_found")

    return endpoint(service, show)


keep_public_names(__name__)
