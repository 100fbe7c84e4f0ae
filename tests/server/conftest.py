import pytest

from tests.server.house import opened


@pytest.fixture(scope="session")
def house(tmp_path_factory):
    """One server for all tests that do not use it up."""
    options = {"previews_per_minute": 10_000, "requests_per_minute": 10_000, "waiting_per_principal": 1000}
    with opened(tmp_path_factory.mktemp("server"), **options) as found:
        yield found
