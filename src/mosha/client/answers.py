"""The answer of a server as the library's own `Answer`: its table, its bars, its receipt, its notes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from mosha.core.events import from_dict
from mosha.core.guarantee import Guarantee
from mosha.core.language import is_known, phrase_from_dict
from mosha.core.release import PaidShare, Receipt
from mosha.core.unit import Unit

if TYPE_CHECKING:
    from mosha.tables import Answer

__all__ = ["revive_answer"]


def revive_answer(stored: Mapping[str, Any]) -> Answer:
    """The same Answer as a release on this machine gives; bars of other confidences are those of the next higher."""
    import numpy as np  # noqa: PLC0415  (asking needs the standard library alone)

    from mosha.tables import Answer  # noqa: PLC0415

    columns = stored["columns"]
    table = {
        column["name"]: [_value(row[i], column["type"]) for row in stored["rows"]] for i, column in enumerate(columns)
    }
    keys = tuple(column["name"] for column in columns if column["role"] == "key")
    bars = {float(level): found for level, found in stored["errors"].items()}

    def errors(confidence: float) -> dict[str, Any]:
        level = min((level for level in bars if level >= confidence - 1e-12), default=None)
        named = bars[level] if level is not None else bars[max(bars)]
        scale = math.inf if level is None else 1.0
        return {name: np.array([math.nan if b is None else b * scale for b in bar]) for name, bar in named.items()}

    return Answer(
        keys=keys,
        rows=tuple(zip(*(table[name] for name in keys), strict=True)) if keys else ((),) * len(stored["rows"]),
        columns={name: np.array(values, object) for name, values in table.items() if name not in keys},
        receipt=_receipt(stored["receipt"]),
        notes=tuple(_list_notes(stored)),
        errors=errors,
        in_rows=tuple(stored["in_rows"]),
        whole=tuple(stored.get("whole", ())),
        estimated=tuple(stored.get("estimated", ())),
    )


def _list_notes(stored: Mapping[str, Any]) -> list[str]:
    """In the language of whoever asks, where the sentence is known here; as the server wrote them otherwise."""
    codes = stored.get("note_codes") or [None] * len(stored["notes"])
    known = [code if code and is_known(code["code"]) else None for code in codes]
    return [phrase_from_dict(code) if code else text for text, code in zip(stored["notes"], known, strict=True)]


def _value(value: Any, kind: str) -> Any:
    if value is None or kind not in ("date", "timestamp"):
        return value
    return date.fromisoformat(value) if kind == "date" else datetime.fromisoformat(value)


def _receipt(stored: Mapping[str, Any]) -> Receipt:
    """Accounts of others come without what they have spent: those numbers are not told."""
    shares = tuple(
        PaidShare(**({"spent": math.nan, "limit": math.nan, "left": math.nan} | share | _meaning(share)))
        for share in stored["payers"]
    )
    return Receipt(
        account=stored["account"], entry=stored["entry"], unit=Unit.from_dict(stored["unit"]),
        event=from_dict(stored["event"]), measure=stored["measure"], cost=stored["cost"], delta=stored["delta"],
        spent=stored["spent"], limit=stored["limit"], left=stored["remaining"], payers=shares, more=stored.get("more"),
        **_meaning(stored),
    )  # fmt: skip


def _meaning(stored: Mapping[str, Any]) -> dict[str, Any]:
    """What is left as epsilon, where a server says it: one of an earlier version does not."""
    said = stored.get("left_as")
    return {"left_as": None if said is None else Guarantee.from_dict(said)}
