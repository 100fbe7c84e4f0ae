"""Regressions as their users meet them: paid first, by scikit-learn's conventions, total on whatever rows hold."""

import math
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from mosha import Example, Ledger, Person
from mosha.core.errors import BudgetExceeded, DataError, InvalidParameter, Unbounded, WrongUnit
from mosha.learning.linear.models import LinearRegression, LogisticRegression, SoftmaxRegression
from mosha.learning.linear.table_features import Categories, Columns, Cuts, Range

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("MOSHA_DATA", ROOT.parent / "shared" / "data"))


def account(unit: Any = None, mu: float = 10.0) -> Any:
    return Ledger.memory().account("models", unit=unit or Example(), mu=mu, delta=1e-6)


def halves(count: int = 2000) -> tuple[Any, ...]:
    rows = np.random.default_rng().uniform(-1, 1, (count, 2))
    return rows, (rows[:, 0] + rows[:, 1] > 0).astype(int)


def logistic(**changed: Any) -> Any:
    return LogisticRegression(**{"examples": 2000, "norm": math.sqrt(2), "mu": 2.0} | changed)


class Untouchable:
    """Data that nobody may read."""

    shape = (3, 2)

    def __getattr__(self, name: Any) -> NoReturn:
        raise AssertionError(name)

    def __array__(self, *arguments: Any, **named: Any) -> NoReturn:
        raise AssertionError


def test_logistic_regression_learns_and_says_what_it_paid() -> None:
    rows, y = halves()
    book = account()
    model = logistic().fit(rows, y, account=book)
    assert model.score(rows, y) > 0.9
    assert model.receipt_.account == "models"
    assert 0 < book.spent <= 4.0 * (1 + 1e-9)
    assert model.coef_.shape == (1, 2)
    assert model.n_features_in_ == 2


def test_softmax_regression_learns() -> None:
    rows = np.random.default_rng().uniform(-1, 1, (3000, 2))
    y = np.where(rows[:, 0] > 0.3, "right", np.where(rows[:, 1] > 0, "up", "down"))
    model = SoftmaxRegression(classes=["up", "down", "right"], examples=3000, norm=math.sqrt(2), mu=3.0)
    model.fit(rows, y, account=account())
    assert model.score(rows, y) > 0.85
    assert np.allclose(model.predict_proba(rows).sum(axis=1), 1)
    assert set(model.predict(rows)) <= {"up", "down", "right"}


def test_linear_regression_finds_the_line_in_the_units_of_the_data() -> None:
    rows = np.random.default_rng().uniform(0, 10, (5000, 2))
    y = 20 + 5 * rows[:, 0] - 3 * rows[:, 1]
    model = LinearRegression(target=(-50, 150), examples=5000, between=(0, 10), mu=8.0, steps=150, learning_rate=2.0)
    model.fit(rows, y, account=account())
    assert model.score(rows, y) > 0.9
    assert np.allclose(rows @ model.coef_ + model.intercept_, model.predict(rows), atol=0.5)


def test_coefficients_speak_of_raw_features() -> None:
    rows, y = halves()
    for bounds in ({"norm": 1.5}, {"between": ([-1, -1], [1, 1])}):
        model = logistic(**{"norm": None} | bounds).fit(rows, y, account=account())
        inside = rows[np.linalg.norm(rows, axis=1) < 1.3]
        logits = inside @ model.coef_[0] + model.intercept_[0]
        assert np.allclose(logits, model.decision_function(inside)[:, 0], atol=0.02)


def test_nothing_is_read_where_the_account_refuses() -> None:
    with pytest.raises(BudgetExceeded):
        logistic().fit(Untouchable(), Untouchable(), account=account(mu=0.5))
    with pytest.raises(WrongUnit):
        logistic().fit(Untouchable(), Untouchable(), account=account(Person("who")))
    with pytest.raises(InvalidParameter, match="account"):
        logistic().fit(Untouchable(), Untouchable(), account=None)
    with pytest.raises(Unbounded):
        logistic(norm=None).fit(Untouchable(), Untouchable(), account=account())


def test_a_retry_under_the_same_key_is_free_and_gives_the_same_model() -> None:
    rows, y = halves()
    book = account()
    first, second = (logistic().fit(rows, y, account=book, key="model") for _ in range(2))
    assert np.array_equal(first.weights_, second.weights_)
    assert book.spent <= 4.0 * (1 + 1e-9)


def test_another_question_under_the_same_key_is_refused_or_paid() -> None:
    rows, y = halves()
    book = account()
    logistic().fit(rows, y, account=book, key="model")
    with pytest.raises(Exception, match="key"):
        logistic(learning_rate=3.0).fit(rows, y, account=book, key="model")


def test_whatever_a_row_holds_is_answered() -> None:
    rows, y = halves(50)
    rows[0], rows[1], rows[2] = np.nan, np.inf, (1e308, -1e308)
    labels = y.astype(object)
    labels[3], labels[4], labels[5] = None, "spam", math.nan
    model = logistic(examples=50).fit(rows, labels, account=account())
    assert np.isfinite(model.predict_proba(rows)).all()
    line = LinearRegression(target=(0, 1), examples=50, norm=2.0, mu=1.0)
    line.fit(rows, [math.nan, math.inf, "x", None, *y[4:]], account=account())
    assert np.isfinite(line.predict(rows)).all()


def test_shapes_that_are_wrong_say_so() -> None:
    rows, y = halves(20)
    for data in ((rows[0], y), (rows, y[:5]), (rows, y[:, None])):
        with pytest.raises(DataError):
            logistic().fit(*data, account=account())
    fitted = logistic().fit(rows, y, account=account())
    with pytest.raises(DataError):
        fitted.predict(rows[:, :1])
    with pytest.raises(DataError, match="not been fitted"):
        logistic().predict(rows)


@pytest.mark.parametrize("classes", [(1,), (1, 1), (0, 1, 2), ()])
def test_wrong_classes_are_refused(classes: Any) -> None:
    with pytest.raises(InvalidParameter, match="classes"):
        logistic(classes=classes).fit(*halves(5), account=account())


def test_parameters_are_read_and_set_by_name() -> None:
    model = logistic(steps=7)
    assert model.get_params()["steps"] == 7
    assert model.set_params(steps=9).steps == 9
    assert "steps=9" in repr(model)
    with pytest.raises(InvalidParameter, match="no parameter"):
        model.set_params(stepz=9)


def test_scikit_learn_takes_it_for_one_of_its_own() -> None:
    sklearn = pytest.importorskip("sklearn")
    from sklearn.base import clone, is_classifier, is_regressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    model = logistic(steps=11)
    assert clone(model).get_params() == model.get_params()
    assert is_classifier(model)
    assert is_regressor(LinearRegression(target=(0, 1), examples=5))
    rows, y = halves()
    pipe = make_pipeline(FunctionTransformer(lambda table: table / 2), model)
    pipe.fit(rows, y, logisticregression__account=account())
    assert pipe.score(rows, y) > 0.85
    assert sklearn.__version__


def test_examples_of_persons_are_bounded_by_person() -> None:
    rows, y = halves(500)
    unit = Person("who", at_most=2)
    model = logistic(unit=unit, mu=1.0)
    model.fit(rows, y, persons=np.arange(500) // 5, account=account(unit))
    with pytest.raises(DataError, match="persons"):
        model.fit(rows, y, account=account(unit))


def test_a_schema_turns_columns_into_features_row_by_row() -> None:
    schema = Columns({"a": Categories("xy"), "b": Range(0, 10), "c": Cuts(1, 2)})
    table = {"a": ["x", "?", "y"], "b": [0, math.nan, math.inf], "c": [0.5, math.nan, 7]}
    features = schema.matrix(table)
    assert features.tolist() == [[1, 0, -1, 1, 0, 0], [0, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 1]]
    assert schema.width == len(schema.names) == 6
    assert (np.linalg.norm(features, axis=1) <= schema.norm).all()
    pandas = pytest.importorskip("pandas")
    assert np.array_equal(schema.matrix(pandas.DataFrame(table)), features)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Categories([]), lambda: Categories("xx"), Cuts, lambda: Cuts(2, 1), lambda: Cuts(math.nan),
        lambda: Range(1, 0), lambda: Range(0, math.inf), lambda: Columns({}), lambda: Columns({"a": 3}),  # type: ignore[dict-item]
    ],
)  # fmt: skip
def test_wrong_schemas_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidParameter):
        wrong()


def test_a_schema_wants_its_columns() -> None:
    schema = Columns({"a": Range(0, 1), "b": Range(0, 1)})
    with pytest.raises(DataError, match="no column 'b'"):
        schema.matrix({"a": [1]})
    with pytest.raises(DataError, match="length"):
        schema.matrix({"a": [1], "b": [1, 2]})


@pytest.mark.skipif(not (DATA / "adult").exists(), reason="the data set Adult is not here (set MOSHA_DATA)")
@pytest.mark.parametrize(("epsilon", "bar", "runs"), [(1.0, 0.846, 1), (0.1, 0.835, 4)])
def test_the_census_is_learnt_above_its_bar(epsilon: float, bar: float, runs: int) -> None:
    """Measured 85.7% ± 0.1 and 84.2% ± 0.2 a run: 10 and 6.7 standard errors above, false alarms below 1e-10."""
    sys.path.insert(0, str(ROOT))
    from examples import learning_adult as adult

    table, labels = adult.read(DATA / "adult" / "adult.data.gz")
    public, truth = adult.read(DATA / "adult" / "adult.test.gz")
    rows, others = adult.SCHEMA.matrix(table), adult.SCHEMA.matrix(public)
    scores = [adult.model(epsilon).fit(rows, labels, account=account()).score(others, truth) for _ in range(runs)]
    assert np.mean(scores) >= bar
