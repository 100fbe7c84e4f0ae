"""How long the server waits for somebody who sends slowly: a place among its connections is not held for nothing.

A request line with its headers is there `HEAD` seconds after the connection, or after its first byte where others went
before; a body is there `BODY` seconds after its headers. What goes on for longer is closed, or refused with 408.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["BODY", "HEAD", "PatientProtocol"]

HEAD = 15.0  # seconds for a request line and its headers
BODY = 30.0  # seconds for a body


class PatientProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, for those who say in time what they want."""

    _watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering():
            self._end()
        elif self._watch is None:
            self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        """Whether the head of a request is there whose answer is not."""
        cycle = self.cycle
        return cycle is not None and not cycle.response_complete

    def _begin(self) -> None:
        self._watch = self.loop.call_later(HEAD, self._give_up)

    def _end(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _give_up(self) -> None:
        self._watch = None
        if not self._is_answering() and not self.transport.is_closing():
            self.transport.close()
