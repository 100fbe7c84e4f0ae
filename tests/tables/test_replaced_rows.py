"""One row replaced by another: the number of rows is public, and a mean has the noise of its sum alone."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import mosha
from mosha.core.budget import Budget
from mosha.noise import SecureRandom
from mosha.tables import aggregates as ask
from mosha.tables.mechanisms.joint_noise import REACH, BoxNoise, GaussianNoise
from tests.noise.goodness import laplace_below, quantile_events, rejects

ONE = mosha.Row(neighbors="replace-one")  # type: ignore[arg-type]
N = 4000


def table(unit: Any = ONE, **options: Any) -> Any:
    ages = pa.array([None if i % 40 == 0 else float(i % 90) for i in range(N)])
    return mosha.protect(pa.table({"age": ages, "ward": ["A", "B"] * (N // 2)}), unit=unit, **options)


def account(unit: Any = ONE) -> Any:
    return mosha.Ledger.memory().account("a", unit=unit, epsilon=8)


def test_the_number_of_rows_costs_nothing_and_has_no_noise() -> None:
    paying = account()
    answer = table(account=paying).count().release(epsilon=0.5)
    assert answer.table["count"] == [N]
    assert answer.error()["count"] == [0.0]
    assert paying.spent == 0


@pytest.mark.parametrize(
    "ask_rows",
    [
        lambda t: t.where(mosha.col("age") > 3).count(),
        lambda t: t.group_by("ward", keys=["A", "B"]).count(),
        lambda t: t.aggregate(n=ask.count("age")),
    ],
    ids=["filtered", "grouped", "missing"],
)
def test_any_other_number_of_rows_is_paid_for(ask_rows: Any) -> None:
    assert mosha.accounting.epsilon(ask_rows(table()).measurement(Budget(epsilon=0.5)).event, 0) > 0.49


@pytest.mark.parametrize("unit", [mosha.Row(), mosha.Row(at_most=2, neighbors="replace-one")], ids=repr)  # type: ignore[arg-type]
def test_rows_are_private_where_a_unit_may_bring_another_number_of_them(unit: Any) -> None:
    assert mosha.accounting.epsilon(table(unit).count().measurement(Budget(epsilon=0.5)).event, 0) > 0.49


def test_a_join_that_may_drop_rows_hides_their_number() -> None:
    wards = mosha.tables.public_table(pa.table({"ward": ["A"], "floor": [3]}))
    dropped, all_rows = (table().join_public(wards, on="ward", how=how).count() for how in ("inner", "left"))
    assert mosha.accounting.epsilon(dropped.measurement(Budget(epsilon=0.5)).event, 0) > 0.49
    assert mosha.accounting.epsilon(all_rows.measurement(Budget(epsilon=0.5)).event, 0) == 0


@pytest.mark.parametrize("budget", [{"epsilon": 0.1}, {"rho": 0.005}], ids=repr)
def test_a_mean_has_the_noise_of_the_textbook(budget: Any) -> None:
    filled = table().compute(age=mosha.col("age").coalesce(50))
    question = filled.mean("age", between=(0, 100))
    textbook = math.log(20) / 0.1 if "epsilon" in budget else 1.95996 / math.sqrt(2 * 0.005)
    assert question.forecast(rows=N, **budget)["mean"][0] == pytest.approx(textbook * 100 / N, rel=0.01)


def test_a_mean_of_a_column_with_gaps_has_that_noise_in_its_sum() -> None:
    (part,) = table().mean("age", between=(0, 100)).parts(Budget(epsilon=0.1))
    assert part.noise.shared
    count, total = part.reach(table().mean("age", between=(0, 100)).frame, None)
    assert count == 2
    assert part.noise.deviation(total) == pytest.approx(math.sqrt(2) * total / 0.1)


def test_two_channels_have_one_laplace_law_each_whose_price_is_that_of_one() -> None:
    """False alarms: 1e-10; scales that are 20% too small or 25% too large are rejected."""
    noise = BoxNoise(0.5, 2, 1, shared=True)
    reach = (2, 200)
    drawn = np.concatenate([noise.add(np.zeros((1, 2), np.int64), reach, SecureRandom()) for _ in range(20000)])
    parts = np.rint(drawn * REACH / np.array(reach)).astype(np.int64)
    scale = (REACH + 2) / 0.5
    for channel in parts.T:
        assert not rejects(quantile_events(channel, laplace_below(scale), scale))
        for wrong in (0.8, 1.25):
            assert rejects(quantile_events(channel, laplace_below(scale * wrong), scale))
    assert mosha.accounting.epsilon(noise.event, 0) == pytest.approx(0.5)


@pytest.mark.parametrize("second", [0.0, 0.4, 0.9995, 1.0])
def test_bars_of_two_laplace_noises_hold_as_often_as_they_say(second: float) -> None:
    """False alarms: 1e-10; bars of 90 and of 97.5% are told apart."""
    noise, drawn = BoxNoise(1.0, 2, 1, shared=True), np.random.default_rng().laplace(size=(200_000, 2))
    width = float(noise.width([np.array([5.0]), np.array([5.0 * second])], 0.95)[0])
    held = int((np.abs(5 * drawn[:, 0] + 5 * second * drawn[:, 1]) <= width).sum())
    assert not rejects([(held, len(drawn), 0.95)])
    assert rejects([(held, len(drawn), 0.9)])
    assert rejects([(held, len(drawn), 0.975)])


def test_gaussian_noise_on_both_costs_what_it_costs_on_one() -> None:
    one, both = GaussianNoise(7.0, 1, 1).event, GaussianNoise(7.0, 2, 1, shared=True).event
    costs = [mosha.accounting.concentrated.cost_of(event).amount for event in (one, both)]
    assert costs[1] == pytest.approx(costs[0], rel=1e-6)


ODD = ["", "7,A,2,more,cells", "x" * 3_000_000 + ",A,1"]


@pytest.mark.parametrize("line", ODD, ids=["empty", "too many cells", "too long"])
def test_a_line_that_cannot_be_read_is_not_told_by_the_number_of_rows(tmp_path: Path, line: Any) -> None:
    """Of a CSV file such a line is no row: its number was told exactly, for nothing."""
    lines = [f"{n},A,{n % 7}" for n in range(50)]
    for name, found in (("all", lines), ("one", [*lines[:20], line, *lines[21:]])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,ward,days", *found]) + "\n")
        kept = mosha.protect(tmp_path / f"{name}.csv", unit=ONE)
        assert mosha.accounting.epsilon(kept.count().measurement(Budget(epsilon=0.5)).event, 0) > 0.49


def test_the_number_of_rows_is_public_only_where_nothing_that_a_row_holds_decides_whether_it_is_one(
    tmp_path: Path,
) -> None:
    import duckdb
    import polars as pl
    from pyarrow import dataset

    pa.parquet.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "t.parquet")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as made:
        made.execute("CREATE TABLE t AS SELECT range AS x FROM range(9)")
        made.execute("CREATE VIEW v AS SELECT * FROM t WHERE x > 4")
    (tmp_path / "t.jsonl").write_text('{"x": 1}\n{"x": \n')
    (tmp_path / "t.csv").write_text("x\n1\n2\n")
    opened = {
        "parquet": mosha.protect(tmp_path / "t.parquet", unit=ONE),
        "table": mosha.protect(tmp_path / "t.duckdb", table="t", unit=ONE),
        "view": mosha.protect(tmp_path / "t.duckdb", table="v", unit=ONE),
        "lines": mosha.protect(tmp_path / "t.jsonl", unit=ONE, schema={"x": "integer"}),
        "frame": mosha.protect(pl.DataFrame({"x": [1, 2, 3]}), unit=ONE),
        "lazy frame": mosha.protect(pl.LazyFrame({"x": [1, 2, 3]}).filter(pl.col("x") > 1), unit=ONE),
        "text of a lazy frame": mosha.protect(pl.scan_csv(tmp_path / "t.csv"), unit=ONE),
        "text of a data set": mosha.protect(dataset.dataset(tmp_path / "t.csv", format="csv"), unit=ONE),
    }
    price = {name: t.count().measurement(Budget(epsilon=0.5)).event for name, t in opened.items()}
    free = {name for name, event in price.items() if mosha.accounting.epsilon(event, 0) == 0}
    assert free == {"parquet", "table", "frame"}
