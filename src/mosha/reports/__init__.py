"""Reports: several questions with one budget, planned together, paid once a period, written for people.

Report                  questions, wishes and a budget; forecast, run, show
Edition                 the answers of one period: HTML, PDF, Markdown, CSV, Parquet, notebook
Forecast, Split         what everything will cost, and how accurate it will be
Wish                    an error bar, or a weight
draft_report            a report in a file, from a template or from a declaration
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.reports.content import Section as Section
    from mosha.reports.drafting import TEMPLATES as TEMPLATES
    from mosha.reports.drafting import draft_report as draft_report
    from mosha.reports.edition import Edition as Edition
    from mosha.reports.forecast import Forecast as Forecast
    from mosha.reports.parts import Wish as Wish
    from mosha.reports.period import Period as Period
    from mosha.reports.period import find_period as find_period
    from mosha.reports.report import Report as Report
    from mosha.reports.split import Split as Split
    from mosha.reports.split import split_budget as split_budget

_NAMES = {
    "Edition": "edition",
    "Forecast": "forecast",
    "Period": "period",
    "Report": "report",
    "Section": "content",
    "Split": "split",
    "TEMPLATES": "drafting",
    "Wish": "parts",
    "draft_report": "drafting",
    "find_period": "period",
    "split_budget": "split",
}
__all__ = [
    "TEMPLATES",
    "Edition",
    "Forecast",
    "Period",
    "Report",
    "Section",
    "Split",
    "Wish",
    "draft_report",
    "find_period",
    "split_budget",
]
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES)
