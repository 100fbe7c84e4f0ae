"""The private side of a federation: which clients there are, and what those send who were drawn."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ask", "Block", "Federation", "accept_updates"]


@dataclass(frozen=True)
class Ask:
    """What round `number` asks of its clients; public.

    `weights` is the model so far, flat; `config` whatever they need.

    >>> import numpy as np
    >>> Ask(number=1, weights=np.zeros(3)).weights.shape
    (3,)
    """

    number: int
    weights: NDArray[Any]
    config: Any = None


@dataclass(frozen=True)
class Block:
    """What some `clients` sent: a row of `updates` each. `weights` are claims about how much each should count.

    >>> import numpy as np
    >>> len(Block(clients=["a", "b"], updates=np.zeros((2, 3))).clients)
    2
    """

    clients: Sequence[Hashable] = field(repr=False)
    updates: NDArray[Any] = field(repr=False)
    weights: Sequence[float] | None = field(default=None, repr=False)


class Federation(Protocol):
    """Clients and a way to ask them: a simulator, a network, a list of updates.

    `clients` gives distinct names. `updates` sends `ask` to those that were chosen and gives what came back,
    in any number of blocks; who sends nothing is simply missing.

    >>> import numpy as np
    >>> class Listed:
    ...     def clients(self):
    ...         return ["a", "b"]
    ...     def updates(self, chosen, ask):
    ...         yield Block(list(chosen), np.ones((len(chosen), ask.weights.size)))
    >>> [block.updates.shape for block in Listed().updates(["a"], Ask(1, np.zeros(3)))]
    [(1, 3)]
    """

    def clients(self) -> Sequence[Hashable]:
        """The names of all clients, each once."""
        ...

    def updates(self, chosen: Sequence[Hashable], ask: object) -> Iterable[Block]:
        """What the `chosen` clients answer, in blocks."""
        ...


def accept_updates(blocks: Iterable[Block], chosen: Sequence[Hashable], coordinates: int) -> Iterator[Block]:
    """The blocks without what must not count: strangers, clients that were not chosen, and second messages of one.

    Guarantee:
        Each chosen client contributes at most one row, its first; a row of another shape or type is left out. What is
        kept of one client depends on what that client sent alone, and nothing here raises on what a client sent.

    >>> sent = [Block(["a", "b", "a"], np.ones((3, 2))), Block(["c"], np.ones((1, 5)))]
    >>> [list(block.clients) for block in accept_updates(sent, ["a", "c"], 2)]
    [['a']]
    """
    waiting = set(chosen)
    for block in blocks:
        try:
            clients = list(block.clients)
        except Exception:  # noqa: BLE001, S112  (whatever was sent, the others go on)
            continue
        rows = [row for row, client in enumerate(clients) if _is_first(client, waiting)]
        updates = _as_matrix(block.updates, len(clients), coordinates)
        if updates is None:
            yield from _row_by_row(block, clients, rows, coordinates)
        elif len(rows) == len(clients):
            yield Block(block.clients, updates, _claims(block, rows))
        elif rows:
            yield Block([clients[row] for row in rows], updates[rows], _claims(block, rows))


def _is_first(client: object, waiting: set[Hashable]) -> bool:
    """Whether this client was chosen and has sent nothing before; from now on it has."""
    try:
        first = client in waiting
    except Exception:  # noqa: BLE001  (a name that cannot be looked up is nobody's)
        return False
    waiting.discard(client)
    return first


def _as_matrix(updates: object, rows: int, coordinates: int) -> NDArray[Any] | None:
    """The updates of a block as one array of numbers; None where they are not."""
    try:
        found = np.asarray(updates)
    except Exception:  # noqa: BLE001  (rows of different lengths, or something that is no row)
        return None
    if found.shape != (rows, coordinates) or found.dtype.kind not in "fiu":
        return None
    return found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)


def _row_by_row(block: Block, clients: list[Hashable], rows: list[int], coordinates: int) -> Iterator[Block]:
    """Each client's row judged by itself, where a block is no clean array: one bad row costs nobody else's."""
    for row in rows:
        try:
            sent = block.updates[row]
        except Exception:  # noqa: BLE001, S112
            continue
        update = _as_matrix([sent], 1, coordinates)
        if update is not None:
            yield Block([clients[row]], update, _claims(block, [row]))


def _claims(block: Block, rows: list[int]) -> list[float] | None:
    """The claimed weights of these rows; what is no number counts as zero."""
    if block.weights is None:
        return None
    return [_number(block.weights, row) for row in rows]


def _number(claims: Any, row: int) -> float:
    try:
        return float(claims[row])
    except Exception:  # noqa: BLE001  (what is no number, or is not there)
        return 0.0
