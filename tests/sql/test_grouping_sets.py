"""ROLLUP, CUBE and GROUPING SETS: one release, whose groups add up to the last digit, with bars that hold."""

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.sql import query

WARDS, KINDS = ["a", "b", "c"], [1, 2]
COLUMNS = {"ward": {"keys": WARDS}, "kind": {"keys": KINDS}, "days": {"between": [0, 10]}}


@pytest.fixture
def visits():
    unit = mosha.Person("id", at_most=2)
    account = mosha.Ledger.memory().account("visits", unit=unit, epsilon=10.0, delta=1e-3)
    size = 600
    columns = {"id": [i // 2 for i in range(size)], "ward": [WARDS[i % 3] for i in range(size)]}
    columns |= {"kind": [1 + i % 2 for i in range(size)], "days": [float(i % 10) for i in range(size)]}
    return mosha.protect(pa.table(columns), unit=unit, account=account, schema={"columns": COLUMNS})


SETS = {
    "ROLLUP (ward, kind)": 6 + 3 + 1,
    "CUBE (ward, kind)": 6 + 3 + 2 + 1,
    "GROUPING SETS ((ward, kind), kind, ())": 6 + 2 + 1,
    "ward, ROLLUP (kind)": 6 + 3,
}


@pytest.mark.parametrize("sets", SETS)
def test_all_sets_come_from_one_release_and_add_up(visits, sets):
    answer = query(f"SELECT ward, kind, COUNT(*) AS n, SUM(days) AS s FROM visits GROUP BY {sets}", epsilon=1,
                   visits=visits)  # fmt: skip
    assert len(answer) == SETS[sets]
    assert visits.account.spent == pytest.approx(1)
    rows = list(answer.exact)
    finest = [row for row in rows if row["ward"] is not None and row["kind"] is not None]
    for row in rows:
        inside = [one for one in finest if row["ward"] in {None, one["ward"]} and row["kind"] in {None, one["kind"]}]
        for name in ("n", "s"):
            assert row[name] == pytest.approx(sum(one[name] for one in inside), rel=1e-12)


def test_the_bar_of_a_sum_of_cells_holds_and_is_not_the_bar_of_a_cell():
    """False alarms: at most 33 of 150 sums may miss bars of 95%; if each misses with 5%, more do once in 1e11."""
    unit = mosha.Row()
    missed, narrow = 0, 0
    for _ in range(150):
        account = mosha.Ledger.memory().account("visits", unit=unit, epsilon=1.0)
        columns = {"ward": WARDS * 4, "kind": KINDS * 6}
        table = mosha.protect(pa.table(columns), unit=unit, account=account, schema={"columns": {
            name: COLUMNS[name] for name in columns}})  # fmt: skip
        answer = query("SELECT ward, kind, COUNT(*) AS n FROM t GROUP BY CUBE (ward, kind)", epsilon=1, t=table)
        total, bar = answer.exact.table["n"][-1], answer.error(0.95)["n"]
        missed += abs(total - 12) > bar[-1]
        narrow += abs(total - 12) > bar[0]  # the bar of one cell: too narrow for the sum of six
    assert missed <= 33
    assert narrow > 20  # a sum of six misses it more than three times in ten


def test_many_cells_have_bars_that_grow_more_slowly_than_their_number():
    unit = mosha.Row()
    account = mosha.Ledger.memory().account("visits", unit=unit, epsilon=1.0)
    keys = list(range(400))
    table = mosha.protect(
        pa.table({"k": [1, 2]}), unit=unit, account=account, schema={"columns": {"k": {"keys": keys}}}
    )
    bars = np.array(query("SELECT k, COUNT(*) AS n FROM t GROUP BY ROLLUP (k)", epsilon=1, t=table).error()["n"])
    assert bars[-1] < 200 * bars[0]


REFUSED = {
    "SELECT ward, AVG(days) FROM visits GROUP BY ROLLUP (ward)": "SUM",
    "SELECT ward, COUNT(DISTINCT id) FROM visits GROUP BY ROLLUP (ward)": "add groups up",
    "SELECT days, COUNT(*) FROM visits GROUP BY CUBE (days)": "listed",
    "SELECT ward, COUNT(*) FROM visits GROUP BY CUBE (ward, kind, ward, kind, ward, kind, ward)": "sets of keys",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_cannot_be_added_up_is_refused_unpaid(visits, sql):
    with pytest.raises(mosha.errors.Refused, match=REFUSED[sql]) as refusal:
        query(sql, epsilon=1, delta=1e-6, visits=visits)
    assert refusal.value.nearest
    assert visits.account.spent == 0
