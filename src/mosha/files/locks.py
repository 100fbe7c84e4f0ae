"""Locks between processes: one file, one holder. The system frees it when a process ends, however it ends."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self

__all__ = ["FileLock"]


class FileLock:
    """An exclusive lock on a file of its own.

    Guarantee:
        While one is held, `take` gives None to everybody else on this machine: by `flock` where there is one (Linux,
        macOS), else by `msvcrt.locking` (Windows).
    """

    def __init__(self, handle: int, path: Path) -> None:
        self._handle, self._path = handle, path

    @classmethod
    def take(cls, path: Path) -> Self | None:
        """The lock, or None where another holds it.

        Raises:
            OSError: where the file cannot be made or opened, or the system has no locks.
        """
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if _is_locked(handle) and _is_still_there(handle, path):
                return cls(handle, path)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        return None

    def release(self, *, remove: bool = False) -> None:
        """Give it back; with `remove` the file goes as well, where the system lets go of an open one (not Windows)."""
        if self._handle < 0:
            return
        handle, self._handle = self._handle, -1
        if remove and os.name != "nt":
            self._path.unlink(missing_ok=True)  # still locked: whoever waits sees that it is gone, and makes its own
        os.close(handle)


def _is_locked(handle: int) -> bool:
    """Whether the lock could be had now; it never waits."""
    lock, errors = _locking()
    try:
        lock(handle)
    except errors:
        return False
    return True


def _locking() -> tuple[Any, tuple[type[OSError], ...]]:
    """How this system locks a file without waiting, and what it raises where another holds it."""
    try:
        import fcntl  # noqa: PLC0415  (not on Windows)
    except ImportError:
        pass
    else:
        return (lambda handle: fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)), (BlockingIOError,)
    try:
        import msvcrt  # noqa: PLC0415  (on Windows alone)
    except ImportError:
        raise OSError("this system has no locks between processes") from None
    module: Any = msvcrt
    return (lambda handle: module.locking(handle, module.LK_NBLCK, 1)), (OSError,)


def _is_still_there(handle: int, path: Path) -> bool:
    """Whether what was locked is the file that others would open: one that was removed meanwhile guards nothing."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
