import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.clocked import add_dataset, make_rows
from tests.server.house import LONG, opened
from tests.server.processes import ServerProcess
from tests.server.screens import driven


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One server for all tests that do not use it up."""
    options = {"previews_per_minute": 10_000, "requests_per_minute": 10_000, "waiting_per_principal": 1000}
    with opened(tmp_path_factory.mktemp("server"), **options) as found:
        yield found


@pytest.fixture(scope="session", params=["mouse", "keys"])
def tab(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A server and a browser; every journey is made with the mouse, and once more by keys alone."""
    if shutil.which("chromium") is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    rates = {"previews_per_minute": 10_000, "requests_per_minute": 10_000}
    with opened(tmp_path_factory.mktemp("journeys"), **rates) as house:
        add_dataset(house, "clinic", make_rows(500), timing="off", deadline=LONG)
        with driven(str(house.client.base_url).rstrip("/")) as page:
            page.house, page.by_keys = house, request.param == "keys"
            yield page


@pytest.fixture(scope="session", autouse=True)
def no_server_is_left_over() -> Iterator[None]:
    """A test that failed may have left its server running: nobody waits for it."""
    yield
    for server in ServerProcess.started:
        if server.process.poll() is None:
            server.kill()


@pytest.fixture(params=["en", "zh"])
def page(tab: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The tab with nobody signed in; afterwards nothing was refused and nobody else asked.

    Every journey is made four times: in both languages, with the mouse and by keys alone.
    """
    tab.language = request.param
    tab.addresses.clear()
    tab.reports.clear()
    tab.forget()
    tab.speak(tab.language)
    tab.resize(1200)
    yield tab
    assert tab.reports == []
    assert [address for address in tab.addresses if not address.startswith((tab.base, "about:", "data:"))] == []
