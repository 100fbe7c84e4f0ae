"""Questions along foreign keys as the attacker meets them: people with much behind them, and keys that are shared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from mosha.audit.claims.neighbors import Proposal
from mosha.audit.own.tables import Remembering, show_numbers
from mosha.audit.registry import Entry
from mosha.connect.engines.duckdb import DuckDB
from mosha.core.measurement import Measurement
from mosha.sql import statement
from mosha.tables import Budget
from mosha.tables.databases.database import protect_database

__all__ = ["SharedShop", "own_entries"]

PURE, NORMAL = Budget(epsilon=1), Budget(rho=0.5)
Order = tuple[int, int | None]
Line = tuple[int | None, str, float]

CROWD: tuple[tuple[Order, ...], tuple[Line, ...]] = (
    tuple((i, i) for i in range(4)),
    tuple((i, "ab"[i % 2], 4.0) for i in range(4)),
)
SCHEMA: dict[str, dict[str, Any]] = {
    "persons": {"customer": {"key": "orders.customer", "at_most": 2}},
    "tables": {
        "orders": {"rows_of": "customer"},
        "line": {
            "rows_of": "customer",
            "foreign_keys": {"order_id": "orders.id"},
            "columns": {"flag": {"keys": ["a", "b"]}, "amount": {"between": [0, 8]}},
        },
    },
}
KEYED = SCHEMA | {"tables": SCHEMA["tables"] | {"orders": {"rows_of": "customer", "primary_key": "customer"}}}


@dataclass(frozen=True, eq=False)
class SharedShop:
    """Orders of customers and their lines, beside those of a crowd; what is asked of it is planned once.

    Where it is `keyed`, the declaration says that every customer has one order, whether that is so or not.
    """

    orders: Sequence[Order] = ()
    lines: Sequence[Line] = ()
    crowd: tuple[Sequence[Order], Sequence[Line]] = CROWD
    keyed: bool = False

    @cached_property
    def tables(self) -> Any:
        """The protected tables, exact answers remembered."""
        import pyarrow as pa  # noqa: PLC0415  (needed for an attack alone)

        orders, lines = [*self.crowd[0], *self.orders], [*self.crowd[1], *self.lines]
        ids, owners = zip(*orders, strict=True) if orders else ((), ())
        keys, flags, amounts = zip(*lines, strict=True) if lines else ((), (), ())
        columns = {
            "orders": {"id": pa.array(ids, "int64"), "customer": pa.array(owners, "int64")},
            "line": {
                "order_id": pa.array(keys, "int64"),
                "flag": pa.array(flags, "string"),
                "amount": pa.array(amounts, "double"),
            },
        }
        engine = DuckDB(threads=1)
        opened = {name: engine.frame(pa.table(table)) for name, table in columns.items()}
        shared = Remembering(*opened.values())
        opened = {name: replace(one, engine=shared) for name, one in opened.items()}
        return protect_database(opened, schema=KEYED if self.keyed else SCHEMA).tables

    def measure(self, text: str, budget: Budget) -> Measurement:
        """The release of a query about this shop."""
        return statement(text, self.tables).question.measurement(budget).map(show_numbers)


def _propose_people() -> list[Proposal]:
    """A customer at the limit, far beyond it through orders and through lines, and one who shares an order.

    A line of a shared order belongs to all of them and counts for nobody; without one it is gone (`paths.md`).
    """
    many = SharedShop([(10 + i, 9) for i in range(9)], [(10 + i % 9, "ab"[i % 2], 8.0) for i in range(40)])
    deep = SharedShop([(10, 9)], [(10, "a", 8.0)] * 30)
    others = [(10, customer) for customer in range(5, 9)]
    shared = SharedShop([*others, (10, 9)], [(10, "a", 8.0)] * 8)
    return [
        Proposal("at the limit", SharedShop([(10, 9)], [(10, "a", 8.0), (10, "b", 8.0)]), SharedShop()),
        Proposal("far beyond the limit through many orders", many, SharedShop()),
        Proposal("an order of five customers", shared, SharedShop(others)),
        Proposal("far beyond the limit, nobody else", replace(deep, crowd=((), ())), SharedShop(crowd=((), ()))),
    ]


def own_entries() -> list[Entry]:
    """Counts and sums through one key, a join along it, a condition on what hangs on an order, and declared keys."""
    asked = {
        "lines by flag": ("SELECT flag, COUNT(*) AS n, SUM(amount) AS s FROM line GROUP BY flag", NORMAL, False),
        "lines joined with orders": ("SELECT COUNT(*) AS n FROM line JOIN orders ON order_id = id", PURE, False),
        "orders with a line": (
            "SELECT COUNT(*) AS n FROM orders WHERE EXISTS (SELECT * FROM line WHERE order_id = id AND amount > 2)",
            PURE,
            False,
        ),
        "a key that is not one": ("SELECT COUNT(*) AS n FROM orders", PURE, True),
        "one row for each person": (
            "SELECT SUM(CLAMP(k, 0, 2)) AS s FROM (SELECT customer, COUNT(*) AS k FROM orders GROUP BY customer) AS t",
            PURE,
            False,
        ),
    }
    return [_make_entry(name, text, budget, keyed=keyed) for name, (text, budget, keyed) in asked.items()]


def _make_entry(name: str, text: str, budget: Budget, *, keyed: bool) -> Entry:
    pairs = [
        replace(pair, first=replace(pair.first, keyed=keyed), second=replace(pair.second, keyed=keyed))
        for pair in _propose_people()
    ]
    measure = partial(_measure_any, text, budget, keyed=keyed)
    return Entry(f"databases: {name}", measure, tuple(pairs), "tables")


def _measure_any(text: str, budget: Budget, *, keyed: bool) -> Measurement:
    """One price for every shop, as the plan is the same; a step asks the shop that it is given."""
    known: dict[int, Measurement] = {}

    def step(state: object, data: SharedShop, ask: object, rng: Any) -> tuple[Any, object]:
        if id(data) not in known:
            known[id(data)] = data.measure(text, budget)
        found: tuple[Any, object] = known[id(data)].step(state, None, ask, rng)
        return found

    return replace(SharedShop(keyed=keyed).measure(text, budget), step=step)
