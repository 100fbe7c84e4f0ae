"""Federations for tests: clients whose updates are known, and clients that misbehave."""

import numpy as np

import mosha
from mosha.federated import Block

RNG = np.random.default_rng()  # for public inputs only; noise comes from mosha.noise


class Listed:
    """A federation whose clients send what a dictionary says, in one block each."""

    def __init__(self, sent):
        self.sent = dict(sent)
        self.asked = []

    def clients(self):
        return list(self.sent)

    def updates(self, chosen, ask):
        self.asked.append((list(chosen), ask))
        for client in chosen:
            if self.sent[client] is not None:
                yield Block([client], np.atleast_2d(self.sent[client]))


def unit_vectors(count, width, length=1.0):
    rows = RNG.normal(size=(count, width))
    return length * rows / np.linalg.norm(rows, axis=1, keepdims=True)


def purse(unit=None, epsilon=100.0, delta=1e-3, ledger=None):
    ledger = ledger or mosha.Ledger.memory()
    return ledger.account("phones", unit=unit or mosha.Client(), epsilon=epsilon, delta=delta, rule="pure")
