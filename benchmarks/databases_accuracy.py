"""The error of TPC-H's questions 1, 4, 5, 6 and 12 at epsilon 1 and scale 0.1, customers protected, beside the peers.

All promise the same: epsilon 1 and delta 1e-6 for a customer with everything that hangs on them. Mosha is asked the
text of the benchmark and told ranges and keys. Qrlew reaches customers along the same keys; it is
asked the nearest text that it reads (no INTERVAL, no EXISTS, no typed dates), knows ranges, values, keys and the sizes
of tables, and its noise is scaled until the Gaussians together make epsilon 1 by the exact curve, not by its own sum.
SmartNoise has no keys between tables: it reads a table for each question, joined and filtered before, in thousands
where it refuses large numbers. All have the limit of rows under which their error is least, found by trying on the
data itself: more than anybody may do. Beside it, without a bar: Mosha where no limit is told, which the peers cannot do
without. An error is the sum of what the cells of a column are off, with all their digits, over the sum of what they
are, averaged over columns and runs. The bar is half of the peer's error. For question 5, which sums what few lines of
a person cost, all may also choose the highest price that is declared: a limit of rows times that price is what one
person moves.

For questions 4 and 12 half of SmartNoise's error is out of reach, whoever answers: the run finds the least that anybody
can have who bounds people and adds symmetric noise (`_least_noise.py` says how). Where it is more than half of a peer's
error, there is another bar: that least over what we have.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

import mosha
from benchmarks._least_noise import find_least_staircase, find_least_whole
from benchmarks._peers import PeerUnavailable, peer, run
from benchmarks._rows import Row
from benchmarks._wholesale import MODES, NATIONS, PRIORITIES, make_wholesale
from tests.tables.wholesale import QUERIES

SCALE: Final = 0.1
EPSILON: Final = 1.0
DELTA: Final = 1e-6
RUNS: Final = {1: 6, 4: 60, 5: 100, 6: 20, 12: 100}
KEYS: Final = {1: 2, 4: 1, 5: 1, 6: 0, 12: 1}
LIMITS: Final = {1: [60, 90, 130], 4: [2, 3, 4, 5], 5: [1, 2, 3, 4], 6: [1, 2, 4], 12: [2, 3, 4]}

HIGHEST: Final = {5: [110_000, 130_000]}
"""The highest prices that are tried; 110,000 alone for the other questions."""
RANGES: Final = {"l_quantity": [0, 50], "l_extendedprice": [0, 110_000], "l_discount": [0, 0.1], "l_tax": [0, 0.08]}
VALUES: Final = {"l_returnflag": ["A", "N", "R"], "l_linestatus": ["F", "O"], "l_shipmode": MODES}
SCHEMA: Final = {
    "tables": {
        "region": {"public": True},
        "nation": {"public": True, "columns": {"n_name": {"keys": NATIONS}}},
        "supplier": {"public": True},
        "customer": {"rows_of": "customer"},
        "orders": {
            "rows_of": "customer",
            "foreign_keys": {"o_custkey": "customer.c_custkey"},
            "columns": {"o_orderpriority": {"keys": PRIORITIES}},
        },
        "lineitem": {
            "rows_of": "customer",
            "foreign_keys": {"l_orderkey": "orders.o_orderkey"},
            "columns": {
                **{name: {"between": ends} for name, ends in RANGES.items()},
                **{name: {"keys": values} for name, values in VALUES.items()},
            },
        },
    },
}

REVENUE = "l_extendedprice * (1 - l_discount)"
LATE = "l_commitdate < l_receiptdate"
URGENT = "o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH'"
REST = "o_orderpriority <> '1-URGENT' and o_orderpriority <> '2-HIGH'"
ORDERED = "o_orderdate >= '1994-01-01' and o_orderdate < '1995-01-01'"
SHIPPED = "l_shipdate >= '1994-01-01' and l_shipdate < '1995-01-01'"
SUMS = f"sum(l_quantity) as a, sum(l_extendedprice) as b, sum({REVENUE}) as c, sum({REVENUE} * (1 + l_tax)) as d"
FOR_QRLEW: Final = {
    1: f"""select l_returnflag, l_linestatus, {SUMS}, avg(l_quantity) as e, avg(l_extendedprice) as f,
        avg(l_discount) as g, count(*) as h from lineitem where l_shipdate <= '1998-09-02'
        group by l_returnflag, l_linestatus""",
    4: f"""select o_orderpriority, count(distinct o_orderkey) as n from orders join lineitem on o_orderkey = l_orderkey
        where {LATE} and o_orderdate >= '1993-07-01' and o_orderdate < '1993-10-01' group by o_orderpriority""",
    5: f"""select n_name, sum({REVENUE}) as revenue from customer join orders on c_custkey = o_custkey
        join lineitem on l_orderkey = o_orderkey join supplier on l_suppkey = s_suppkey
        join nation on s_nationkey = n_nationkey join region on n_regionkey = r_regionkey
        where c_nationkey = s_nationkey and r_name = 'ASIA' and {ORDERED} group by n_name""",
    6: f"""select sum(l_extendedprice * l_discount) as revenue from lineitem where {SHIPPED} and l_discount >= 0.05
        and l_discount <= 0.07 and l_quantity < 24""",
    12: f"""select l_shipmode, sum(case when {URGENT} then 1 else 0 end) as high,
        sum(case when {REST} then 1 else 0 end) as low
        from orders join lineitem on o_orderkey = l_orderkey where l_shipmode in ('MAIL', 'SHIP') and {LATE}
        and l_shipdate < l_commitdate and l_receiptdate >= '1994-01-01' and l_receiptdate < '1995-01-01'
        group by l_shipmode""",
}
JOINED = "lineitem join orders on l_orderkey = o_orderkey"
FOR_SMARTNOISE: Final = {
    1: (
        f"""select o_custkey as person, l_returnflag, l_linestatus, l_quantity as q, l_extendedprice / 1e3 as p,
        {REVENUE} / 1e3 as r, {REVENUE} * (1 + l_tax) / 1e3 as t, l_discount as d from {JOINED}
        where l_shipdate <= '1998-09-02'""",
        """SELECT l_returnflag, l_linestatus, SUM(q) AS a, SUM(p) AS b, SUM(r) AS c, SUM(t) AS e, AVG(q) AS f,
        AVG(p) AS g, AVG(d) AS h, COUNT(*) AS n FROM w.q1 GROUP BY l_returnflag, l_linestatus""",
        {"q": [0, 50], "p": [0, 110], "r": [0, 110], "t": [0, 119], "d": [0, 0.1]},
        [1, 1e3, 1e3, 1e3, 1, 1e3, 1, 1],
    ),
    4: (
        f"""select o_custkey as person, o_orderpriority from orders where o_orderdate >= '1993-07-01' and
        o_orderdate < '1993-10-01' and exists (select 1 from lineitem where l_orderkey = o_orderkey and {LATE})""",
        "SELECT o_orderpriority, COUNT(*) AS n FROM w.q4 GROUP BY o_orderpriority",
        {},
        [1],
    ),
    5: (
        f"""select o_custkey as person, n_name, {REVENUE} / 1e3 as r from customer, {JOINED}, supplier, nation, region
        where c_custkey = o_custkey and l_suppkey = s_suppkey and c_nationkey = s_nationkey and
        s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'ASIA' and {ORDERED}""",
        "SELECT n_name, SUM(r) AS s FROM w.q5 GROUP BY n_name",
        {"r": [0, 110]},
        [1e3],
    ),
    6: (
        f"""select o_custkey as person, l_extendedprice * l_discount as r from {JOINED} where {SHIPPED}
        and l_discount between 0.05 and 0.07 and l_quantity < 24""",
        "SELECT SUM(r) AS s FROM w.q6",
        {"r": [0, 11_000]},
        [1],
    ),
    12: (
        f"""select o_custkey as person, l_shipmode, case when {URGENT} then 1 else 0 end as h,
        case when {REST} then 1 else 0 end as l from {JOINED} where l_shipmode in ('MAIL', 'SHIP') and {LATE}
        and l_shipdate < l_commitdate and l_receiptdate >= '1994-01-01' and l_receiptdate < '1995-01-01'""",
        "SELECT l_shipmode, SUM(h) AS a, SUM(l) AS b FROM w.q12 GROUP BY l_shipmode",
        {"h": [0, 1], "l": [0, 1]},
        [1, 1],
    ),
}

QRLEW = """
import json, math, os, sys
from statistics import NormalDist
import duckdb
import sqlalchemy as sa
from pyqrlew.wrappers import Dataset
asked = json.load(open(sys.argv[1]))
data = duckdb.connect(asked["place"], read_only=True)
engine = sa.create_engine("sqlite://", poolclass=sa.pool.StaticPool)
kinds = {"BIGINT": "BIGINT", "INTEGER": "BIGINT", "DOUBLE": "FLOAT", "VARCHAR": "TEXT", "DATE": "DATE"}
with engine.begin() as shape:
    for (table,) in data.execute("SHOW TABLES").fetchall():
        columns = [(row[0], kinds[row[1]]) for row in data.execute(f"DESCRIBE {table}").fetchall()]
        rows = data.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
        shape.execute(sa.text(f"CREATE TABLE {table} (" + ", ".join(f"{a} {b}" for a, b in columns) + ")"))
        nothing = ", ".join(["NULL"] * len(columns))
        numbers = f"WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < {rows})"
        shape.execute(sa.text(f"INSERT INTO {table} {numbers} SELECT {nothing} FROM c"))
known = Dataset.from_database("w", engine)
for name, (low, high) in asked["ranges"].items():
    known = known.with_range(None, "lineitem", name, low, high)
for table, name, values in asked["values"]:
    known = known.with_possible_values(None, table, name, values)
for table, key in ("customer", "c_custkey"), ("orders", "o_orderkey"), ("supplier", "s_suppkey"), \\
        ("nation", "n_nationkey"), ("region", "r_regionkey"):
    known = known.with_constraint(None, table, key, Dataset.CONSTRAINT_UNIQUE)
to_customer = ("o_custkey", "customer", "c_custkey")
unit = [("customer", [], "c_custkey"), ("orders", [to_customer], "c_custkey"),
        ("lineitem", [("l_orderkey", "orders", "o_orderkey"), to_customer], "c_custkey")]
cdf = NormalDist().cdf

def find_delta(mu, epsilon):
    return cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * cdf(-epsilon / mu - mu / 2)

low, high = 1e-3, 10.0
for _ in range(80):
    middle = (low + high) / 2
    low, high = (middle, high) if find_delta(middle, asked["epsilon"]) <= asked["delta"] else (low, middle)

def list_events(event):
    if event["class_name"] == "ComposedDpEvent":
        return [one for each in event["events"] for one in list_events(each)]
    assert event["class_name"] == "GaussianDpEvent", event
    return [event["noise_multiplier"]]

def rewrite(text, epsilon, limit):
    found = known.relation(text).rewrite_with_differential_privacy(
        known, unit, {"epsilon": epsilon, "delta": asked["delta"]}, max_multiplicity=limit, max_multiplicity_share=1.0)
    multipliers = list_events(found.dp_event().to_dict())
    return found.relation().to_query(), math.sqrt(sum(1 / m**2 for m in multipliers))

found = {}
for number, text in asked["queries"].items():
    for limit in asked["limits"][number]:
        try:
            _, mu = rewrite(text, asked["epsilon"], float(limit))
            statement, mu = rewrite(text, asked["epsilon"] * low / mu, float(limit))
            assert mu <= low * 1.001, (mu, low)
            found[f"{number} {limit}"] = [data.execute(statement).fetchall() for _ in range(asked["runs"][number])]
        except BaseException as problem:  # Rust panics are no Exceptions
            found[f"{number} {limit}"] = repr(problem)[:120]
print(json.dumps(found, default=float))
"""

SMARTNOISE = """
import json, sqlite3, sys, warnings
warnings.simplefilter("ignore")
import duckdb
from snsql import Privacy, from_connection
asked = json.load(open(sys.argv[1]))
data = duckdb.connect(asked["place"], read_only=True)
found = {}
for number, (view, text, ranges, units) in asked["queries"].items():
    rows = data.execute(view)
    kinds = [(name, str(kind)) for name, kind, *_ in rows.description]
    place = sqlite3.connect(":memory:")
    place.execute("ATTACH ':memory:' AS w")
    place.execute(f"CREATE TABLE w.q{number} (" + ", ".join(name for name, _ in kinds) + ")")
    place.executemany(f"INSERT INTO w.q{number} VALUES (" + ", ".join("?" * len(kinds)) + ")", rows.fetchall())
    columns = {"person": {"type": "int", "private_id": True}}
    for name, kind in kinds[1:]:
        whole = kind in ("INTEGER", "BIGINT")
        limits = dict(zip(("lower", "upper"), ranges.get(name, ())))
        columns[name] = {"type": "int" if whole else "float", **limits} if limits else {"type": "string"}
    for limit in asked["limits"][number]:
        table = {"max_ids": limit, "sample_max_ids": True, "censor_dims": False, "clamp_counts": False, **columns}
        metadata = {"": {"w": {f"q{number}": table}}}
        def read(epsilon):
            privacy = Privacy(epsilon=epsilon, delta=asked["delta"])
            return from_connection(place, privacy=privacy, metadata=metadata, engine="sqlite")
        try:
            cost, _ = read(asked["epsilon"]).get_privacy_cost(text)
            reader = read(asked["epsilon"] ** 2 / cost)
            cost, _ = reader.get_privacy_cost(text)
            assert cost <= asked["epsilon"] * 1.001, cost
            keys = asked["keys"][number]
            found[f"{number} {limit}"] = [
                [[*row[:keys], *(float(value) * unit for value, unit in zip(row[keys:], units))]
                 for row in reader.execute(text)[1:]] for _ in range(asked["runs"][number])]
        except Exception as problem:
            found[f"{number} {limit}"] = repr(problem)[:120]
print(json.dumps(found, default=float))
"""


def find_error(number: int, exact: Sequence[Any], found: Sequence[Any]) -> float:
    """How far a release is off, as the heading says; a cell that is missing counts as 0."""
    keys = KEYS[number]
    given = {tuple(row[:keys]): row[keys:] for row in found}
    wanted = np.array([row[keys:] for row in exact], float)
    answered = np.array([given.get(tuple(row[:keys]), [0.0] * wanted.shape[1]) for row in exact], float)
    return float(np.mean(np.abs(answered - wanted).sum(0) / np.abs(wanted).sum(0)))


def ask_mosha(place: str, exact: dict[int, Any], limits: Sequence[int | None], number: int) -> tuple[float, str]:
    """The least error of a question over these limits of rows, and that limit; None is no limit."""
    errors = {}
    for limit, highest in product(limits, HIGHEST.get(number, [110_000])):
        account = mosha.Ledger.memory().account("shop", unit=mosha.Person("customer"), epsilon=100, delta=1e-4)
        who = {"key": "customer.c_custkey"} | ({} if limit is None else {"at_most": limit})
        schema: Any = deepcopy(SCHEMA) | {"persons": {"customer": who}}
        schema["tables"]["lineitem"]["columns"]["l_extendedprice"]["between"] = [0, highest]
        shop = mosha.protect_database(place, schema=schema, account=account)
        releases = [shop.query(QUERIES[number], epsilon=EPSILON, delta=DELTA) for _ in range(RUNS[number])]
        found = [find_error(number, exact[number], [[*row.values()] for row in release.exact]) for release in releases]  # type: ignore[union-attr]
        errors[limit, highest] = float(np.mean(found))
    best = min(errors, key=lambda tried: errors[tried])
    prices = f", prices to {best[1]:,}" if number in HIGHEST else ""
    return errors[best], ("no limit" if best[0] is None else f"{best[0]} rows") + prices


def ask_peer(
    name: str, folder: Path, exact: dict[int, Any], asked: dict[str, Any]
) -> dict[int, tuple[float | None, str]]:
    """The least error of each question over the limits that were tried, and that limit; None where all failed."""
    requirements, code = PEERS[name]
    order = folder / f"{name}.json"
    order.write_text(json.dumps(asked), encoding="utf-8")
    answered = run(peer(*requirements), code, order)
    found = {}
    for number, rows in exact.items():
        tried = {limit: answered[f"{number} {limit}"] for limit in LIMITS[number]}
        errors = {
            limit: float(np.mean([find_error(number, rows, one) for one in releases]))
            for limit, releases in tried.items()
            if not isinstance(releases, str)
        }
        best = min(errors, key=lambda limit: errors[limit], default=None)
        found[number] = (None, str(tried)) if best is None else (errors[best], f"{best} rows")
    return found


def widen(number: int, asked: dict[str, Any], highest: float) -> dict[str, Any]:
    """What a peer is asked, with another highest price."""
    if "ranges" in asked:
        return asked | {"ranges": asked["ranges"] | {"l_extendedprice": [0, highest]}}
    view, text, ranges, units = asked["queries"][number]
    return asked | {"queries": {number: (view, text, {name: [0, highest / 1e3] for name in ranges}, units)}}


def find_least_sum(data: duckdb.DuckDBPyConnection) -> float:
    """The least error of question 5 under any limit of what one person moves, with any symmetric noise."""
    view, *_ = FOR_SMARTNOISE[5]
    found = data.execute(f"SELECT n_name, person, sum(r) FROM ({view}) GROUP BY 1, 2").fetchall()
    cells = [np.array([float(r) * 1e3 for name, _, r in found if name == key]) for key in {row[0] for row in found}]
    whole = sum(float(cell.sum()) for cell in cells)
    limits = np.linspace(0.2, 2, 91) * max(HIGHEST[5])
    cut = [[float(np.maximum(cell - limit, 0).sum()) for cell in cells] for limit in limits]
    pairs = zip(limits, cut, strict=True)
    return min(sum(find_least_staircase(EPSILON, DELTA, limit, one) for one in some) for limit, some in pairs) / whole


def find_least(data: duckdb.DuckDBPyConnection, number: int) -> float:
    """The least error that a question for rows can have under any limit, with any symmetric noise."""
    view, *_ = FOR_SMARTNOISE[number]
    key, values = COUNTED[number]
    least = []
    for limit in np.arange(1, 40 * max(LIMITS[number])) / 20:
        cut = [f"sum({value} * (1 - least(1, {limit} / n))), sum({value})" for value in values]
        counted = f"SELECT *, count(*) OVER (PARTITION BY person) AS n FROM ({view})"
        found = data.execute(f"SELECT {', '.join(cut)} FROM ({counted}) GROUP BY {key}").fetchall()
        cells = np.array(found, float).reshape(len(found), len(values), 2)
        find = partial(find_least_whole if limit == int(limit) else find_least_staircase, EPSILON, DELTA, limit)
        off = np.vectorize(find)(cells[..., 0])
        least.append(float(np.mean(off.sum(0) / cells[..., 1].sum(0))))
    return min(least)


COUNTED: Final = {4: ("o_orderpriority", ["1"]), 12: ("l_shipmode", ["h", "l"])}
"""Questions for numbers of rows: the key, and what is summed for each column."""

PEERS: Final = {
    "Qrlew": (("pyqrlew==0.9.27", f"duckdb=={duckdb.__version__}"), QRLEW),
    "SmartNoise": (("smartnoise-sql==1.0.10", "setuptools<81", f"duckdb=={duckdb.__version__}"), SMARTNOISE),
}


def main() -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "wholesale.duckdb")
        with duckdb.connect(place) as data:
            make_wholesale(data, SCALE)
            exact = {number: data.execute(QUERIES[number]).fetchall() for number in KEYS}
            least = {number: find_least(data, number) for number in COUNTED} | {5: find_least_sum(data)}
        ours = {number: ask_mosha(place, exact, LIMITS[number], number) for number in KEYS}
        for number, error in least.items():
            own, limit = ours[number]
            said = f"{own:.2%} ({limit})"
            rows.append(Row(f"error of question {number}", "any noise", error / own, 0.8, said, f"{error:.2%}"))
        untold = {number: ask_mosha(place, exact, [None], number) for number in KEYS}
        common = {"place": place, "epsilon": EPSILON, "delta": DELTA, "runs": RUNS, "limits": LIMITS, "keys": KEYS}
        values = [["lineitem", name, known] for name, known in VALUES.items()]
        values += [["orders", "o_orderpriority", PRIORITIES], ["nation", "n_name", NATIONS]]
        asked: dict[str, dict[str, Any]] = {
            "Qrlew": {"queries": FOR_QRLEW, "ranges": RANGES, "values": values},
            "SmartNoise": {"queries": FOR_SMARTNOISE},
        }
        for name, more in asked.items():
            try:
                theirs = ask_peer(name, Path(folder), exact, common | more)
                for number, highest in [(number, one) for number, tried in HIGHEST.items() for one in tried[1:]]:
                    wider: dict[str, Any] = common | widen(number, more, highest)
                    wider["queries"] = {number: wider["queries"][number]}
                    other = ask_peer(name, Path(folder), {number: exact[number]}, wider)[number]
                    theirs[number] = min(theirs[number], other, key=lambda one: math.inf if one[0] is None else one[0])
            except PeerUnavailable as reason:
                print(f"left out: {name}: {reason}")
                continue
            for number, (error, how) in theirs.items():
                said = f"{error:.2%} ({how})" if error is not None else f"not answered: {how}"[:60]
                half = None if error is not None and least.get(number, 0.0) > error / 2 else 2.0
                for (own, limit), bar in (ours[number], half), (untold[number], None):
                    ratio = error / own if error is not None else float("inf")
                    rows.append(Row(f"error of question {number}", name, ratio, bar, f"{own:.2%} ({limit})", said))
    return rows
