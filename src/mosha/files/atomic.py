"""Files that are there whole or not at all, on disk before anybody relies on them."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

__all__ = ["create_file", "is_open_to_others", "replace_file", "sync_folder"]

Buffer = bytes | bytearray | memoryview


def replace_file(path: Path, parts: Iterable[Buffer], *, shared: bool = False) -> None:
    """Write the parts beside the file, flush them, and put them in its place.

    Readable by the owner alone, or where it is `shared` by whoever may read what the owner makes.

    Guarantee:
        After a crash the old file is there or the new one. Two processes that write at once do not mix: each writes a
        file of its own, and the later one stays.

    Raises:
        OSError: where it cannot be written; what stood there stays.
    """
    handle, name = _begin(path, 0o666 if shared else 0o600)
    try:
        _write(handle, parts)
        Path(name).replace(path)
    except BaseException:
        _remove(name)
        raise
    sync_folder(path.parent)


def create_file(path: Path, parts: Iterable[Buffer]) -> bool:
    """The same for a file that must never be replaced: False, and nothing written, where there is one already."""
    handle, name = _begin(path, 0o600)
    try:
        _write(handle, parts)
        try:
            os.link(name, path)
        except FileExistsError:
            return False
        except OSError:  # a file system without second names: rename, which may replace one that appears right now
            if path.exists():
                return False
            Path(name).replace(path)
    finally:
        _remove(name)
    sync_folder(path.parent)
    return True


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk; Windows has no such call and writes them with the file."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:
        if os.name == "nt":
            return
        raise
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_open_to_others(handle: int) -> bool:
    """Whether somebody besides the owner may read or write the file; unknown, and so False, on Windows."""
    return os.name != "nt" and bool(stat.S_IMODE(os.fstat(handle).st_mode) & 0o077)


def _begin(path: Path, mode: int) -> tuple[int, str]:
    """A new file beside this one, under a name that nobody else has."""
    name = str(path.with_name(f".{path.name}.{secrets.token_hex(8)}.part"))
    return os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), mode), name


def _write(handle: int, parts: Iterable[Buffer]) -> None:
    with os.fdopen(handle, "wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def _remove(name: str) -> None:
    with contextlib.suppress(OSError):
        Path(name).unlink()
