"""The checks of chapter 4: networks."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

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
from mosha.classroom.checks.principles import check_error

_draw = random.SystemRandom()
Pair = tuple[int, int]


def _graph(vertices: int, probability: float) -> list[Pair]:
    return [pair for pair in itertools.combinations(range(vertices), 2) if _draw.random() < probability]


def check_degree_sensitivity(answer: Function) -> Iterator[Finding]:
    """Two degrees move by one each; two vertices change their bin."""
    yield from compare_numbers(answer, lambda: (2, 4), [()])


def check_triangle_sensitivity(answer: Function) -> Iterator[Finding]:
    """With each other vertex, with each pair of others."""
    cases = [(3,), (100,), (_draw.randint(4, 1000),)]
    yield from compare_numbers(answer, lambda n: (n - 2, math.comb(n - 1, 2)), cases)


def check_edge_count(answer: Function) -> Iterator[Finding]:
    """A friendship with many lines is one edge; loops are none."""
    few = [("Ada", "Bo")]
    repeated = [*few, *[("Ada", "Chen"), ("Chen", "Ada")] * 3]
    yield from attack_answer(lambda edges: int(answer(edges, 1.0)), (few, repeated), epsilon=1.0)
    loops = [*repeated, ("Bo", "Bo"), ("Bo", "Ada")]
    yield from compare_mean(lambda: float(answer(loops, 2.0)), 2.0, place=f"noisy_edges({show(loops)}, 2.0)")


def check_projection(answer: Function) -> Iterator[Finding]:
    """Random graphs without each of their vertices; degrees are enforced, and sparse graphs stay whole."""
    most = 2
    graphs = [[(0, other) for other in range(1, 7)] + [(1, 2), (3, 4), (5, 6)], *(_graph(7, 0.5) for _ in range(40))]
    graphs.append([(one, other) for one in range(4) for other in range(4, 8)])
    for edges in graphs:
        kept = [tuple(edge) for edge in answer(edges, most)]
        highest = max(Counter(end for edge in kept for end in edge).values(), default=0)
        for vertex in range(8):
            without = [edge for edge in edges if vertex not in edge]
            moved = abs(len(kept) - len(answer(without, most)))
            if moved > most or highest > most:
                fields = {"first": show(edges), "second": show(without), "moved": max(moved, highest), "allowed": most}
                yield Finding("moves", fields)
                return
    path = [(0, 1), (1, 2), (3, 4)]
    yield from compare_values(lambda edges: [tuple(edge) for edge in answer(edges, most)], list, [(path,)])


def check_edge_response(answer: Function) -> Iterator[Finding]:
    """The whole matrix is attacked on one edge; then each entry must be as honest as epsilon allows."""
    empty = [[0] * 3 for _ in range(3)]
    edge = [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    yield from attack_answer(
        lambda matrix: tuple(itertools.chain.from_iterable(answer(matrix, 1.0))), (empty, edge), epsilon=1.0
    )
    honest, place = 1 / (1 + math.exp(-2.0)), f"perturb({show(edge)}, 2.0)[1][0]"
    yield from compare_mean(lambda: float(answer(edge, 2.0)[1][0]), honest, runs=2500, place=place)


def check_edges_behind_noise(answer: Function) -> Iterator[Finding]:
    """Estimates of simulated graphs must be right on average."""
    pairs, edges, epsilon = 4950, 300, 1.0
    flip = 1 / (1 + math.exp(epsilon))
    generator = np.random.default_rng()

    def estimate() -> float:
        ones = int(generator.binomial(edges, 1 - flip) + generator.binomial(pairs - edges, flip))
        return float(answer(ones, pairs, epsilon))

    yield from compare_mean(estimate, edges, what="bias")


def check_star_sensitivity(answer: Function) -> Iterator[Finding]:
    """At each end, with k - 1 of the other edges."""
    cases = [(10, 2), (10, 3), (_draw.randint(5, 60), _draw.randint(2, 4))]
    yield from compare_numbers(answer, lambda most, k: 2 * math.comb(most - 1, k - 1), cases)


def check_choose_hub(answer: Function) -> Iterator[Finding]:
    """Attacked on one edge among many vertices; then a lead of two edges must help as much as epsilon allows."""
    before = [4, 4, 5, *[4] * 17]
    after = [5, 5, *before[2:]]
    yield from attack_answer(lambda degrees: int(answer(degrees, 1.0)), (before, after), epsilon=1.0)
    lead = 1 / (1 + 3 * math.exp(-2.0))
    yield from compare_share(answer, ([9, 7, 7, 7], 1.0), 0, lead)


def check_local_degrees(answer: Function) -> Iterator[Finding]:
    """Both reports are attacked together on the edge between them."""

    def publish(lists: Sequence[Sequence[str]]) -> list[int]:
        return [int(answer(list(neighbors), 1.0)) for neighbors in lists]

    yield from attack_answer(publish, ([[], []], [["Bo"], ["Ada"]]), epsilon=1.0)
    yield from check_error(lambda: abs(answer(["Bo", "Chen"], 1.0) - 2), needed=2.0)


def check_advanced_composition(answer: Function) -> Iterator[Finding]:
    """The smaller of two sums."""

    def least(epsilon: float, questions: int, delta: float) -> float:
        root = epsilon * math.sqrt(2 * questions * math.log(1 / delta))
        return min(questions * epsilon, root + questions * epsilon * math.expm1(epsilon))

    cases = [(0.1, 3, 1e-6), (0.1, 1000, 1e-6), (_draw.uniform(0.01, 0.2), _draw.randint(200, 999), 1e-5)]
    yield from compare_numbers(answer, least, cases)


def check_degree_attack(answer: Function) -> Iterator[Finding]:
    """Whoever is certain must be named, nobody else."""

    def certain(edges: Sequence[Pair], known: Mapping[str, int]) -> dict[str, int]:
        degree = Counter(end for edge in edges for end in edge)
        vertices = defaultdict(list)
        for vertex, number in degree.items():
            vertices[number].append(vertex)
        return {name: vertices[n][0] for name, n in known.items() if len(vertices[n]) == 1}

    star = [(0, 1), (0, 2), (0, 3), (1, 2)]
    known = {"Ada": 3, "Bo": 1, "Chen": 2, "Dee": 9}
    cases = [(star, known), *((_graph(9, 0.4), {f"person {n}": n for n in range(1, 9)}) for _ in range(10))]
    yield from compare_values(lambda edges, some: dict(answer(edges, some)), certain, cases)


def check_paid_threshold(answer: Function) -> Iterator[Finding]:
    """As many pairs as the noisy number says, also where it is out of range."""

    def best(noisy: Mapping[Pair, float], about: float) -> set[Pair]:
        wanted = max(0, min(len(noisy), round(about)))
        return set(sorted(noisy, key=lambda pair: (-noisy[pair], pair))[:wanted])

    pairs = list(itertools.combinations(range(5), 2))
    cases = [({pair: round(_draw.gauss(0.3, 1), 1) for pair in pairs}, about) for about in (3.2, 0.0, -2.4, 99.0, 6.0)]
    yield from compare_values(lambda noisy, about: set(answer(noisy, about)), best, cases)
