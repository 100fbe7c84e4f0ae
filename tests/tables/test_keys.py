"""Groups that come from the data: seldom shown when one person alone is in them, and paid for."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.tables import Budget, protect


def visits(people: Any, wards: Any, alone: Any = ()) -> Any:
    who = list(np.repeat(np.arange(people), len(wards))) + [10**6] * len(alone)
    return pa.table({"who": who, "ward": list(wards) * people + list(alone)})


@pytest.mark.parametrize("unit", [mosha.Person("who", groups=2), mosha.Person("who", at_most=50)], ids=["few", "many"])
def test_groups_of_many_people_are_shown_and_a_single_persons_are_not(unit: Any) -> None:
    # False alarm: a lone group is shown with probability delta = 1e-12; a crowd of 3000 is missed far more rarely.
    table = protect(visits(3000, ["A", "B"], alone=["X", "Y"]), unit=unit)
    question = table.group_by("ward").count()
    measurement = question.measurement(Budget(epsilon=2, delta=1e-12))
    value, _ = measurement.step(None, None, None, mosha.noise.secure())
    assert value["keys"] == [["A"], ["B"]]
    assert abs(question.plan_release(Budget(epsilon=2, delta=1e-12)).answers(value)["count"][0] - 3000) < 2500


def test_keys_from_data_cost_a_delta_and_say_so() -> None:
    table = protect(visits(10, ["A"]), unit=mosha.Person("who", groups=1))
    with pytest.raises(mosha.errors.InvalidParameter, match="delta"):
        table.group_by("ward").count().measurement(Budget(epsilon=1))


UNITS = [
    mosha.Person("who", groups=1, per_group=1),
    mosha.Person("who", groups=3, per_group=1),
    mosha.Person("who", groups=3, neighbors="replace-one"),  # type: ignore[arg-type]
    mosha.Person("who", at_most=50),
    mosha.Person("who"),
    mosha.Row(at_most=3),
]


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_the_price_is_kept(unit: Any) -> None:
    table = protect(visits(10, ["A"]), unit=unit)
    event = table.group_by("ward").count().measurement(Budget(epsilon=1, delta=1e-6)).event
    assert mosha.accounting.epsilon(event, 1e-6) <= 1 + 1e-9


def test_a_lone_persons_groups_are_shown_with_probability_delta_at_most() -> None:
    # The worst case over the number of groups, by the exact normal law.
    from scipy.stats import norm

    from mosha.tables.parts.keys import KeySelection

    for twice in (False, True):
        selection = KeySelection(100, 1.0, 1e-6, twice, True)
        sigma = selection._multiplier * (2 if twice else 1)
        for groups in (1, 2, 3, 7, 50, 1000, 4**selection.bits):
            shown = -np.expm1(groups * norm.logsf(-(selection.threshold - groups**-0.5) / sigma))
            assert shown <= 1e-6 / (4 if twice else 2)
        assert (1 << selection.bits) // (math.isqrt(4**selection.bits) + 1) == 0  # in more groups nobody has a weight


def test_an_answer_without_groups_is_empty() -> None:
    ledger = mosha.Ledger.memory()
    unit = mosha.Person("who", groups=1)
    account = ledger.account("visits", unit=unit, epsilon=10, delta=1e-5)
    table = protect(visits(1, ["A"]), unit=unit, account=account)
    answer = table.group_by("ward").count().release(epsilon=1, delta=1e-9)
    assert answer.table == {"ward": [], "count": []}
    assert answer.error() == {"ward": [], "count": []}
    assert "delta" in " ".join(answer.notes)


@pytest.mark.parametrize("wards", [["A", "a\x00b"], [5, -(2**63)]], ids=["text", "integers"])
def test_a_crowd_whose_key_no_constant_can_say_is_left_out_and_the_others_are_answered(wards: Any) -> None:
    """It was an error after payment. False alarm: a crowd of 3000 is missed with probability far below 1e-12."""
    for unit in (mosha.Person("who", groups=2), mosha.Person("who", at_most=50)):
        question = protect(visits(3000, wards), unit=unit).group_by("ward").count()
        value, _ = question.measurement(Budget(epsilon=2, delta=1e-12)).step(None, None, None, mosha.noise.secure())
        assert value["keys"] == [wards[:1]]
