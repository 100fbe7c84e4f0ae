"""The checks of chapter 2: federated and local."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from mosha.classroom.checks.kinds import (
    Finding,
    Function,
    attack_answer,
    compare_mean,
    compare_numbers,
    compare_share,
    compare_values,
    try_neighbors,
)
from mosha.classroom.checks.principles import draw_cases

_draw = random.SystemRandom()
Row = Mapping[str, object]


def _table(rows: int) -> list[Row]:
    return [
        {"age": _draw.choice([20, 30, 40]), "zip": _draw.choice("ab"), "illness": _draw.choice("xy")}
        for _ in range(rows)
    ]


_GROUPS: list[Row] = [
    {"age": 20, "zip": "a", "illness": "x"},
    {"age": 20, "zip": "a", "illness": "x"},
    {"age": 20, "zip": "b", "illness": "x"},
    {"age": 30, "zip": "b", "illness": "x"},
    {"age": 30, "zip": "b", "illness": "y"},
    {"age": 30, "zip": "a", "illness": "x"},
]


def check_masking_names(answer: Function) -> Iterator[Finding]:
    """The smallest class of rows that look alike."""

    def least(rows: Sequence[Row], columns: Sequence[str]) -> int:
        return min(Counter(tuple(row[column] for column in columns) for row in rows).values(), default=0)

    known = ["age", "zip"]
    tables = [_GROUPS, [], *(_table(_draw.randint(20, 60)) for _ in range(10))]
    yield from compare_values(answer, least, [(table, known) for table in tables])


def check_homogeneity(answer: Function) -> Iterator[Finding]:
    """Rows in classes with one secret."""

    def count(rows: Sequence[Row], columns: Sequence[str], secret: str) -> int:
        found = defaultdict(list)
        for row in rows:
            found[tuple(row[column] for column in columns)].append(row[secret])
        return sum(len(secrets) for secrets in found.values() if len(set(secrets)) == 1)

    tables = [_GROUPS, *(_table(_draw.randint(5, 15)) for _ in range(10))]
    yield from compare_values(answer, count, [(table, ["age", "zip"], "illness") for table in tables])


def check_differencing(answer: Function) -> Iterator[Finding]:
    """A table of forty people with random secrets: each must be found, by questions about groups of ten or more."""
    names = [f"person {place}" for place in range(40)]
    ill = {name: _draw.random() < 0.5 for name in names} | {names[0]: True, names[1]: False}

    def count(keep: Callable[[str], bool]) -> int:
        group = [name for name in names if keep(name)]
        if len(group) < 10:
            message = "groups of fewer than ten people are refused"
            raise PermissionError(message)
        return sum(ill[name] for name in group)

    for name in names:
        if bool(answer(count, name)) != ill[name]:
            yield Finding("value", {"inputs": name, "got": not ill[name], "expected": ill[name]})
            return


def check_k_ary_response(answer: Function) -> Iterator[Finding]:
    """Attacked on two of six values; then the truth as often as allowed, the others alike."""
    yield from attack_answer(lambda value: int(answer(value, 6, 1.0)), (0, 1), epsilon=1.0)
    truth = math.exp(2.0) / (math.exp(2.0) + 5)
    yield from compare_share(answer, (3, 6, 2.0), 3, truth)
    yield from compare_share(answer, (3, 6, 2.0), 5, (1 - truth) / 5)


def check_k_ary_estimate(answer: Function) -> Iterator[Finding]:
    """Estimates of simulated surveys, one value rare, must be right on average."""
    truths, epsilon = np.array([700, 290, 10]), 1.0
    honest = math.exp(epsilon) / (math.exp(epsilon) + 2)
    law = np.full((3, 3), (1 - honest) / 2) + np.eye(3) * (honest - (1 - honest) / 2)
    generator = np.random.default_rng()

    def estimate(value: int) -> float:
        counts = np.sum([generator.multinomial(truths[place], law[place]) for place in range(3)], axis=0)
        return float(answer([int(count) for count in counts], epsilon)[value])

    for value in (2, 0):
        yield from compare_mean(lambda value=value: estimate(value), float(truths[value]), runs=2500, what="bias")  # type: ignore[misc]


def check_unary_encoding(answer: Function) -> Iterator[Finding]:
    """Attacked on two values; then the true bit must be one half of the time, others as rarely as allowed."""
    yield from attack_answer(lambda value: tuple(answer(value, 3, 1.0)), (0, 1), epsilon=1.0)
    yield from compare_mean(lambda: float(answer(1, 4, 2.0)[1]), 0.5, place="report(1, 4, 2.0)[1]")
    rarely = 1 / (math.exp(2.0) + 1)
    yield from compare_mean(lambda: float(answer(1, 4, 2.0)[0]), rarely, place="report(1, 4, 2.0)[0]")


def check_clip_update(answer: Function) -> Iterator[Finding]:
    """No update is longer than the clip, whatever a client sends; short ones stay as they are."""
    strange = [[3.0, 4.0], [1e200, 1e200], [math.inf, 1.0], [math.nan, 1.0], [0.9, 0.9], [0.0, 0.0], [-8.0, 0.1]]
    zero = [0.0, 0.0]
    yield from try_neighbors(
        lambda update: answer(update, 1.0), ((zero, update) for update in strange), allowed=1.0, order=2
    )
    short = [list(case) for case in draw_cases(5, (-0.5, 0.5), (-0.5, 0.5))]
    yield from compare_numbers(answer, lambda update, _: update, [(update, 1.0) for update in short])
    yield from compare_numbers(answer, lambda *_: [0.6, 0.8], [([3.0, 4.0], 1.0)])


def check_public_divisor(answer: Function) -> Iterator[Finding]:
    """One client more or less, few or many others: the average moves by clip / expected at most."""
    updates = [[3.0, 4.0], [0.3, 0.4], [-1.0, 0.0], [0.0, 9.0]]
    pairs = [(updates[:kept], [*updates[:kept], more]) for kept in range(5) for more in ([50.0, -50.0], [0.1, 0.0])]
    yield from try_neighbors(lambda some: answer(some, 1.0, 10), pairs, allowed=0.1, order=2)
    yield from compare_numbers(answer, lambda *_: [0.03, 0.04], [([[0.3, 0.4]], 1.0, 10)])


def check_noise_shares(answer: Function) -> Iterator[Finding]:
    """Variances of those that arrive at least."""
    cases = [(4.0, 100, 0), *((_draw.uniform(1, 9), _draw.randint(50, 99), _draw.randint(5, 40)) for _ in range(10))]
    yield from compare_numbers(answer, lambda total, clients, lost: total / math.sqrt(clients - lost), cases)


def check_pairwise_masks(answer: Function) -> Iterator[Finding]:
    """The sum is right, and what one client sends tells nothing about the client's value."""
    modulus = 2**16

    def sums(values: Sequence[int]) -> int:
        return sum(answer(list(values), _draw_shared(len(values), modulus), modulus)) % modulus

    cases = [([_draw.randrange(100) for _ in range(4)],) for _ in range(5)]
    yield from compare_values(sums, lambda values: sum(values) % modulus, cases)
    yield from attack_answer(
        lambda values: int(answer(values, _draw_shared(3, 16), 16)[0]), ([0, 1, 2], [9, 1, 2]), epsilon=0.1
    )


def _draw_shared(clients: int, modulus: int) -> list[list[int]]:
    numbers = [[0] * clients for _ in range(clients)]
    for i in range(clients):
        for j in range(i):
            numbers[i][j] = numbers[j][i] = _draw.randrange(modulus)
    return numbers


def check_modular_sum(answer: Function) -> Iterator[Finding]:
    """The upper half of the ring is negative."""

    def lift(total: int, modulus: int) -> int:
        return (total + modulus // 2) % modulus - modulus // 2

    cases = [(3, 16), (8, 16), (15, 16), (7, 16), *((_draw.randrange(2**20), 2**20) for _ in range(10))]
    yield from compare_values(answer, lift, cases)


def check_local_or_central(answer: Function) -> Iterator[Finding]:
    """Ratio of two standard deviations."""

    def ratio(people: int, epsilon: float) -> float:
        honest = 1 / (1 + math.exp(-epsilon))
        return math.sqrt(people * honest * (1 - honest)) / (2 * honest - 1) * epsilon / math.sqrt(2)

    cases = [(10_000, 1.0), *((_draw.randint(100, 10**6), _draw.uniform(0.1, 4)) for _ in range(10))]
    yield from compare_numbers(answer, ratio, cases)
