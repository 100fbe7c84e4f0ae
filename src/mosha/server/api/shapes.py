"""Shapes that several operations take: limits of a promise, a source, a declaration, a grant."""

from __future__ import annotations

from mosha.server.api.schemas import array, boolean, integer, mapping, number, record, text

__all__ = [
    "DECLARATION",
    "EPSILON",
    "GRANT",
    "LIMITS",
    "NEWEST",
    "PAGE",
    "PATHS",
    "POPULATION",
    "PROMISE",
    "REASON",
    "SOURCE",
]

EPSILON = number(above=0, most=1e6)
LIMITS = {"epsilon": EPSILON, "delta": number(least=0, most=1), "rho": EPSILON, "mu": EPSILON}
PROMISE = {"disjoint_blocks": boolean(), "size": integer(least=1), "failures": integer(least=1, most=1000)}
POPULATION = record(
    {"name": text(100, pattern=r"^[^/\u0000-\u001f\u007f]+$")}, {**LIMITS, **PROMISE, "words": text(500)}
)
PATHS = ("path", "vertices", "identity", "origin")
"""Parts of a source that stay inside."""
SOURCE = record(
    {},
    {
        "path": text(1000),
        "vertices": text(1000),
        "url": text(200),
        "table": text(200),
        "separator": text(1),
        "multiline": boolean(),
    },
)
DECLARATION = record(
    {"unit": mapping()}, {"columns": mapping(), "vertices": integer(least=1), "ends": array(text(200), most=2)}
)
REASON = record({}, {"reason": text(300, least=0)})
GRANT = record(
    {"principal": text(100), "expires": text(40, pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}")},
    {
        **LIMITS,
        "purpose": text(300, least=0),
        "most_per_question": EPSILON,
        "approve_above": number(least=0, most=1e6),
        "limit_per_day": record({}, LIMITS),
    },
)
NEWEST = {"before": integer(), "limit": integer(least=1, most=500)}
PAGE = {"after": text(300, least=0), "limit": integer(least=1, most=500)}
