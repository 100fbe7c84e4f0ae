"""Pages for browsers: rendered here, styled here, with nothing from elsewhere."""

from __future__ import annotations

from mosha.server.pages.entrance import page_routes

__all__ = ["page_routes"]
