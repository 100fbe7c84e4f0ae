"""Randomised blocks: a statistic and its bounds go in, a measurement with its price, error and proof comes out.

Statistics: `Count`, `Histogram`, `ClippedSum`, `VectorSum`, `SumAndCount`, `Quantile`, `Clipped`,
`ClippedVectors`; of genomes `AlleleCounts`, `ChiSquares`, `AssociationScores`.

Measurements: `laplace`, `gaussian`, `additive` (the better of the two), `mean`; choices `permute_and_flip`,
`exponential`, `report_noisy_max`, `top_k`; `above_threshold`; `randomized_response`; `partition_selection`;
`smooth_sensitivity`, `propose_test_release`. `planning` turns an accuracy into an epsilon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.exact.association import AlleleCounts as AlleleCounts
    from mosha.exact.association import AssociationScores as AssociationScores
    from mosha.exact.association import ChiSquares as ChiSquares
    from mosha.exact.clip import Clipped as Clipped
    from mosha.exact.clip import ClippedVectors as ClippedVectors
    from mosha.exact.clip import clipping_bias as clipping_bias
    from mosha.exact.counts import Count as Count
    from mosha.exact.counts import Histogram as Histogram
    from mosha.exact.quantile import LocalStatistic as LocalStatistic
    from mosha.exact.quantile import Quantile as Quantile
    from mosha.exact.statistic import Sensitivity as Sensitivity
    from mosha.exact.statistic import Statistic as Statistic
    from mosha.exact.sum_and_count import SumAndCount as SumAndCount
    from mosha.exact.sums import ClippedSum as ClippedSum
    from mosha.exact.sums import VectorSum as VectorSum
    from mosha.mechanisms import planning as planning
    from mosha.mechanisms.best_noise import NoiseChoice as NoiseChoice
    from mosha.mechanisms.best_noise import additive as additive
    from mosha.mechanisms.best_noise import best_noise as best_noise
    from mosha.mechanisms.choice import exponential as exponential
    from mosha.mechanisms.choice import permute_and_flip as permute_and_flip
    from mosha.mechanisms.gaussian import classic_multiplier as classic_multiplier
    from mosha.mechanisms.gaussian import gaussian as gaussian
    from mosha.mechanisms.laplace import laplace as laplace
    from mosha.mechanisms.mean import mean as mean
    from mosha.mechanisms.noisy_max import report_noisy_max as report_noisy_max
    from mosha.mechanisms.partition_selection import partition_selection as partition_selection
    from mosha.mechanisms.propose_test_release import propose_test_release as propose_test_release
    from mosha.mechanisms.randomized_response import randomized_response as randomized_response
    from mosha.mechanisms.randomized_response import response_frequencies as response_frequencies
    from mosha.mechanisms.smooth_sensitivity import smooth_forecast as smooth_forecast
    from mosha.mechanisms.smooth_sensitivity import smooth_sensitivity as smooth_sensitivity
    from mosha.mechanisms.sparse_vector import above_threshold as above_threshold
    from mosha.mechanisms.top_k import top_k as top_k

_NAMES = {
    "AlleleCounts": ".exact.association",
    "AssociationScores": ".exact.association",
    "ChiSquares": ".exact.association",
    "Clipped": ".exact.clip",
    "ClippedSum": ".exact.sums",
    "ClippedVectors": ".exact.clip",
    "Count": ".exact.counts",
    "Histogram": ".exact.counts",
    "LocalStatistic": ".exact.quantile",
    "NoiseChoice": "best_noise",
    "Quantile": ".exact.quantile",
    "Sensitivity": ".exact.statistic",
    "Statistic": ".exact.statistic",
    "SumAndCount": ".exact.sum_and_count",
    "VectorSum": ".exact.sums",
    "above_threshold": "sparse_vector",
    "additive": "best_noise",
    "best_noise": "best_noise",
    "classic_multiplier": "gaussian",
    "clipping_bias": ".exact.clip",
    "exponential": "choice",
    "gaussian": "gaussian",
    "laplace": "laplace",
    "mean": "mean",
    "partition_selection": "partition_selection",
    "permute_and_flip": "choice",
    "propose_test_release": "propose_test_release",
    "randomized_response": "randomized_response",
    "report_noisy_max": "noisy_max",
    "response_frequencies": "randomized_response",
    "smooth_forecast": "smooth_sensitivity",
    "smooth_sensitivity": "smooth_sensitivity",
    "top_k": "top_k",
}
_MODULES = ("planning",)
__all__ = [*sorted(_NAMES), *_MODULES]  # noqa: PLE0604
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES, _MODULES)
