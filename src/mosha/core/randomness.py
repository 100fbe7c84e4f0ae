"""Where randomness comes from: the protocol that every generator obeys."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

__all__ = ["Rng"]


@runtime_checkable
class Rng(Protocol):
    """A source of uniform random bytes.

    `secure` is true only for a generator whose output nobody outside can predict;
    an account refuses every other one.
    """

    @property
    def secure(self) -> bool: ...

    def bytes(self, n: int, /) -> bytes: ...
