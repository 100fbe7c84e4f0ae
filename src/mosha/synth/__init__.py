"""Synthetic tables and workloads of marginals: measured once as residuals, with exact noise and exact error bars.

`Table.marginals` and `Table.synthesize` lead here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.mechanisms.residuals.planning import cube as cube
    from mosha.mechanisms.residuals.planning import rollup as rollup
    from mosha.synth.comparing import Comparison as Comparison
    from mosha.synth.comparing import compare as compare
    from mosha.synth.linked import LinkedTables as LinkedTables
    from mosha.synth.linking import LinkedQuestion as LinkedQuestion
    from mosha.synth.margins import Estimate as Estimate
    from mosha.synth.margins import Marginals as Marginals
    from mosha.synth.report import Report as Report
    from mosha.synth.synthesis import SynthesisQuestion as SynthesisQuestion
    from mosha.synth.synthesis import ask_synthesis as ask_synthesis
    from mosha.synth.synthetic import Synthetic as Synthetic
    from mosha.synth.workload import MarginalsQuestion as MarginalsQuestion
    from mosha.synth.workload import ask_marginals as ask_marginals

_NAMES = {
    "Comparison": "comparing",
    "Estimate": "margins",
    "LinkedQuestion": "linking",
    "LinkedTables": "linked",
    "Marginals": "margins",
    "MarginalsQuestion": "workload",
    "Report": "report",
    "SynthesisQuestion": "synthesis",
    "Synthetic": "synthetic",
    "ask_marginals": "workload",
    "ask_synthesis": "synthesis",
    "compare": "comparing",
    "cube": ".mechanisms.residuals.planning",
    "rollup": ".mechanisms.residuals.planning",
}
__all__ = [
    "Comparison",
    "Estimate",
    "LinkedQuestion",
    "LinkedTables",
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
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES)
