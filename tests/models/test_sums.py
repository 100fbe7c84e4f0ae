"""What one unit does to the sums of a model, exactly."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha import Example, Ledger, Person, learning
from mosha.audit import statistic_contract
from mosha.core.errors import DataError, InvalidParameter, Unbounded
from mosha.models import CategoricalNB, GaussianNB, KMeans, MomentSums, PoissonRegressor, Ranges, StandardScaler, TTest
from mosha.models.bayes import CategoryCounts
from mosha.models.ranges import RADIUS, read_ranges
from mosha.models.sums.row_sums import count_columns
from mosha.models.sums.table_sums import table_cells
from tests.models.statistics import ADD, BOX, CORNERS, PERSON, REPLACE, every_sum, neighbors_of


@pytest.mark.parametrize("unit", [ADD, REPLACE, PERSON], ids=["added", "replaced", "person"])
@pytest.mark.parametrize("name", every_sum())
def test_no_unit_moves_a_sum_further_than_its_sensitivity(name: Any, unit: Any) -> None:
    statistic, rows, labels = every_sum()[name]
    contract = statistic_contract(statistic, unit=unit, neighbors=neighbors_of(rows, labels, unit))
    assert contract.kept, str(contract)


@pytest.mark.parametrize("seconds", ["none", "squares", "products"])
def test_a_corner_moves_the_moments_as_far_as_they_say(seconds: str) -> None:
    """The sensitivity is tight: the bound is met by an example at a corner of the ranges."""
    sums = MomentSums(BOX, None, seconds)  # type: ignore[arg-type]
    moved = sums.evaluate(([CORNERS[0]], None, None), ADD).astype(float)
    claimed = sums.sensitivity(ADD)
    assert np.linalg.norm(moved) == pytest.approx(claimed.l2, rel=1e-9)
    assert np.abs(moved).sum() == pytest.approx(claimed.l1, rel=1e-9)


def test_shortened_examples_never_exceed_the_bound_and_come_near_it() -> None:
    sums, largest = MomentSums(BOX, norm=1.2), 0.0
    rows = np.random.default_rng().uniform(-1, 1, (4000, 3)) * [1, 2.5, 5] + [0, 2.5, 15]
    for row in [*rows, *CORNERS[:2]]:
        largest = max(largest, float(np.linalg.norm(sums.evaluate(([list(row)], None, None), ADD).astype(float))))
    bound = sums.sensitivity(ADD).l2
    assert 0.85 * bound < largest <= bound


class OffByHalf(MomentSums):
    """A wrong twin: squares are claimed to be seen from the middle, and are not."""

    def _weigh(self, count: Any, first: Any, second: Any) -> Any:
        return np.concatenate([[count * RADIUS**2], first * RADIUS, second]).astype(np.int64)


def test_a_sensitivity_that_is_too_small_is_found() -> None:
    pairs = neighbors_of(CORNERS, None, ADD)
    assert not statistic_contract(OffByHalf(BOX, None, "squares"), unit=ADD, neighbors=pairs).kept


def test_moments_are_those_of_the_rows() -> None:
    rows = np.random.default_rng().uniform(-1, 1, (500, 3))
    sums = MomentSums(Ranges((-1.0,) * 3, (1.0,) * 3))
    found = sums.read_moments(sums.evaluate((rows, None, None), ADD), 0.0)
    assert found.counts[0] == 500
    assert np.allclose(found.means[0], rows.mean(axis=0), atol=1e-4)
    assert np.allclose(found.seconds[0] / 500, rows.T @ rows / 500, atol=1e-4)


def test_more_rows_of_a_person_than_allowed_count_no_more() -> None:
    sums = MomentSums(BOX)
    rows = [CORNERS[0]] * 9
    person = Person("who", at_most=2)
    assert sums.evaluate((rows, None, ["ann"] * 9), person)[0] == 2 * RADIUS**2


def test_a_missing_number_leaves_its_example_out_and_nothing_else() -> None:
    sums = MomentSums(BOX)
    with_it = sums.evaluate((CORNERS, None, None), ADD)
    without = sums.evaluate((CORNERS[:-1], None, None), ADD)
    assert with_it.tolist() == without.tolist()


def test_the_order_of_examples_does_not_matter() -> None:
    rows = np.random.default_rng().uniform(-1, 1, (3000, 3))
    sums = MomentSums(Ranges((-1.0,) * 3, (1.0,) * 3))
    turned = np.random.default_rng().permutation(rows)
    assert sums.evaluate((rows, None, None), ADD).tolist() == sums.evaluate((turned, None, None), ADD).tolist()


def test_wrong_declarations_are_refused() -> None:
    for between in (None, (1, 0), (0,), "wide", {"a": (0, 1)}):
        with pytest.raises((Unbounded, InvalidParameter)):
            read_ranges(between, 2, ["a", "b"] if between == {"a": (0, 1)} else None)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        MomentSums(BOX, norm=0.0)
    with pytest.raises(DataError):
        MomentSums(BOX).evaluate([[1.0]], Example())
    with pytest.raises(DataError):
        MomentSums(BOX).evaluate((CORNERS, None, ["ann"]), PERSON)


def test_lists_without_a_width_are_refused_by_a_typed_error() -> None:
    for features in ([1.0, 2.0], [], [[], []], np.zeros(3)):  # type: ignore[var-annotated]
        with pytest.raises(DataError, match="same number of features"):
            count_columns(features)


LISTS = {
    "moments": lambda: StandardScaler(between=(-9, 9), rho=1),
    "rows": lambda: KMeans(n_clusters=2, between=(-9, 9), rho=1),
    "labels": lambda: GaussianNB(classes=(0, 1), between=(-9, 9), rho=1),
    "categories": lambda: CategoricalNB(classes=(0, 1), categories=[[0, 1], [0, 1]], rho=1),
    "descent": lambda: PoissonRegressor(most=9, examples=9, between=((-9, -9), (9, 9)), mu=1, steps=1),
    "linear descent": lambda: learning.LogisticRegression(classes=(0, 1), norm=1, examples=9, mu=1, steps=1),
    "classes": lambda: learning.GaussianClasses(classes=(0, 1), norm=1, rho=1),
}
ODD_ROWS = [[], [1], [0, 1, 0], 7, None, "ab", [[1], 0], [np.ones(2), 0], {}, np.ones((2, 2)), [None, "x"]]


@pytest.mark.parametrize("model", LISTS)
def test_one_odd_row_of_a_list_is_no_row_and_no_error(model: Any) -> None:
    """It was an error that told of the row: unpaid and uncounted, or paid, by the class of the model."""
    for odd in ODD_ROWS:
        account = Ledger.memory().account("a", unit=Example(), rho=9, delta=1e-6)
        LISTS[model]().fit([[0, 1], [1, 0], [1, 1], odd], [0, 1, 1, 0], account=account)  # type: ignore[attr-defined]
        assert account.spent > 0


EQUAL_LISTS = [
    (pa.array([2.0**53]), [2**53 + k for k in range(2)]),
    (pa.array([2**53 + 1]), [2**53 + 1, 2.0**53]),
    (pa.array([0.1]), [0.1, Decimal("0.1")]),
    (pa.array([date(2000, 1, 1)]), [date(2000, 1, 1), datetime(2000, 1, 1)]),  # noqa: DTZ001
]
"""A value, and a list whose entries are different in Python while an engine finds it equal to each of them."""


@pytest.mark.parametrize(("column", "listed"), EQUAL_LISTS)
def test_a_row_counts_in_one_cell_whichever_listed_values_an_engine_finds_equal(column: Any, listed: Any) -> None:
    table = mosha.protect(pa.table({"x": column, "class": [0]}), unit=mosha.Row())
    counts = CategoryCounts((tuple(listed),), (0, 1))
    exact = table_cells(table, counts, {"x": listed}, "class", (0, 1))
    assert len(set(listed)) == len(listed)
    moved = exact.evaluate(None, mosha.Row())
    assert moved.tolist() == [1, 0, 0, 0]
    assert abs(moved).sum() <= exact.sensitivity(mosha.Row()).l1


def test_classes_that_are_one_value_of_the_column_are_refused_before_anything_is_paid() -> None:
    account = mosha.Ledger.memory().account("demo", unit=mosha.Row(), epsilon=1)
    table = mosha.protect(pa.table({"x": ["a"], "class": [2.0**53]}), unit=mosha.Row(), account=account)
    model = CategoricalNB(classes=(2**53, 2**53 + 1), categories={"x": ["a"]}, epsilon=1)
    with pytest.raises(InvalidParameter, match="same value") as caught:
        model.fit(table, "class")
    assert (caught.value.code, account.spent) == ("models.classes_are_equal", 0)


def test_a_test_of_two_means_with_three_groups_is_refused_before_anything_is_paid() -> None:
    account = mosha.Ledger.memory().account("demo", unit=mosha.Example(), epsilon=1)
    with pytest.raises(InvalidParameter):
        TTest(between=(0, 1), groups=("a", "b", "c"), epsilon=1).run([0.5], ["a"], account=account)
    assert account.spent == 0
