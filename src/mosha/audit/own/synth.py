"""Marginals and synthetic tables as the attacker meets them: all that leaves is residuals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mosha.audit.claims.neighbors import Proposal
from mosha.audit.own.tables import rows_of
from mosha.audit.registry import Entry
from mosha.core.guarantee import Approx
from mosha.core.measurement import Measurement
from mosha.core.unit import Neighbors, Person, Row, Unit
from mosha.tables import Table, protect

__all__ = ["own_entries"]

WORDS: Mapping[str, Any] = {"keys": {"g": ["a", "b"]}, "between": {"x": (0, 8)}, "bins": {"x": 2}, "nulls": []}
PEOPLE = Person("who")
REPLACED = Row(neighbors=Neighbors.REPLACE_ONE)
Line = tuple[str | None, str | None, float | None]
CROWD: list[Line] = [(f"p{i}", "ab"[i % 2], 4.0) for i in range(4)]


def _pair(why: str, odd: Sequence[Line], other: Sequence[Line] = ()) -> Proposal:
    return Proposal(why, rows_of([*CROWD, *odd]), rows_of([*CROWD, *other]))


def show_numbers(value: Mapping[str, Any]) -> list[float]:
    """What an outsider sees of a release: every number that left."""
    stages = ("residuals", "one-ways", "distances", "pairs", "fine", "look")
    return [float(number) for stage in stages if stage in value for number in value[stage]]


def show_values(value: Mapping[str, Any]) -> list[float]:
    """What an outsider sees first of a release whose values come from the data: which ones, and how many rows."""
    return [*(float(known in value["keys"]["g"]) for known in ("a", "b", "odd")), float(value["one-ways"][0])]


def _entry(name: str, ask: Callable[[Table], Any], unit: Unit, pairs: Sequence[Proposal]) -> Entry:
    def build() -> Measurement:
        measurement: Measurement = ask(protect(rows_of(CROWD), unit=unit)).measurement_for(rho=0.5)
        return measurement.map(show_numbers)

    return Entry(f"synth: {name}", build, tuple(pairs), "synth")


def _values_entry() -> Entry:
    """One row whose value nobody else has; a large delta, so that an attack would see it shown too often."""

    def build() -> Measurement:
        table = protect(rows_of(CROWD), unit=Row())
        question = table.synthesize(**{**WORDS, "keys": {"g": "from_data"}})
        measurement: Measurement = question.measurement_for(epsilon=1, delta=0.2)
        return measurement.map(show_values)

    alone = [_pair("one row with a value of its own", [("odd", "odd", 8.0)])]
    return Entry(
        "synth: synthetic table, values from the data", build, tuple(alone), "synth", {"claim": Approx(1, 0.2)}
    )


def _link(table: Table) -> Any:
    """The same rows as persons and as their rows."""
    rows = table.synthesize(columns=["x"], between=WORDS["between"], bins=WORDS["bins"], nulls=[])
    return table.synthesize(columns=["g"], keys=WORDS["keys"], nulls=[]).link(rows, at_most=3)


def own_entries() -> list[Entry]:
    """All marginals of two columns, by rows and by persons, and the stages of a synthetic table."""
    added = [_pair("one row more", [("odd", "a", 8.0)]), _pair("one row more, elsewhere", [("odd", "b", 0.0)])]
    everywhere: list[Line] = [("odd", g, x) for g in "ab" for x in (0.0, 8.0)]
    many = [
        _pair("a person with many rows in one cell", [("odd", "a", 8.0)] * 9),
        _pair("a person with many rows in all cells", everywhere * 3),
    ]
    moved = [_pair("from one cell to the opposite one", [("odd", "a", 8.0)], [("odd", "b", 0.0)])]
    return [
        _entry("marginals", lambda t: t.marginals(ways=2, **WORDS), Row(), added),
        _entry("marginals, persons", lambda t: t.marginals(ways=2, **WORDS), PEOPLE, many),
        _entry("marginals, replaced", lambda t: t.marginals(ways=2, **WORDS), REPLACED, moved),
        _entry("synthetic table", lambda t: t.synthesize(**WORDS), Row(), added),
        _entry(
            "synthetic table, selected pairs", lambda t: t.synthesize(**WORDS, method="selected pairs"), Row(), added
        ),
        _entry("synthetic table, tree", lambda t: t.synthesize(**WORDS, method="tree"), Row(), added),
        _entry("synthetic table, persons", lambda t: t.synthesize(**WORDS), PEOPLE, many),
        _entry("synthetic table, rows per person", lambda t: t.synthesize(**WORDS, rows_per_person=3), PEOPLE, many),
        _entry("persons and their rows", _link, PEOPLE, many),
        _values_entry(),
    ]
