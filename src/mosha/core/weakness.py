"""The warning that a promise is weak by anybody's standard."""

from __future__ import annotations

__all__ = ["WeakPromise"]


class WeakPromise(UserWarning):
    """An account was opened whose promise protects hardly anybody. It is kept all the same; every statement says so."""
