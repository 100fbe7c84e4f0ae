"""The private log: why a step failed, for the owner of the data alone.

What an engine says when it fails may quote a row, so it never goes into an error that leaves. It goes here: to the
logger `mosha.private`, which nobody hears unless the owner attaches a handler or names a file (`keep_private_log`, or
the variable MOSHA_PRIVATE_LOG). The logger does not pass records on to the loggers above it, where they might be shown.
"""

from __future__ import annotations

import json
import os
import stat
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mosha.core.errors import InvalidParameter
from mosha.core.language import describe_system_error

if TYPE_CHECKING:
    import logging

__all__ = ["keep_private_log", "note_privately"]

NAME = "mosha.private"
VARIABLE = "MOSHA_PRIVATE_LOG"
_kept: set[str] = set()


def _logger() -> logging.Logger:
    import logging  # noqa: PLC0415  (only where something failed)

    logger = logging.getLogger(NAME)
    logger.propagate = False
    if not logger.handlers:  # without any, also after a program took them away, logging would write to the screen
        logger.addHandler(logging.NullHandler())
    if place := os.environ.get(VARIABLE):
        keep_private_log(place)
    return logger


def keep_private_log(path: str | os.PathLike[str]) -> None:
    """Write the reasons of failures to a file that its owner alone can read (mode 0600), one JSON object a line.

    The file holds what engines said about private rows, and the statements that ran. Keep it where the data are kept.

    Args:
        path: of the file; it is begun where there is none, and refused where others can read it.

    >>> import pathlib, tempfile
    >>> keep_private_log(pathlib.Path(tempfile.mkdtemp()) / "private.log")
    """
    place = os.path.abspath(os.fspath(path))  # noqa: PTH100  (a link is to be refused, not followed)
    if place in _kept:
        return
    import logging  # noqa: PLC0415

    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    try:
        file = os.open(place, flags, 0o600)
    except OSError as error:
        raise InvalidParameter(
            "core.log_not_writable", parameter="path", path=str(path), reason=describe_system_error(error)
        ) from None
    if os.name == "posix" and os.fstat(file).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        os.close(file)
        raise InvalidParameter("core.log_readable_by_others", parameter="path", path=str(path))
    handler = logging.StreamHandler(os.fdopen(file, "a", encoding="utf-8"))
    handler.setFormatter(logging.Formatter("%(message)s"))
    _kept.add(place)
    logging.getLogger(NAME).addHandler(handler)
    _logger()


def note_privately(where: str, error: BaseException, **facts: str | int | None) -> None:
    """Tell the private log, and nobody else, what went wrong. It never raises: a log must not change an answer."""
    try:
        logger = _logger()
        said = {"at": datetime.now(UTC).isoformat(), "where": where, "error": f"{type(error).__name__}: {error}"}
        trace = "".join(traceback.format_exception(error))
        logger.error("%s", json.dumps(said | facts | {"trace": trace}, ensure_ascii=True, default=str))
    except Exception:  # noqa: BLE001, S110
        pass
