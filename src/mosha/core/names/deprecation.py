"""Names that changed: the old ones work for one minor version and warn.

Books and fingerprints keep names for ever. Whoever paid under a key, or began a stream, before something was renamed
finds the same book and the same fingerprint afterwards: a class says what it was called first as `stored_as`, a field
as `field(metadata=stored_as(...))`.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from mosha.core.errors import InvalidParameter

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "describe_fields",
    "is_storing",
    "name_as_stored",
    "old_names",
    "renamed_argument",
    "renamed_attribute",
    "renamed_method",
    "stored_as",
    "warn_of_old_name",
    "write_as_stored",
    "write_fields",
]

Wrapped = TypeVar("Wrapped", bound=Callable[..., Any])


def warn_of_old_name(old: str, new: str, *, depth: int = 3) -> None:
    """Warn that `old` is now called `new`; `depth` is how many calls above this one the user's line is."""
    warnings.warn(
        f"{old} is now called {new}; the old name goes with the next minor version.", DeprecationWarning, depth
    )


def old_names(module: str, **renamed: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose names changed (`old="new"`): the old ones still work, with a warning.

    Args:
        module: the module's `__name__`.
        renamed: for each old name the new one.
    """

    def load(name: str) -> Any:
        if name not in renamed:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_of_old_name(f"{module}.{name}", renamed[name])
        return getattr(sys.modules[module], renamed[name])

    return load


def renamed_argument(**renamed: str) -> Callable[[Wrapped], Wrapped]:
    """A function or class that still takes arguments by their old names (`old="new"`), with a DeprecationWarning.

    >>> @renamed_argument(low="lowest")
    ... def first(*, lowest):
    ...     return lowest
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     first(low=3)
    3
    >>> seen[0].category.__name__
    'DeprecationWarning'
    """

    def wrap(wrapped: Wrapped) -> Wrapped:
        if isinstance(wrapped, type):
            wrapped.__init__ = _take_old_names(wrapped.__init__, wrapped.__name__, renamed)  # type: ignore[misc]
            return wrapped
        return _take_old_names(wrapped, getattr(wrapped, "__name__", "function"), renamed)  # type: ignore[return-value]

    return wrap


def renamed_method(old: str, new: str) -> Callable[..., Any]:
    """The old name of a method that is now called `new`, to stand in its class; it warns.

    >>> class Lamp:
    ...     def light(self):
    ...         return "on"
    ...     lit = renamed_method("lit", "light")
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     Lamp().lit()
    'on'
    >>> len(seen)
    1
    """

    def call(self: object, /, *positional: object, **named: object) -> object:
        warn_of_old_name(f"{type(self).__name__}.{old}", new)
        return getattr(self, new)(*positional, **named)

    return call


def renamed_attribute(old: str, new: str) -> Any:
    """The old name of an attribute that is now called `new`, to stand in its class; it warns.

    >>> class Lamp:
    ...     color = "red"
    ...     colour = renamed_attribute("colour", "color")
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     Lamp().colour
    'red'
    >>> len(seen)
    1
    """

    def read(self: object) -> object:
        warn_of_old_name(f"{type(self).__name__}.{old}", new)
        return getattr(self, new)

    return property(read)


def _take_old_names(function: Callable[..., object], name: str, renamed: dict[str, str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*positional: object, **named: object) -> object:
        for old, new in renamed.items():
            if old in named:
                if new in named:
                    raise InvalidParameter("core.both_names", parameter=new, old=old)
                warn_of_old_name(f"the argument {old!r} of {name}", repr(new))
                named[new] = named.pop(old)
        return function(*positional, **named)

    return call


_AS_STORED: ContextVar[bool] = ContextVar("_AS_STORED", default=False)


def write_as_stored(value: object) -> str:
    """The `repr` of a value as fingerprints have it: classes and fields under the names they had first.

    >>> from mosha.core.unit import Reading
    >>> write_as_stored(Reading())
    "Event(neighbours=<Neighbours.ADD_REMOVE: 'add-remove'>)"
    """
    token = _AS_STORED.set(True)
    try:
        return repr(value)
    finally:
        _AS_STORED.reset(token)


def is_storing() -> bool:
    """Whether a `repr` is being written for a fingerprint."""
    return _AS_STORED.get()


def stored_as(name: str) -> dict[str, str]:
    """The metadata of a field that books and fingerprints call `name`."""
    return {"stored_as": name}


def name_as_stored(field: Field[Any]) -> str:
    """What books and fingerprints call this field."""
    return str(field.metadata.get("stored_as", field.name))


def describe_fields(described: Iterable[Field[Any]], of: object) -> str:
    """The arguments of a `repr`: these fields of a value, by name."""
    name = name_as_stored if is_storing() else _name
    return ", ".join(f"{name(field)}={getattr(of, field.name)!r}" for field in described)


def write_fields(value: DataclassInstance) -> str:
    """The `repr` of a dataclass with a renamed field: `__repr__ = write_fields`."""
    return f"{type(value).__qualname__}({describe_fields((f for f in fields(value) if f.repr), value)})"


def _name(field: Field[Any]) -> str:
    return field.name
