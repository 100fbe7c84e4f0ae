"""Numbers about all people inside a query: whatever number comes out, the rest of the query can still be asked."""

from typing import Any

import pytest

import mosha
from mosha import errors

ROWS = {"x": [float(n % 7) for n in range(200)], "g": ["a", "b"] * 100}
LOW = "(SELECT AVG(CLAMP(x, -6, 6)) - 100 FROM t)"  # far below zero
NONE = "(SELECT COUNT(*) / (COUNT(*) - COUNT(*)) FROM t)"  # a division by zero, which is no number
SMALL = "(SELECT COUNT(*) FROM t WHERE x > 100)"  # noise around zero


@pytest.fixture
def table() -> Any:
    account = mosha.Ledger.memory().account("t", unit=mosha.Row(), epsilon=9)
    return mosha.protect(ROWS, unit=mosha.Row(), account=account)


@pytest.mark.parametrize("number", [LOW, NONE, SMALL])
@pytest.mark.parametrize("condition", ["x > {}", "x BETWEEN {} AND 5", "x / {} > 1", "ABS(x - {}) < 3", "-{} < x"])
def test_any_number_may_stand_where_columns_are_compared_with_it(table: Any, number: Any, condition: str) -> None:
    answer = mosha.query(f"SELECT COUNT(*) FROM t WHERE {condition.format(number)}", t=table, epsilon=1)
    assert len(answer) == 1
    assert table.account.spent == pytest.approx(1)


@pytest.mark.parametrize(
    "condition",
    [f"CLAMP(x, 0, {LOW}) > 0", f"CLAMP(x, {SMALL}, {LOW}) > 0", f"BIN(x, {SMALL}) = 0", f"LEFT(g, {SMALL}) = 'a'"],
)
def test_where_not_every_number_can_stand_a_query_is_refused_unpaid(table: Any, condition: Any) -> None:
    """The number alone was paid for, and the rest of the query refused when it came out wrong."""
    for ask in (mosha.query, mosha.sql.explain):
        with pytest.raises(errors.MoshaError, match="Nothing was spent"):
            ask(f"SELECT COUNT(*) FROM t WHERE {condition}", t=table, epsilon=1)
    assert table.account.spent == 0


ROOT = "(SELECT SQRT(COUNT(*) - 100000) FROM t)"  # of a number below zero


@pytest.mark.parametrize("number", [NONE, ROOT, "SQRT(-1)"])
def test_a_number_that_is_none_compares_with_nothing(table: Any, number: Any) -> None:
    # noise of scale 2 reaches 50 with a probability of e^-25.
    answer = mosha.query(f"SELECT COUNT(*) FROM t WHERE x > {number}", t=table, epsilon=1)
    assert abs(answer.value) < 50  # type: ignore[union-attr]
