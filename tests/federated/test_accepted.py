"""What is kept of one client depends on what that client sent alone, however it was put into a block."""

from typing import Any, NoReturn

import numpy as np
import pytest

from mosha.federated.federation import Block, accept_updates

CHOSEN = ["a", "b", "c"]


class Refuses:
    """Raises whatever is done with it."""

    def __hash__(self) -> NoReturn:
        raise ValueError("no hash")

    def __float__(self) -> NoReturn:
        raise RuntimeError("no number")

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise OSError("no array")

    def __len__(self) -> NoReturn:
        raise KeyError("no length")


HOSTILE = {
    "too long": [1.0, 2.0, 3.0],
    "too short": [1.0],
    "nothing": [],
    "text": ["x", "y"],
    "complex": [1j, 2j],
    "objects": [object(), None],
    "nested": [[1.0, 2.0], [3.0, 4.0]],
    "a number": 7.0,
    "None": None,
    "dates": np.array(["2026-01-01", "2026-01-02"], "datetime64[D]"),
    "what refuses": Refuses(),
}


def kept(blocks: Any) -> dict[Any, Any]:
    return {
        client: (tuple(row), None if block.weights is None else block.weights[place])
        for block in accept_updates(blocks, CHOSEN, 2)
        for place, (client, row) in enumerate(zip(block.clients, block.updates.tolist(), strict=True))
    }


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("row", HOSTILE.values(), ids=HOSTILE)
def test_a_row_that_does_not_fit_costs_nobody_elses(row: Any, place: int) -> None:
    rows = [[float(client), 1.0] for client in range(3)]
    rows[place] = row
    found = kept([Block(CHOSEN, rows)])  # type: ignore[arg-type]
    assert found == {CHOSEN[i]: ((float(i), 1.0), None) for i in range(3) if i != place}


@pytest.mark.parametrize("name", [["a"], {}, Refuses(), None])
def test_a_name_that_cannot_be_looked_up_is_nobodys(name: Any) -> None:
    found = kept([Block([name, "a"], [[5.0, 5.0], [1.0, 1.0]])])  # type: ignore[arg-type]
    assert found == {"a": ((1.0, 1.0), None)}


@pytest.mark.parametrize("claims", [[2.0, "x"], [2.0], [2.0, Refuses()], [2.0, None]])
def test_a_claim_that_is_no_number_counts_as_nothing(claims: Any) -> None:
    found = kept([Block(["a", "b"], np.ones((2, 2)), claims)])
    assert (found["a"][1], found["b"][1]) == (2.0, 0.0)


def test_a_client_whose_first_row_does_not_fit_has_had_its_turn() -> None:
    assert kept([Block(["a"], [[1.0]]), Block(["a"], [[1.0, 2.0]])]) == {}  # type: ignore[arg-type]


def test_clean_blocks_stay_whole() -> None:
    (block,) = accept_updates([Block(CHOSEN, np.ones((3, 2), np.float32))], CHOSEN, 2)
    assert block.updates.dtype == np.float32
    assert len(block.clients) == 3
