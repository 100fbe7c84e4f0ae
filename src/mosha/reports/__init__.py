"""Reports: several questions with one budget, planned together, paid once a period, written for people.

Report                  questions, wishes and a budget; forecast, run, show
Edition                 the answers of one period: HTML, PDF, Markdown, CSV, Parquet, notebook
Forecast, Split         what everything will cost, and how accurate it will be
Wish                    an error bar, or a weight
draft_report            a report in a file, from a template or from a declaration
"""

from mosha.core.names.lazy import keep_public_names
from mosha.reports.content import Section
from mosha.reports.drafting import TEMPLATES, draft_report
from mosha.reports.edition import Edition
from mosha.reports.forecast import Forecast
from mosha.reports.parts import Wish
from mosha.reports.period import Period, find_period
from mosha.reports.report import Report
from mosha.reports.split import Split, split_budget

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
keep_public_names(__name__)
