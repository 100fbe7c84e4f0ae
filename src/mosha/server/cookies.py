"""The session's cookie."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from mosha.server.service import Service

__all__ = ["cookie_name", "set_session"]


def cookie_name(service: Service) -> str:
    """Browsers keep a `__Host-` cookie to this host and to HTTPS; on plain loopback there is no HTTPS."""
    return "__Host-mosha" if service.settings.secure else "mosha"


def set_session(service: Service, response: Response, secret: str) -> None:
    options: dict[str, Any] = {"path": "/", "secure": service.settings.secure, "httponly": True, "samesite": "lax"}
    if secret:
        response.set_cookie(cookie_name(service), secret, max_age=service.settings.session_hours * 3600, **options)
    else:
        response.delete_cookie(cookie_name(service), **options)
