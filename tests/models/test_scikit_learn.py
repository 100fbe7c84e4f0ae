"""What scikit-learn's own checks say of the models, and the reasons where they do not pass."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from mosha import Example, Ledger
from mosha.models import (
    PCA,
    GaussianNB,
    GradientBoostingRegressor,
    KMeans,
    Lasso,
    LinearRegression,
    Ridge,
    StandardScaler,
)

LARGE: dict[str, Any] = {"mu": 50.0}
MODELS = [
    StandardScaler(between=(-10, 10), **LARGE),
    PCA(between=(-10, 10), **LARGE),
    LinearRegression(between=(-10, 10), target=(-100, 100), **LARGE),
    Ridge(between=(-10, 10), target=(-100, 100), **LARGE),
    Lasso(between=(-10, 10), target=(-100, 100), **LARGE),
    GaussianNB(classes=(0, 1), between=(-10, 10), **LARGE),
    KMeans(n_clusters=2, between=(-10, 10), **LARGE),
    GradientBoostingRegressor(between=(-10, 10), target=(-100, 100), rounds=2, **LARGE),
]
REASONS = {
    "fits differ from run to run, by noise": "fit_idempotent regressors_int",
    "a missing or odd value counts for nothing: an error would tell that it was there": (
        "supervised_y_no_nan supervised_y_2d complex_data dtype_object estimators_empty_data_messages requires_y_none "
        "classifiers_regression_target regressors_train classifiers_train"
    ),
    "errors are Mosha's own, with codes and in two languages": (
        "estimators_unfitted transformers_unfitted fit1d fit2d_predict1d n_features_in_after_fitting"
    ),
    "classes are declared": "classifiers_classes",
    "sparse matrices are not read": "estimator_sparse_tag estimator_sparse_array estimator_sparse_matrix",
    "what is neither array nor frame is read row by row": (
        "classifier_data_not_an_array regressor_data_not_an_array transformer_data_not_an_array"
    ),
    "fit and transform are two calls: transformed rows are private rows": (
        "transformer_general transformer_preserve_dtypes"
    ),
    "the twin that pays is a class of this test": "estimators_pickle",
}


def paying(model: Any) -> Any:
    """The same model with somebody who pays: scikit-learn's checks call `fit(X, y)`."""
    kind = type(model)

    def fit(self: Any, X: Any, y: Any = None) -> Any:  # noqa: N803
        account = Ledger.memory().account("checks", unit=Example(), mu=60, delta=1e-6)
        return kind.fit(self, X, y, account=account)

    twin = type(kind.__name__, (kind,), {"fit": fit, "__init__": kind.__init__})
    return twin(**model.get_params())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_model_passes_the_checks_of_scikit_learn_but_for_named_reasons(model: Any) -> None:
    named = {f"check_{name}" for names in REASONS.values() for name in names.split()}
    found = check_estimator(paying(model), on_fail=None)
    failed = {result["check_name"] for result in found if result["status"] == "failed"}
    assert failed <= named
    assert sum(result["status"] == "passed" for result in found) >= 25


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_clone_has_the_same_parameters(model: Any) -> None:
    assert clone(model).get_params() == model.get_params()


def test_models_stand_in_a_pipeline() -> None:
    """Each step pays by itself; here from one purse."""
    rows = np.random.default_rng().normal(size=(3000, 3))
    steps = make_pipeline(paying(StandardScaler(between=(-5, 5), mu=5)), paying(MODELS[2]))
    assert steps.fit(rows, rows @ [1.0, 2.0, 3.0]).score(rows, rows @ [1.0, 2.0, 3.0]) > 0.5
