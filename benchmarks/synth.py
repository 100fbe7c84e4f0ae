"""Synthetic tables: mean two-way distance to the private table, beside the bars, in CPU seconds.

Tables are read from the folder that MOSHA_DATA names (adult, flights, randhie, with their domains). The
configuration is the library's own; nothing here is tuned.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

import mosha
from benchmarks._peers import PeerTooSlow, PeerUnavailable
from benchmarks._rows import Row
from benchmarks._synth_peers import PEERS, ask_peer
from benchmarks._tables import PUBLISHED, UNSEEN, Coded, read_adult, read_table
from benchmarks._tree import tree_tables, walk_tree
from mosha.mechanisms.gaussian import gaussian_multiplier
from mosha.noise import secure
from mosha.synth import Synthetic
from mosha.synth.modelling.choosing import span_tree
from mosha.synth.modelling.mixture import PairTarget, centre_table, shrink_towards_independence
from mosha.synth.modelling.oneways import clean_counts, group_cells
from mosha.tables import Budget

DELTA = 1e-9
RUNS = 5
BARS = {
    "adult": {0.1: 0.076, 1.0: 0.035, 10.0: 0.016},
    "flights": {0.1: 0.090, 1.0: 0.026, 10.0: 0.010},
    "randhie": {0.1: 0.075, 1.0: 0.058, 10.0: 0.020},
}
LARGEST = {"adult": 0.15, "flights": 0.12, "randhie": 0.25}
SECONDS = {"adult": {0.1: 3, 1.0: 3, 10.0: 10}, "flights": dict.fromkeys((0.1, 1.0, 10.0), 15),
           "randhie": dict.fromkeys((0.1, 1.0, 10.0), 15)}  # fmt: skip


def pairs(columns: list[np.ndarray], sizes: list[int]) -> Iterator[np.ndarray]:
    for a, b in itertools.combinations(range(len(sizes)), 2):
        yield np.bincount(columns[a] * sizes[b] + columns[b], minlength=sizes[a] * sizes[b]) / len(columns[a])


def distances(truth: list[np.ndarray], table: dict[str, list], names: list[str], sizes: list[int]) -> np.ndarray:
    made = [np.array(table[name], np.int64) for name in names]
    return np.array([0.5 * np.abs(p - q).sum() for p, q in zip(truth, pairs(made, sizes), strict=True)])


def synthesize(coded: Coded, epsilon: float, method: str = "automatic", target: str | None = None) -> Synthetic:
    """A synthetic table without a ledger: rows are public here."""
    columns, sizes = coded
    table = mosha.protect(pa.table(columns), unit=mosha.Row())
    question = table.synthesize(keys={name: range(size) for name, size in sizes.items()}, method=method, nulls=[],
                                target=target)  # fmt: skip
    value = question.measurement_for(epsilon=epsilon, delta=DELTA).step(None, None, None, secure())[0]
    return question.read(value, question.noises(Budget(epsilon=epsilon, delta=DELTA)))


def judge(coded: Coded, epsilon: float, method: str, runs: int) -> tuple[float, float, float]:
    """Mean and largest distance of a pair, and CPU seconds, over some runs."""
    names, sizes = list(coded[1]), list(coded[1].values())
    truth = list(pairs([coded[0][name] for name in names], sizes))
    means, largest, seconds = [], [], 0.0
    for _ in range(runs):
        start = time.process_time()
        table = synthesize(coded, epsilon, method).table
        seconds += (time.process_time() - start) / runs
        each = distances(truth, table, names, sizes)
        means.append(each.mean())
        largest.append(each.max())
    return float(np.mean(means)), float(np.mean(largest)), seconds


def measure(name: str) -> list[Row]:
    """One table at three budgets against its bars."""
    coded, rows = read_table(name), []
    for epsilon, bar in BARS[name].items():
        mean, largest, seconds = judge(coded, epsilon, "automatic", RUNS)
        what = f"{name}, epsilon {epsilon:g}"
        rows.append(Row(f"{what}: mean", "bar", bar / mean, 1.0, f"{mean:.4f}", f"{bar}"))
        if epsilon == 1.0:
            rows.append(Row(f"{what}: largest", "bar", LARGEST[name] / largest, 1.0, f"{largest:.3f}",
                            f"{LARGEST[name]}"))  # fmt: skip
        most = SECONDS[name][epsilon]
        rows.append(Row(f"{what}: CPU", "bar", most / seconds, 1.0, f"{seconds:.1f} s", f"{most} s"))
    return rows


def unseen() -> list[Row]:
    """Tables on which nothing was tuned, against independent columns and a tree."""
    return compare_simple(UNSEEN)


def published() -> list[Row]:
    """Tables of other packages on which nothing was tuned, the same; and against AIM of dpmm, one run each."""
    rows = compare_simple(PUBLISHED)
    for name, epsilon in itertools.product(PUBLISHED, (0.1, 1.0, 10.0)):
        coded, what = read_table(name), f"{name}, epsilon {epsilon:g}"
        names, sizes = list(coded[1]), list(coded[1].values())
        truth = list(pairs([coded[0][column] for column in names], sizes))
        mean, _, seconds = judge(coded, epsilon, "automatic", 3)
        try:
            answer = ask_peer("dpmm AIM", coded, epsilon, DELTA)
        except (PeerTooSlow, PeerUnavailable) as reason:
            print(f"left out: {what}: dpmm AIM: {reason}")
            continue
        theirs = float(distances(truth, answer["table"], names, sizes).mean())
        rows.append(Row(what, "dpmm AIM", theirs / mean, 0.95, f"{mean:.4f}", f"{theirs:.4f}"))
        rows.append(Row(f"{what}: CPU", "dpmm AIM", answer["seconds"] / seconds, None, f"{seconds:.1f} s",
                        f"{answer['seconds']:.0f} s"))  # fmt: skip
    return rows


def compare_simple(chosen: Iterable[str]) -> list[Row]:
    """Ours against independent columns and a tree, three runs each."""
    rows = []
    for name, epsilon in itertools.product(chosen, (0.1, 1.0, 10.0)):
        coded = read_table(name)
        names, sizes = list(coded[1]), list(coded[1].values())
        columns = [coded[0][column] for column in names]
        truth, mine = list(pairs(columns, sizes)), judge(coded, epsilon, "automatic", 3)[0]
        rho = 1 / (2 * gaussian_multiplier(epsilon=epsilon, delta=DELTA) ** 2)  # more than such accounting would give
        tree = []
        for _ in range(3):
            tables = tree_tables(columns, sizes, rho)
            order = itertools.combinations(range(len(sizes)), 2)
            tree += [0.5 * np.abs(tables[p].reshape(-1) - t).sum() for p, t in zip(order, truth, strict=True)]
        others = {"independent columns": judge(coded, epsilon, "independent", 3)[0], "tree": float(np.mean(tree))}
        for other, theirs in others.items():
            what = f"{name}, epsilon {epsilon:g}"
            rows.append(Row(what, other, theirs / mine, 0.95, f"{mine:.4f}", f"{theirs:.4f}"))
    return rows


def downstream() -> list[Row]:
    """Logistic regression that is trained on synthetic rows of Adult and judged on real ones it never saw.

    The target is declared, as whoever makes a table for a model would."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    train, test, sizes = read_adult("adult.data.gz")[0], read_adult("adult.test.gz")[0], read_adult()[1]
    names = [name for name in sizes if name != "income"]
    encoder = OneHotEncoder(categories=[range(sizes[name]) for name in names], handle_unknown="ignore")
    encoder.fit(np.zeros((1, len(names)), np.int64))
    held = encoder.transform(np.stack([test[name] for name in names], axis=1))
    rows = []
    for epsilon, bar in {0.1: 83.0, 1.0: 85.0, 10.0: 85.7}.items():
        scores = []
        for _ in range(RUNS):
            made = synthesize((train, sizes), epsilon, target="income").table
            learned = LogisticRegression(max_iter=300, C=0.1)
            learned.fit(encoder.transform(np.array([made[name] for name in names]).T), np.array(made["income"]))
            scores.append(100 * learned.score(held, test["income"]))
        said = f"{np.mean(scores):.2f} +- {np.std(scores, ddof=1) / RUNS**0.5:.2f}%"
        rows.append(Row(f"adult, epsilon {epsilon:g}: logistic regression", "bar", float(np.mean(scores)) / bar, 1.0,
                        said, f"{bar}%"))  # fmt: skip
    return rows


def reach(chosen: Iterable[str] = tuple(BARS), most: float = 10.0) -> list[Row]:
    """What ours is beside what independent columns can reach at all, for every table and budget.

    Exact independent columns have no noise and no privacy: as products, and as the private rows with every column
    shuffled. Bought ones spend the whole budget on one-ways, and an oracle that sees the private table chooses for each
    column how it is smoothed and which of its cells are empty. With the dependence for free, the same columns are off
    from the truth by their own noise alone. The last oracle knows the best tree of pairs, its groups and how the
    budget is divided between columns and pairs; only the numbers are bought.
    """
    rows = []
    for name in chosen:
        coded, bars = read_table(name), {epsilon: bar for epsilon, bar in BARS[name].items() if epsilon <= most}
        exact = [np.bincount(coded[0][c], minlength=size) / len(coded[0][c]) for c, size in coded[1].items()]
        names, sizes, generator = list(coded[1]), list(coded[1].values()), np.random.default_rng()
        truth = list(pairs([coded[0][column] for column in names], sizes))
        without = product_distance(exact, truth)
        shuffled = {column: generator.permutation(values).tolist() for column, values in coded[0].items()}
        as_rows = float(distances(truth, shuffled, names, sizes).mean())
        products = [np.outer(p, q).reshape(-1) for p, q in itertools.combinations(exact, 2)]
        for epsilon, bar in bars.items():
            tables = [buy_columns(exact, len(coded[0][names[0]]), epsilon) for _ in range(3)]
            bought = float(np.mean([product_distance(table, truth) for table in tables]))
            free = float(np.mean([product_distance(table, products) for table in tables]))
            mine = judge(coded, epsilon, "automatic", 2)[0]
            for other, theirs in {
                "exact independent columns": without, "exact columns, each shuffled": as_rows,
                "independent columns, oracle's smoothing": bought,
                "the same, dependence for free": free,
                "a tree, its edges and groups by an oracle": buy_tree(coded, exact, truth, epsilon), "bar": bar,
            }.items():  # fmt: skip
                rows.append(Row(f"{name}, epsilon {epsilon:g}", other, theirs / mine, None, f"{mine:.4f}",
                                f"{theirs:.4f}"))  # fmt: skip
    return rows


def product_distance(oneways: list[np.ndarray], truth: list[np.ndarray]) -> float:
    """The mean distance of products of one-ways from pair tables."""
    order = itertools.combinations(oneways, 2)
    return float(np.mean([0.5 * np.abs(np.outer(p, q).reshape(-1) - t).sum()
                          for (p, q), t in zip(order, truth, strict=True)]))  # fmt: skip


def buy_columns(exact: list[np.ndarray], rows: int, epsilon: float, part: float = 1.0) -> list[np.ndarray]:
    """One-ways for a `part` of the budget; an oracle chooses the smoothing that is nearest to the private column."""
    widths, generator = np.array([len(table) for table in exact], float), np.random.default_rng()
    share = (1 - 1 / widths) * widths ** (2 / 3)
    multiplier, found = gaussian_multiplier(epsilon=epsilon, delta=DELTA), []
    for table, own, size in zip(exact, part * share / share.sum(), widths, strict=True):
        deviation = multiplier * np.sqrt((1 - 1 / size) / own)
        noisy = rows * table + generator.normal(0, deviation, int(size))
        tries = [clean_counts(noisy, deviation * weight, ordered=is_ordered, known=int(size)) * (table > 0)
                 for weight in (0.4, 0.7, 1.0, 1.5, 2.0) for is_ordered in (False, True)]  # fmt: skip
        tries = [one / one.sum() for one in tries if one.sum() > 0] or [np.full(int(size), 1 / size)]
        found.append(min(tries, key=lambda one: float(np.abs(one - table).sum())))
    return found


def buy_tree(coded: Coded, exact: list[np.ndarray], truth: list[np.ndarray], epsilon: float) -> float:
    """The distance of a tree whose tables are bought: an oracle chooses edges, groups, smoothing and shares."""
    columns, sizes = list(coded[0].values()), [len(table) for table in exact]
    order, rows = list(itertools.combinations(range(len(sizes)), 2)), len(columns[0])
    far = {pair: np.abs(np.outer(exact[pair[0]], exact[pair[1]]).reshape(-1) - table).sum()
           for pair, table in zip(order, truth, strict=True)}  # fmt: skip
    edges, generator = span_tree(sorted(far, key=lambda pair: -far[pair]), len(sizes)), np.random.default_rng()
    multiplier, found = gaussian_multiplier(epsilon=epsilon, delta=DELTA), []
    for part, most in itertools.product((0.1, 0.25, 0.5), (2, 3, 4, 6)):
        single = buy_columns(exact, rows, epsilon, 1 - part)
        groups = [group_cells(table * rows, most, ordered=False) for table in exact]
        merged = [np.bincount(numbers, table).astype(np.float64) for numbers, table in zip(groups, single, strict=True)]
        steps = {}
        for a, b in edges:
            shape = (len(merged[a]), len(merged[b]))
            counts = np.bincount(
                groups[a][columns[a]] * shape[1] + groups[b][columns[b]], minlength=shape[0] * shape[1]
            )
            noise = generator.normal(0, multiplier * np.sqrt(len(edges) / part), shape)
            noisy = PairTarget(a, b, centre_table((counts.reshape(shape) + noise) / rows), float(np.std(noise)) / rows)
            table = balance_table(shrink_towards_independence(noisy, merged)[1] + np.outer(merged[a], merged[b]),
                                  merged[a], merged[b])  # fmt: skip
            steps[a, b] = table
        tables = walk_tree(steps, merged, len(sizes))
        each = []
        for (a, b), table in zip(order, truth, strict=True):
            joint = tables[a, b] / np.maximum(np.outer(merged[a], merged[b]), 1e-12)
            cells = joint[groups[a]][:, groups[b]] * np.outer(single[a], single[b])
            each.append(0.5 * np.abs(cells.reshape(-1) - table).sum())
        found.append(float(np.mean(each)))
    return min(found)


def balance_table(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The table without negative cells and with these margins (iterative proportional fitting)."""
    table = np.maximum(table, 1e-9)
    for _ in range(20):
        table = table * (rows / np.maximum(table.sum(axis=1), 1e-12))[:, None]
        table = table * (columns / np.maximum(table.sum(axis=0), 1e-12))
    return table


def peers() -> list[Row]:
    """Other people's synthesizers on Adult at epsilon 1, each in an environment of its own and stopped at its limit."""
    coded = read_table("adult")
    names, sizes = list(coded[1]), list(coded[1].values())
    truth = list(pairs([coded[0][name] for name in names], sizes))
    mean, _, seconds = judge(coded, 1.0, "automatic", 3)
    rows = []
    for kind, faster in PEERS.items():
        ours, what = f"{seconds:.1f} s", "adult, epsilon 1"
        try:
            answer = ask_peer(kind, coded, 1.0, DELTA)
        except PeerTooSlow as stopped:
            rows.append(Row(f"{what}: CPU", f"{kind}, stopped", stopped.seconds / seconds, faster, ours,
                            f"> {stopped.seconds:.0f} s"))  # fmt: skip
            continue
        except PeerUnavailable as reason:
            print(f"left out: {kind}: {reason}")
            continue
        theirs = float(distances(truth, answer["table"], names, sizes).mean())
        rows.append(Row(f"{what}: mean", kind, theirs / mean, 1.0, f"{mean:.4f}", f"{theirs:.4f}"))
        rows.append(Row(f"{what}: CPU", kind, answer["seconds"] / seconds, faster, ours, f"{answer['seconds']:.0f} s"))
    return rows


PIECES = {
    **{name: lambda name=name: measure(name) for name in BARS},  # type: ignore[misc]
    "unseen": unseen,
    "published": published,
    "downstream": downstream,
    "reach": reach,
    "reach_small": lambda: reach(("adult", "randhie"), 0.1),
    "peers": peers,
}
