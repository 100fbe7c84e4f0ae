"""The checks of chapter 5: deep learning."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mosha.classroom.checks.kinds import (
    Finding,
    Function,
    attack_answer,
    compare_mean,
    compare_numbers,
    compare_share,
    show,
    try_neighbors,
)
from mosha.classroom.checks.principles import draw_cases

_draw = random.SystemRandom()
Floats = NDArray[np.float64]


def _gradients(rows: int) -> Floats:
    return np.random.default_rng().normal(size=(rows, 3)) * np.logspace(-1, 1, rows)[:, None]


def _without_each(gradients: Floats) -> Iterator[tuple[Floats, Floats]]:
    for row in range(len(gradients)):
        yield gradients, np.delete(gradients, row, axis=0)


def _check_sum(answer: Function) -> Iterator[Finding]:
    """Batches of many sizes without each of their rows, opposite gradients among them; short rows stay as they are."""
    opposite = np.tile([[5.0, 0.0, 0.0], [-5.0, 0.0, 0.0]], (5, 1))
    same = np.tile([[0.0, 7.0, 0.0]], (9, 1))
    shifting = 5.0 * np.outer([1, 1, 1, -1, -1, 1, 1, 1, 1], [1.0, 0.0, 0.0])  # other groups of four without one row
    batches = [opposite, same, shifting, *(_gradients(rows) for rows in (1, 5, 8, 13))]
    for batch in batches:
        before = np.array(batch)
        yield from try_neighbors(lambda rows: answer(np.array(rows), 1.0), _without_each(before), allowed=1.0, order=2)
    short = _gradients(6)
    short /= 2 * np.linalg.norm(short, axis=1, keepdims=True)
    yield from compare_numbers(answer, lambda rows, _: rows.sum(axis=0), [(short, 1.0), (np.zeros((0, 3)), 1.0)])


def check_per_example_clip(answer: Function) -> Iterator[Finding]:
    """One example moves the sum by the clip at most."""
    found = list(_check_sum(answer))
    yield from found[:1]


def check_micro_batches(answer: Function) -> Iterator[Finding]:
    """The same law: wherever an example stands."""
    yield from check_per_example_clip(answer)


def check_noise_of_a_step(answer: Function) -> Iterator[Finding]:
    """Noise of the sum over the declared size."""
    cases = [(1.0, 1.0, 256), *((*case, _draw.randint(8, 4096)) for case in draw_cases(10, (0.5, 4), (0.1, 3)))]
    yield from compare_numbers(answer, lambda multiplier, clip, batch: multiplier * clip / batch, cases)


def check_poisson_sample(answer: Function) -> Iterator[Finding]:
    """Every place comes with the rate, and the number of places varies as independent coins do."""
    examples, rate, runs = 40, 0.25, 3000
    batches = [list(answer(examples, rate)) for _ in range(runs)]
    sizes = np.array([len(set(batch)) for batch in batches], dtype=float)
    first = np.array([0 in batch for batch in batches], dtype=float)
    yield from compare_mean(iter(sizes).__next__, examples * rate, runs=runs, place="len(set(draw_batch(40, 0.25)))")
    yield from compare_mean(iter(first).__next__, rate, runs=runs, place="0 in draw_batch(40, 0.25)")
    variance = examples * rate * (1 - rate)
    spread = float(sizes.var())
    if not abs(spread - variance) <= 7 * variance * math.sqrt(2.2 / runs):
        yield Finding("spread", {"got": show(math.sqrt(spread)), "expected": show(math.sqrt(variance)), "runs": runs})


def check_amplification(answer: Function) -> Iterator[Finding]:
    """ln(1 + rate (e^epsilon - 1))."""
    cases = [(1.0, 0.01), (0.5, 1.0), *draw_cases(10, (0.1, 4), (0.001, 0.9))]
    yield from compare_numbers(answer, lambda epsilon, rate: math.log1p(rate * math.expm1(epsilon)), cases)


def check_renyi_accountant(answer: Function) -> Iterator[Finding]:
    """The best order, also below two and above a hundred."""

    def least(multiplier: float, steps: int, delta: float) -> float:
        rho = steps / (2 * multiplier**2)
        return rho + 2 * math.sqrt(rho * math.log(1 / delta))

    cases = [(1.0, 1, 1e-5), (50.0, 10, 1e-6), (0.5, 100, 1e-3), (_draw.uniform(1, 9), _draw.randint(1, 500), 1e-5)]
    yield from compare_numbers(answer, least, cases, tolerance=1e-4)


def check_concentrated(answer: Function) -> Iterator[Finding]:
    """The closed form."""
    cases = [(0.5, 1e-6), *draw_cases(10, (0.01, 2), (1e-9, 1e-3))]
    yield from compare_numbers(answer, lambda rho, delta: rho + 2 * math.sqrt(rho * math.log(1 / delta)), cases)


def check_vector_mean(answer: Function) -> Iterator[Finding]:
    """Twice the length, over the number of rows."""
    cases = [(3.0, 200), *((_draw.uniform(0.1, 9), _draw.randint(2, 999)) for _ in range(10))]
    yield from compare_numbers(answer, lambda clip, rows: 2 * clip / rows, cases)


def check_row_losses(answer: Function) -> Iterator[Finding]:
    """Another label or other scores in one row leave the losses of the others alone; and they are cross-entropies."""
    generator = np.random.default_rng()
    scores = generator.normal(size=(6, 3)) * 3
    labels = np.array([0, 1, 2, 0, 1, 1])

    def others(batch: tuple[Floats, NDArray[np.int64]]) -> Floats:
        return np.asarray(answer(*batch), dtype=float)[1:]

    changed = scores.copy()
    changed[0] = [40.0, -40.0, 0.0]
    relabeled = np.array([2, *labels[1:]])
    pairs = [((scores, labels), (changed, labels)), ((scores, labels), (scores, relabeled))]
    found = list(try_neighbors(others, pairs, allowed=1e-6))
    yield from found
    large = np.array([[1000.0, 0.0, 0.0], [0.0, 0.0, 0.0]])

    def entropies(some: Floats, targets: NDArray[np.int64]) -> Floats:
        shifted = some - some.max(axis=1, keepdims=True)
        picked: Floats = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(targets)), targets]
        return picked

    yield from compare_numbers(answer, entropies, [(scores, labels), (large, np.array([0, 2]))])


def check_noisy_vote(answer: Function) -> Iterator[Finding]:
    """A teacher changes sides in a close vote; a landslide must win."""
    yield from attack_answer(lambda counts: int(answer(counts, 1.0)), ([6, 5, 0], [5, 6, 0]), epsilon=1.0)
    yield from compare_share(answer, ([2, 90, 3], 1.0), 1, 1.0, runs=300, slack=0.01)


def check_advantage(answer: Function) -> Iterator[Finding]:
    """Where both bounds of the trade-off meet."""
    cases = [(1.0, 0.0), (1.0, 1e-2), *draw_cases(10, (0.1, 4), (0.001, 0.1))]
    yield from compare_numbers(
        answer, lambda epsilon, delta: (math.expm1(epsilon) + 2 * delta) / (math.exp(epsilon) + 1), cases
    )


def check_honest_search(answer: Function) -> Iterator[Finding]:
    """As many accuracies as models."""
    cases = [(20, 1000, 0.01), (_draw.randint(2, 99), _draw.randint(100, 9999), _draw.uniform(0.001, 0.1))]
    yield from compare_numbers(answer, lambda models, examples, scale: models / (examples * scale), cases)
