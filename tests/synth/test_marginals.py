"""`Table.marginals`: one price, exact error bars, refusals before payment."""

import datetime as dt
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.errors import InvalidParameter, MoshaError, Unbounded
from mosha.synth.measuring.counting import count_cells
from mosha.synth.workload import coded_columns

WORDS = {"keys": {"sex": ["F", "M"], "job": [0, 1, 2]}, "between": {"income": (0, 100)}, "bins": {"income": 5}}
BUDGET = {"epsilon": 2, "delta": 1e-9}


@pytest.fixture
def table(rows: Any, account: Any) -> Any:
    return mosha.protect(rows, unit=mosha.Row(), account=account)


def exact(table: Any, *names: Any, **words: Any) -> Any:
    columns = coded_columns(
        table,
        **({"columns": None, "keys": None, "between": None, "bins": None, "hierarchy": None, "nulls": None} | words),
    )
    counted = count_cells(table.relation, table.unit, columns)
    place = {column.name: i for i, column in enumerate(columns)}
    return counted.marginal(tuple(place[name] for name in names))


def test_cells_are_counted_with_missing_values_as_a_cell(table: Any, rows: Any) -> None:
    counts = exact(table, "income", **WORDS)
    incomes = rows["income"].to_pylist()
    expected = [sum(x is not None and 20 * i <= x < 20 * i + 20 for x in incomes) for i in range(5)]
    assert counts.tolist() == [*expected, incomes.count(None)]


def test_answers_are_near_the_truth_and_agree_with_each_other(table: Any) -> None:
    answer = table.marginals(ways=2, **WORDS).release(**BUDGET)
    found, bars = answer.marginal("sex", "job"), answer.error("sex", "job", confidence=1 - 1e-9)
    assert (np.abs(found - exact(table, "sex", "job", **WORDS)) <= bars).all()
    np.testing.assert_allclose(found.sum(axis=1), answer.marginal("sex", "income").sum(axis=1))
    np.testing.assert_allclose(found, answer.marginal("job", "sex").T)


def test_forecasts_are_the_error_bars_of_the_release(table: Any) -> None:
    question = table.marginals(ways=2, **WORDS)
    forecast = question.forecast(**BUDGET)
    assert forecast["sex", "job"] == pytest.approx(question.release(**BUDGET).error("sex", "job").max())


def test_within_pays_for_the_error_bar_that_was_asked_for(table: Any) -> None:
    question = table.marginals(ways=1, **WORDS)
    answer = question.release(within=40, delta=1e-9)
    widest = max(answer.error(name).max() for name in ("sex", "job", "income"))
    assert 39 < widest <= 40


def test_a_count_has_the_error_bar_of_its_linear_query(table: Any) -> None:
    answer = table.marginals(ways=2, **WORDS).release(**BUDGET)
    women = answer.count(sex="F", income=(0, 40))
    assert women.value == pytest.approx(answer.marginal("sex", "income")[0, :2].sum())
    one = answer.count(sex="F", job=1)
    assert one.error == pytest.approx(answer.error("sex", "job")[0, 1])
    assert one.grade == "certified"


def test_ranges_are_more_accurate_where_they_are_asked_for() -> None:
    ages = mosha.protect(pa.table({"age": pa.array(range(64), pa.int64())}), unit=mosha.Row())
    half = np.arange(64) < 32
    bars = {}
    for kind in ("cells", "ranges"):
        question = ages.marginals(ways=1, keys={"age": range(64)}, queries={"age": kind}, nulls=[])
        measured = question._read_residuals(question._noise(mosha.tables.Budget(rho=0.5)), None)
        bars[kind] = math.sqrt(measured.variance({0: half[None, :].astype(float)})[0])
    assert bars["ranges"] < 0.8 * bars["cells"]


def test_hierarchies_answer_groups_more_accurately(table: Any) -> None:
    groups = {value: "low" if value < 6 else "high" for value in range(12)}
    rows = mosha.protect(pa.table({"level": pa.array(range(12), pa.int64())}), unit=mosha.Row(), account=table.account)
    question = rows.marginals(ways=1, keys={"level": range(12)}, hierarchy={"level": groups}, nulls=[])
    flat = rows.marginals(ways=1, keys={"level": range(12)}, nulls=[])
    low = list(range(6))
    assert question.release(**BUDGET).count(level=low).error < flat.release(**BUDGET).count(level=low).error


def test_rows_of_one_person_share_one_weight(rows: Any, people: Any) -> None:
    table = mosha.protect(rows, unit=mosha.Person("who"), account=people)
    counts = exact(table, "sex", **WORDS)
    assert counts.sum() == 1000 << 14
    answer = table.marginals(ways=1, **WORDS).release(epsilon=2, delta=1e-9)
    assert answer.marginal("sex").sum() == pytest.approx(1000, abs=6.2 * answer.error("sex").max() + 60)


def test_one_person_with_many_rows_moves_the_counts_by_one_weight() -> None:
    many = pa.table({"who": ["a"] * 500 + ["b"], "sex": ["F"] * 250 + ["M"] * 250 + ["F"]})
    table = mosha.protect(many, unit=mosha.Person("who"))
    counts = exact(table, "sex", keys={"sex": ["F", "M"]})
    assert counts.sum() - (1 << 14) <= 1 << 14
    assert (counts >= 0).all()


def test_nonnegative_tables_keep_their_sum(table: Any) -> None:
    answer = table.marginals(ways=2, **WORDS).release(epsilon=0.05, delta=1e-9)
    plain, nonnegative = answer.marginal("job", "income"), answer.marginal("job", "income", nonnegative=True)
    assert (nonnegative >= 0).all()
    assert nonnegative.sum() == pytest.approx(max(plain.sum(), 0))


def test_the_same_key_finds_the_same_answer_and_pays_once(table: Any) -> None:
    question = table.marginals(ways=1, **WORDS)
    first, again = (question.release(**BUDGET, key="margins") for _ in range(2))
    assert (first.marginal("job") == again.marginal("job")).all()
    assert first.receipt.spent == again.receipt.spent


def test_dates_are_cells_of_days() -> None:
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in range(60)]
    table = mosha.protect(pa.table({"day": days}), unit=mosha.Row())
    words = {"between": {"day": (dt.date(2024, 1, 1), dt.date(2024, 2, 29))}, "bins": {"day": 6}}
    assert exact(table, "day", **words).tolist() == [10] * 6 + [0]


BAD = {
    "no range": ({"columns": ["income"]}, "synth.no_range"),
    "no keys": ({"columns": ["sex"]}, "synth.no_keys"),
    "range of text": ({"columns": ["sex"], "between": {"sex": (0, 1)}}, "synth.range_of_text"),
    "reversed": ({"columns": ["income"], "between": {"income": (5, 1)}}, "synth.range_reversed"),
    "not a pair": ({"columns": ["income"], "between": {"income": 5}}, "synth.not_a_range"),
    "infinite": ({"columns": ["income"], "between": {"income": (0, math.inf)}}, "synth.not_a_range"),
    "empty keys": ({"columns": ["sex"], "keys": {"sex": []}}, "synth.keys_empty"),
    "text for keys": ({"columns": ["sex"], "keys": {"sex": "FM"}}, "synth.keys_not_listed"),
    "too many keys": ({"columns": ["job"], "keys": {"job": range(10**5)}}, "synth.too_many_cells"),
    "too many bins": ({"columns": ["income"], **WORDS, "bins": {"income": 10**9}}, "synth.bins_not_counted"),
    "too many ways": ({**WORDS, "ways": 9}, "synth.too_many_ways"),
    "no column": ({}, "synth.no_columns"),
    "unknown goal": ({**WORDS, "goal": "best"}, "synth.unknown_goal"),
    "unknown queries": ({**WORDS, "queries": {"sex": "halves"}}, "synth.unknown_queries"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_questions_are_refused_before_anything_is_paid(name: Any, table: Any) -> None:
    words, code = BAD[name]
    with pytest.raises(MoshaError) as refusal:
        table.marginals(**({"ways": 1} | words)).release(**BUDGET)  # type: ignore[operator]
    assert refusal.value.code == code
    assert refusal.value.render("zh") != refusal.value.render("en")
    assert table.account.spent == 0


def test_a_domain_of_a_billion_cells_is_refused_before_anything_is_paid(rows: Any, account: Any) -> None:
    wide = mosha.protect(rows.append_column("id", pa.array(range(len(rows)))), unit=mosha.Row(), account=account)
    with pytest.raises(InvalidParameter) as refusal:
        wide.marginals(ways=3, keys={"job": range(1000), "id": range(1000), "sex": [f"s{i}" for i in range(1000)]})
    assert refusal.value.code == "synth.too_many_numbers"


def test_the_column_of_persons_is_refused(rows: Any) -> None:
    with pytest.raises(InvalidParameter, match="whose a row is"):
        mosha.protect(rows, unit=mosha.Person("who")).marginals(ways=1, columns=["who"], keys={"who": ["p1"]})


def test_pure_epsilon_is_refused_with_what_to_do(table: Any) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        table.marginals(ways=1, **WORDS).release(epsilon=1)


def test_columns_without_a_range_are_unbounded(table: Any) -> None:
    with pytest.raises(Unbounded):
        table.marginals(ways=1, columns=["income"])


@pytest.mark.parametrize("count", [0, 1])
def test_empty_tables_and_single_rows_are_answered(count: int, rows: Any, account: Any) -> None:
    table = mosha.protect(rows.slice(0, count), unit=mosha.Row(), account=account)
    answer = table.marginals(ways=2, **WORDS).release(**BUDGET)
    assert (np.abs(answer.marginal("sex", "job")) <= answer.error("sex", "job", confidence=1 - 1e-9) + 1).all()


@pytest.mark.parametrize("sets", [mosha.synth.rollup("sex", "job"), mosha.synth.cube("sex", "job")])
def test_subtotals_add_up(sets: Any, table: Any) -> None:
    answer = table.marginals(sets=sets, keys=WORDS["keys"]).release(**BUDGET)
    assert sum(answer.table("sex")["count"]) == pytest.approx(answer.table()["count"][0])
    assert answer.marginal("sex", "job").sum(axis=1) == pytest.approx(answer.marginal("sex"))
    assert answer.table()["error"][0] > 0
