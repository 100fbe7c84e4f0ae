"""Questions about tables as the attacker meets them, on neighbors that strain bounding, keys and ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mosha.audit.claims.neighbors import Proposal
from mosha.audit.registry import Entry
from mosha.connect.engines.opening import source
from mosha.connect.engines.source import Engine, Use
from mosha.connect.language.expression import col
from mosha.connect.plan.aggregation import Question as Sums
from mosha.connect.plan.source import Array, Source, Totals
from mosha.connect.sql.statement import Query
from mosha.core.measurement import Measurement
from mosha.core.unit import Neighbors, Person, Row, Unit
from mosha.sql import statement
from mosha.tables import Budget, Question, Table, count, distinct, mean, median, protect, variance
from mosha.tables.aggregates import distinct_sum

__all__ = ["Remembering", "own_entries", "rows_of"]

TWO = Person("who", at_most=2)
ANY = Person("who")
CUT = Person("who", groups=1, per_group=2)
REPLACED = Row(neighbors=Neighbors.REPLACE_ONE)
BETWEEN = (0.0, 8.0)
KEYS = ("a", "b")
PURE, NORMAL = Budget(epsilon=1), Budget(rho=0.5)
COINS = 32
Line = tuple[str | None, str | None, float | None]
SELECTED = Budget(epsilon=1, delta=0.02)


class Remembering(Engine):
    """An engine that answers the same exact question from memory: an attack asks it thousands of times.

    Hash keys are drawn from a few, so that they can be remembered too; each of them bounds as all do.
    """

    def __init__(self, opened: Source, *beside: Source) -> None:
        self.opened, self.beside = opened, beside  # which live as long as their rows are asked about
        assert isinstance(opened.engine, Engine)
        self.engine, self.dialect = opened.engine, opened.engine.dialect
        self._known: dict[str, Totals] = {}

    def run(self, found: list[Query], question: Sums) -> list[tuple[list[Array], list[Array]]]:
        return self.engine.run(found, question)

    def answer(self, question: Sums) -> Totals:
        holder = getattr(question, "bound", question)
        if isinstance(key := getattr(holder, "key", None), bytes):
            drawn = replace(holder, key=bytes([key[0] % COINS]) * 32)
            question = drawn if holder is question else replace(question, bound=drawn)  # type: ignore[call-arg]
        asked = repr(question)
        if asked not in self._known:
            self._known[asked] = self.engine.answer(question)
        return self._known[asked]

    def answer_in_batches(self, question: Sums, use: Use) -> None:
        use(self.answer(question))


def rows_of(lines: Sequence[Line]) -> Source:
    """A table of (who, g, x)."""
    import pyarrow as pa  # noqa: PLC0415  (needed for an attack alone)

    who, g, x = zip(*lines, strict=True) if lines else ((), (), ())
    opened = source(pa.table({"who": pa.array(who, "string"), "g": pa.array(g, "string"), "x": pa.array(x, "double")}))
    return replace(opened, engine=Remembering(opened))


CROWD: list[Line] = [(f"p{i}", "ab"[i % 2], 4.0) for i in range(4)]


def _pair(why: str, odd: Sequence[Line], other: Sequence[Line] = (), crowd: Sequence[Line] = CROWD) -> Proposal:
    return Proposal(why, rows_of([*crowd, *odd]), rows_of([*crowd, *other]))


def _propose_addition() -> list[Proposal]:
    """A person at the limit, far beyond it, alone, and with rows that are hard to read."""
    beyond: list[Line] = [*[("odd", "a", 8.0)] * 9, *[("odd", "b", 8.0)] * 4]
    strange: list[Line] = [("odd", None, None), ("odd", "a", float("nan")), ("odd", "b", float("inf"))]
    return [
        _pair("at the limit, in one group", [("odd", "a", 8.0)] * 2),
        _pair("at the limit, in two groups", [("odd", "a", 8.0), ("odd", "b", 8.0)]),
        _pair("far beyond the limit", beyond),
        _pair("far beyond the limit, nobody else", beyond, crowd=[]),
        _pair("no numbers and no group", [*strange, ("odd", "c", -1e300)]),
    ]


def _propose_replacement() -> list[Proposal]:
    return [
        _pair("from one end to the other", [("odd", "a", 8.0)], [("odd", "a", 0.0)]),
        _pair("from one group to the other", [("odd", "a", 8.0)], [("odd", "b", 8.0)]),
        _pair("known or missing, nobody else", [("odd", "a", 8.0)], [("odd", None, None)], crowd=[]),
    ]


def _propose_new_groups() -> list[Proposal]:
    """One more person in a group that nobody, or few, had before."""
    others: list[Line] = [(f"q{i}", "new", 1.0) for i in range(4)]
    many: list[Line] = [("odd", f"new {i}", 1.0) for i in range(5)]
    return [
        _pair("a group that nobody had", [("odd", "new", 1.0)]),
        _pair("a group that few had", [("odd", "new", 1.0)], crowd=[*CROWD, *others]),
        _pair("many groups that nobody had", many, crowd=[]),
    ]


def show_numbers(value: Any) -> Any:
    """What an outsider sees of a release: its numbers, or its keys with their numbers."""
    numbers = [number for part in value["parts"] for number in _numbers(part)]
    return (str(value["keys"]), *numbers) if value["keys"] else numbers


def _numbers(part: Any) -> list[float]:
    found: list[float] = [] if part.get("norm") is None else [float(part["norm"])]
    found += [float(edge) for pair in part.get("ranges", {}).values() for edge in pair]
    table = part.get("channels") or part.get("points") or [part.get("counts", [])]
    found += [float(width) for widths in part.get("windows", []) for width in widths]
    return found + [float(number) for column in table for number in column]


def _entry(name: str, ask: Callable[[Table], Question], unit: Unit, budget: Budget, pairs: Sequence[Proposal]) -> Entry:
    def build() -> Measurement:
        return ask(protect(rows_of(CROWD), unit=unit)).measurement(budget).map(show_numbers)

    how = {"claim": budget.guarantee} if budget.delta else {}  # an event with a delta of its own has no whole curve
    return Entry(f"tables: {name}", build, tuple(pairs), "tables", how)


def _means_by_private_keys(table: Table) -> Question:
    return table.group_by("g").mean("x", between=BETWEEN)


def _counts_by_mixed_keys(table: Table) -> Question:
    return table.group_by("g", high=col("x") > 2, keys={"high": [True, False]}).count()


def _groupings(table: Table) -> Question:
    keys = {"g": KEYS, "high": [True, False]}
    return replace(table.group_by("g", high=col("x") > 2, keys=keys).count(), sets=(("g",), ("high",), ()))


def _sql(text: str) -> Callable[[Table], Question]:
    return lambda table: statement(text, {"visits": table}).question


def _cases(*names: str) -> str:
    """A column for each of some groups: cases that exclude one another."""
    columns = (f"SUM(CASE WHEN g = '{name}' THEN CLAMP(x, 0, 8) ELSE 0 END) AS {name}" for name in names)
    return f"SELECT {', '.join(columns)} FROM visits"  # noqa: S608  (our own words)


def own_entries() -> list[Entry]:
    """Counts, sums, means, spreads, quantiles, distinct values, top values, keys, bought bounds, and SQL."""
    added, replaced = _propose_addition(), _propose_replacement()
    awkward = (
        "SELECT g, SUM(CLAMP(CASE WHEN x > 3 THEN x / (x - 8) ELSE x END, 0, 8)) AS s, AVG(CLAMP(x, 0, 8)) AS m "
        "FROM visits WHERE COALESCE(x, 1) > 0 AND g IN ('a', 'b') GROUP BY g HAVING s > 1"
    )
    return [
        _entry("count", lambda t: t.count(), TWO, PURE, added),
        _entry("sum", lambda t: t.sum("x", between=BETWEEN), TWO, PURE, added),
        _entry("mean, replaced", lambda t: t.mean("x", between=BETWEEN), REPLACED, PURE, replaced),
        _entry("variance", lambda t: t.aggregate(v=variance("x", between=BETWEEN)), TWO, PURE, added),
        _entry("counts by public keys", lambda t: t.group_by("g", keys=KEYS).count(), TWO, PURE, added),
        _entry("counts by public keys, Gaussian", lambda t: t.group_by("g", keys=KEYS).count(), TWO, NORMAL, added),
        _entry("counts by public keys, cut", lambda t: t.group_by("g", keys=KEYS).count(), CUT, PURE, added),
        _entry(
            "several numbers at once, Gaussian",
            lambda t: t.group_by("g", keys=KEYS).aggregate(n=count(), m=mean("x", between=BETWEEN)),
            TWO, NORMAL, added,
        ),
        _entry("groupings", _groupings, TWO, NORMAL, added),
        _entry("persons", lambda t: t.group_by("g", keys=KEYS).persons(), TWO, PURE, added),
        _entry("median", lambda t: t.aggregate(m=median("x", between=BETWEEN)), TWO, PURE, added),
        _entry("median, replaced", lambda t: t.median("x", between=BETWEEN), REPLACED, PURE, replaced),
        _entry("median with a window", lambda t: t.median("x", between=BETWEEN, bars="values"), TWO, PURE, added),
        _entry("quartiles", lambda t: t.quantiles("x", [0.25, 0.5, 0.75], between=BETWEEN), TWO, PURE, added),
        _entry("distinct", lambda t: t.aggregate(d=distinct("g")), TWO, PURE, added),
        _entry("distinct sum", lambda t: t.aggregate(d=distinct_sum("x", between=BETWEEN)), TWO, PURE, added),
        _entry("top", lambda t: t.top("g", k=1, candidates=("a", "b", "c")), TWO, PURE, added),
        _entry("private keys, few", _means_by_private_keys, CUT, SELECTED, _propose_new_groups()),
        _entry("private keys, many", _means_by_private_keys, ANY, SELECTED, _propose_new_groups()),
        _entry("private keys, counted", lambda t: t.group_by("g").count(), CUT, SELECTED, _propose_new_groups()),
        _entry("private keys, both bought", lambda t: t.group_by("g").count(), ANY, SELECTED, _propose_new_groups()),
        _entry("private and public keys", _counts_by_mixed_keys, CUT, SELECTED, _propose_new_groups()),
        _entry("count, bound bought", lambda t: t.count(), ANY, PURE, added),
        _entry("SQL", _sql(awkward), TWO, PURE, added),
        _entry("cases that exclude one another", _sql(_cases("a", "b")), TWO, PURE, added),
        _entry("cases that exclude one another, Gaussian", _sql(_cases("a", "b")), TWO, NORMAL, added),
        _entry("cases that exclude one another, replaced", _sql(_cases(*"abcd")), REPLACED, PURE, replaced),
    ]  # fmt: skip
