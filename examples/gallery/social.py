"""A social network: degrees from a curator and from the phones, and people who are found again without names.

    python examples/gallery/social.py [--small] [--pictures FOLDER]

Reads facebook.edges.gz (SNAP) from $MOSHA_DATA/graphs; `--small` draws a network of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from canvas import DATA, Sheet, show, wallet

import mosha
from mosha import audit
from mosha.graphs import Graph, find_degree_distribution, local_model, protect, read


def small_world(people: int, rng: np.random.Generator) -> Graph:
    """A network with hubs: each newcomer befriends five, the popular ones more often."""
    ends = [0, 1]
    pairs = [(0, 1)]
    for person in range(2, people):
        for friend in {ends[rng.integers(len(ends))] for _ in range(5)}:
            pairs.append((person, friend))
            ends += [person, friend]
    return Graph.of(pairs, vertices=people)


def distance(first: np.ndarray, second: np.ndarray) -> float:
    """Kolmogorov and Smirnov's, between shares of degrees."""
    return float(np.abs(np.cumsum(first) - np.cumsum(second)).max())


def run(*, small: bool) -> dict[str, Any]:
    rng = np.random.default_rng()
    graph = small_world(250, rng) if small else read(DATA / "graphs/facebook.edges.gz", vertices="endpoints")
    people, most = graph.vertices, 250
    truth = graph.degree_counts(most + 1) / people
    found: dict[str, Any] = {"people": people, "friendships": graph.edge_count, "truth": truth}
    for epsilon in (0.5, 1.0, 2.0):
        friends = protect(graph, unit=mosha.Edge(), account=wallet(mosha.Edge(), epsilon))
        parts = np.asarray(friends.degree_distribution().release(epsilon=epsilon).value)
        central = np.diff(np.append(parts, np.ones(max(0, most + 1 - parts.size)))[: most + 1], prepend=0.0)
        measured = local_model.local_degrees(epsilon, count=people)
        reports, _ = measured.step(None, graph, None, mosha.noise.secure())
        local = find_degree_distribution(np.asarray(reports), epsilon=epsilon, max_degree=most)
        naive = np.bincount(np.clip(reports, 0, most), minlength=most + 1) / people
        found[f"shares {epsilon:g}"] = (central, local, naive)
        for name, shares in (("curator", central), ("phones", local), ("phones, as reported", naive)):
            found[f"distance, epsilon {epsilon:g}, {name}"] = distance(shares, truth)
    friends = protect(graph, unit=mosha.Edge(), account=wallet(mosha.Edge(), 4))
    synthetic = friends.synthetic("clustered").release(epsilon=4)
    copy = Graph.of(np.asarray(synthetic.value, np.int64).reshape(-1, 2), vertices=people)
    for depth in (1, 2):
        found[f"found again without names, depth {depth}"] = audit.reidentify_by_degrees(graph, graph, depth=depth)
        found[f"found again in a synthetic graph, depth {depth}"] = audit.reidentify_by_degrees(
            graph, copy, depth=depth
        )
    return found


def draw(found: dict[str, Any], sheet: Sheet) -> None:
    left, right = sheet.axes
    central, local, naive = found["shares 0.5"]
    lines = (
        (central, sheet.colors[0], "-", ("curator", "可信方")),
        (local, sheet.colors[1], "-", ("phones, deconvolved", "手机上报，反卷积")),
        (naive, sheet.look["pale"], "-", ("phones, as reported", "手机上报，原样")),
    )
    for shares, color, style, words in lines:
        left.plot(np.cumsum(shares) - np.cumsum(found["truth"]), style, color=color, label=sheet.word(*words), lw=1.2)
    left.set_xlim(0, 120)
    title = sheet.word("Error of the distribution, epsilon 0.5", "好友数分布的误差，ε=0.5")
    sheet.title(left, title, sheet.word("friends", "好友数"), sheet.word("released - true", "发布值 - 真值"))
    sheet.legend(left)
    names = (("without names", "去掉姓名"), ("synthetic, epsilon 4", "合成图，ε=4"))
    keys = ("found again without names", "found again in a synthetic graph")
    for place, (key, words) in enumerate(zip(keys, names, strict=True)):
        heights = [found[f"{key}, depth {depth}"] for depth in (1, 2)]
        right.bar(
            np.arange(2) + (place - 0.5) * 0.35, heights, 0.33, color=sheet.colors[1 - place], label=sheet.word(*words)
        )
    right.set_xticks(
        [0, 1], [sheet.word("own degree", "知道其好友数"), sheet.word("and those of friends", "还知道其好友的好友数")]
    )
    right.set_ylim(0, 1)
    sheet.title(right, sheet.word("People who are found again", "被重新认出的人"), "", sheet.word("share", "比例"))
    sheet.legend(right)


if __name__ == "__main__":
    show("social", run, draw)
