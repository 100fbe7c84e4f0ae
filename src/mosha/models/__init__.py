"""Classic models by scikit-learn's conventions, each paid from the ledger as one release or one plan.

    StandardScaler, PCA                         what features look like
    LinearRegression, Ridge, Lasso              least squares on noisy moments; intervals that hold
    PoissonRegressor, CoxRegression             counts, and times until something happens
    GaussianNB, CategoricalNB                   classes by their likelihood
    DecisionTreeClassifier, RandomForestClassifier      splits chosen privately, or drawn at random
    GradientBoostingClassifier, GradientBoostingRegressor   additive scores, feature by feature
    KMeans, HistogramDensity                    clusters; a density on a public grid
    ChiSquareTest, TTest, Anova, KolmogorovSmirnovTest      p-values that know about the noise

Ranges, classes and categories are declared, never read off the data. `fit` takes arrays, data frames and protected
tables. Of a table the engine (DuckDB, PostgreSQL, Spark) is asked for one row of exact sums where moments or counts are
all that a model needs; models that go over the rows several times read them once, inside the step that was paid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.models.bayes import CategoricalNB as CategoricalNB
    from mosha.models.bayes import CategoryCounts as CategoryCounts
    from mosha.models.bayes import GaussianNB as GaussianNB
    from mosha.models.boosting import GradientBoostingClassifier as GradientBoostingClassifier
    from mosha.models.boosting import GradientBoostingRegressor as GradientBoostingRegressor
    from mosha.models.clusters import ClusterSums as ClusterSums
    from mosha.models.clusters import KMeans as KMeans
    from mosha.models.components import PCA as PCA
    from mosha.models.density import HistogramDensity as HistogramDensity
    from mosha.models.forests import LeafCounts as LeafCounts
    from mosha.models.forests import RandomForestClassifier as RandomForestClassifier
    from mosha.models.hypothesis import Anova as Anova
    from mosha.models.hypothesis import ChiSquareTest as ChiSquareTest
    from mosha.models.hypothesis import KolmogorovSmirnovTest as KolmogorovSmirnovTest
    from mosha.models.hypothesis import TestResult as TestResult
    from mosha.models.hypothesis import TTest as TTest
    from mosha.models.ranges import Ranges as Ranges
    from mosha.models.rates import PoissonRegressor as PoissonRegressor
    from mosha.models.regression import Lasso as Lasso
    from mosha.models.regression import LinearRegression as LinearRegression
    from mosha.models.regression import Ridge as Ridge
    from mosha.models.scaling import StandardScaler as StandardScaler
    from mosha.models.sums.group_cells import GroupCells as GroupCells
    from mosha.models.sums.moments import Moments as Moments
    from mosha.models.sums.moments import MomentSums as MomentSums
    from mosha.models.sums.residual_sums import BinCounts as BinCounts
    from mosha.models.sums.residual_sums import ResidualSums as ResidualSums
    from mosha.models.survival import CoxRegression as CoxRegression
    from mosha.models.survival import SurvivalDescent as SurvivalDescent
    from mosha.models.trees import DecisionTreeClassifier as DecisionTreeClassifier

_NAMES = {
    "Anova": "hypothesis",
    "BinCounts": "sums.residual_sums",
    "CategoricalNB": "bayes",
    "CategoryCounts": "bayes",
    "ChiSquareTest": "hypothesis",
    "ClusterSums": "clusters",
    "CoxRegression": "survival",
    "DecisionTreeClassifier": "trees",
    "GaussianNB": "bayes",
    "GradientBoostingClassifier": "boosting",
    "GradientBoostingRegressor": "boosting",
    "GroupCells": "sums.group_cells",
    "HistogramDensity": "density",
    "KMeans": "clusters",
    "KolmogorovSmirnovTest": "hypothesis",
    "Lasso": "regression",
    "LeafCounts": "forests",
    "LinearRegression": "regression",
    "MomentSums": "sums.moments",
    "Moments": "sums.moments",
    "PCA": "components",
    "PoissonRegressor": "rates",
    "RandomForestClassifier": "forests",
    "Ranges": "ranges",
    "ResidualSums": "sums.residual_sums",
    "Ridge": "regression",
    "StandardScaler": "scaling",
    "SurvivalDescent": "survival",
    "TTest": "hypothesis",
    "TestResult": "hypothesis",
}
__all__ = sorted(_NAMES)  # noqa: PLE0605
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES)
