"""Synthetic tables and workloads of marginals: measured once as residuals, with exact noise and exact error bars.

`Table.marginals` and `Table.synthesize` lead here.
"""

from mosha.core.names.lazy import keep_public_names
from mosha.synth.comparing import Comparison, compare
from mosha.synth.margins import Estimate, Marginals
from mosha.synth.measuring.planning import cube, rollup
from mosha.synth.report import Report
from mosha.synth.synthesis import SynthesisQuestion, ask_synthesis
from mosha.synth.synthetic import Synthetic
from mosha.synth.workload import MarginalsQuestion, ask_marginals

__all__ = [
    "Comparison",
    "Estimate",
    "Marginals",
    "MarginalsQuestion",
    "Report",
    "SynthesisQuestion",
    "Synthetic",
    "ask_marginals",
    "ask_synthesis",
    "compare",
    "cube",
    "rollup",
]
keep_public_names(__name__)
