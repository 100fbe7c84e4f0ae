"""A short run of schemathesis over the whole API; `python -m fuzz server` sends thousands."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.fuzzed import find_operations, make_king, try_operation
from tests.server.house import opened

OPERATIONS = find_operations()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, ...]]:
    rates = {"previews_per_minute": 100_000, "requests_per_minute": 100_000, "waiting_per_principal": 100_000}
    with opened(tmp_path_factory.mktemp("fuzzed"), **rates) as house:
        yield house, make_king(house)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.definition.raw["operationId"])
def test_no_request_ends_in_an_error_of_ours(operation: Any, place: Any) -> None:
    house, token = place
    assert try_operation(house, operation, token, examples=8) > 0
