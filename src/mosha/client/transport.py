"""HTTP by the standard library: JSON there and back, problems as errors, a token that never leaves for another host."""

from __future__ import annotations

import ipaddress
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from mosha._version import __version__
from mosha.client.errors import ServerUnreachable, revive
from mosha.core.errors import InvalidParameter
from mosha.core.language import current_language

__all__ = ["Transport"]

LARGEST = 64_000_000


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A token is for one server: nobody may send it on."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


class Transport:
    """One server, one token."""

    def __init__(self, url: str, token: str, *, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidParameter("client.url", parameter="url")
        if parts.scheme == "http" and not _is_here(parts.hostname):
            raise InvalidParameter("client.plain_http", parameter="url")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise InvalidParameter("client.token", parameter="token")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._token = token
        self._timeout = timeout
        self._opener = urllib.request.build_opener(_NoRedirects)

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = None,
        query: Mapping[str, object] | None = None,
    ) -> Any:
        """What the server answers; an error of the library's own kinds where it refuses."""
        text = self._send(method, path, body, key=key, query=query)
        return json.loads(text) if text else None

    def download(self, path: str, *, query: Mapping[str, object] | None = None) -> bytes:
        """A file that the server gives."""
        return self._send("GET", path, None, key=None, query=query)

    def _send(
        self, method: str, path: str, body: object, *, key: str | None, query: Mapping[str, object] | None
    ) -> bytes:
        address = f"{self.url}/api/v1{quote(path)}" + (f"?{urlencode(query)}" if query else "")
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json, */*;q=0.5",
            "Accept-Language": current_language(),
            "User-Agent": f"mosha/{__version__}",
        }
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        headers |= {} if data is None else {"Content-Type": "application/json"}
        headers |= {} if key is None else {"Idempotency-Key": key}
        request = urllib.request.Request(address, data, headers, method=method)  # noqa: S310  (http and https alone)
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                found: bytes = response.read(LARGEST)
        except urllib.error.HTTPError as error:
            raise revive(error.code, error.read(LARGEST)) from None
        except OSError:
            raise ServerUnreachable("client.unreachable", url=self.url) from None
        return found


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
