"""How long the server waits for those who send or read slowly: a place among its connections is not held for nothing.

A request line with its headers is there `HEAD` seconds after the connection, or after its first byte where others went
before; a body is there `BODY` seconds after its headers; of an answer that waits to be read `RATE` bytes go each
second. What goes on for longer is closed, or refused with 408.

Of one address `SHARE` connections are open at a time: a proxy that the operator named bounds its own visitors. Under
IPv6, where everybody has as many addresses as they like, the 64 bits of a network count as one.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import struct
from functools import lru_cache

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["BODY", "HEAD", "MOST", "RATE", "READ", "SHARE", "PatientProtocol", "is_near"]

HEAD = 15.0  # seconds for a request line and its headers
BODY = 30.0  # seconds for a body
READ = 15.0  # seconds between two looks at an answer that waits to be read
RATE = 16_384  # bytes of it that are read a second, at least
SHARE = 100  # connections of one address
MOST = 700  # connections in all: more of them would leave no files for the book
ROOM = 131_072  # bytes that the system takes off an answer before they are read: what is taken later was read before


class PatientProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, for those who say in time what they want, and take it."""

    _watch: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_option(socket.SO_SNDBUF, ROOM)
        transport.set_write_buffer_limits(high=1, low=0)  # writing pauses while anything is left, until nothing is
        self._begin()
        if self._is_one_too_many():
            self._drop()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering():
            self._end()
        elif self._watch is None:
            self._begin()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_again()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_looking()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        self._stop_looking()
        super().connection_lost(exc)

    def _is_one_too_many(self) -> bool:
        """Whether this connection is one more than its address may have, or than there may be in all."""
        if len(self.connections) > MOST:
            return True
        if self.client is None or is_near(self.client[0]) or self._is_proxy(self.client[0]):
            return False
        network = _network_of(self.client[0])
        mine = sum(one.client is not None and _network_of(one.client[0]) == network for one in self.connections)
        return mine > SHARE

    def _is_proxy(self, host: str) -> bool:
        """Whether the operator named this address as the one of a proxy."""
        named = self.config.forwarded_allow_ips if self.config.proxy_headers else []
        return _is_named(host, named if isinstance(named, str) else ",".join(named or ()))

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

    def _look_again(self) -> None:
        self._taking = self.loop.call_later(READ, self._look, self.transport.get_write_buffer_size())

    def _stop_looking(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def _look(self, before: int) -> None:
        """Drop a reader of whose answer too much is left; while anything is left, nothing more is written."""
        if self.transport.get_write_buffer_size() > before - READ * RATE:
            self._drop()
        else:
            self._look_again()

    def _drop(self) -> None:
        """Forget a connection with all that was not read, here and in the system."""
        self._set_option(socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _set_option(self, option: int, value: int | bytes) -> None:
        line = self.transport.get_extra_info("socket")
        if line is not None:
            with contextlib.suppress(OSError):
                line.setsockopt(socket.SOL_SOCKET, option, value)


def _read_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address; one of IPv4 that is written as one of IPv6 is that of IPv4."""
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


@lru_cache(2 * MOST)
def _network_of(host: str) -> str:
    """Whose connections are counted together.

    >>> [_network_of(host) for host in ("192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1", "2001:db8::2")]
    ['192.0.2.7', '192.0.2.7', '2001:db8::/64', '2001:db8::/64']
    """
    found = _read_address(host)
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, 64), strict=False))
    return host if found is None else str(found)


def _is_named(host: str, named: str) -> bool:
    """Whether an address is in a list, as uvicorn reads it: addresses, networks, or `*` for all.

    >>> _is_named("10.0.0.2", "10.0.0.2"), _is_named("10.0.0.3", "10.0.0.2, 192.0.2.0/24"), _is_named("x", "*")
    (True, False, True)
    """
    found = _read_address(host)
    if named == "*":
        return True
    for each in (part.strip() for part in named.split(",")):
        if each == host:
            return True
        try:
            if found is not None and found in ipaddress.ip_network(each, strict=False):
                return True
        except ValueError:
            continue
    return False


def is_near(host: str) -> bool:
    """Whether somebody comes from this machine, where many people or a proxy have one address.

    >>> is_near("127.0.0.1"), is_near("::ffff:127.0.0.1"), is_near("192.0.2.7"), is_near("testclient")
    (True, True, False, False)
    """
    found = _read_address(host)
    return found is not None and found.is_loopback
