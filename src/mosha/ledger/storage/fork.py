"""Forks: no connection to a book crosses one.

SQLite keeps its locks in tables of the process, and a fork copies the tables without the locks: a child that went
on with its parent's connection, or opened the file while a copy of one lay in its memory, would hold no lock at all,
and would write a second history. So every connection is closed before a fork and opened anew when it is next needed, in
the parent and in the child. Where that was impossible (a fork from inside an operation of the ledger, a fork made by a
library that tells nobody), the child is refused.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any, Protocol
from weakref import WeakSet

__all__ = ["Forkable", "keep_for_ever", "notice_fork", "watch"]


class Forkable(Protocol):
    """What has to be told of a fork."""

    def prepare_fork(self) -> None:
        """Before: wait for whoever is inside, and give every connection back. Never waits for ever."""

    def resume_in_parent(self) -> None:
        """Afterwards, in the process that was there before."""

    def begin_in_child(self) -> None:
        """Afterwards, in the new process, whose only thread this is."""


class _State:
    """What this process knows of itself; made anew in a child, for a copied lock may be held by nobody."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.adding = threading.RLock()  # a set must not grow while it is walked through
        self.forking = threading.RLock()  # one fork at a time: two would wait for each other's turns


_living: WeakSet[Any] = WeakSet()
_state = _State()


def watch(storage: Forkable) -> None:
    """Tell `storage` of every fork from now on, as long as it lives."""
    notice_fork()
    with _state.adding:
        _living.add(storage)


def notice_fork() -> None:
    """See to it that everybody knows of a fork that was made behind Python's back."""
    if _state.process != os.getpid():
        _begin_in_child()


def _all() -> list[Forkable]:
    with _state.adding:
        return list(_living)


def _prepare() -> None:
    _state.forking.acquire()
    for storage in _all():
        with suppress(Exception):  # whatever could not be closed is refused in the child
            storage.prepare_fork()


def _resume() -> None:
    try:
        for storage in _all():
            storage.resume_in_parent()
    finally:
        with suppress(RuntimeError):  # an interrupt kept us from taking it
            _state.forking.release()


def _begin_in_child() -> None:
    global _state  # noqa: PLW0603  (the child has a state of its own)
    _state = _State()
    for storage in _all():
        storage.begin_in_child()


def keep_for_ever(connection: object) -> None:
    """Let nobody clear `connection` away, not even the end of the process.

    It is a copy of one that another process uses: to close it would undo, in memory that both share, what the other one
    is writing.
    """
    import ctypes  # noqa: PLC0415  (hardly ever needed)

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


if hasattr(os, "register_at_fork"):  # where processes can fork
    os.register_at_fork(before=_prepare, after_in_parent=_resume, after_in_child=_begin_in_child)
