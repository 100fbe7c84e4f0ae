"""The pictures of the book's chapters and of the quick tour, in two languages, light and dark.

    python examples/book_pictures.py FOLDER [NAME ...]

Every curve is computed by the library, and every noisy one is a release of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mosha
from mosha import classroom, graphs, streams

sys.path.append(str(Path(__file__).resolve().parent / "gallery"))
from canvas import Sheet, draw_all, wallet

HORIZON = 256
WARDS = {"cardiology": "心内科", "maternity": "产科", "surgery": "外科"}


def find_principles() -> dict[str, Any]:
    questions = [1, 2, 5, 10, 20, 50, 100]
    rows = classroom.compare_compositions(epsilon=0.1, delta=1e-6, questions=questions)
    return {"questions": questions, "rows": rows}


def draw_principles(found: dict[str, Any], sheet: Sheet) -> None:
    left, right = sheet.axes
    across = np.linspace(-5, 6, 500)
    for center, color, words in ((0, 0, ("without you", "没有你")), (1, 1, ("with you", "有你"))):
        left.plot(across, np.exp(-abs(across - center)) / 2, color=sheet.colors[color], label=sheet.word(*words))
    left.fill_between(
        across, np.exp(-abs(across)) / 2, np.exp(-abs(across - 1)) / 2, color=sheet.look["pale"], alpha=0.3
    )
    left.set_ylim(0)
    sheet.title(
        left,
        sheet.word("One answer, two worlds: at most e times as likely", "同一个答案，两个世界：可能性之比不超过 e"),
        sheet.word("count + Laplace noise, epsilon 1", "计数 + 拉普拉斯噪声，ε=1"),
    )
    sheet.legend(left)
    names = {
        "basic": ("basic", "基本"),
        "advanced": ("advanced", "高级"),
        "renyi": ("Rényi", "Rényi"),
        "tight": ("tight", "紧致"),
    }
    for (rule, words), color in zip(names.items(), sheet.colors, strict=True):
        prices = [getattr(row, rule) for row in found["rows"]]
        right.plot(found["questions"], prices, "o-", ms=3, color=color, label=sheet.word(*words))
    sheet.title(
        right,
        sheet.word("What many small answers cost together", "许多小答案合起来的代价"),
        sheet.word("answers of epsilon 0.1 each", "答案个数（每个 ε=0.1）"),
        sheet.word("epsilon", "ε"),
    )
    sheet.legend(right)


def find_federated() -> dict[str, Any]:
    people = [1_000, 10_000, 100_000]
    errors: Any = {name: [] for name in ("central", "shuffle", "local")}
    for count in people:
        for model in mosha.local.compare(count, 4, 1.0).models:
            errors[model.name].append(model.deviation)
    return {"people": people, "errors": errors}


def draw_federated(found: dict[str, Any], sheet: Sheet) -> None:
    left, right = sheet.axes
    names = {
        "central": ("trust a curator", "信任管理者"),
        "shuffle": ("trust a shuffler", "信任混洗者"),
        "local": ("trust nobody", "谁也不信任"),
    }
    for (name, words), color in zip(names.items(), sheet.colors[2::-1], strict=True):
        left.plot(found["people"], found["errors"][name], "o-", color=color, label=sheet.word(*words))
    left.set_yscale("log")
    left.set_xscale("log")
    left.minorticks_off()
    sheet.title(
        left,
        sheet.word("Trust is paid for in noise", "信任要用噪声来换"),
        sheet.word("people", "人数"),
        sheet.word("error of one count, epsilon 1", "一个计数的误差，ε=1"),
    )
    sheet.legend(left)
    epsilons = np.linspace(0.1, 6, 100)
    for values, color in zip((2, 4, 16), sheet.colors, strict=False):
        truth = np.exp(epsilons) / (np.exp(epsilons) + values - 1)
        right.plot(epsilons, truth, color=color, label=sheet.word(f"{values} answers", f"{values} 个选项"))
    right.set_ylim(0, 1)
    sheet.title(
        right,
        sheet.word("How often a phone tells the truth", "手机说真话的概率"),
        sheet.word("epsilon", "ε"),
    )
    sheet.legend(right)


def find_streams() -> dict[str, Any]:
    visits = np.random.default_rng().poisson(3 + 2 * np.sin(np.arange(HORIZON) / 20))
    found: dict[str, Any] = {"truth": np.cumsum(visits)}
    counter = streams.counter(unit=mosha.Reading(), horizon=HORIZON, epsilon=1)
    with wallet(mosha.Reading(), 1.0).open(counter) as run:
        found["best"] = [run.step([1] * int(count)).value for count in visits]
    fresh = mosha.noise.discrete_laplace(HORIZON, HORIZON, rng=mosha.noise.secure())  # one reading moves all counts
    found["each"] = found["truth"] + fresh
    found["lengths"] = [2**k for k in range(2, 13)]
    found["errors"] = {
        "each": [np.sqrt(2) * length for length in found["lengths"]],
        "best": [
            streams.counter(unit=mosha.Reading(), horizon=length, epsilon=1).deviation(length)
            for length in found["lengths"]
        ],
    }
    return found


def draw_streams(found: dict[str, Any], sheet: Sheet) -> None:
    left, right = sheet.axes
    steps, truth = np.arange(1, HORIZON + 1), found["truth"]
    left.plot(
        steps, found["each"], ".", ms=3, color=sheet.colors[1], label=sheet.word("fresh noise on each", "各加噪声")
    )
    left.plot(steps, truth, color=sheet.look["pale"], lw=5, label=sheet.word("truth", "真值"))
    left.plot(steps, found["best"], color=sheet.colors[0], lw=1, label=sheet.word("planned once", "一次规划"))
    sheet.title(
        left,
        sheet.word("A running count, epsilon 1", "累计计数，ε=1"),
        sheet.word("step", "时刻"),
    )
    sheet.legend(left)
    names = {"each": ("fresh noise on every running count", "每个累计数各加噪声"), "best": ("planned once", "一次规划")}
    for (name, words), color in zip(names.items(), (1, 0), strict=True):
        right.plot(
            found["lengths"], found["errors"][name], "o-", ms=3, color=sheet.colors[color], label=sheet.word(*words)
        )
    right.set_xscale("log", base=2)
    right.set_yscale("log")
    right.minorticks_off()
    sheet.title(
        right,
        sheet.word("Standard deviation for the same epsilon", "同一个 ε 下的标准差"),
        sheet.word("length of the stream", "序列的长度"),
    )
    sheet.legend(right)


def find_networks() -> dict[str, Any]:
    rng = np.random.default_rng()
    weights = rng.pareto(1.5, 1500) + 1
    chance = weights / weights.sum()
    pairs = np.column_stack([rng.choice(1500, 6000, p=chance), rng.choice(1500, 6000, p=chance)])
    graph = graphs.Graph.of(pairs, vertices=1500)
    bounds = [1, 2, 4, 8, 16, 32, 64, 128, 256]
    lost = graphs.projection_bias(graph, bounds)
    count = len(np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0))
    degrees = np.bincount(np.unique(np.sort(pairs, axis=1), axis=0).ravel(), minlength=1500)
    return {
        "bounds": bounds,
        "lost": [lost[bound] * count for bound in bounds],
        "noise": [np.sqrt(2) * bound for bound in bounds],
        "degrees": np.sort(degrees)[::-1],
    }


def draw_networks(found: dict[str, Any], sheet: Sheet) -> None:
    left, right = sheet.axes
    left.plot(np.arange(1, 1501), np.maximum(found["degrees"], 0.5), color=sheet.colors[0])
    left.axhline(64, color=sheet.colors[1], ls="--")
    left.text(50, 70, sheet.word("limit D = 64", "上限 D = 64"), color=sheet.look["ink"], fontsize=8)
    left.set_xscale("log")
    left.set_yscale("log")
    left.minorticks_off()
    sheet.title(
        left,
        sheet.word("A few people know very many", "少数人认识很多人"),
        sheet.word("people, by degree", "人，按度排列"),
        sheet.word("degree", "度"),
    )
    bounds = found["bounds"]
    names = {"lost": ("edges lost to the limit", "被上限丢掉的边"), "noise": ("noise, epsilon 1", "噪声，ε=1")}
    for (name, words), color in zip(names.items(), (1, 0), strict=True):
        right.plot(bounds, found[name], "o-", ms=3, color=sheet.colors[color], label=sheet.word(*words))
    right.set_xscale("log", base=2)
    right.set_yscale("symlog", linthresh=1)
    right.set_ylim(0)
    right.minorticks_off()
    sheet.title(
        right,
        sheet.word("Error of the number of edges", "边数的误差"),
        sheet.word("limit D of a degree", "度的上限 D"),
    )
    sheet.legend(right)


def find_learning() -> dict[str, Any]:
    gradients = np.random.default_rng().standard_t(2, (60, 2))
    lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
    steps = [1, 100, 200, 400, 700, 1000]
    prices = {}
    for multiplier in (0.8, 1.0, 1.5):
        plan = mosha.learning.DPSGD(steps=1000, rate=0.01, clip=1.0, noise_multiplier=multiplier, delta=1e-5)
        prices[multiplier] = [plan.epsilon(after=step) for step in steps]
    return {"gradients": gradients, "clipped": gradients / np.maximum(1, lengths), "steps": steps, "prices": prices}


def draw_learning(found: dict[str, Any], sheet: Sheet) -> None:
    left, right = sheet.axes
    turn = np.linspace(0, 2 * np.pi, 200)
    left.plot(np.cos(turn), np.sin(turn), color=sheet.look["pale"], ls="--")
    for before, after in zip(found["gradients"], found["clipped"], strict=True):
        left.plot(*zip(before, after, strict=True), color=sheet.look["grid"], lw=0.7, zorder=1)
    for name, color, words in (
        ("gradients", 1, ("before", "裁剪前")),
        ("clipped", 0, ("clipped to C = 1", "裁剪到 C = 1")),
    ):
        left.scatter(*found[name].T, s=9, color=sheet.colors[color], label=sheet.word(*words), zorder=2)
    left.set_xlim(-4, 4)
    left.set_ylim(-3, 3)
    sheet.title(left, sheet.word("One gradient for each example", "每个样本一个梯度"))
    sheet.legend(left, loc="upper right")
    for (multiplier, prices), color in zip(
        found["prices"].items(), sheet.colors[1::-1] + sheet.colors[2:], strict=False
    ):
        words = sheet.word(f"noise {multiplier:g} C", f"噪声 {multiplier:g} C")
        right.plot(found["steps"], prices, "o-", ms=3, color=color, label=words)
    right.set_ylim(0)
    sheet.title(
        right,
        sheet.word("What a training has cost so far", "训练到目前为止的代价"),
        sheet.word("steps of 1% of the examples", "步数（每步抽 1% 的样本）"),
        sheet.word("epsilon, delta 1e-5", "ε（δ=1e-5）"),
    )
    sheet.legend(right)


def find_tour() -> dict[str, Any]:
    person = mosha.Person("patient", at_most=3)
    rows = {
        "patient": [n % 1500 for n in range(4000)],
        "ward": [list(WARDS)[n * n % 7 % 3] for n in range(4000)],
        "days": [1 + n * n % 19 for n in range(4000)],
    }
    found: dict[str, Any] = {}
    for epsilon in (0.05, 1.0):
        table = mosha.protect(rows, unit=person, account=wallet(person, epsilon))
        answer = table.group_by("ward", keys=list(WARDS)).count().release(epsilon=epsilon)
        found[f"counts {epsilon:g}"] = list(answer.table["count"])
        found[f"bars {epsilon:g}"] = np.ravel(answer.error(0.95)["count"])
    return found


def draw_tour(found: dict[str, Any], sheet: Sheet) -> None:
    names = [sheet.word(english, chinese) for english, chinese in WARDS.items()]
    for axes, epsilon, color in zip(sheet.axes, (1.0, 0.05), (0, 1), strict=True):
        counts, bars = found[f"counts {epsilon:g}"], found[f"bars {epsilon:g}"]
        axes.bar(names, counts, color=sheet.colors[color], yerr=bars, ecolor=sheet.look["ink"], capsize=5)
        axes.set_ylim(0, 2600)
        sheet.title(axes, sheet.word(f"Visits by ward, epsilon {epsilon:g}", f"各病房的就诊数，ε={epsilon:g}"))


PICTURES: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[dict[str, Any], Sheet], None]]] = {
    "principles": (find_principles, draw_principles),
    "federated": (find_federated, draw_federated),
    "streams": (find_streams, draw_streams),
    "networks": (find_networks, draw_networks),
    "learning": (find_learning, draw_learning),
    "tour": (find_tour, draw_tour),
}


if __name__ == "__main__":
    for name in sys.argv[2:] or PICTURES:
        find, draw = PICTURES[name]
        for path in draw_all(name, draw, find(), Path(sys.argv[1])):
            print(path)
