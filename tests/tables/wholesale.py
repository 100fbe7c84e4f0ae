"""A wholesale supplier's database in the schema of TPC-H, small and random, and its 22 questions at full length."""

import random
from datetime import date, timedelta
from typing import Any

import pyarrow as pa

NATIONS = ["ALGERIA", "BRAZIL", "CANADA", "FRANCE", "GERMANY", "INDIA", "CHINA", "SAUDI ARABIA"]
REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE"]
MODES = ["MAIL", "SHIP", "AIR", "AIR REG", "TRUCK"]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
FIRST = date(1992, 1, 1)

KEYS = {
    "customer": ("c_custkey", {"c_nationkey": "nation.n_nationkey"}),
    "orders": ("o_orderkey", {"o_custkey": "customer.c_custkey"}),
    "lineitem": (None, {"l_orderkey": "orders.o_orderkey"}),
}
COLUMNS = {
    "lineitem": {
        "l_quantity": {"between": [0, 50]},
        "l_extendedprice": {"between": [0, 100_000]},
        "l_discount": {"between": [0, 0.1]},
        "l_tax": {"between": [0, 0.08]},
        "l_returnflag": {"keys": ["A", "N", "R"]},
        "l_linestatus": {"keys": ["F", "O"]},
        "l_shipmode": {"keys": MODES},
    },
    "orders": {"o_orderpriority": {"keys": PRIORITIES}, "o_totalprice": {"between": [0, 500_000]}},
    "customer": {"c_acctbal": {"between": [-1000, 10_000]}},
    "nation": {"n_name": {"keys": NATIONS}},
    "partsupp": {"ps_supplycost": {"between": [0, 1000]}},
}


def make_tables(customers: Any = 60, seed: Any = 3) -> dict[Any, Any]:
    g = random.Random(seed)
    day = lambda: FIRST + timedelta(days=g.randrange(2500))
    price = lambda high: round(g.random() * high, 2)
    types = ["PROMO BRUSHED", "ECONOMY ANODIZED STEEL", "STANDARD TIN", "MEDIUM BRASS"]
    part = [
        (i, f"{g.choice(['green', 'blush', 'forest'])} part", f"Manufacturer#{g.randrange(1, 6)}",
         f"Brand#{g.choice(['12', '23', '34', '45'])}", g.choice(types), g.choice([3, 9, 14, 15, 19, 23, 36, 45, 49]),
         g.choice(["SM CASE", "MED BOX", "LG CASE", "JUMBO PKG"]), price(2000), "-")
        for i in range(40)
    ]  # fmt: skip
    supplier = [
        (i, f"Supplier#{i}", f"{i} Street", i, f"1{i}-555", price(9000), "fine" if i else "Customer: Complaints")
        for i in range(8)
    ]
    partsupp = [(p[0], s, g.randrange(9000), price(1000), "-") for p in part for s in g.sample(range(8), 4)]
    customer = [
        (i, f"Customer#{i}", f"{i} Road", g.randrange(8), f"{g.choice([13, 17, 18, 23, 29, 30, 31])}-555-{i}",
         price(9000), g.choice(["BUILDING", "MACHINERY"]), "-")
        for i in range(customers)
    ]  # fmt: skip
    orders, lines = [], []
    for key in range(customers * 8):
        ordered = day()
        who = g.randrange(customers)
        comment = g.choice(["special requests", "plain"])
        orders.append((key, who, g.choice("FOP"), price(400_000), ordered, g.choice(PRIORITIES), "Clerk#1", 0, comment))
        for number in range(g.randrange(1, 6)):
            p, s, *_ = g.choice(partsupp)
            dates = [ordered + timedelta(days=g.randrange(1, 120)) for _ in range(3)]
            lines.append(
                (key, p, s, number, float(g.randrange(1, 51)), price(90_000), g.randrange(11) / 100,
                 g.randrange(9) / 100, g.choice("ANR"), g.choice("FO"), *dates,
                 g.choice(["DELIVER IN PERSON", "NONE"]), g.choice(MODES), "-")
            )  # fmt: skip
    names = {
        "region": "r_regionkey r_name r_comment",
        "nation": "n_nationkey n_name n_regionkey n_comment",
        "part": "p_partkey p_name p_mfgr p_brand p_type p_size p_container p_retailprice p_comment",
        "supplier": "s_suppkey s_name s_address s_nationkey s_phone s_acctbal s_comment",
        "partsupp": "ps_partkey ps_suppkey ps_availqty ps_supplycost ps_comment",
        "customer": "c_custkey c_name c_address c_nationkey c_phone c_acctbal c_mktsegment c_comment",
        "orders": "o_orderkey o_custkey o_orderstatus o_totalprice o_orderdate o_orderpriority o_clerk "
        "o_shippriority o_comment",
        "lineitem": "l_orderkey l_partkey l_suppkey l_linenumber l_quantity l_extendedprice l_discount l_tax "
        "l_returnflag l_linestatus l_shipdate l_commitdate l_receiptdate l_shipinstruct l_shipmode l_comment",
    }
    rows = {
        "region": [(i, name, "-") for i, name in enumerate(REGIONS)],
        "nation": [(i, name, i % 4, "-") for i, name in enumerate(NATIONS)], "part": part,
        "supplier": supplier, "partsupp": partsupp, "customer": customer, "orders": orders,
        "lineitem": lines,
    }  # fmt: skip
    return {
        name: pa.table(dict(zip(columns.split(), map(list, zip(*rows[name], strict=True)), strict=True)))  # type: ignore[misc]
        for name, columns in names.items()
    }


def make_schema(tables: Any) -> dict[str, Any]:
    said = {}
    for name in tables:
        said[name] = {"rows_of": "customer", "foreign_keys": KEYS[name][1]} if name in KEYS else {"public": True}
        if name in COLUMNS:
            said[name]["columns"] = COLUMNS[name]  # type: ignore[assignment]
    return {"persons": {"customer": {"key": "customer.c_custkey", "at_most": 100}}, "tables": said}


REVENUE = "l_extendedprice * (1 - l_discount)"
QUERIES = {
    1: f"""select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price,
        sum({REVENUE}) as sum_disc_price, sum({REVENUE} * (1 + l_tax)) as sum_charge, avg(l_quantity) as avg_qty,
        avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc, count(*) as count_order from lineitem
        where l_shipdate <= date '1998-12-01' - interval '90' day group by l_returnflag, l_linestatus
        order by l_returnflag, l_linestatus""",
    2: """select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
        from part, supplier, partsupp, nation, region where p_partkey = ps_partkey and s_suppkey = ps_suppkey
        and p_size = 15 and p_type like '%BRASS' and s_nationkey = n_nationkey and n_regionkey = r_regionkey
        and r_name = 'EUROPE' and ps_supplycost = (select min(ps_supplycost) from partsupp, supplier, nation, region
        where p_partkey = ps_partkey and s_suppkey = ps_suppkey and s_nationkey = n_nationkey
        and n_regionkey = r_regionkey and r_name = 'EUROPE')
        order by s_acctbal desc, n_name, s_name, p_partkey limit 100""",
    3: f"""select l_orderkey, sum({REVENUE}) as revenue, o_orderdate, o_shippriority from customer, orders, lineitem
        where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
        and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
        group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate limit 10""",
    4: """select o_orderpriority, count(*) as order_count from orders where o_orderdate >= date '1993-07-01'
        and o_orderdate < date '1993-07-01' + interval '3' month and exists (select * from lineitem
        where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
        group by o_orderpriority order by o_orderpriority""",
    5: f"""select n_name, sum({REVENUE}) as revenue from customer, orders, lineitem, supplier, nation, region
        where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey and c_nationkey = s_nationkey
        and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'ASIA'
        and o_orderdate >= date '1994-01-01' and o_orderdate < date '1994-01-01' + interval '1' year
        group by n_name order by revenue desc""",
    6: """select sum(l_extendedprice * l_discount) as revenue from lineitem where l_shipdate >= date '1994-01-01'
        and l_shipdate < date '1994-01-01' + interval '1' year and l_discount between 0.06 - 0.01 and 0.06 + 0.01
        and l_quantity < 24""",
    7: f"""select supp_nation, cust_nation, l_year, sum(volume) as revenue from (select n1.n_name as supp_nation,
        n2.n_name as cust_nation, extract(year from l_shipdate) as l_year, {REVENUE} as volume
        from supplier, lineitem, orders, customer, nation n1, nation n2 where s_suppkey = l_suppkey
        and o_orderkey = l_orderkey and c_custkey = o_custkey and s_nationkey = n1.n_nationkey
        and c_nationkey = n2.n_nationkey and ((n1.n_name = 'FRANCE' and n2.n_name = 'GERMANY')
        or (n1.n_name = 'GERMANY' and n2.n_name = 'FRANCE'))
        and l_shipdate between date '1995-01-01' and date '1996-12-31') as shipping
        group by supp_nation, cust_nation, l_year order by supp_nation, cust_nation, l_year""",
    8: f"""select o_year, sum(case when nation = 'BRAZIL' then volume else 0 end) / sum(volume) as mkt_share
        from (select extract(year from o_orderdate) as o_year, {REVENUE} as volume, n2.n_name as nation
        from part, supplier, lineitem, orders, customer, nation n1, nation n2, region where p_partkey = l_partkey
        and s_suppkey = l_suppkey and l_orderkey = o_orderkey and o_custkey = c_custkey
        and c_nationkey = n1.n_nationkey and n1.n_regionkey = r_regionkey and r_name = 'AMERICA'
        and s_nationkey = n2.n_nationkey and o_orderdate between date '1995-01-01' and date '1996-12-31'
        and p_type = 'ECONOMY ANODIZED STEEL') as all_nations group by o_year order by o_year""",
    9: f"""select nation, o_year, sum(amount) as sum_profit from (select n_name as nation,
        extract(year from o_orderdate) as o_year, {REVENUE} - ps_supplycost * l_quantity as amount
        from part, supplier, lineitem, partsupp, orders, nation where s_suppkey = l_suppkey and ps_suppkey = l_suppkey
        and ps_partkey = l_partkey and p_partkey = l_partkey and o_orderkey = l_orderkey and s_nationkey = n_nationkey
        and p_name like '%green%') as profit group by nation, o_year order by nation, o_year desc""",
    10: f"""select c_custkey, c_name, sum({REVENUE}) as revenue, c_acctbal, n_name, c_address, c_phone, c_comment
        from customer, orders, lineitem, nation where c_custkey = o_custkey and l_orderkey = o_orderkey
        and o_orderdate >= date '1993-10-01' and o_orderdate < date '1993-10-01' + interval '3' month
        and l_returnflag = 'R' and c_nationkey = n_nationkey group by c_custkey, c_name, c_acctbal, c_phone, n_name,
        c_address, c_comment order by revenue desc limit 20""",
    11: """select ps_partkey, sum(ps_supplycost * ps_availqty) as value from partsupp, supplier, nation
        where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY' group by ps_partkey
        having sum(ps_supplycost * ps_availqty) > (select sum(ps_supplycost * ps_availqty) * 0.0001
        from partsupp, supplier, nation where ps_suppkey = s_suppkey and s_nationkey = n_nationkey
        and n_name = 'GERMANY') order by value desc""",
    12: """select l_shipmode, sum(case when o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH' then 1 else 0
        end) as high_line_count, sum(case when o_orderpriority <> '1-URGENT' and o_orderpriority <> '2-HIGH'
        then 1 else 0 end) as low_line_count from orders, lineitem where o_orderkey = l_orderkey
        and l_shipmode in ('MAIL', 'SHIP') and l_commitdate < l_receiptdate and l_shipdate < l_commitdate
        and l_receiptdate >= date '1994-01-01' and l_receiptdate < date '1994-01-01' + interval '1' year
        group by l_shipmode order by l_shipmode""",
    13: """select c_count, count(*) as custdist from (select c_custkey, count(o_orderkey) from customer
        left outer join orders on c_custkey = o_custkey and o_comment not like '%special%requests%'
        group by c_custkey) as c_orders (c_custkey, c_count) group by c_count order by custdist desc, c_count desc""",
    14: f"""select 100.00 * sum(case when p_type like 'PROMO%' then {REVENUE} else 0 end) / sum({REVENUE})
        as promo_revenue from lineitem, part where l_partkey = p_partkey and l_shipdate >= date '1995-09-01'
        and l_shipdate < date '1995-09-01' + interval '1' month""",
    15: f"""with revenue (supplier_no, total_revenue) as (select l_suppkey, sum({REVENUE}) from lineitem
        where l_shipdate >= date '1996-01-01' and l_shipdate < date '1996-01-01' + interval '3' month
        group by l_suppkey) select s_suppkey, s_name, s_address, s_phone, total_revenue from supplier, revenue
        where s_suppkey = supplier_no and total_revenue = (select max(total_revenue) from revenue)
        order by s_suppkey""",
    16: """select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt from partsupp, part
        where p_partkey = ps_partkey and p_brand <> 'Brand#45' and p_type not like 'MEDIUM POLISHED%'
        and p_size in (49, 14, 23, 45, 19, 3, 36, 9) and ps_suppkey not in (select s_suppkey from supplier
        where s_comment like '%Customer%Complaints%') group by p_brand, p_type, p_size
        order by supplier_cnt desc, p_brand, p_type, p_size""",
    17: """select sum(l_extendedprice) / 7.0 as avg_yearly from lineitem, part where p_partkey = l_partkey
        and p_brand = 'Brand#23' and p_container = 'MED BOX' and l_quantity < (select 0.2 * avg(l_quantity)
        from lineitem where l_partkey = p_partkey)""",
    18: """select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
        from customer, orders, lineitem where o_orderkey in (select l_orderkey from lineitem group by l_orderkey
        having sum(l_quantity) > 300) and c_custkey = o_custkey and o_orderkey = l_orderkey group by c_name, c_custkey,
        o_orderkey, o_orderdate, o_totalprice order by o_totalprice desc, o_orderdate limit 100""",
    19: f"""select sum({REVENUE}) as revenue from lineitem, part where (p_partkey = l_partkey
        and p_brand = 'Brand#12' and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG') and l_quantity >= 1
        and l_quantity <= 1 + 10 and p_size between 1 and 5 and l_shipmode in ('AIR', 'AIR REG')
        and l_shipinstruct = 'DELIVER IN PERSON') or (p_partkey = l_partkey and p_brand = 'Brand#23'
        and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK') and l_quantity >= 10
        and l_quantity <= 10 + 10 and p_size between 1 and 10 and l_shipmode in ('AIR', 'AIR REG')
        and l_shipinstruct = 'DELIVER IN PERSON') or (p_partkey = l_partkey and p_brand = 'Brand#34'
        and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG') and l_quantity >= 20
        and l_quantity <= 20 + 10 and p_size between 1 and 15 and l_shipmode in ('AIR', 'AIR REG')
        and l_shipinstruct = 'DELIVER IN PERSON')""",
    20: """select s_name, s_address from supplier, nation where s_suppkey in (select ps_suppkey from partsupp
        where ps_partkey in (select p_partkey from part where p_name like 'forest%') and ps_availqty > (
        select 0.5 * sum(l_quantity) from lineitem where l_partkey = ps_partkey and l_suppkey = ps_suppkey
        and l_shipdate >= date '1994-01-01' and l_shipdate < date '1994-01-01' + interval '1' year))
        and s_nationkey = n_nationkey and n_name = 'CANADA' order by s_name""",
    21: """select s_name, count(*) as numwait from supplier, lineitem l1, orders, nation where s_suppkey = l1.l_suppkey
        and o_orderkey = l1.l_orderkey and o_orderstatus = 'F' and l1.l_receiptdate > l1.l_commitdate and exists (
        select * from lineitem l2 where l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey)
        and not exists (select * from lineitem l3 where l3.l_orderkey = l1.l_orderkey
        and l3.l_suppkey <> l1.l_suppkey and l3.l_receiptdate > l3.l_commitdate) and s_nationkey = n_nationkey
        and n_name = 'SAUDI ARABIA' group by s_name order by numwait desc, s_name limit 100""",
    22: """select cntrycode, count(*) as numcust, sum(c_acctbal) as totacctbal from (select substring(c_phone from 1
        for 2) as cntrycode, c_acctbal from customer where substring(c_phone from 1 for 2)
        in ('13', '31', '23', '29', '30', '18', '17') and c_acctbal > (select avg(c_acctbal) from customer
        where c_acctbal > 0.00 and substring(c_phone from 1 for 2) in ('13', '31', '23', '29', '30', '18', '17'))
        and not exists (select * from orders where o_custkey = c_custkey)) as custsale
        group by cntrycode order by cntrycode""",
}

YEARS = list(range(1992, 2000))
SAID: dict[str, Any] = {
    7: {  # type: ignore[dict-item]
        "ranges": {"volume": (0, 1e5)},
        "keys": {"l_year": [1995, 1996], "supp_nation": NATIONS, "cust_nation": NATIONS},
    },
    8: {"ranges": {"volume": (0, 1e5)}, "keys": {"o_year": [1995, 1996]}},  # type: ignore[dict-item]
    9: {"ranges": {"amount": (-5e4, 1e5)}, "keys": {"o_year": YEARS, "nation": NATIONS}},  # type: ignore[dict-item]
    13: {"keys": {"c_count": list(range(20))}},  # type: ignore[dict-item]
    22: {"keys": {"cntrycode": ["13", "31", "23", "29", "30", "18", "17"]}},  # type: ignore[dict-item]
    21: {"keys": {"s_name": [f"Supplier#{i}" for i in range(8)]}},  # type: ignore[dict-item]
}  # fmt: skip
"""Declared ranges and keys of what a query computes."""
