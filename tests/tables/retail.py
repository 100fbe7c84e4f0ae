"""A retailer's sales in the shape of TPC-DS, small and random, and twenty questions about them by public dimensions."""

import random
from datetime import date, timedelta
from typing import Any

import pyarrow as pa

CATEGORIES = ["Books", "Home", "Music", "Sports"]
BRANDS = [f"brand {i}" for i in range(6)]
STORES = ["able", "bar", "eing", "ese"]
CITIES = ["Fairview", "Midway"]
STATES = ["TN", "OH", "TX"]
YEARS = [1998, 1999, 2000, 2001]
DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
FIRST = date(1998, 1, 1)

PUBLIC_COLUMNS = {
    "item": {"i_category": {"keys": CATEGORIES}, "i_brand": {"keys": BRANDS}, "i_class": {"keys": ["a", "b", "c"]},
             "i_manufact_id": {"keys": [1, 2, 3]}},
    "store": {"s_store_name": {"keys": STORES}, "s_state": {"keys": STATES}, "s_city": {"keys": CITIES}},
    "date_dim": {"d_year": {"keys": YEARS}, "d_moy": {"keys": list(range(1, 13))}, "d_qoy": {"keys": [1, 2, 3, 4]}},
}  # fmt: skip
SALES = {
    "ss_quantity": {"between": [0, 100]},
    "ss_list_price": {"between": [0, 200]},
    "ss_sales_price": {"between": [0, 200]},
    "ss_coupon_amt": {"between": [0, 50]},
    "ss_ext_sales_price": {"between": [0, 20_000]},
    "ss_net_profit": {"between": [-10_000, 10_000]},
}
NAMES = {
    "date_dim": "d_date_sk d_date d_year d_moy d_qoy d_dom d_day_name",
    "time_dim": "t_time_sk t_hour t_minute",
    "item": "i_item_sk i_item_id i_category i_class i_brand i_manufact_id i_current_price",
    "store": "s_store_sk s_store_name s_state s_city s_gmt_offset",
    "promotion": "p_promo_sk p_channel_email p_channel_event",
    "customer": "c_customer_sk c_birth_year c_gender c_education c_dependents",
    "store_sales": "ss_sold_date_sk ss_sold_time_sk ss_item_sk ss_customer_sk ss_store_sk ss_promo_sk ss_ticket_number "
    "ss_quantity ss_list_price ss_sales_price ss_coupon_amt ss_ext_sales_price ss_net_profit",
}


def make_tables(customers: Any = 80, seed: Any = 5) -> dict[Any, Any]:
    g = random.Random(seed)
    days = [FIRST + timedelta(days=7 * i) for i in range(4 * 52)]
    rows = {
        "date_dim": [
            (i, day, day.year, day.month, (day.month + 2) // 3, day.day, g.choice(DAYS)) for i, day in enumerate(days)
        ],
        "time_dim": [(i, i // 2, 30 * (i % 2)) for i in range(48)],
        "item": [
            (i, f"item {i}", CATEGORIES[i % 4], "abc"[i % 3], BRANDS[i % 6], 1 + i % 3, 1.0 + 5 * (i % 9))
            for i in range(40)
        ],
        "store": [(i, STORES[i], STATES[i % 3], CITIES[i % 2], -5.0 - i % 2) for i in range(4)],
        "promotion": [(i, "NY"[i % 2], "NY"[i // 2]) for i in range(4)],
        "customer": [
            (i, g.randrange(1930, 1990), g.choice("MF"), g.choice(["College", "Primary"]), g.randrange(7))
            for i in range(customers)
        ],
    }
    sales = []
    for ticket in range(customers * 10):
        who, store, day = g.randrange(customers), g.randrange(4), g.randrange(len(days))
        for _ in range(g.randrange(1, 5)):
            quantity, price = g.randrange(1, 100), round(g.random() * 190, 2)
            sales.append(
                (day, g.randrange(48), g.randrange(40), who, store, g.randrange(4), ticket, quantity, price + 5, price,
                 round(g.random() * 50, 2), round(quantity * price, 2), round(g.random() * 4000 - 1000, 2))
            )  # fmt: skip
    rows["store_sales"] = sales
    return {
        name: pa.table(dict(zip(columns.split(), map(list, zip(*rows[name], strict=True)), strict=True)))  # type: ignore[misc]
        for name, columns in NAMES.items()
    }


def make_schema() -> dict[str, Any]:
    tables = {name: {"public": True} for name in NAMES}
    for name, columns in PUBLIC_COLUMNS.items():
        tables[name]["columns"] = columns  # type: ignore[assignment]
    tables["customer"] = {"rows_of": "customer"}  # type: ignore[dict-item]
    tables["store_sales"] = {
        "rows_of": "customer", "foreign_keys": {"ss_customer_sk": "customer.c_customer_sk"}, "columns": SALES,  # type: ignore[dict-item]
    }  # fmt: skip
    return {"persons": {"customer": {"key": "customer.c_customer_sk", "at_most": 80}}, "tables": tables}


BY_DAY = "ss_sold_date_sk = d_date_sk"
BY_ITEM = "ss_item_sk = i_item_sk"
BY_STORE = "ss_store_sk = s_store_sk"
QUERIES = {
    "brands in one month": f"""select d_year, i_brand, sum(ss_ext_sales_price) as revenue
        from date_dim, store_sales, item where {BY_DAY} and {BY_ITEM} and i_manufact_id = 2 and d_moy = 11
        group by d_year, i_brand order by d_year, revenue desc, i_brand limit 100""",
    "averages by demographics and promotion": f"""select i_category, avg(ss_quantity) as quantity,
        avg(ss_list_price) as list_price, avg(ss_coupon_amt) as coupon, avg(ss_sales_price) as price
        from store_sales, customer, date_dim, item, promotion where {BY_DAY} and {BY_ITEM}
        and ss_customer_sk = c_customer_sk and ss_promo_sk = p_promo_sk and c_gender = 'F' and c_education = 'College'
        and (p_channel_email = 'N' or p_channel_event = 'N') and d_year = 2000
        group by i_category order by i_category limit 100""",
    "alternatives of demographics and prices": f"""select avg(ss_quantity), avg(ss_ext_sales_price),
        sum(ss_ext_sales_price) from store_sales, store, customer, date_dim where {BY_STORE} and {BY_DAY}
        and d_year = 2001 and ((ss_customer_sk = c_customer_sk and c_gender = 'M' and ss_sales_price between 100.00
        and 150.00) or (ss_customer_sk = c_customer_sk and c_gender = 'F' and ss_sales_price between 50.00
        and 100.00 and c_dependents = 3))""",
    "brands and makers in a month": f"""select i_brand, i_manufact_id, sum(ss_ext_sales_price) as ext_price
        from date_dim, store_sales, item, store where {BY_DAY} and {BY_ITEM} and {BY_STORE} and d_moy = 11
        and d_year = 1999 and s_state <> 'TX' group by i_brand, i_manufact_id order by ext_price desc, i_brand""",
    "averages in states with totals": f"""select i_category, s_state, grouping(s_state) as g_state,
        avg(ss_quantity) as quantity from store_sales, date_dim, store, item where {BY_DAY} and {BY_ITEM}
        and {BY_STORE} and d_year = 2000 and s_state in ('TN', 'OH') group by rollup (i_category, s_state)
        order by i_category, s_state limit 100""",
    "margins ranked within a level": f"""select sum(ss_net_profit) / sum(ss_ext_sales_price) as margin, i_category,
        i_class, rank() over (partition by i_category order by sum(ss_net_profit) / sum(ss_ext_sales_price)) as place
        from store_sales, date_dim, item, store where d_year = 2001 and {BY_DAY} and {BY_ITEM} and {BY_STORE}
        and s_state in ('TN', 'TX') group by i_category, i_class order by i_category, place""",
    "categories in a month": f"""select d_year, i_category, sum(ss_ext_sales_price) from date_dim dt, store_sales, item
        where dt.d_date_sk = store_sales.ss_sold_date_sk and {BY_ITEM} and dt.d_moy = 12 and dt.d_year = 1998
        group by dt.d_year, item.i_category order by sum(ss_ext_sales_price) desc, d_year, i_category limit 100""",
    "days of the week as columns": f"""select s_store_name,
        sum(case when (d_day_name = 'Sunday') then ss_sales_price else null end) as sun_sales,
        sum(case when (d_day_name = 'Monday') then ss_sales_price else null end) as mon_sales,
        sum(case when (d_day_name = 'Friday') then ss_sales_price else null end) as fri_sales
        from date_dim, store_sales, store where {BY_DAY} and {BY_STORE} and s_gmt_offset = -5 and d_year = 2000
        group by s_store_name order by s_store_name, sun_sales limit 100""",
    "quantity under alternatives": f"""select sum(ss_quantity) from store_sales, store, customer, date_dim
        where {BY_STORE} and {BY_DAY} and d_year = 1998 + 1 and ss_customer_sk = c_customer_sk
        and ((c_education = 'College' and ss_sales_price between 100.00 and 150.00)
        or (c_education = 'Primary' and ss_sales_price between 150.00 and 200.00))""",
    "years that are computed": f"""select d_year, s_city, count(*) as lines, sum(ss_net_profit) as profit
        from store_sales, date_dim, store where {BY_DAY} and {BY_STORE} and d_dom between 1 and 2
        and d_year in (1998, 1998 + 1, 1998 + 2) group by d_year, s_city order by d_year, s_city""",
    "quarters against their mean": f"""select * from (select i_manufact_id, d_qoy, sum(ss_sales_price) as sum_sales,
        avg(sum(ss_sales_price)) over (partition by i_manufact_id) as avg_sales from item, store_sales, date_dim, store
        where {BY_ITEM} and {BY_DAY} and {BY_STORE} and d_year in (1999, 1999 + 1) group by i_manufact_id, d_qoy) as q
        where avg_sales > 0 order by avg_sales, sum_sales, i_manufact_id limit 100""",
    "share of promotions": f"""select sum(case when p_channel_email = 'Y' then ss_ext_sales_price else 0 end)
        / sum(ss_ext_sales_price) * 100 as share from store_sales, store, promotion, date_dim, item where {BY_DAY}
        and {BY_STORE} and ss_promo_sk = p_promo_sk and {BY_ITEM} and s_gmt_offset = -5 and d_year = 1998
        and d_moy = 11""",
    "cube of sales": f"""select i_category, d_year, s_store_name, sum(coalesce(ss_sales_price * ss_quantity, 0))
        as sales from store_sales, date_dim, store, item where {BY_DAY} and {BY_ITEM} and {BY_STORE}
        and d_year in (2000, 2001) group by rollup (i_category, d_year, s_store_name)""",
    "tickets by their size": f"""select lines, count(*) as people from (select ss_customer_sk, count(*) as lines
        from store_sales, date_dim, store where {BY_DAY} and {BY_STORE} and (d_dom between 1 and 3 or d_dom between 25
        and 28) and d_year in (1999, 1999 + 1, 1999 + 2) and s_city = 'Fairview' group by ss_customer_sk) as t
        where lines between 1 and 5 group by lines order by lines""",
    "half hours": f"""select count(*) as sold from store_sales, time_dim, store where ss_sold_time_sk = t_time_sk
        and {BY_STORE} and time_dim.t_hour = 8 and time_dim.t_minute >= 30 and store.s_store_name = 'ese'""",
    "several half hours at once": f"""select * from (select count(*) as h8 from store_sales, time_dim, store
        where ss_sold_time_sk = t_time_sk and {BY_STORE} and t_hour = 8) as s1, (select count(*) as h9 from store_sales,
        time_dim, store where ss_sold_time_sk = t_time_sk and {BY_STORE} and t_hour = 9) as s2""",
    "shares within a class": f"""select i_category, i_class, sum(ss_ext_sales_price) as itemrevenue,
        sum(ss_ext_sales_price) * 100 / sum(sum(ss_ext_sales_price)) over (partition by i_class) as revenueratio
        from store_sales, item, date_dim where {BY_ITEM} and i_category in ('Sports', 'Books', 'Home') and {BY_DAY}
        and d_date between cast('1999-02-22' as date) and (cast('1999-02-22' as date) + interval 30 day)
        group by i_category, i_class order by i_category, i_class, revenueratio""",
    "dear items": f"""select s_state, count(*) as cnt from store_sales, customer, date_dim d, item i, store
        where {BY_STORE} and ss_customer_sk = c_customer_sk and ss_sold_date_sk = d.d_date_sk and {BY_ITEM}
        and d.d_year = 2001 and i.i_current_price > 1.2 * (select avg(j.i_current_price) from item j
        where j.i_category = i.i_category) group by s_state having count(*) >= 10 order by cnt, s_state""",
    "days that a subquery lists": f"""select i_category, sum(ss_ext_sales_price) as revenue from store_sales, item,
        date_dim where {BY_ITEM} and {BY_DAY} and d_date in (select d_date from date_dim
        where d_date >= '2000-01-03' and d_date <= '2000-06-30') group by i_category""",
    "years beside their year before": f"""with year_total as (select s_store_name, d_year, sum(ss_net_profit) as total
        from store_sales, date_dim, store where {BY_DAY} and {BY_STORE} group by s_store_name, d_year)
        select a.s_store_name, b.total / a.total as growth from year_total a, year_total b
        where a.s_store_name = b.s_store_name and a.d_year = 1999 and b.d_year = 1999 + 1""",
}
SAID = {"tickets by their size": {"keys": {"lines": [1, 2, 3, 4, 5]}}}
"""Declared keys of what a query computes."""
