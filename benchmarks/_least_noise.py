"""The least error of a noisy number of rows: what no symmetric noise on bounded people can go below.

With a limit of k rows one person moves a cell by k. A cell of which the limit cuts b rows (at random, or by weights:
what counts is the mean) is off by max(|N|, b) on average, or more, if the noise N is symmetric, for that is
(|N - b| + |N + b|) / 2. The least mean of it over all symmetric noise on whole numbers that hides a step of k with
(epsilon, delta) is a linear program for every whole k. For limits between whole numbers it is that of a staircase,
which is best at delta 0 for whatever grows with |N| (Geng and Viswanath 2014). A delta of 1e-6 lowers that by less than
0.1% (the linear program on quarters and eighths of a row, where noise is next to continuous); 1% is taken off.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog


def find_least_staircase(epsilon: float, delta: float, limit: float, cut: float) -> float:
    """The least mean of max(|N|, cut) over all staircases N that hide a step of `limit`, less 1% for delta."""
    del delta
    fall = math.exp(-epsilon)
    ends = limit * np.arange(60)
    falls = fall ** np.arange(60)

    def sum_to(x: np.ndarray) -> np.ndarray:
        return np.where(x < cut, cut * x, (x**2 + cut**2) / 2)  # max(x, cut) from 0 on

    found = []
    for share in np.linspace(0, 1, 101):
        turn = ends + share * limit
        steps = falls * (sum_to(turn) - sum_to(ends) + fall * (sum_to(ends + limit) - sum_to(turn)))
        found.append(float(steps.sum()) * (1 - fall) / (limit * (share + fall * (1 - share))))
    return 0.99 * min(found)


def find_least_whole(epsilon: float, delta: float, limit: float, cut: float) -> float:
    """The least mean of max(|N|, cut) over symmetric N on whole numbers that hide steps up to `limit`, with delta.

    Variables: P(N = x) for |x| up to 16 limits (beyond that is less than delta), and for every step d and every x the
    part of P(N = x) above exp(epsilon) P(N = x + d). These parts sum up to delta at most.
    """
    most = int(limit)
    size = 32 * most + 1
    x = np.arange(size) - 16 * most
    half = np.eye(16 * most, size)
    certain = np.vstack([np.ones((1, size)), half - half[:, ::-1]])  # they sum up to 1, and mirror each other
    hidden, parts = [], []
    for step in range(1, most + 1):
        hidden.append(np.eye(size + step, size, -step) - math.exp(epsilon) * np.eye(size + step, size))
        parts.append(np.ones((1, size + step)))
    above = sum(part.size for part in parts)
    blocks: Any = [[np.vstack(hidden), -sparse.eye(above)], [None, sparse.block_diag(parts)]]
    limited: Any = sparse.bmat(blocks, "csr")
    blocks = [[certain, sparse.csr_matrix((len(certain), above))]]
    equal: Any = sparse.bmat(blocks, "csr")
    solved = linprog(
        np.concatenate([np.maximum(abs(x), cut), np.zeros(above)]),
        A_ub=limited,
        b_ub=np.concatenate([np.zeros(above), np.full(most, delta)]),
        A_eq=equal,
        b_eq=np.eye(1, len(certain))[0],
        method="highs",
    )
    assert solved.success, solved.message
    return float(solved.fun)
