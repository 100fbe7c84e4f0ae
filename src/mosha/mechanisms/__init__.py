"""Randomised blocks: a statistic and its bounds go in, a measurement with its price, error and proof comes out.

Statistics: `Count`, `Histogram`, `ClippedSum`, `VectorSum`, `SumAndCount`, `Quantile`, `Clipped`,
`ClippedVectors`.

Measurements: `laplace`, `gaussian`, `additive` (the better of the two), `mean`; choices `permute_and_flip`,
`exponential`, `report_noisy_max`, `top_k`; `above_threshold`; `randomized_response`; `partition_selection`;
`smooth_sensitivity`, `propose_test_release`. `planning` turns an accuracy into an epsilon.
"""

from mosha.core.lazy import keep_public_names
from mosha.exact.clip import Clipped, ClippedVectors, clipping_bias
from mosha.exact.counts import Count, Histogram
from mosha.exact.quantile import LocalStatistic, Quantile
from mosha.exact.statistic import Sensitivity, Statistic
from mosha.exact.sum_and_count import SumAndCount
from mosha.exact.sums import ClippedSum, VectorSum
from mosha.mechanisms import planning
from mosha.mechanisms.best_noise import NoiseChoice, additive, best_noise
from mosha.mechanisms.choice import exponential, permute_and_flip
from mosha.mechanisms.gaussian import classic_multiplier, gaussian
from mosha.mechanisms.laplace import laplace
from mosha.mechanisms.mean import mean
from mosha.mechanisms.noisy_max import report_noisy_max
from mosha.mechanisms.partition_selection import partition_selection
from mosha.mechanisms.propose_test_release import propose_test_release
from mosha.mechanisms.randomized_response import randomized_response, response_frequencies
from mosha.mechanisms.smooth_sensitivity import smooth_forecast, smooth_sensitivity
from mosha.mechanisms.sparse_vector import above_threshold
from mosha.mechanisms.top_k import top_k

__all__ = [
    "Clipped",
    "ClippedSum",
    "ClippedVectors",
    "Count",
    "Histogram",
    "LocalStatistic",
    "NoiseChoice",
    "Quantile",
    "Sensitivity",
    "Statistic",
    "SumAndCount",
    "VectorSum",
    "above_threshold",
    "additive",
    "best_noise",
    "classic_multiplier",
    "clipping_bias",
    "exponential",
    "gaussian",
    "laplace",
    "mean",
    "partition_selection",
    "permute_and_flip",
    "planning",
    "propose_test_release",
    "randomized_response",
    "report_noisy_max",
    "response_frequencies",
    "smooth_forecast",
    "smooth_sensitivity",
    "top_k",
]
keep_public_names(__name__)
