"""Unknown attributes: the answer names the one that was meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from mosha.core.language import say

__all__ = ["explain_attribute"]

INSTEAD: Final = {
    "execute": "release", "collect": "release", "run": "release", "result": "release", "answer": "release",
    "accuracy": "forecast", "price": "plan", "cost": "plan", "value": "table", "data": "table", "df": "to_pandas",
    "to_df": "to_pandas", "to_dict": "table", "error_bars": "error", "bars": "error", "show": "plot", "draw": "plot",
    "balance": "remaining", "left": "remaining", "budget": "remaining", "open": "account", "create": "account",
    "isin": "is_in", "isna": "is_null", "isnull": "is_null", "fillna": "coalesce", "fill_null": "coalesce",
    "clip": "clamp", "astype": "cast", "startswith": "starts_with", "endswith": "ends_with", "len": "length",
    "len_chars": "length", "strip": "trim", "slice": "substring", "to_lowercase": "lower", "to_uppercase": "upper",
    "dayofweek": "weekday", "day_of_week": "weekday",
}  # fmt: skip
"""What other libraries call it, and what it is called here (where it is there at all)."""

MOST: Final = 15
"""Names that are listed; of more, `dir` is named."""


def explain_attribute(kind: str, name: str, known: Iterable[str]) -> str:
    """What to write in place of a name that is not there.

    Args:
        kind: whose name it should be.
        name: what was written.
        known: the names that are there.

    >>> explain_attribute("Question", "relase", ["release", "plan"])
    'Question has no relase: did you mean release?'
    >>> explain_attribute("Question", "colour", ["release", "plan"])
    'Question has no colour. It has plan and release.'
    """
    there = sorted(one for one in known if not one.startswith("_"))
    close = [INSTEAD[name]] if INSTEAD.get(name) in there else get_close_matches(name, there, n=2)
    if close:
        return say("core.attribute_instead", kind=kind, name=name, close=close)
    return say(
        "core.no_attribute" if len(there) <= MOST else "core.no_attribute_of_many", kind=kind, name=name, there=there
    )
