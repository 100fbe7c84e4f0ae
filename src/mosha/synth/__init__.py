"""Synthetic tables and workloads of marginals: measured once as residuals, with exact noise and exact error bars.

`Table.marginals` and `Table.synthesize` lead here.
"""

from mosha.core.lazy import keep_public_names
from mosha.synth.margins import Estimate, Marginals
from mosha.synth.workload import MarginalsQuestion, ask_marginals

__all__ = [
    "Estimate",
    "Marginals",
    "MarginalsQuestion",
    "ask_marginals",
]
keep_public_names(__name__)
