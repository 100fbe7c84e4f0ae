"""Files of local surveys: read, replaced as a whole, and held by one process at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mosha.core.errors import DataError, StateRefused
from mosha.core.language import describe_system_error
from mosha.files.atomic import replace_file
from mosha.files.locks import FileLock

__all__ = ["hold", "read", "write"]

PATIENCE = 60.0  # seconds to wait for another process
_PAUSE = 0.02


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError("cli.not_readable", path=str(path), reason=describe_system_error(error)) from None


def write(path: Path, data: bytes) -> None:
    """All of it or nothing: what stood there stays until the new file is complete."""
    try:
        if path.exists() and not path.is_file():  # a pipe or a device
            path.write_bytes(data)
        else:
            replace_file(path, [data], shared=True)
    except OSError as error:
        raise DataError("cli.not_written", path=str(path), reason=describe_system_error(error)) from None


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """Nobody else holds this path meanwhile: a lock on a file beside it, which is gone afterwards."""
    beside = path.with_name(f".{path.name}.lock")
    until = time.monotonic() + PATIENCE
    while (lock := _take_lock(beside, path)) is None:
        if time.monotonic() > until:
            raise StateRefused("cli.in_use", path=str(path), seconds=PATIENCE)
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        lock.release(remove=True)


def _take_lock(beside: Path, path: Path) -> FileLock | None:
    """The lock, if it is free."""
    try:
        return FileLock.take(beside)
    except OSError as error:
        raise DataError("cli.state_not_written", path=str(path), reason=describe_system_error(error)) from None
