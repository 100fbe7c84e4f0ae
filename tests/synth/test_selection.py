"""Values that come from the data: shown where enough units share them, at a price that is known before."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha import accounting
from mosha.core.errors import InvalidParameter
from mosha.mechanisms.residuals.residuals import ResidualNoise
from mosha.noise import secure
from mosha.synth.measuring.selection import KeyNoise, _add
from mosha.tables import Budget

RUNS = 4000
SLACK = math.sqrt(math.log(2e9) / (2 * RUNS))
"""Hoeffding: a share of so many runs is off by more than this less than once in 1e9."""


def noise_of(reach: Any, columns: Any = 1, failing: float = 0.2, multiplier: float = 3.0) -> Any:
    return KeyNoise(ResidualNoise(multiplier, reach, 1 << 12, 1 << 17), columns, failing)


def share_shown(noise: Any, counts: Any, threshold: Any) -> float:
    """How often any of a unit's own values is shown."""
    many = np.tile(np.array(counts, np.int64), (RUNS, 1))
    noisy = _add(many.reshape(-1), noise.noise, noise.factor, secure()).reshape(many.shape)
    return float((noisy > threshold).any(axis=1).mean())


@pytest.mark.parametrize(("reach", "counts"), [(1, [1]), (8, [8]), (8, [4, 4]), (8, [1] * 8), (60, [1] * 60)])
def test_a_value_of_one_unit_alone_is_shown_no_more_often_than_was_paid_for(reach: int, counts: Any) -> None:
    noise = noise_of(reach)
    assert share_shown(noise, counts, noise.threshold) <= noise.failing + SLACK


def test_a_threshold_that_forgets_the_units_own_count_is_found() -> None:
    """Power: at multiplier 0.5 a threshold for noise alone shows a unit's value far too often."""
    noise = noise_of(8, multiplier=0.5)
    assert share_shown(noise, [8], noise.threshold - noise.factor * 8) > noise.failing + SLACK


def test_a_threshold_is_not_needlessly_high() -> None:
    noise = noise_of(1)
    assert share_shown(noise, [1], noise.threshold) >= noise.failing * 0.95 - SLACK


@pytest.mark.parametrize("columns", [1, 2, 7])
@pytest.mark.parametrize("reach", [1, 2, 1 << 14])
def test_all_columns_together_move_by_no_more_than_the_resolution(columns: int, reach: Any) -> None:
    noise = KeyNoise(ResidualNoise(3.0, reach, 1 << 30, 1 << 20), columns, 1e-9)
    assert noise.factor**2 * reach**2 * columns <= (1 << 30) ** 2
    assert noise.threshold > noise.factor * reach


def towns(names: Any, **more: Any) -> Any:
    return pa.table({"town": names, "sex": ["F", "M"] * (len(names) // 2), **more})


WORDS = {"keys": {"town": "from_data", "sex": ["F", "M"]}, "nulls": []}
BUDGET = {"epsilon": 2, "delta": 1e-6}


def release(rows: Any, unit: Any = None, **words: Any) -> Any:
    unit = unit or mosha.Row()
    account = mosha.Ledger.memory().account("towns", unit=unit, epsilon=8, delta=1e-4)
    return mosha.protect(rows, unit=unit, account=account).synthesize(**{**WORDS, **words}).release(**BUDGET)


def test_values_that_many_share_are_columns_of_the_table_and_rare_ones_are_missing() -> None:
    """Counts of 2,000 lie above the threshold by dozens of deviations, those of 1 below it by more than six."""
    made = release(towns(["Ulm"] * 2000 + ["Bonn"] * 2000 + [f"hamlet {i}" for i in range(40)]))
    assert made.columns[0].labels == ("Bonn", "Ulm", None)
    assert set(made.sample(500)["town"]) <= {"Bonn", "Ulm", None}
    assert abs(made.count(town="Ulm").value - 2000) < 400  # dozens of deviations


def test_a_person_with_many_values_shows_none_of_them() -> None:
    names = ["Ulm"] * 600 + [f"hamlet {i}" for i in range(600)]
    made = release(towns(names, who=[*range(600), *[-1] * 600]), mosha.Person("who"))
    assert made.columns[0].labels == ("Ulm", None)


def test_whole_numbers_hierarchies_and_missing_values() -> None:
    codes = [7] * 900 + [9] * 900 + [None] * 600
    rows = pa.table({"town": pa.array(codes, pa.int64()), "sex": ["F", "M"] * 1200})
    made = release(rows, hierarchy={"town": {7: "odd", 9: "odd"}})
    assert made.columns[0].labels == (7, 9, None)
    assert made.columns[0].groups == (0, 0, 1)
    assert abs(made.count(town=None).value - 600) < 400


def test_a_table_in_which_no_value_is_shown_is_answered() -> None:
    made = release(towns([f"hamlet {i}" for i in range(50)]))
    assert made.columns[0].labels == (None,)
    assert set(made.sample(10)["town"]) == {None}
    made = release(towns([f"hamlet {i}" for i in range(50)]), keys={"town": "from_data"}, columns=["town"])
    assert made.sample(3) == {"town": [None] * 3}


@pytest.mark.parametrize("unit", [mosha.Row(), mosha.Row(at_most=3), mosha.Person("who")])
@pytest.mark.parametrize("budget", [{"epsilon": 1, "delta": 1e-9}, {"epsilon": 0.1, "delta": 1e-6}])
def test_the_price_is_the_budget_and_hardly_less(unit: Any, budget: Any) -> None:
    rows = towns(["Ulm"] * 10, who=list(range(10)))
    question = mosha.protect(rows, unit=unit).synthesize(**WORDS)
    found = accounting.epsilon(question.measurement_for(**budget).event, delta=budget["delta"])
    assert 0.99 * budget["epsilon"] <= found <= budget["epsilon"]


def test_without_a_delta_or_for_reals_values_are_refused_before_anything_is_paid() -> None:
    question = mosha.protect(towns(["Ulm"] * 10), unit=mosha.Row()).synthesize(**WORDS)
    with pytest.raises(InvalidParameter) as caught:
        question.measurement_for(rho=0.5)
    assert caught.value.code == "synth.keys_need_delta"
    question.measurement_for(rho=0.5, delta=1e-9)
    reals = mosha.protect({"x": [1.5, 2.5]}, unit=mosha.Row())
    with pytest.raises(InvalidParameter) as caught:
        reals.synthesize(keys={"x": "from_data"})
    assert caught.value.code == "synth.keys_of_kind"
    with pytest.raises(InvalidParameter):
        mosha.protect(towns(["Ulm"] * 10), unit=mosha.Row()).marginals(ways=1, keys={"town": "from_data"})


def test_a_key_finds_the_same_values_again_and_a_forecast_says_from_when_they_are_shown() -> None:
    account = mosha.Ledger.memory().account("towns", unit=mosha.Row(), epsilon=8, delta=1e-4)
    table = mosha.protect(towns(["Ulm"] * 900 + ["Bonn"] * 900), unit=mosha.Row(), account=account)
    question = table.synthesize(**WORDS)
    one, two = (question.release(**BUDGET, key="towns") for _ in range(2))
    assert one.columns[0].labels == two.columns[0].labels
    assert one.table == two.table
    assert question.forecast(**BUDGET)["values shown from"] == question.noises(Budget(**BUDGET)).keys.least_count
