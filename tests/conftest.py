"""What every test folder shares: laws are searched where `tests.searches` says, and a busy machine is no failure."""

import pytest
from hypothesis import HealthCheck, settings

from tests.searches import AFRESH

settings.register_profile(
    "laws", deadline=None, database=None, derandomize=not AFRESH, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("laws")

MOSTLY_WAITING = "test_real_processes.py"  # for Flower's heartbeat: begun first, it waits while others work


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What failed once and passed when it was tried again is said in full: a race, or a chance that nobody stated."""
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.section(f"failed, and tried once more: {report.nodeid}", sep="-")
        terminalreporter.write_line(report.longreprtext)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name != MOSTLY_WAITING)
