"""Learning: models trained with differential privacy, paid from the same ledger as everything else.

    DPSGD, DPFTRL               plans: frozen, priced and calibrated without any deep-learning library
    Poisson, Shuffled, FixedSize    who is in the batch of a step
    DPSGD.train                 a training: paid as a whole, one noisy gradient per step
    private                     the wrapping that users of Opacus know
    make_trainer_private        the same for the Trainer of Hugging Face
    Adam, AdamW                 optimisers that take the noise out of the second moment
    without_batch_norm          a model without layers that mix examples
    register_layer              gradients of single rows for layers of one's own
    LogisticRegression, SoftmaxRegression, LinearRegression     without PyTorch, by scikit-learn's conventions
    GaussianClasses             a generative model in closed form: classifier and sampler
    Columns, Scattering         features of tables and of small pictures that nobody needs to pay for
    best_of_random_runs, search, explore    hyperparameters: the whole search is priced, or not called private
    accuracy, choose_model, calibration     releases about a model
    teachers_labels             private labels by the votes of teachers (PATE)
    Aggregation                 private sums over the neighbors in a graph (GAP)

PyTorch (the extra `learning`) is loaded when a model is trained, not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.learning.choosing.accuracy import Correct as Correct
    from mosha.learning.choosing.accuracy import accuracy as accuracy
    from mosha.learning.choosing.accuracy import accuracy_interval as accuracy_interval
    from mosha.learning.choosing.accuracy import choose_model as choose_model
    from mosha.learning.choosing.calibration import Calibration as Calibration
    from mosha.learning.choosing.calibration import calibration as calibration
    from mosha.learning.choosing.calibration import with_temperature as with_temperature
    from mosha.learning.choosing.pate import teachers_labels as teachers_labels
    from mosha.learning.choosing.selection import SearchResult as SearchResult
    from mosha.learning.choosing.selection import best_of_random_runs as best_of_random_runs
    from mosha.learning.choosing.selection import explore as explore
    from mosha.learning.choosing.selection import search as search
    from mosha.learning.correlated_plan import DPFTRL as DPFTRL
    from mosha.learning.frameworks.hugging_face import make_trainer_private as make_trainer_private
    from mosha.learning.frameworks.wrapping import private as private
    from mosha.learning.gradients.own_layers import register_layer as register_layer
    from mosha.learning.gradients.validator import mixing_layers as mixing_layers
    from mosha.learning.gradients.validator import without_batch_norm as without_batch_norm
    from mosha.learning.graph_aggregation import Aggregation as Aggregation
    from mosha.learning.graph_aggregation import unit_rows as unit_rows
    from mosha.learning.linear.descent import Descent as Descent
    from mosha.learning.linear.gaussian_classes import GaussianClasses as GaussianClasses
    from mosha.learning.linear.models import LinearRegression as LinearRegression
    from mosha.learning.linear.models import LogisticRegression as LogisticRegression
    from mosha.learning.linear.models import SoftmaxRegression as SoftmaxRegression
    from mosha.learning.linear.scattering import Scattering as Scattering
    from mosha.learning.linear.table_features import Categories as Categories
    from mosha.learning.linear.table_features import Columns as Columns
    from mosha.learning.linear.table_features import Cuts as Cuts
    from mosha.learning.linear.table_features import Range as Range
    from mosha.learning.optimizers import Adam as Adam
    from mosha.learning.optimizers import AdamW as AdamW
    from mosha.learning.plan import DPSGD as DPSGD
    from mosha.learning.training import Step as Step
    from mosha.learning.training import Training as Training
    from mosha.mechanisms.plans.sampling import FixedSize as FixedSize
    from mosha.mechanisms.plans.sampling import Poisson as Poisson
    from mosha.mechanisms.plans.sampling import Shuffled as Shuffled

_NAMES = {
    "DPFTRL": "correlated_plan",
    "DPSGD": "plan",
    "Aggregation": "graph_aggregation",
    "Calibration": "choosing.calibration",
    "Categories": "linear.table_features",
    "Columns": "linear.table_features",
    "Correct": "choosing.accuracy",
    "Cuts": "linear.table_features",
    "Descent": "linear.descent",
    "FixedSize": "terms",
    "GaussianClasses": "linear.gaussian_classes",
    "LinearRegression": "linear.models",
    "LogisticRegression": "linear.models",
    "Poisson": "terms",
    "Range": "linear.table_features",
    "Scattering": "linear.scattering",
    "SearchResult": "choosing.selection",
    "Shuffled": "terms",
    "SoftmaxRegression": "linear.models",
    "accuracy": "choosing.accuracy",
    "accuracy_interval": "choosing.accuracy",
    "best_of_random_runs": "choosing.selection",
    "calibration": "choosing.calibration",
    "choose_model": "choosing.accuracy",
    "explore": "choosing.selection",
    "search": "choosing.selection",
    "teachers_labels": "choosing.pate",
    "unit_rows": "graph_aggregation",
    "with_temperature": "choosing.calibration",
}
_TORCH_NAMES = {
    "Adam": "optimizers",
    "AdamW": "optimizers",
    "Step": "training",
    "Training": "training",
    "make_trainer_private": "frameworks.hugging_face",
    "mixing_layers": "gradients.validator",
    "private": "frameworks.wrapping",
    "register_layer": "gradients.own_layers",
    "without_batch_norm": "gradients.validator",
}
__all__ = [*sorted(_NAMES), *sorted(_TORCH_NAMES)]  # noqa: PLE0604


def _needs_torch(name: str) -> None:
    if name in _TORCH_NAMES:
        from mosha.learning.plan import require_torch  # noqa: PLC0415

        require_torch()


__getattr__, __dir__ = loaded_when_used(__name__, _NAMES | _TORCH_NAMES, before=_needs_torch)
