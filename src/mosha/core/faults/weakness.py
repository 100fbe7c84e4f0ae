"""The warning that a promise is weak by anybody's standard."""

from __future__ import annotations

__all__ = ["WeakPromise"]


class WeakPromise(UserWarning):
    """An account was opened whose promise protects hardly anybody. It is kept all the same; every statement says so.

    >>> import warnings
    >>> import mosha
    >>> with warnings.catch_warnings(record=True) as heard:
    ...     warnings.simplefilter("always")
    ...     account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=100)
    >>> heard[0].category.__name__
    'WeakPromise'
    """
