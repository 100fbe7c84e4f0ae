"""Metrics in the text form of Prometheus: counts and shares, no value of an answer and no duration."""

from __future__ import annotations

from mosha.core.errors import LedgerError
from mosha.server.service import Service
from mosha.server.work.queue import waiting_numbers

__all__ = ["write_metrics"]


def write_metrics(service: Service) -> str:
    """All metrics of this process."""
    lines = ["# TYPE mosha_requests_total counter"]
    for (_, operation, status), many in sorted(service.counts.items()):
        lines.append(f'mosha_requests_total{{operation="{operation}",status="{status}"}} {many}')
    lines.append("# TYPE mosha_queue_length gauge")
    waiting = waiting_numbers(service.database)
    states = ("waiting", "queued", "running")
    lines += [f'mosha_queue_length{{state="{state}"}} {waiting.get(state, 0)}' for state in states]
    lines.append("# TYPE mosha_budget_spent_ratio gauge")
    for row in service.database.rows("SELECT name, account FROM datasets WHERE version > 0 ORDER BY name"):
        try:
            account = service.ledger.account(row["account"])
            lines.append(f'mosha_budget_spent_ratio{{dataset="{row["name"]}"}} {account.spent / account.limit:.6f}')
        except LedgerError:
            continue
    lines.append("# TYPE mosha_ready gauge")
    lines.append(f"mosha_ready {int(service.ready)}")
    return "\n".join(lines) + "\n"
