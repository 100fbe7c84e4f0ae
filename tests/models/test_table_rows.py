"""Models that go over rows several times learn from a protected table what they learn from its rows."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import mosha
from mosha import Example, Ledger, Person
from mosha.core.errors import InvalidParameter, MoshaError
from mosha.models import (
    CoxRegression,
    DecisionTreeClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    KMeans,
    PoissonRegressor,
    RandomForestClassifier,
)
from mosha.models.sums.table_rows import rows_of_table
from mosha.tables import Declaration

COUNT, UNIT = 600, Person("who", at_most=2)
BOX, COLUMNS = {"a": (0, 10), "b": (-5, 5)}, ["a", "b"]
LABELS: dict[str, Any] = {"classes": ("u", "v"), "between": BOX}


@pytest.fixture(scope="module")
def frame() -> Any:
    drawn = np.random.default_rng()
    table = pd.DataFrame({"who": [f"p{i // 2}" for i in range(COUNT)], "a": drawn.uniform(0, 10, COUNT)})
    table["b"] = drawn.integers(-5, 6, COUNT)
    table["g"] = np.where(table.a > 5, "u", "v")
    table["y"] = 2 * table.a - table.b
    table["n"] = drawn.poisson(2, COUNT)
    table["time"], table["event"] = drawn.uniform(0, 4, COUNT), drawn.random(COUNT) < 0.5
    return table


def pays(unit: Any = UNIT, **limits: Any) -> Any:
    return Ledger.memory().account("rows", unit=unit, **(limits or {"mu": 1e7, "delta": 1e-9}))


POISSON: dict[str, Any] = {"most": 20, "examples": COUNT, "between": ((0, -5), (10, 5)), "mu": 1e4, "steps": 5}
MODELS = {
    "tree": (lambda: DecisionTreeClassifier(depth=1, epsilon=1e6, **LABELS), "g", lambda m: m.tree_.leaves),
    "forest": (
        lambda: RandomForestClassifier(n_estimators=2, random_state=4, rho=1e9, **LABELS),
        "g",
        lambda m: m.estimators_[1].leaves,
    ),
    "boosted classes": (
        lambda: GradientBoostingClassifier(rounds=2, leaves=32, rho=1e9, **LABELS),
        "g",
        lambda m: m.intercepts_,
    ),
    "boosted numbers": (
        lambda: GradientBoostingRegressor(rounds=2, leaves=32, between=BOX, target=(-10, 30), rho=1e9),
        "y",
        lambda m: m.intercepts_,
    ),
    "clusters": (lambda: KMeans(n_clusters=1, steps=1, between=BOX, rho=1e9), None, lambda m: m.cluster_centers_),
    "rates": (lambda: PoissonRegressor(**POISSON), "n", lambda m: m.coef_),
    "survival": (
        lambda: CoxRegression(horizon=5, examples=COUNT, between=BOX, mu=1e4, steps=5),
        ("time", "event"),
        lambda m: m.coef_,
    ),
}
"""How each is made, what it learns, and a number that it found, with next to no noise."""


@pytest.mark.parametrize(("make", "target", "look"), MODELS.values(), ids=MODELS)
def test_a_table_teaches_what_its_rows_teach(make: Any, target: Any, look: Any, frame: Any) -> None:
    account = pays()
    table = mosha.protect(frame, unit=UNIT, account=account)
    there = make().fit(table, target, columns=COLUMNS)
    y = None if target is None else frame[target if isinstance(target, str) else list(target)].to_numpy()
    here = make().set_params(unit=UNIT).fit(frame[COLUMNS], y, account=pays(), persons=frame["who"].to_numpy())
    assert look(there) == pytest.approx(look(here), rel=0.02, abs=0.02)
    assert there.receipt_ is not None
    assert there.get_params() == make().get_params()  # a table changes no parameter
    assert getattr(there, "protected", Example()) == Example()


def test_a_person_has_as_many_rows_as_the_unit_says(frame: Any) -> None:
    many = pd.concat([frame, frame.assign(who="p0")])
    table = mosha.protect(many, unit=UNIT, account=pays())
    features, targets, owners = rows_of_table(table, COLUMNS, ["g"]).read()
    assert len(features) == len(targets) == len(owners) == COUNT  # type: ignore[arg-type]
    without = mosha.protect(many[many.who != "p0"], unit=UNIT, account=pays())
    assert len(rows_of_table(without, COLUMNS, ["g"]).read()[0]) == COUNT - 2  # type: ignore[arg-type]


def test_rows_with_a_missing_number_are_left_out_and_unknown_classes_count_nowhere(frame: Any) -> None:
    odd = frame.copy()
    odd.loc[:9, "a"] = np.nan
    odd.loc[10:14, "g"] = None
    odd.loc[15:19, "g"] = "?"
    table = mosha.protect(odd, unit=UNIT, account=pays())
    assert len(rows_of_table(table, COLUMNS, ["g"]).read()[0]) == COUNT - 10  # type: ignore[arg-type]
    tree = DecisionTreeClassifier(depth=1, epsilon=1e6, **LABELS).fit(table, "g", columns=COLUMNS)
    assert tree.tree_.leaves.sum() == pytest.approx(COUNT - 20, abs=1)


def test_declared_ranges_are_used_and_a_table_without_rows_is_fitted(frame: Any) -> None:
    table = mosha.protect(frame[["who", "a", "b"]].iloc[:0], unit=UNIT, account=pays(), schema=Declaration(ranges=BOX))
    assert KMeans(n_clusters=2, steps=1, rho=1).fit(table, columns=COLUMNS).cluster_centers_.shape == (2, 2)


def test_what_cannot_be_learnt_is_refused_unpaid(frame: Any) -> None:
    account = pays(epsilon=10)
    table = mosha.protect(frame, unit=UNIT, account=account)
    tree = DecisionTreeClassifier(depth=1, epsilon=1, **LABELS)
    for wrong in (None, ("g", "y"), 7):
        with pytest.raises(InvalidParameter, match="Nothing was spent"):
            tree.fit(table, wrong, columns=COLUMNS)
    with pytest.raises(MoshaError):
        tree.fit(table, "not there", columns=COLUMNS)
    with pytest.raises(MoshaError):
        tree.fit(mosha.protect(frame, unit=Person("who"), account=pays(Person("who"), epsilon=1)), "g", columns=COLUMNS)
    assert account.spent == 0


@pytest.mark.parametrize("model", MODELS)
def test_no_columns_at_all_are_refused_unpaid(model: Any, frame: Any) -> None:
    make, target, _ = MODELS[model]
    account = pays()
    protected = mosha.protect(frame, unit=UNIT, account=account)
    with pytest.raises(InvalidParameter) as refused:
        make().fit(protected, target, columns=[])  # type: ignore[attr-defined]
    assert refused.value.code == "models.no_columns"
    assert account.spent == 0


def test_a_retry_under_a_key_is_free(frame: Any) -> None:
    account = pays(epsilon=3)
    table = mosha.protect(frame, unit=UNIT, account=account)
    fits = [DecisionTreeClassifier(depth=2, epsilon=2, **LABELS) for _ in range(2)]
    for tree in fits:
        tree.fit(table, "g", columns=COLUMNS, key="trees")
    assert account.spent == 2
    assert (fits[0].tree_.leaves == fits[1].tree_.leaves).all()
    with pytest.raises(MoshaError):  # another question under the same key
        fits[0].fit(table, "g", columns=["a"], key="trees")
