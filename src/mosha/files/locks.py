"""Locks between processes: one file, one holder. The system frees it when a process ends, however it ends."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any, Self

__all__ = ["FileLock", "lock_now", "lock_records_now", "unlock"]


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
            if lock_now(handle) and _is_still_there(handle, path):
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


def lock_now(handle: int, *, at: int = 0) -> bool:
    """Lock an open file, or say False where another holds it; it never waits.

    `at` is the byte that Windows locks, and keeps everybody else from reading; elsewhere the lock is on the whole file,
    and on nothing that is read.

    Raises:
        OSError: where the system or the file system has no locks.
    """
    posix = _module("fcntl")
    if posix is not None:
        try:
            posix.flock(handle, posix.LOCK_EX | posix.LOCK_NB)
        except BlockingIOError:
            return False
        return True
    windows = _windows_locks()
    os.lseek(handle, at, os.SEEK_SET)
    try:
        windows.locking(handle, windows.LK_NBLCK, 1)
    except OSError:
        return False
    return True


def unlock(handle: int, *, at: int = 0) -> None:
    """Give a lock back that `lock_now` gave."""
    posix = _module("fcntl")
    if posix is not None:
        posix.flock(handle, posix.LOCK_UN)
        return
    windows = _windows_locks()
    os.lseek(handle, at, os.SEEK_SET)
    windows.locking(handle, windows.LK_UNLCK, 1)


def lock_records_now(handle: int) -> bool:
    """A lock of the kind that databases take, on a part of a file; False where another holds it or there is none."""
    posix = _module("fcntl")
    if posix is None:
        return False
    try:
        posix.lockf(handle, posix.LOCK_EX | posix.LOCK_NB)
    except OSError:
        return False
    return True


def _windows_locks() -> Any:
    found = _module("msvcrt")
    if found is None:
        raise OSError("this system has no locks between processes")
    return found


def _module(name: str) -> Any:
    """A module that only some systems have."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _is_still_there(handle: int, path: Path) -> bool:
    """Whether what was locked is the file that others would open: one that was removed meanwhile guards nothing."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
