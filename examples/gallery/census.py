"""A census table to hand out: synthetic rows, how far they are from the real ones, and what an attacker makes of them.

    python examples/gallery/census.py [--small] [--pictures FOLDER]

Reads adult.data.gz (UCI, CC BY 4.0) from $MOSHA_DATA/adult; `--small` draws people of its own.
"""

from __future__ import annotations

import gzip
import itertools
from typing import Any

import numpy as np
from canvas import DATA, Sheet, show, wallet

import mosha

PLACES = {"age": 0, "education": 4, "married": 5, "job": 6, "sex": 9, "hours": 12, "income": 14}
BETWEEN = {"age": (17, 90), "education": (1, 16), "hours": (1, 99)}
EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-9
FEW = 300


def read_people() -> dict[str, np.ndarray]:
    """Seven columns of the Adult table."""
    with gzip.open(DATA / "adult" / "adult.data.gz", "rt") as file:
        rows = [line.strip().split(", ") for line in file if line[:1].isdigit() and line.count(",") == 14]
    columns = list(zip(*rows, strict=True))
    found = {name: np.array(columns[place]) for name, place in PLACES.items()}
    return found | {name: found[name].astype(np.int64) for name in BETWEEN}


def draw_people(count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """People for a small run."""
    age, education = rng.integers(17, 91, count), rng.integers(1, 17, count)
    married, sex = np.where(rng.random(count) < age / 100, "yes", "no"), rng.choice(["F", "M"], count)
    job = np.where(education > 9, rng.choice(["desk", "school"], count), rng.choice(["farm", "shop"], count))
    hours = np.clip(rng.normal(40, 10, count), 1, 99).astype(np.int64)
    income = np.where(education + (married == "yes") * 4 + rng.normal(0, 3, count) > 13, ">50K", "<=50K")
    return {"age": age, "education": education, "married": married, "job": job, "sex": sex, "hours": hours,
            "income": income}  # fmt: skip


def synthesize(people: dict[str, np.ndarray], epsilon: float, keys: dict[str, list[str]]) -> Any:
    """The synthetic table of one release."""
    row = mosha.Row()
    table = mosha.protect(people, unit=row, account=wallet(row, 1.1 * epsilon, 2 * DELTA))
    return table.synthesize(keys=keys, between=BETWEEN, nulls=[]).release(epsilon=epsilon, delta=DELTA)


def code(table: dict[str, Any], keys: dict[str, list[str]]) -> dict[str, np.ndarray]:
    """Cells that all tables share."""
    found = {}
    for name, values in table.items():
        if name in BETWEEN:
            found[name] = np.asarray(values, np.int64) - BETWEEN[name][0]
        else:
            place = {key: i for i, key in enumerate(keys[name])}
            found[name] = np.array([place[value] for value in values])
    return found


def compare_pairs(one: dict[str, np.ndarray], two: dict[str, np.ndarray]) -> float:
    """The mean total-variation distance of all pairs of columns."""
    apart = []
    for a, b in itertools.combinations(one, 2):
        width = 1 + int(max(one[b].max(), two[b].max()))
        size = width * (1 + int(max(one[a].max(), two[a].max())))
        shares = [np.bincount(t[a] * width + t[b], minlength=size) / len(t[a]) for t in (one, two)]
        apart.append(0.5 * np.abs(shares[0] - shares[1]).sum())
    return float(np.mean(apart))


def attack(published: dict[str, Any], asked: Any, included: np.ndarray, world: Any) -> float:
    """The advantage of an attacker who knows the world and compares all pairs of values with it."""
    scores = mosha.audit.score_by_marginals(published, asked, world)
    return float(mosha.audit.membership_attack(published, asked, included, scores=scores).advantage)


def run(*, small: bool) -> dict[str, Any]:
    rng = np.random.default_rng()
    people = draw_people(2000, rng) if small else read_people()
    keys = {name: sorted(set(column.tolist())) for name, column in people.items() if name not in BETWEEN}
    coded, count = code(people, keys), len(people["age"])
    again = rng.integers(0, count, count)
    shuffled = {name: rng.permutation(column) for name, column in coded.items()}
    found: dict[str, Any] = {
        "people": count,
        "distance of a second sample": compare_pairs(coded, {name: column[again] for name, column in coded.items()}),
        "distance without any dependence": compare_pairs(coded, shuffled),
        "ages": {"real": np.bincount(coded["age"], minlength=74) / count},
    }
    for epsilon in EPSILONS:
        made = synthesize(people, epsilon, keys)
        cells = code(made.table, keys)
        found[f"epsilon {epsilon:g}: distance"] = compare_pairs(coded, cells)
        found[f"epsilon {epsilon:g}: method"] = made.method
        bar = made.count(income=">50K")
        truth = float(np.sum(people["income"] == ">50K"))
        found[f"epsilon {epsilon:g}: incomes above 50,000, off by"] = bar.value - truth
        found[f"epsilon {epsilon:g}: its error bar"] = bar.error
        found["ages"][epsilon] = np.bincount(cells["age"], minlength=74) / len(cells["age"])
    some = rng.permutation(count)[: 2 * FEW]
    asked = {name: column[some] for name, column in people.items()}
    included = rng.random(2 * FEW) < 0.5
    inside = {name: column[included] for name, column in asked.items()}
    found["attack: the rows themselves"] = attack(inside, asked, included, people)
    for epsilon in (1.0, 10.0):
        made = synthesize(inside, epsilon, keys)
        found[f"attack: epsilon {epsilon:g}"] = attack(made.table, asked, included, people)
    return found


def draw(found: dict[str, Any], sheet: Sheet) -> None:
    left, right = sheet.axes
    ages = np.arange(17, 91)
    left.fill_between(ages, found["ages"]["real"], color=sheet.look["grid"], step="mid",
                      label=sheet.word("real", "真实"))  # fmt: skip
    for epsilon, color in zip(EPSILONS[:2], sheet.colors, strict=False):
        label = sheet.word(f"synthetic, epsilon {epsilon:g}", f"合成，ε={epsilon:g}")
        left.step(ages, found["ages"][epsilon], where="mid", color=color, label=label)
    sheet.title(left, sheet.word("Ages", "年龄"), sheet.word("years", "岁"), sheet.word("share", "比例"))
    sheet.legend(left)
    heights = [found[f"epsilon {epsilon:g}: distance"] for epsilon in EPSILONS]
    right.plot(EPSILONS, heights, "o-", color=sheet.colors[0], label=sheet.word("synthetic table", "合成表"))
    for what, label in (
        ("distance without any dependence", ("real columns, all dependence lost", "真实的列，丢掉所有相关")),
        ("distance of a second sample", ("another sample of the real rows", "真实行的另一次抽样")),
    ):
        right.axhline(found[what], linestyle=":", color=sheet.look["pale"])
        right.text(EPSILONS[0], found[what], sheet.word(*label), color=sheet.look["ink"], fontsize=8, va="bottom")
    sheet.mark(right, EPSILONS)
    right.set_ylim(0, None)
    title = sheet.word("Distance of all pairs of columns", "各对列与真实表的距离")
    sheet.title(right, title, sheet.word("epsilon", "ε"), sheet.word("total variation", "总变差"))
    sheet.legend(right)


if __name__ == "__main__":
    show("census", run, draw)
