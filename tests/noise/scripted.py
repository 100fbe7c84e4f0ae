"""A generator that says what it is told to: for walking the paths that chance almost never takes."""

from typing import Any


class Scripted:
    """Gives the scripted pieces in order; asking for a piece of another length, or one too many, fails."""

    secure = False

    def __init__(self, *pieces: Any) -> None:
        self.pieces = list(pieces)

    def bytes(self, n: Any, /) -> Any:
        piece = self.pieces.pop(0)
        assert len(piece) == n, f"asked for {n} bytes, the script has {len(piece)}"
        return piece


def little(value: Any, size: Any) -> Any:
    """An integer as `size` little-endian bytes."""
    return int(value).to_bytes(size, "little")
