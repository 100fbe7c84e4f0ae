"""Names of modules, methods and attributes that changed: the old ones work for one minor version and warn.

`calls` takes old names of arguments, `core.fingerprint` the names that books and fingerprints keep for ever.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["old_names", "renamed_attribute", "renamed_method", "warn_of_old_name"]


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
