"""Pages for browsers: rendered here, styled here, with nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from starlette.routing import Route

from mosha.core.lazy import keep_public_names
from mosha.server.pages import asking, book, catalogue, entrance, exploring, oidc, public, surveys
from mosha.server.pages.site import endpoint
from mosha.server.service import Service

__all__ = ["page_routes"]


def page_routes(service: Service) -> list[Any]:
    """The routes of all pages."""
    rooms = (entrance, asking, catalogue, book, exploring, public, surveys, oidc)
    return [
        Route(path, endpoint(service, handler), methods=[method])
        for room in rooms
        for method, path, handler in room.ROUTES
    ]


keep_public_names(__name__)
