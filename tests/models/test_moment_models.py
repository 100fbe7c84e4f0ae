"""Scaler, components, regressions, naive Bayes and densities: what they learn, from arrays, frames and tables."""

from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pytest

import mosha
from mosha import Example, Ledger, Person, Row
from mosha.audit import entries
from mosha.audit.attacks.pilot import search
from mosha.audit.reporting.verdict import Outcome  # type: ignore[attr-defined]
from mosha.core.errors import BudgetExceeded, InvalidParameter, MoshaError, Unbounded
from mosha.models import (
    PCA,
    CategoricalNB,
    GaussianNB,
    HistogramDensity,
    Lasso,
    LinearRegression,
    Ridge,
    StandardScaler,
)

BOX = {"a": (0, 10), "b": (-5, 5)}


def account(unit: Any = None, **limit: Any) -> Any:
    return Ledger.memory().account("models", unit=unit or Example(), **(limit or {"epsilon": 1000}))


@pytest.fixture(scope="module")
def frame() -> Any:
    drawn = np.random.default_rng()
    count = 12000
    table = pd.DataFrame(
        {"who": np.arange(count) // 2, "a": drawn.uniform(0, 10, count), "b": drawn.normal(0, 1, count)}
    )
    table["y"] = 2 * table.a - table.b + 3 + drawn.normal(0, 1, count)
    table["c"] = (table.a > 5).astype(int)
    table["g"] = np.where(table.a > 5, "u", "v")
    return table


MODELS = {
    "scaler": (lambda **m: StandardScaler(between=BOX, **m), None, lambda m: np.r_[m.mean_, m.scale_]),
    "components": (lambda **m: PCA(between=BOX, **m), None, lambda m: np.r_[m.mean_, m.explained_variance_]),
    "regression": (lambda **m: LinearRegression(between=BOX, target=(-10, 40), **m), "y", lambda m: m.coef_),
    "ridge": (lambda **m: Ridge(between=BOX, target=(-10, 40), **m), "y", lambda m: m.coef_),
    "lasso": (lambda **m: Lasso(alpha=0.001, between=BOX, target=(-10, 40), **m), "y", lambda m: m.coef_),
    "Bayes": (lambda **m: GaussianNB(classes=(0, 1), between=BOX, **m), "c", lambda m: m.theta_.ravel()),
}


@pytest.mark.parametrize("unit", [Row(), Person("who", at_most=2)], ids=["rows", "persons"])
@pytest.mark.parametrize("name", MODELS)
def test_a_table_and_a_frame_teach_the_same(name: Any, unit: Any, frame: Any) -> None:
    """With so large an epsilon noise is nothing, and both roads see the same exact sums."""
    make, target, show = MODELS[name]
    purse = account(unit, epsilon=1e8)
    table = mosha.protect(frame, unit=unit, account=purse)
    asked = make(epsilon=1e7).fit(table, target, columns=["a", "b"])
    y = None if target is None else frame[target]
    own = make(epsilon=1e7, unit=unit).fit(frame[["a", "b"]], y, account=purse, persons=frame["who"])
    assert show(asked) == pytest.approx(show(own), abs=2e-3)
    assert list(asked.feature_names_in_) == list(own.feature_names_in_) == ["a", "b"]
    assert asked.receipt_.account == purse.name


def test_models_learn_what_is_there(frame: Any) -> None:
    purse = account()
    rows = frame[["a", "b"]]
    scaler = StandardScaler(between=BOX, epsilon=5).fit(rows, account=purse)
    assert scaler.mean_ == pytest.approx([5, 0], abs=0.2)
    assert scaler.transform(rows).std(axis=0) == pytest.approx([1, 1], abs=0.1)
    assert scaler.inverse_transform(scaler.transform(rows)) == pytest.approx(rows.to_numpy(), abs=1e-6)
    line = LinearRegression(between=BOX, target=(-10, 40), epsilon=5).fit(rows, frame.y, account=purse)
    assert line.coef_ == pytest.approx([2, -1], abs=0.3)
    assert line.score(rows, frame.y) > 0.9
    bayes = GaussianNB(classes=(0, 1), between=BOX, epsilon=5).fit(rows, frame.c, account=purse)
    assert bayes.score(rows, frame.c) > 0.9
    assert bayes.predict_proba(rows).sum(axis=1) == pytest.approx(np.ones(len(rows)))
    sparse = Lasso(alpha=0.05, between=BOX, target=(-10, 40), epsilon=5).fit(rows, frame.a * 2, account=purse)
    assert sparse.coef_[1] == 0
    assert sparse.coef_[0] > 1


def test_categories_and_cells_of_a_table_are_those_of_a_frame(frame: Any) -> None:
    purse = account(Row(), epsilon=1e8)
    table = mosha.protect(frame, unit=Row(), account=purse)
    asked = CategoricalNB(classes=(0, 1), categories={"g": ("u", "v")}, epsilon=1e6).fit(table, "c")
    own = CategoricalNB(classes=(0, 1), categories=(("u", "v"),), unit=Row(), epsilon=1e6)
    own.fit(frame[["g"]], frame.c, account=purse)
    assert asked.feature_log_prob_[0] == pytest.approx(own.feature_log_prob_[0], abs=1e-3)
    assert (asked.predict(frame[["g"]]) == frame.c).mean() == 1
    density = HistogramDensity(bins=5, between=(0, 10), epsilon=1e6).fit(table, column="a")
    exact = np.histogram(frame.a, bins=5, range=(0, 10), density=True)[0]
    assert density.density_ == pytest.approx(exact, abs=1e-4)
    drawn = density.sample(2000)
    assert (drawn >= 0).all()
    assert (drawn <= 10).all()
    assert np.isfinite(density.score_samples([[5.0]]))[0]


def test_nothing_is_read_where_nobody_pays(frame: Any) -> None:
    class Watched:
        shape = (10, 2)

        def __array__(self, *how: Any, **options: Any) -> NoReturn:
            raise AssertionError("read")

    model = StandardScaler(between=(0, 1), epsilon=2)
    with pytest.raises(InvalidParameter) as refused:
        model.fit(Watched())
    assert refused.value.code == "models.who_pays"
    with pytest.raises(BudgetExceeded):
        model.fit(Watched(), account=account(epsilon=1))
    with pytest.raises(Unbounded):
        StandardScaler(epsilon=1).fit(frame[["a"]], account=account())
    with pytest.raises(MoshaError):
        LinearRegression(between=(0, 1), epsilon=1).fit(np.zeros((4, 1)), np.zeros(4), account=account())
    with pytest.raises(MoshaError):
        LinearRegression(between=(0, 1), target=(0, 1), epsilon=1).fit(np.zeros((4, 1)), account=account())


def test_persons_without_a_limit_are_refused_before_they_pay(frame: Any) -> None:
    unit = Person("who")
    purse = account(unit)
    table = mosha.protect(frame, unit=unit, account=purse)
    with pytest.raises(Unbounded) as refused:
        StandardScaler(between=BOX, epsilon=1).fit(table, columns=["a", "b"])
    assert refused.value.code == "models.rows_of_a_person"


def test_the_same_key_pays_once(frame: Any) -> None:
    purse = account(epsilon=1)
    first = StandardScaler(between=BOX, epsilon=1).fit(frame[["a", "b"]], account=purse, key="once")
    again = StandardScaler(between=BOX, epsilon=1).fit(frame[["a", "b"]], account=purse, key="once")
    assert first.mean_.tolist() == again.mean_.tolist()


def own() -> list[Any]:
    return [entry for entry in entries() if entry.kind == "models"]


@pytest.mark.parametrize("entry", own(), ids=lambda entry: entry.name)
def test_no_model_is_broken(entry: Any) -> None:
    """False-alarm rate 1e-10 each."""
    verdict = search(entry.build(), entry.proposals, runs=300, confidence=1 - 1e-10, name=entry.name, **entry.how)
    assert verdict.outcome is Outcome.CONSISTENT, str(verdict)
