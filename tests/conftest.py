"""What every test folder shares: laws are searched where `tests.searches` says, and a busy machine is no failure."""

import pytest
from hypothesis import HealthCheck, settings

from tests.searches import AFRESH

settings.register_profile(
    "laws", deadline=None, database=None, derandomize=not AFRESH, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("laws")

MOSTLY_WAITING = "test_real_processes.py"  # for Flower's heartbeat: begun first, it waits while others work


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name != MOSTLY_WAITING)
