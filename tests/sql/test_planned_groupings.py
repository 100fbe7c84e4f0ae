"""Several groupings in one query: noise that is planned for all of them together, where that has the smaller errors."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.accounting import epsilon as price
from mosha.core.budget import Budget
from mosha.core.unit import Neighbors
from mosha.noise import secure
from mosha.sql import query, statement
from mosha.tables.mechanisms.grouping_noise import GroupingNoise
from mosha.tables.mechanisms.joint_noise import BoxNoise, GaussianNoise
from mosha.tables.parts.sums import Sums
from mosha.tables.question import Question
from mosha.tables.questions.groupings import MOST_WORK, _count_work

SIZES = {"a": 4, "b": 5, "c": 6, "d": 7}
COLUMNS = {name: {"keys": list(range(size))} for name, size in SIZES.items()}
ROWS = 500


def protect(unit: Any = None) -> Any:
    unit = unit or mosha.Row()
    account = mosha.Ledger.memory().account("t", unit=unit, rho=10)
    columns = {name: [(i * (place + 1) + i // 7) % size for i in range(ROWS)]
               for place, (name, size) in enumerate(SIZES.items())}  # fmt: skip
    table = pa.table({"who": [i // 2 for i in range(ROWS)], **columns})
    return mosha.protect(table, unit=unit, account=account, schema={"columns": COLUMNS})


def plan(sets: str, budget: Budget, unit: Any = None, what: str = "COUNT(*) AS n") -> Any:
    return statement(f"SELECT {what} FROM t GROUP BY {sets}", {"t": protect(unit)}).question.plan_release(budget)


CHOSEN = {
    ("CUBE (a, b)", "rho"): GroupingNoise,
    ("GROUPING SETS ((a), (b), (c), (d))", "rho"): GroupingNoise,
    ("GROUPING SETS ((a), (b), (c), (d))", "epsilon"): GroupingNoise,
    ("CUBE (a, b)", "epsilon"): BoxNoise,  # few groups, in one of which a row is: nothing beats Laplace noise on them
    ("GROUPING SETS ((a), (b), (c), (d))", "pure"): BoxNoise,
}
BUDGETS = {"rho": Budget(rho=0.5), "epsilon": Budget(epsilon=1, delta=1e-9), "pure": Budget(epsilon=1)}


@pytest.mark.parametrize(("sets", "budget"), CHOSEN)
def test_the_noise_with_the_smaller_errors_is_chosen_from_public_numbers(sets: str, budget: str) -> None:
    noise = plan(sets, BUDGETS[budget]).parts[0].noise
    assert isinstance(noise, CHOSEN[sets, budget])
    assert (
        isinstance(plan(sets, BUDGETS[budget], what="SUM(CLAMP(who, 0, 9)) AS n").parts[0].noise, GroupingNoise)
        is False
    )


@pytest.mark.parametrize(
    "unit", [mosha.Row(), mosha.Person("who", at_most=3), mosha.Row(neighbors=Neighbors.REPLACE_ONE)]
)
@pytest.mark.parametrize("sets", ["CUBE (a, b)", "GROUPING SETS ((a, b), b, ())"])
def test_the_price_is_the_budget_and_the_answer_adds_up(sets: str, unit: Any) -> None:
    table = protect(unit)
    answer: Any = query(f"SELECT a, b, COUNT(*) AS n, GROUPING(a, b) AS g FROM t GROUP BY {sets}", rho=0.5, t=table)
    assert table.account.spent == pytest.approx(0.5, rel=1e-6)
    assert table.account.spent <= 0.5
    rows = list(answer.exact)
    pairs = [row for row in rows if row["g"] == 0]
    for one in (row for row in rows if row["g"] == 2):
        assert one["n"] == pytest.approx(sum(row["n"] for row in pairs if row["b"] == one["b"]), abs=1e-6)
    assert any("planned for all groupings" in note for note in answer.notes)


def test_a_budget_in_epsilon_is_not_exceeded() -> None:
    measurement = plan("GROUPING SETS ((a), (b), (c), (d))", BUDGETS["epsilon"]).measurement("n")
    assert price(measurement.event, delta=1e-9) == pytest.approx(1, rel=1e-5)
    assert price(measurement.event, delta=1e-9) <= 1 + 1e-12


def draw(times: float = 1.0, rounds: int = 100) -> tuple[float, int]:
    """The squares of errors over their deviations, one of each of many releases."""
    found, noise = 0.0, plan("GROUPING SETS ((a, b), (c), ())", BUDGETS["rho"]).parts[0].noise
    for kept in noise.sets:
        deviation = replace(noise, shown=kept).deviation(1.0) * times
        for _ in range(rounds):
            drawn = noise.add(np.full((math.prod(noise.sizes), 1), 7), [1], secure()).reshape(noise.sizes) - 7
            table = drawn.sum(axis=tuple(key for key in range(3) if key not in kept))
            found += float(np.ravel(table)[0] ** 2) / deviation**2
    return found, rounds * len(noise.sets)


def is_right(total: float, freedom: int) -> bool:
    """Wilson and Hilferty's cube root of chi-square is normal; 6.2 deviations are passed once in 1e9."""
    return abs((total / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) < 6.2 * math.sqrt(2 / (9 * freedom))


def test_every_grouping_has_the_variance_that_its_bars_are_made_of() -> None:
    """False alarms: below 1e-9; noise of half and of twice the size is found."""
    assert is_right(*draw())
    assert not is_right(*draw(2.0))
    assert not is_right(*draw(0.5))


def test_bars_of_groupings_are_exact_and_narrower_than_those_of_sums() -> None:
    answer: Any = query("SELECT a, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((a), (b), (c), (d), ())", rho=0.5,
                        t=protect())  # fmt: skip
    widest = max(answer.error()["n"])
    noise = plan("GROUPING SETS ((a), (b), (c), (d), ())", BUDGETS["rho"]).parts[0].noise
    quantile = 1.959964 * noise.deviation(1.0)
    assert widest == pytest.approx(quantile, rel=1e-6)
    sums = 1.96 * math.sqrt(math.prod(SIZES.values()))  # noise of deviation 1 on all finest groups
    assert widest < 0.2 * sums


def test_what_was_not_asked_for_has_no_bar() -> None:
    question = statement(
        "SELECT COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((a), (b), (c), (d))", {"t": protect()}
    ).question
    raw = question.release(rho=0.5)
    assert all(bar == math.inf for bar in raw.error()["n"])


def test_a_question_with_groupings_is_data_and_is_read_back() -> None:
    question = statement("SELECT COUNT(*) AS n FROM t GROUP BY CUBE (a, b)", {"t": (table := protect())}).question
    data = question.to_dict()
    assert data["sets"] == [["a", "b"], ["a"], ["b"], []]
    again = Question.from_dict(table, data)
    assert again.fingerprint == question.fingerprint
    assert again.fingerprint != replace(question, sets=()).fingerprint
    for wrong in ([["e"]], [["a", 1]], "a", [3]):
        with pytest.raises(mosha.errors.MoshaError):
            Question.from_dict(table, data | {"sets": wrong})


def test_a_retry_under_its_key_is_the_same_answer() -> None:
    table = protect()
    sql = "SELECT a, b, COUNT(*) AS n FROM t GROUP BY CUBE (a, b)"
    first: Any = query(sql, rho=0.5, key="k", t=table)
    second: Any = query(sql, rho=0.5, key="k", t=table)
    assert first.exact["n"] == second.exact["n"]
    assert table.account.spent <= 0.5


def test_groups_in_another_order_or_not_all_combinations_keep_their_noise() -> None:
    table = protect()
    question = statement("SELECT COUNT(*) AS n FROM t GROUP BY CUBE (a, b)", {"t": table}).question
    assert question.only is not None
    some = replace(question, only=question.only[:-1])
    assert not some.plan_release(BUDGETS["rho"]).is_for_groupings
    turned = replace(question, only=question.only[1:] + question.only[:1])
    assert not turned.plan_release(BUDGETS["rho"]).is_for_groupings
    assert question.plan_release(BUDGETS["rho"]).is_for_groupings


def test_an_empty_table_is_answered() -> None:
    account = mosha.Ledger.memory().account("t", unit=mosha.Row(), rho=1)
    empty = pa.table({name: pa.array([], pa.int64()) for name in SIZES})
    table = mosha.protect(empty, unit=mosha.Row(), account=account, schema={"columns": COLUMNS})
    answer: Any = query("SELECT a, COUNT(*) AS n FROM t GROUP BY CUBE (a, b)", rho=0.5, t=table)
    assert len(answer) == 30
    assert all(abs(n) < 20 * bar for n, bar in zip(answer.exact["n"], answer.error()["n"], strict=True))


def test_a_report_uses_it() -> None:
    table = protect()
    sql = "SELECT a, COUNT(*) AS n FROM t GROUP BY CUBE (a, b)"
    report = mosha.Report("Visits", rho=0.5).add_sql("n", sql, {"t": table})
    shown = report.run()
    assert any("planned for all groupings" in note for note in shown["n"].notes)


@pytest.mark.parametrize("budget", [{"rho": 1e4}, {"epsilon": 1000}])
def test_totals_are_of_listed_groups_and_the_answer_says_so(budget: Any) -> None:
    """SQL counts a row without a key in every grouping that leaves the key out; groups that are listed cannot."""
    account = mosha.Ledger.memory().account("t", unit=mosha.Row(), rho=1e6)
    columns = {"a": pa.array([1, 1, None, 2]), "b": pa.array([1, None, 1, 3])}
    some, all_keys = {"a": [1, 2], "b": [1]}, {"a": [1, 2, None], "b": [1, 3, None]}
    for keys, total in ((some, 1), (all_keys, 4)):
        said = {"columns": {name: {"keys": values} for name, values in keys.items()}}
        table = mosha.protect(pa.table(columns), unit=mosha.Row(), account=account, schema=said)
        answer: Any = query("SELECT a, b, COUNT(*) AS n FROM t GROUP BY CUBE (a, b)", t=table, **budget)
        assert any("counts in none of them" in note for note in answer.notes)
        assert abs(answer.exact["n"][-1] - total) < 1  # its error is .02, and passes 1 less than once in 1e9


@pytest.mark.parametrize("sets", [[["a", "a"]], [["a"], ["b", "a", "b"]], [["a"]] * 65, [["e"]]])
def test_groupings_in_plain_data_that_mean_nothing_are_refused_at_once(sets: list[list[str]]) -> None:
    table = protect()
    data = table.group_by("a", "b", keys={"a": [0, 1], "b": [0]}).count().to_dict()
    with pytest.raises((mosha.errors.InvalidParameter, mosha.errors.Refused)):
        Question.from_dict(table, data | {"sets": sets})
    assert table.account.spent == 0


def test_groupings_of_the_largest_groups_are_refused() -> None:
    """Noise is planned for all groups: with `top` a release of some of them ended in an error of NumPy."""
    table = protect()
    data = table.group_by("a", "b", keys={"a": [0, 1], "b": [0]}).count().to_dict()
    with pytest.raises(mosha.errors.InvalidParameter, match="largest"):
        Question.from_dict(table, data | {"sets": [["a"], []], "top": 1})


def test_every_choice_of_groupings_is_planned_in_a_bounded_time() -> None:
    """ROLLUP of sixteen keys has 2**16 residuals of as many groups: hours of work, before anything was paid."""
    account = mosha.Ledger.memory().account("t", unit=mosha.Row(), rho=10)
    names = [f"k{i}" for i in range(16)]
    said = {"columns": {name: {"keys": [0, 1]} for name in names}}
    columns = pa.table({name: [0, 1] for name in names})
    table = mosha.protect(columns, unit=mosha.Row(), account=account, schema=said)
    for count, noise in ((8, GroupingNoise), (16, GaussianNoise)):
        sql = f"SELECT COUNT(*) AS n FROM t GROUP BY ROLLUP ({', '.join(names[:count])})"
        planned = statement(sql, {"t": table}).question.plan_release(BUDGETS["rho"])
        (part,) = planned.parts
        assert isinstance(part, Sums)
        assert isinstance(part.noise, noise)
        assert _count_work(tuple([2] * count), planned.frame.sets) > MOST_WORK or noise is GroupingNoise
