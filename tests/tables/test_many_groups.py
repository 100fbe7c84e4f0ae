"""Many public groups: the same answers as for a few, and no work in Python for each of them."""

import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.connect.language.schema import Schema, Type
from mosha.connect.plan.aggregation import are_plain
from mosha.connect.plan.source import Totals, find_numbers
from mosha.tables import Budget, protect
from mosha.tables.mechanisms import joint_noise


def test_plain_keys_pass_at_once_and_others_do_not() -> None:
    whole, text = Type.INTEGER, Type.TEXT
    assert are_plain(((1,), (-5,)), [whole])
    assert are_plain(((1, "a"), (2, "b")), [whole, text])
    for rows, kinds in [
        (((1,), (True,)), [whole]),
        (((2**63,),), [whole]),
        (((1.0,),), [whole]),
        ((("a\x00",),), [text]),
        ((("é",),), [text]),
        (((1,), (1, 2)), [whole]),
        (([1],), [whole]),
        (((None,),), [whole]),
        ((), [whole]),
    ]:
        assert not are_plain(rows, kinds)


@pytest.mark.parametrize("divisor", [1, 7, 2**20, 2**63 + 11])
@pytest.mark.parametrize("size", [10, 2**35, 2**50, 2**62])
def test_parts_and_units_are_those_of_whole_numbers_without_end(size: Any, divisor: Any) -> None:
    """Wherever 64 bits or doubles are used, they give what Python's integers give."""
    numbers = np.random.default_rng().integers(-size, size, 200)
    exact = numbers.reshape(-1, 1)
    for reach in (divisor, Fraction(2**26, 2**26 // min(divisor, 2**20))):
        factor, least = joint_noise.REACH * Fraction(reach).denominator, Fraction(reach).numerator
        held = [min(max(n * factor // least, -joint_noise.HELD), joint_noise.HELD) for n in numbers.tolist()]
        for given in (exact, exact.astype(object)):
            assert joint_noise._in_parts(given, [reach])[:, 0].tolist() == held
        back = [n * least / factor for n in held]
        assert joint_noise._in_units(np.array(held).reshape(-1, 1), [reach])[:, 0].tolist() == back


def test_sums_are_put_in_the_order_of_the_keys() -> None:
    totals = Totals(Schema({"k": Type.INTEGER}), (np.array([9, -2, 4]),), {"n": np.array([90, -20, 40])})
    assert totals.align([(4,), (5,), (9,), (-2,)])["n"].tolist() == [40, 0, 90, -20]
    assert totals.align([(None,), (9,)])["n"].tolist() == [0, 90]
    assert find_numbers(np.array([], np.int64), np.array([1])).tolist() == [-1]


def count_calls(work: Any) -> Any:
    """How many functions of Python a piece of work calls."""
    calls = [0]

    def count(frame: Any, event: Any, argument: Any) -> None:
        del frame, argument
        calls[0] += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls[0]


@pytest.mark.parametrize("ask", ["count", "mean", "median"])
def test_a_release_calls_no_function_for_each_group(ask: str) -> None:
    table = pa.table({"who": np.arange(500), "g": np.arange(500), "x": np.arange(500.0)})
    verbs = {"count": {}, "mean": {"column": "x", "between": (0, 500)}, "median": {"column": "x", "between": (0, 500)}}
    calls = []
    for groups in (2000, 4000):
        grouped = protect(table, unit=mosha.Person("who", at_most=1)).group_by("g", keys=range(groups))
        options = dict(verbs[ask])
        column = [options.pop("column")] if "column" in options else []
        question = getattr(grouped, ask)(*column, **options)
        budget = Budget(epsilon=1)
        plan = question.plan_release(budget)

        def release(question: Any = question, budget: Any = budget, plan: Any = plan, ask: Any = ask) -> None:
            value, _ = question.measurement(budget).step(None, None, None, mosha.noise.secure())
            plan.answers(value)
            if ask == "count":  # bars of means have shapes that depend on the noise, some tens of them
                plan.errors(value, 0.95)

        release()
        calls.append(count_calls(release))
    assert calls[1] - calls[0] < 1000  # 2,000 groups more; noise that is drawn again is a matter of chance


def test_a_paid_release_calls_a_few_functions_at_most_for_each_group() -> None:
    """The keys are public and all of them enter the fingerprint of the question: two calls each, not eighty."""
    person = mosha.Person("who", at_most=1)
    account = mosha.Ledger.memory().account("visits", unit=person, epsilon=100)
    table = protect(pa.table({"who": np.arange(500), "g": np.arange(500)}), unit=person, account=account)
    calls = []
    for groups in (2000, 4000):
        question = table.group_by("g", keys=range(groups)).count()
        question.release(epsilon=1)
        calls.append(count_calls(lambda question=question: question.release(epsilon=1).error(0.95)))
    assert calls[1] - calls[0] < 3 * 2000
