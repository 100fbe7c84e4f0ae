"""The checks of chapter 3: time series."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence

from mosha.classroom.checks.kinds import (
    Finding,
    Function,
    attack_answer,
    compare_mean,
    compare_numbers,
    compare_share,
    compare_values,
    show,
)
from mosha.classroom.checks.principles import check_error, draw_cases

_draw = random.SystemRandom()
Visit = tuple[str, int]


def check_sequence_sensitivity(answer: Function) -> Iterator[Finding]:
    """One event: 1, length, and the root of length."""
    cases = [(7,), (365,), (_draw.randint(2, 10_000),)]
    yield from compare_numbers(answer, lambda length: (1, length, math.sqrt(length)), cases)


def check_whole_stream(answer: Function) -> Iterator[Finding]:
    """1 + 2 + ... + length."""
    cases = [(1,), (24,), (_draw.randint(2, 10_000),)]
    yield from compare_values(answer, lambda length: length * (length + 1) // 2, cases)


def check_tree_nodes(answer: Function) -> Iterator[Finding]:
    """Blocks by the binary digits of the step."""

    def blocks(step: int) -> list[tuple[int, int]]:
        found, first = [], 1
        for bit in reversed(range(step.bit_length())):
            if step >> bit & 1:
                found.append((first, first + 2**bit - 1))
                first += 2**bit
        return found

    yield from compare_values(
        lambda step: [tuple(block) for block in answer(step)], blocks, [(step,) for step in (1, 6, 8, 13, 31)]
    )


def check_tree_counter(answer: Function) -> Iterator[Finding]:
    """All answers together are attacked on an event at the first step; then the error of the last must be small."""
    length, epsilon = 32, 1.0
    quiet, loud = [0] * length, [1] + [0] * (length - 1)
    yield from attack_answer(
        lambda counts: [float(number) for number in answer(counts, epsilon)], (quiet, loud), epsilon=epsilon, runs=4000
    )
    longer = [0] * 128  # eight levels; the count after 127 steps is made of seven blocks
    needed = 8 / epsilon * math.sqrt(2 * 7) * math.sqrt(2 / math.pi)
    yield from check_error(lambda: abs(answer(longer, epsilon)[126]), needed=needed, runs=400)


def check_bound_people(answer: Function) -> Iterator[Finding]:
    """Without one person, the rows of all others are the same; who has few rows keeps them all."""
    rows: list[Visit] = [("Ada", 1), ("Bo", 2), ("Ada", 3), ("Ada", 4), ("Chen", 5), ("Ada", 6), ("Bo", 7), ("Chen", 8)]
    for person in ("Ada", "Bo", "Chen", "Dee"):
        without = [row for row in rows if row[0] != person]
        kept, others = answer(rows, 2), answer(without, 2)
        if not _same_others(kept, others, person) or any(
            Counter(name for name, _ in kept)[name] > 2 for name, _ in kept
        ):
            moved = sum((Counter(map(tuple, kept)) - Counter(map(tuple, others))).values()) + sum(
                (Counter(map(tuple, others)) - Counter(map(tuple, kept))).values()
            )
            yield Finding("moves", {"first": show(rows), "second": show(without), "moved": moved, "allowed": 2})
            return
    yield from compare_values(lambda some: answer(some, 2), lambda some: some, [(rows[4:5] + rows[6:],)])


def _same_others(kept: Sequence[Visit], others: Sequence[Visit], person: str) -> bool:
    return Counter(tuple(row) for row in kept if row[0] != person) == Counter(map(tuple, others))


def check_group_privacy(answer: Function) -> Iterator[Finding]:
    """Deltas of earlier steps are multiplied by later ones."""

    def grow(epsilon: float, delta: float, days: int) -> tuple[float, float]:
        return days * epsilon, delta * math.expm1(days * epsilon) / math.expm1(epsilon)

    cases = [(0.5, 1e-6, 7), *((*case, _draw.randint(2, 14)) for case in draw_cases(10, (0.1, 0.5), (1e-7, 1e-5)))]
    yield from compare_numbers(answer, grow, cases)  # every delta stays below one


def check_w_event(answer: Function) -> Iterator[Finding]:
    """Windows of every length, the shortest too; eighths add up exactly."""

    def may(history: Sequence[float], price: float, window: int, epsilon: float) -> bool:
        return sum(history[max(0, len(history) - window + 1) :]) + price <= epsilon

    cases: list[tuple[object, ...]] = [([1.0, 1.0], 1.0, 1, 1.0), ([1.0, 0.0, 0.0], 1.0, 3, 1.0), ([], 1.0, 3, 1.0)]
    for _ in range(30):
        history = [_draw.randint(0, 4) / 8 for _ in range(_draw.randint(0, 9))]
        cases.append((history, _draw.randint(0, 8) / 8, _draw.randint(1, 5), 1.0))
    yield from compare_values(lambda *case: bool(answer(*case)), may, cases)


def check_endless_budget(answer: Function) -> Iterator[Finding]:
    """Shares are positive, add up to epsilon at most over many steps, and do not vanish."""
    steps = 20_000
    spent = sum(float(answer(step, 1.0)) for step in range(1, steps + 1))
    if spent > 1 + 1e-9:
        yield Finding("moves", {"first": "1", "second": str(steps), "moved": show(spent), "allowed": "1"})
        return
    late = float(answer(1000, 1.0))
    if not late > 1e-7:
        yield Finding("value", {"inputs": "(1000, 1.0)", "got": show(late), "expected": "> 1e-07"})


def check_sparse_vector(answer: Function) -> Iterator[Finding]:
    """Many days on which a person stays just below, one on which the person is above; and a clear alarm is raised."""
    quiet, loud = [*[0.0] * 12, 1.0], [*[1.0] * 12, 0.0]
    yield from attack_answer(lambda answers: int(answer(answers, 1.0, 2.0)), (quiet, loud), epsilon=2.0)
    yield from compare_share(answer, ([0.0, 0.0, 90.0, 0.0], 45.0, 2.0), 2, 1.0, runs=300, slack=0.02)


def check_memoized_report(answer: Function) -> Iterator[Finding]:
    """A life of thirty days under two truths; the sum of the reports is what an attacker averages."""

    def live(truths: Sequence[bool]) -> list[int]:
        report = answer(1.0)
        reports = [int(bool(report(truth))) for truth in truths]
        return [sum(reports), reports[0], reports[-1]]

    yes, no = [True] * 30, [False] * 30
    changing = [*[True] * 15, *[False] * 15]
    yield from attack_answer(live, (yes, no), epsilon=1.0)
    yield from attack_answer(live, (changing, [not truth for truth in changing]), epsilon=1.0)
    honest, place = 1 / (1 + math.exp(-4.0)), "make_device(4.0)(True)"
    yield from compare_mean(lambda: float(bool(answer(4.0)(True))), honest, slack=0.3, runs=2000, place=place)


def check_smoothing(answer: Function) -> Iterator[Finding]:
    """Compared with the textbook's filter."""

    def kalman(series: Sequence[float], drift: float, noise: float) -> list[float]:
        level, variance, found = series[0], noise, [series[0]]
        for number in series[1:]:
            predicted = variance + drift
            gain = predicted / (predicted + noise)
            level, variance = level + gain * (number - level), (1 - gain) * predicted
            found.append(level)
        return found

    cases = [([_draw.uniform(0, 9) for _ in range(12)], *case) for case in draw_cases(5, (0.1, 2), (0.5, 9))]
    yield from compare_numbers(answer, kalman, cases)


def check_decayed_count(answer: Function) -> Iterator[Finding]:
    """A geometric series."""
    cases = [(0.5, 1.0), *draw_cases(10, (0.1, 0.99), (1, 9))]
    yield from compare_numbers(answer, lambda decay, per_step: per_step / (1 - decay), cases)
