"""Sensitivities are derived, hold on all neighbors, and are not larger than they must be."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mosha import Client, Edge, Example, Node, Person, Reading, Row
from mosha.core.errors import DataError, InvalidParameter, Unbounded
from mosha.exact.clip import clip_vectors
from mosha.exact.grid import LARGEST_STEPS, grid_for, sum_steps
from mosha.exact.statistic import root_up, sum_sensitivity
from mosha.mechanisms import (
    Clipped,
    ClippedSum,
    ClippedVectors,
    Count,
    Histogram,
    Quantile,
    Statistic,
    SumAndCount,
    VectorSum,
    clipping_bias,
    laplace,
)
from tests.mechanisms.neighbors import VALUES, all_neighbors, any_pair_breaks, some_pair_breaks

UNITS = [
    make(neighbors=neighbors, at_most=rows)  # type: ignore[arg-type]
    for make in (Row, lambda **limits: Person("who", **limits))
    for neighbors in ("add-remove", "replace-one")
    for rows in (1, 2, 3)
]
STATISTICS = [
    Count(),
    Count(between=(0, 5)),
    ClippedSum(between=(0, 10)),
    ClippedSum(between=(-3, 10), grid=0.5),
    ClippedSum(between=(2, 10), grid=1, missing="low"),
    ClippedSum(between=(-10, -2), grid=1, missing="middle"),
    ClippedSum(between=(-10, -2)),
    Histogram(keys=[0, 1, 2.5, 10]),
    Histogram(keys=[7]),
    Clipped(between=(0, 5)),
]


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
@pytest.mark.parametrize("unit", UNITS, ids=lambda u: f"{type(u).__name__}-{u.neighbors}-{u.at_most}")
def test_no_neighbors_move_a_statistic_further_than_its_sensitivity(statistic: Any, unit: Any) -> None:
    assert not some_pair_breaks(statistic, unit, statistic.sensitivity(unit), rounds=25)


@pytest.mark.parametrize("unit", [Row(), Row(3), Row(neighbors="replace-one"), Person("who", at_most=2)], ids=repr)  # type: ignore[arg-type]
@pytest.mark.parametrize("norm", ["l1", "l2", "linf", "l0", "span"])
def test_a_sensitivity_that_is_too_small_by_one_is_caught(unit: Any, norm: str) -> None:
    statistic, values = Histogram(keys=[0, 1]), [0, 1, 2]
    claimed = statistic.sensitivity(unit)
    assert not any_pair_breaks(statistic, unit, claimed, values)
    assert any_pair_breaks(statistic, unit, replace(claimed, **{norm: getattr(claimed, norm) - 1}), values)


@pytest.mark.parametrize("unit", UNITS, ids=lambda u: f"{type(u).__name__}-{u.neighbors}-{u.at_most}")
def test_the_sensitivity_of_a_sum_is_reached(unit: Any) -> None:
    statistic = ClippedSum(between=(-3, 10), grid=1)
    claimed = statistic.sensitivity(unit)
    assert any_pair_breaks(statistic, unit, replace(claimed, l1=claimed.l1 - 1), values=[-3, 10])


def test_the_factor_two_of_replacement_is_not_forgotten() -> None:
    replaced = Row(neighbors="replace-one")  # type: ignore[arg-type]
    assert ClippedSum(between=(0, 10), grid=1).sensitivity(replaced).l1 == 10
    assert ClippedSum(between=(-10, 10), grid=1).sensitivity(replaced).l1 == 20
    assert Histogram(keys=["a", "b"]).sensitivity(replaced).l1 == 2
    assert Histogram(keys=["a", "b"]).sensitivity(replaced).l2 == root_up(2)


def test_a_replaced_unit_may_own_another_number_of_rows() -> None:
    # m (high - low) = 20 would be too small: two rows of 20 against one row of 10 differ by 30
    assert sum_sensitivity(10, 20, Row(2, neighbors="replace-one")).l1 == 30  # type: ignore[arg-type]


def test_the_number_of_rows_is_public_under_replacement_and_not_for_sale() -> None:
    unit = Row(neighbors="replace-one")  # type: ignore[arg-type]
    assert Count().sensitivity(unit).l1 == 0
    with pytest.raises(InvalidParameter, match="public"):
        laplace(Count(), unit=unit, epsilon=1)
    assert Count(between=(0, 1)).sensitivity(unit).l1 == 1


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("unit", UNITS[:6], ids=repr)
def test_no_neighbors_move_a_sum_of_vectors_further_than_its_sensitivity(order: int, unit: Any) -> None:
    rng = np.random.default_rng()
    statistic = VectorSum(norm=2.5, coordinates=4, order=order, grid=2.0**-8)
    claimed = statistic.sensitivity(unit)
    values = [list(rng.normal(size=4) * 10.0 ** rng.integers(-3, 200)) for _ in range(20)]
    values += [
        [1e308] * 4,
        [-1e308] * 4,
        [5e-324] * 4,
        [float("nan")] * 4,
        [float("inf"), 0, 0, 0],
        [2.5, 0, 0, 0],
        [-2.5, 0, 0, 0],
    ]
    assert not some_pair_breaks(statistic, unit, claimed, rounds=40, values=values)


def test_clipped_vectors_have_their_norm_in_exact_integers() -> None:
    rng = np.random.default_rng()
    for order in (1, 2):
        for width in (1, 2, 50, 2000):
            vectors = rng.normal(size=(50, width)) * 10.0 ** rng.integers(-10, 150, size=(50, 1))
            for norm in (1, 3, 2**10, 2**28, 2**30):
                for row in clip_vectors(vectors, norm, order, 2.0**-20):
                    assert sum(abs(int(x)) ** order for x in row) <= norm**order


def test_clipping_keeps_what_is_short_and_the_direction_of_what_is_long() -> None:
    assert clip_vectors(np.array([[3.0, 4.0]]), 5, 2, 1.0).tolist() == [[3, 4]]
    long = clip_vectors(np.array([[3e200, 4e200]]), 5000, 2, 1.0)[0]
    assert np.abs(long - [3000, 4000]).max() <= 1


def test_a_sum_does_not_depend_on_order_nor_lose_small_values() -> None:
    statistic, rng = ClippedSum(between=(-1e9, 1e9), grid=2.0**-10), np.random.default_rng()
    values = np.concatenate([rng.normal(size=1000), [1e9, -1e9]])
    shuffled = rng.permutation(values)
    assert statistic.evaluate(values, Row()) == statistic.evaluate(shuffled, Row())
    assert int(statistic.evaluate(values, Row())[0]) == sum(round(Fraction(v) * 1024) for v in values)


def test_sums_beyond_64_bits_are_held_and_never_wrap_around() -> None:
    huge = np.full(40, 2**60, np.int64)
    assert sum_steps(huge, 2**60).tolist() == [LARGEST_STEPS]
    assert sum_steps(-huge, 2**60).tolist() == [-LARGEST_STEPS]
    assert sum_steps(np.array([[2**60, 1], [2**60, 2]]), 2**60).tolist() == [LARGEST_STEPS, 3]


@pytest.mark.parametrize("missing", ["drop", "low", "middle", "high"])
def test_a_missing_value_stands_for_what_was_declared(missing: str) -> None:
    statistic = ClippedSum(between=(2, 10), grid=1, missing=missing)  # type: ignore[arg-type]
    expected = {"drop": 0, "low": 2, "middle": 6, "high": 10}[missing]
    for nothing in (float("nan"), None, "many", [1], np.ma.masked):
        assert statistic.evaluate([nothing, 3], Row()).tolist() == [expected + 3]
    assert statistic.evaluate([np.inf, -np.inf], Row()).tolist() == [12]


def test_masked_entries_are_missing() -> None:
    masked = np.ma.array([1, 2, 3], mask=[False, True, False])
    assert ClippedSum(between=(0, 9), grid=1).evaluate(masked, Row()).tolist() == [4]


def test_a_histogram_counts_what_is_equal_and_nothing_else() -> None:
    keys = Histogram(keys=[1, "1", None, 2.5])
    assert keys.evaluate([1, 1.0, True, "1", None, 2.5, 2, [3], {}], Row()).tolist() == [3, 1, 1, 1]
    assert keys.evaluate(np.array([1.0, 2.5, np.nan]), Row()).tolist() == [1, 0, 0, 1]
    assert keys.evaluate(np.array(["1", "x"]), Row()).tolist() == [0, 1, 0, 0]


def test_columns_are_found_by_name() -> None:
    table = {"who": ["x", "x", "y"], "days": [1, 2, 3], "cost": [9, 9, 9]}
    person = Person("who", at_most=5)
    assert ClippedSum(between=(0, 10), grid=1, column="days").evaluate(table, person).tolist() == [6]
    assert ClippedSum(between=(0, 10), grid=1).evaluate({"who": ["x"], "days": [4]}, person).tolist() == [4]
    assert ClippedSum(between=(0, 10), grid=1).evaluate((["x"], [4]), person).tolist() == [4]
    for bad in (table, {"days": [1]}, [1, 2], ([1], [1, 2])):
        with pytest.raises(DataError):
            ClippedSum(between=(0, 10), grid=1).evaluate(bad, person)
    assert Count().evaluate(table, person).tolist() == Count().evaluate({"who": ["x"] * 3}, person).tolist() == [3]
    with pytest.raises(DataError, match="'weight'"):
        Count(between=(0, 1), column="weight").evaluate(table, Row())


def test_units_of_one_row_each_are_accepted_and_others_refused() -> None:
    for unit in (Reading(), Example(), Client(), Edge()):
        assert Count().sensitivity(unit).l1 == 1
    with pytest.raises(InvalidParameter):
        Count().sensitivity(Node(max_degree=3))
    with pytest.raises(Unbounded, match="at_most"):
        Count().sensitivity(Person("who"))
    with pytest.raises(InvalidParameter, match="at_most"):
        Count().sensitivity(Person("who", at_most=3, groups=2))


@pytest.mark.parametrize("make", [
    lambda: ClippedSum(between=(3, 3)),
    lambda: ClippedSum(between=(4, 3)),
    lambda: ClippedSum(between=(0, float("inf"))),
    lambda: ClippedSum(between=(float("nan"), 1)),
    lambda: ClippedSum(between=(0, 1e300)),
    lambda: ClippedSum(between=(0, 1e-300)),
    lambda: ClippedSum(between=3),  # type: ignore[arg-type]
    lambda: ClippedSum(between=("a", "b")),  # type: ignore[arg-type]
    lambda: ClippedSum(between=(0, 1), grid=0.3),
    lambda: ClippedSum(between=(0, 1), grid=-1),
    lambda: ClippedSum(between=(0, 1), grid=2.0**-60),
    lambda: ClippedSum(between=(0, 1), missing="guess"),  # type: ignore[arg-type]
    lambda: Count(between=(5, 1)),
    lambda: Histogram(keys=[]),
    lambda: Histogram(keys="abc"),
    lambda: Histogram(keys=[1, 1.0]),
    lambda: Histogram(keys=[[1]]),
    lambda: Histogram(keys=3),  # type: ignore[arg-type]
    lambda: VectorSum(norm=0, coordinates=2),
    lambda: VectorSum(norm=1, coordinates=0),
    lambda: VectorSum(norm=1, coordinates=2, order=3),
    lambda: VectorSum(norm=1, coordinates=2, grid=2),
    lambda: SumAndCount(between=(1, 0)),
    lambda: SumAndCount(between=(0, 1), missing="low"),  # type: ignore[arg-type]
    lambda: laplace(Count, unit=Row(), epsilon=1),  # type: ignore[arg-type]
    lambda: laplace(len, unit=Row(), epsilon=1),  # type: ignore[arg-type]
    lambda: laplace(Count(), unit="row", epsilon=1),  # type: ignore[arg-type]
    lambda: laplace(Count(), unit=Row(), epsilon=1, scale=1),
    lambda: laplace(Count(), unit=Row()),
    lambda: clipping_bias([], between=(0, 1)),
], ids=lambda make: None)  # fmt: skip
def test_bad_declarations_are_refused_with_a_typed_error(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()


def test_a_sum_without_a_range_is_unbounded() -> None:
    with pytest.raises(Unbounded, match="between"):
        ClippedSum(between=None)
    with pytest.raises(Unbounded, match="norm"):
        VectorSum(norm=None, coordinates=2)


def test_what_is_a_statistic() -> None:
    assert all(isinstance(statistic, Statistic) for statistic in STATISTICS)
    assert not isinstance(3, Statistic)


def test_the_grid_is_a_power_of_two_with_many_steps() -> None:
    for magnitude in (1.0, 100.0, 2.0, 0.1, 1e100, 3e-50):
        assert 2**27 <= magnitude / grid_for(magnitude) <= 2**28


def test_long_and_unreadable_vectors_are_counted_and_no_others() -> None:
    statistic = ClippedVectors(norm=5, coordinates=2)
    rows = [[3, 4], [3, 4.0001], [5e300, 0], [float("nan"), 0], [float("inf"), 0], [0, 0], [-5, 0], "xy", [1]]
    assert statistic.evaluate(rows, Row()).tolist() == [6]
    assert ClippedVectors(norm=5, coordinates=2, order=1).evaluate([[3, 2], [3, 2.1]], Row()).tolist() == [1]
    assert statistic.evaluate(([1, 1, 2], [[9, 9]] * 3), Person("who", at_most=1)).tolist() == [2]
    assert statistic.sensitivity(Row(3)).l1 == 3


def test_the_forecast_of_the_bias_of_vectors() -> None:
    bias = clipping_bias([[3.0, 4.0], [0.3, 0.4], [float("nan"), 1.0]], norm=2.5)
    assert bias == pytest.approx([-0.75, -1.0], abs=1e-6)
    for bad in ({}, {"between": (0, 1), "norm": 1}, {"norm": -1}, {"norm": 1, "order": 3}):
        with pytest.raises(InvalidParameter):
            clipping_bias([[1.0, 2.0]], **bad)
    with pytest.raises(InvalidParameter):
        clipping_bias([1.0, 2.0], norm=1)


def test_the_forecast_of_the_bias_is_that_of_the_mean() -> None:
    values = np.array([0.0, 50.0, 150.0, np.nan])
    assert clipping_bias(values, between=(10, 100)) == pytest.approx((10 + 50 + 100 - 200) / 3)
    assert clipping_bias(VALUES[:3], between=(-2, 2)) == 0


@pytest.mark.parametrize("unit", UNITS, ids=lambda u: f"{type(u).__name__}-{u.neighbors}-{u.at_most}")
@pytest.mark.parametrize("missing", ["drop", "middle"])
def test_sum_and_count_move_within_their_box(unit: Any, missing: str) -> None:
    statistic, farthest = SumAndCount(between=(2, 10), missing=missing), np.zeros(2, np.int64)  # type: ignore[arg-type]
    for first, second in all_neighbors(unit, [2.0, 10.0, float("nan")]):
        farthest = np.maximum(farthest, np.abs(statistic.evaluate(first, unit) - statistic.evaluate(second, unit)))
    assert farthest.tolist() == list(statistic.widths(unit))  # reached, and never exceeded


def test_methods_of_statistics_answer_to_their_old_names_and_warn() -> None:
    for call in (lambda: Count().exact([1, 2], Row()), lambda: Quantile(at=0.5, between=(0, 9)).local([1, 2], Row())):
        with pytest.warns(DeprecationWarning, match="evaluate"):
            call()
    with pytest.raises(AttributeError):
        Count().local  # noqa: B018


def test_a_statistic_written_when_evaluate_was_called_exact_still_works() -> None:
    class Old:
        grid, labels = 1.0, None

        def sensitivity(self, unit: Any) -> Any:
            return Count().sensitivity(unit)

        def exact(self, data: Any, unit: Any) -> Any:
            return Count().evaluate(data, unit)

    with pytest.warns(DeprecationWarning, match="evaluate"):
        assert laplace(Old(), unit=Row(), epsilon=1).name == "laplace(Old)"  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64])
@pytest.mark.parametrize("last", [3, 2**63 - 1, 2**63, 5.5, True], ids=repr)
def test_whole_numbers_are_found_among_the_keys_as_one_by_one(kind: Any, last: Any) -> None:
    keys = [7, -3, 100, last, 10, -(2**63)]
    values = np.array([7, -3, 0, 100, 3, 10, 10, 1, -128, 127], kind)
    values = np.append(values, [2**63 - 1, -(2**63)]) if kind is np.int64 else values
    expected = [sum(value == key for value in values.tolist()) for key in keys]
    assert Histogram(keys=keys).evaluate(values, Row()).tolist() == expected
