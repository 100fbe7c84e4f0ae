"""A wholesale supplier's data with the sizes and distributions of TPC-H, made by DuckDB from the row numbers alone."""

from __future__ import annotations

import duckdb

CUSTOMERS, ORDERS, SUPPLIERS, PARTS = 150_000, 1_500_000, 10_000, 200_000  # at scale 1
NATIONS = [
    "ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY", "INDIA", "INDONESIA",
    "IRAN", "IRAQ", "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "CHINA", "ROMANIA", "SAUDI ARABIA",
    "VIETNAM", "RUSSIA", "UNITED KINGDOM", "UNITED STATES",
]  # fmt: skip
REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
REGION_OF = [0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
MODES = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]


def make_wholesale(connection: duckdb.DuckDBPyConnection, scale: float) -> None:
    """The tables that questions 1, 4, 5, 6 and 12 read, with the columns that they read.

    A third of the customers have no orders, an order has one to seven lines, and days follow one another as in the
    published rules of the benchmark: ordered, shipped within 121 days, promised for day 30 to 90, received within 30.
    """
    customers, orders, suppliers, parts = (int(size * scale) for size in (CUSTOMERS, ORDERS, SUPPLIERS, PARTS))
    draw = lambda salt, size, of="i": f"(hash({of} * 32 + {salt}) % {size})::BIGINT"
    texts = lambda names: "[" + ", ".join(f"'{name}'" for name in names) + "]"
    connection.execute(
        f"CREATE TABLE region AS SELECT i AS r_regionkey, {texts(REGIONS)}[i + 1] AS r_name FROM range(5) t(i)"
    )
    connection.execute(
        f"CREATE TABLE nation AS SELECT i AS n_nationkey, {texts(NATIONS)}[i + 1] AS n_name, "
        f"{REGION_OF}[i + 1] AS n_regionkey FROM range(25) t(i)"
    )
    connection.execute(
        f"CREATE TABLE supplier AS SELECT i AS s_suppkey, {draw(1, 25)} AS s_nationkey FROM range({suppliers}) t(i)"
    )
    connection.execute(
        f"CREATE TABLE customer AS SELECT i AS c_custkey, {draw(2, 25)} AS c_nationkey FROM range({customers}) t(i)"
    )
    connection.execute(
        "CREATE TABLE orders AS SELECT i AS o_orderkey, "
        f"{draw(3, customers // 3)} * 3 + 1 + {draw(4, 2)} AS o_custkey, "
        f"DATE '1992-01-01' + {draw(5, 2406)}::INT AS o_orderdate, {texts(PRIORITIES)}[{draw(6, 5)} + 1] "
        f"AS o_orderpriority FROM range({orders}) t(i)"
    )
    connection.execute(
        f"""CREATE TABLE lineitem AS
        WITH numbered AS (
            SELECT o_orderkey, o_orderdate, unnest(range(1 + {draw(7, 7, "o_orderkey")})) AS n FROM orders
        ),
        drawn AS (SELECT o_orderkey, o_orderdate, o_orderkey * 8 + n AS i FROM numbered),
        bought AS (SELECT *, {draw(8, parts)} AS part, 1 + {draw(9, 50)} AS quantity,
            o_orderdate + (1 + {draw(10, 121)})::INT AS shipped FROM drawn)
        SELECT o_orderkey AS l_orderkey, {draw(11, suppliers)} AS l_suppkey, quantity::DOUBLE AS l_quantity,
            quantity * (90000 + part // 10 % 20001 + 100 * (part % 1000)) / 100 AS l_extendedprice,
            {draw(12, 11)} / 100 AS l_discount, {draw(13, 9)} / 100 AS l_tax,
            CASE WHEN shipped + (1 + {draw(14, 30)})::INT > DATE '1995-06-17' THEN 'N'
                WHEN {draw(15, 2)} = 0 THEN 'A' ELSE 'R' END AS l_returnflag,
            CASE WHEN shipped > DATE '1995-06-17' THEN 'O' ELSE 'F' END AS l_linestatus, shipped AS l_shipdate,
            o_orderdate + (30 + {draw(16, 61)})::INT AS l_commitdate,
            shipped + (1 + {draw(14, 30)})::INT AS l_receiptdate, {texts(MODES)}[{draw(17, 7)} + 1] AS l_shipmode
        FROM bought"""
    )
