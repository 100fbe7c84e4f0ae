"""Guests: packages that an extra of Mosha brings, loaded where they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from mosha.core.errors import MissingExtra
from mosha.core.language import Phrase

__all__ = ["load_guest"]


def load_guest(module: str, *, extra: str, needed_for: Phrase) -> Any:
    """The module, or a `MissingExtra` that names the extra which brings it.

    >>> from mosha.core.language import phrase
    >>> load_guest("json", extra="fast", needed_for=phrase("core.table_of", kind="json")).dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(extra, needed_for=needed_for) from None
