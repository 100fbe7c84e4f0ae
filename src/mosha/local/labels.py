"""What tells one label of a survey from another."""

from __future__ import annotations

__all__ = ["identify_label"]


def identify_label(value: object) -> tuple[str, object]:
    """True, 1 and 1.0 are three labels; whole numbers of any library are one.

    >>> identify_label(1), identify_label(True), identify_label("1")
    (('int', 1), ('bool', True), ('str', '1'))
    """
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return "bool", bool(value)
    if hasattr(value, "__index__"):
        return "int", value.__index__()
    return "str" if isinstance(value, str) else type(value).__name__, value
