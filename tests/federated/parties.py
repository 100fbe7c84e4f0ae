"""Federations for tests: clients whose updates are known, and clients that misbehave."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import mosha
from mosha.federated import Block

RNG = np.random.default_rng()  # for public inputs only; noise comes from mosha.noise


class Listed:
    """A federation whose clients send what a dictionary says, in one block each."""

    def __init__(self, sent: Any) -> None:
        self.sent = dict(sent)
        self.asked = []  # type: ignore[var-annotated]

    def clients(self) -> list[Any]:
        return list(self.sent)

    def updates(self, chosen: Any, ask: Any) -> Iterator[Any]:
        self.asked.append((list(chosen), ask))
        for client in chosen:
            if self.sent[client] is not None:
                yield Block([client], np.atleast_2d(self.sent[client]))


def unit_vectors(count: Any, width: Any, length: float = 1.0) -> Any:
    rows = RNG.normal(size=(count, width))
    return length * rows / np.linalg.norm(rows, axis=1, keepdims=True)


def purse(unit: Any = None, epsilon: float = 100.0, delta: float = 1e-3, ledger: Any = None) -> Any:
    ledger = ledger or mosha.Ledger.memory()
    return ledger.account("phones", unit=unit or mosha.Client(), epsilon=epsilon, delta=delta, rule="pure")
