"""What every test folder shares: laws are searched afresh on each run, and a busy machine is no failure."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("laws", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("laws")

MOSTLY_WAITING = "test_real_processes.py"  # for Flower's heartbeat: begun first, it waits while others work


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name != MOSTLY_WAITING)
