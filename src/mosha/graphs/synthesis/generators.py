"""Random graphs with given degrees and triangles, or given communities: post-processing of private numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosha.graphs.data.graph import Graph
from mosha.graphs.synthesis.rewiring import rewire

__all__ = ["clustered_graph", "match_stubs", "round_degrees"]

Integers = NDArray[np.int64]
ROUNDS = 30

LOCAL_OVER_GLOBAL = 1.15
"""How much more vertices of low degree cluster than the graph as a whole, as many real graphs do."""

FITTING = 0.9995
"""The part of the edges that must find a place."""

CODES_AT_ONCE = 2**20


def round_degrees(degrees: NDArray[np.float64], edges: float, generator: np.random.Generator) -> Integers:
    """Whole degrees near the given ones, in sum twice the number of edges."""
    degrees = _straighten(degrees)
    total = float(degrees.sum())
    goal = 2 * max(0, round(edges))
    scaled = np.clip(degrees * (goal / total if total > 0 else 0.0), 0, max(degrees.size - 1, 0))
    whole: Integers = np.floor(scaled + generator.random(scaled.size)).astype(np.int64)
    missing = goal - int(whole.sum())
    open_places = np.flatnonzero(whole < degrees.size - 1) if missing > 0 else np.flatnonzero(whole > 0)
    if open_places.size:
        chosen = generator.choice(open_places, size=min(abs(missing), open_places.size), replace=False)
        whole[chosen] += np.sign(missing)
    return whole


def _straighten(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sorted degrees without the stairs that regression leaves: straight lines between the middles of the steps."""
    steps, counts = np.unique(degrees, return_counts=True)
    if steps.size < 2:
        return degrees
    middles = np.cumsum(counts) - counts / 2 - 0.5
    ramp: NDArray[np.float64] = np.interp(np.arange(degrees.size), middles, steps)
    return ramp


def match_stubs(stubs: Integers, taken: Integers, vertices: int, generator: np.random.Generator) -> Integers:
    """Edges that give each vertex as many ends as it has stubs, but for a few that fit nowhere.

    Stubs are paired at random; pairs that are loops or edges already go back, and are paired again with others.
    """
    found = np.zeros(0, np.int64)
    known = np.sort(taken)  # and what is found: in order, so that a round merges what is new alone
    loose = np.repeat(np.arange(vertices, dtype=np.int32), stubs)
    for attempt in range(ROUNDS):
        if loose.size < 2:
            break
        generator.shuffle(loose)
        codes = _code_pairs(loose[: loose.size // 2 * 2].reshape(-1, 2), vertices)
        loose = loose[loose.size // 2 * 2 :].copy()
        codes.sort()
        bad = _find_unfit(codes, known, vertices)
        fresh, back = codes[~bad], codes[bad]
        del codes, bad
        known = np.concatenate([known, fresh])
        known.sort(kind="stable")  # two runs in order: merged
        found = np.concatenate([found, fresh]) if found.size else fresh
        del fresh
        if attempt % 3 == 2 and back.size and found.size:  # let some kept edges go, so that others can be made
            free = _toss(found.size, min(0.5, 2 * back.size / found.size), generator)
            freed, found = found[free], found[~free]
            known = np.delete(known, np.searchsorted(known, freed))
            back = np.concatenate([back, freed])
        loose = np.concatenate([_read_codes(back, vertices).T.ravel(), loose])
    return found


def _toss(count: int, chance: float, generator: np.random.Generator) -> NDArray[np.bool_]:
    """So many coins, each up with this chance."""
    found = np.empty(count, np.bool_)
    for first in range(0, count, CODES_AT_ONCE):
        some = found[first : first + CODES_AT_ONCE]
        some[:] = generator.random(len(some)) < chance
    return found


def _read_codes(codes: Integers, vertices: int) -> NDArray[np.int32]:
    """The pairs behind their numbers."""
    pairs = np.empty((len(codes), 2), np.int32)
    for first in range(0, len(codes), CODES_AT_ONCE):
        some = codes[first : first + CODES_AT_ONCE]
        pairs[first : first + CODES_AT_ONCE, 0], pairs[first : first + CODES_AT_ONCE, 1] = np.divmod(some, vertices)
    return pairs


def _code_pairs(pairs: NDArray[np.int32], vertices: int) -> Integers:
    """One number for each pair, the same in both orders."""
    codes = np.minimum(pairs[:, 0], pairs[:, 1]).astype(np.int64)
    codes *= vertices
    codes += np.maximum(pairs[:, 0], pairs[:, 1])
    return codes


def _find_unfit(codes: Integers, known: Integers, vertices: int) -> NDArray[np.bool_]:
    """Which of some sorted pairs are loops, repetitions, or known: slice by slice, so that little memory is needed."""
    unfit = np.zeros(len(codes), np.bool_)
    unfit[1:] = codes[1:] == codes[:-1]
    for first in range(0, len(codes), CODES_AT_ONCE):
        some = codes[first : first + CODES_AT_ONCE]
        bad = some % (vertices + 1) == 0  # a loop at v has the code v (vertices + 1)
        if known.size:
            bad |= known[np.minimum(np.searchsorted(known, some), known.size - 1)] == some
        unfit[first : first + CODES_AT_ONCE] |= bad
    return unfit


def _blocks(degrees: Integers, order: Integers) -> list[Integers]:
    """Groups of vertices of like degree, one more in each than its least degree: each could be a clique."""
    blocks, start = [], int(np.searchsorted(degrees[order], 2))
    while start < len(order):
        stop = min(len(order), start + int(degrees[order[start]]) + 1)
        blocks.append(order[start:stop])
        start = stop
    return blocks


def _draw_inside(blocks: list[Integers], chance: float, vertices: int, generator: np.random.Generator) -> Integers:
    """Edges within each block, each with this chance; blocks of one size are drawn together."""
    by_size: dict[int, list[Integers]] = {}
    for block in blocks:
        by_size.setdefault(block.size, []).append(block)
    found = [np.zeros(0, np.int64)]
    for size, alike in by_size.items():
        members, inner = np.stack(alike), size * (size - 1) // 2
        rows = np.append(0, np.cumsum(np.arange(size - 1, 0, -1)))  # where the pairs (i, i + 1), (i, i + 2), ... start
        for first in range(0, len(alike) * inner, CODES_AT_ONCE):
            drawn = generator.random(min(CODES_AT_ONCE, len(alike) * inner - first)) < chance
            which, pair = np.divmod(first + np.flatnonzero(drawn), inner)
            one = np.searchsorted(rows, pair, side="right") - 1
            left, right = members[which, one], members[which, pair - rows[one] + one + 1]
            found.append(np.minimum(left, right) * vertices + np.maximum(left, right))
    return np.concatenate(found)


def _assemble(degrees: Integers, blocks: list[Integers], chance: float, generator: np.random.Generator) -> Graph:
    n = degrees.size
    inside = _draw_inside(blocks, chance, n, generator)
    excess = degrees.copy()
    for first in range(0, len(inside), CODES_AT_ONCE):
        excess -= np.bincount(_read_codes(inside[first : first + CODES_AT_ONCE], n).ravel(), minlength=n)
    codes = np.concatenate([inside, match_stubs(np.maximum(excess, 0), inside, n, generator)])
    del inside
    pairs = _read_codes(codes, n)
    del codes
    return Graph.of(pairs, vertices=n)


def clustered_graph(degrees: Integers, triangles: float, generator: np.random.Generator) -> Graph:
    """A graph with these degrees, nearly, and as many triangles, if such degrees can have them.

    Vertices of like degree form dense blocks (after BTER: Kolda et al. 2014), so dense that their vertices cluster a
    little more than the graph as a whole; what is left of their degrees is joined at random. Blocks are thinned until
    nearly all edges find a place and there are not too many triangles; exchanges of edges add those that are missing.
    """
    blocks = _blocks(degrees, np.argsort(degrees, kind="stable"))
    wedges = float((degrees * (degrees - 1) / 2).sum())
    goal = min(triangles, wedges / 3)
    dense = min(1.0, (LOCAL_OVER_GLOBAL * 3 * goal / max(wedges, 1.0)) ** (1 / 3))
    enough = FITTING * degrees.sum() / 2

    def attempt(level: float) -> Graph:
        return _assemble(degrees, blocks, level, generator)

    best = attempt(dense)
    low, high = 0.0, dense
    if best.triangles > goal or best.edge_count < enough:
        best = attempt(0.0)
        for _ in range(10):
            level = (low + high) / 2
            graph = attempt(level)
            fits = graph.triangles <= goal and graph.edge_count >= enough
            low, high = (level, high) if fits else (low, level)
            best = graph if fits else best
            del graph  # before the next one is made
    return rewire(best, round(goal), generator)
