"""The private side of a federation: which clients there are, and what those send who were drawn."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ask", "Block", "Federation", "accepted"]


@dataclass(frozen=True)
class Ask:
    """What a round asks of its clients; public. `weights` is the model so far, flat; `config` whatever they need."""

    number: int
    weights: NDArray[Any]
    config: Any = None


@dataclass(frozen=True)
class Block:
    """What some clients sent: one row for each. `weights` are claims about how much each should count."""

    clients: Sequence[Hashable]
    updates: NDArray[Any]
    weights: Sequence[float] | None = None


class Federation(Protocol):
    """Clients and a way to ask them: a simulator, a network, a list of updates.

    `clients` gives distinct names. `updates` sends `ask` to those that were chosen and gives what came back,
    in any number of blocks; who sends nothing is simply missing.
    """

    def clients(self) -> Sequence[Hashable]: ...

    def updates(self, chosen: Sequence[Hashable], ask: Any) -> Iterable[Block]: ...


def accepted(blocks: Iterable[Block], chosen: Sequence[Hashable], coordinates: int) -> Iterator[Block]:
    """The blocks without what must not count: strangers, clients that were not chosen, and second messages of one.

    Guarantee:
        Each chosen client contributes at most one row, its first; a row of another shape or type is left out. What is
        kept of one client depends on what that client sent alone, and nothing here raises on what a client sent.

    >>> sent = [Block(["a", "b", "a"], np.ones((3, 2))), Block(["c"], np.ones((1, 5)))]
    >>> [list(block.clients) for block in accepted(sent, ["a", "c"], 2)]
    [['a']]
    """
    waiting = set(chosen)
    for block in blocks:
        rows = []
        for row, client in enumerate(block.clients):
            if client in waiting:
                waiting.discard(client)
                rows.append(row)
        updates = np.asarray(block.updates)
        fits = updates.ndim == 2 and updates.shape == (len(block.clients), coordinates) and updates.dtype.kind in "fiu"
        if not rows or not fits:
            continue
        if updates.dtype not in (np.float32, np.float64):
            updates = updates.astype(np.float64)
        if len(rows) == len(block.clients):
            yield Block(block.clients, updates, _claims(block, rows))
        else:
            yield Block([block.clients[row] for row in rows], updates[rows], _claims(block, rows))


def _claims(block: Block, rows: list[int]) -> list[float] | None:
    """The claimed weights of these rows; what is no number counts as zero."""
    if block.weights is None:
        return None
    claims = list(block.weights)
    return [_number(claims[row]) if row < len(claims) else 0.0 for row in rows]


def _number(claim: Any) -> float:
    try:
        return float(claim)
    except (TypeError, ValueError, OverflowError):
        return 0.0
