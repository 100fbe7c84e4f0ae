"""Every kind of question, planned by DuckDB in a process of its own, which says what it is at.

An optimiser that does not come back cannot be interrupted from inside, so whoever waits for this process ends it.
"""

import itertools
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

import mosha
from mosha import col
from mosha.tables import aggregates as ask
from mosha.tables.aggregates import median
from mosha.tables.protecting import public_table

N = 34
TABLE = pa.table(
    {
        "id": list(range(N)),
        "days": [1, 2] * (N // 2),
        "cost": [1.0, 3.0] * (N // 2),
        "ward": [f"w{i % 17}" for i in range(N)],
        "cat": [0, 1] * (N // 2),
    }
)
BEDS = public_table(pa.table({"ward": [f"w{i}" for i in range(17)], "beds": list(range(17))}))
DEEP = (col("days") * 2 + col("cost") / 3) * (col("days") - col("cost"))
WARDS = [f"w{i}" for i in range(17)]
SMALL, WIDE = (0, 30), (-9, 99)
EVERY = {
    "count": ask.count,
    "counts": lambda: ask.count(DEEP),
    "persons": ask.persons,
    "distinct": lambda: ask.distinct(DEEP),
    "sum": lambda: ask.sum(DEEP, between=WIDE),
    "mean": lambda: ask.mean("cost", between=SMALL),
    "variance": lambda: ask.variance(DEEP, between=WIDE),
    "covariance": lambda: ask.covariance(["days", "cost"], between=[SMALL, SMALL]),
    "covariance of expressions": lambda: ask.covariance([DEEP, "cost"], between=[WIDE, SMALL]),
    "correlation": lambda: ask.correlation(["days", "cost"], between=[SMALL, SMALL]),
    "correlation of expressions": lambda: ask.correlation([DEEP, col("cost") * 2], between=[WIDE, SMALL]),
    "median": lambda: median(DEEP, between=WIDE),
    "automatic": lambda: ask.mean("cost", between="automatic"),
}
GROUPS = {
    "no keys": lambda table: table,
    "beside a public table": lambda table: table.join_public(BEDS, on="ward"),
    "one key of 17": lambda table: table.group_by("ward", keys=WARDS),
    "two keys": lambda table: table.group_by("ward", "cat", keys={"ward": WARDS[:2], "cat": [0, 1]}),
    "two keys, one computed": lambda table: table.group_by(
        "cat", big=DEEP > 3, keys={"cat": [0, 1], "big": [True, False]}
    ),
}
UNITS = [
    (mosha.Row(), {"epsilon": 1}),
    (mosha.Person("id", at_most=2), {"rho": 0.5}),
    (mosha.Person("id"), {"epsilon": 1}),
    (mosha.Person("id", groups=2, per_group=1), {"epsilon": 1}),
]
MIXTURES = [
    ("correlation of expressions", "counts", "persons"),
    ("covariance", "mean", "counts"),
    ("correlation", "variance", "sum"),
]


def questions() -> Iterator[tuple[Any, ...]]:
    """Each aggregate by every kind of keys, and mixtures, for every unit."""
    for (unit, budget), (keys, group) in itertools.product(UNITS, GROUPS.items()):
        measure: dict[str, Any] = "rho" if "rho" in budget else "epsilon"  # type: ignore[assignment]
        account = mosha.Ledger.memory().account("stalls", unit=unit, **{measure: 1000})  # type: ignore[arg-type]
        table = mosha.protect(TABLE, unit=unit, account=account)
        for names in [(name,) for name in EVERY] + MIXTURES:
            if "persons" in names and isinstance(unit, mosha.Row):
                continue
            named = {f"a{i}": EVERY[name]() for i, name in enumerate(names)}
            asked = group(table).aggregate(**named)
            yield f"{' + '.join(names)}, {keys}, {unit}", partial(asked.release, **budget)


if __name__ == "__main__":
    for name, release in questions():
        sys.stdout.write(name + "\n")
        sys.stdout.flush()
        release()
    sys.stdout.write("done\n")
