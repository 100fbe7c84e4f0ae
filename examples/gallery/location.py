"""Trips through a city: origin-destination matrices with a promise for each person, and traces that single people out.

    python examples/gallery/location.py [--small] [--pictures FOLDER]

People live and work in zones of a grid and make up to ten trips a week; half of all trips are between home and work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from canvas import Sheet, show, wallet

import mosha
from mosha import audit

BLOCKS = 25  # of a zone


def city(people: int, zones: int, rng: np.random.Generator) -> tuple[dict[str, Any], np.ndarray]:
    """Trips as columns, and for each person the block of each of 40 times."""
    weight = rng.pareto(1.5, zones) + 0.2
    home, work = (rng.choice(zones, people, p=weight / weight.sum()) for _ in range(2))
    who, origin, destination = [], [], []
    for person in range(people):
        for _ in range(rng.integers(2, 11)):
            usual = rng.random() < 0.6
            ends = (home[person], work[person]) if usual else (home[person], rng.choice(zones, p=weight / weight.sum()))
            ends = ends if rng.random() < 0.5 else ends[::-1]
            who.append(person), origin.append(int(ends[0])), destination.append(int(ends[1]))
    other = rng.choice(zones, (people, 40), p=weight / weight.sum()) * BLOCKS + rng.integers(0, BLOCKS, (people, 40))
    kind, living, working = rng.random((people, 40)), *(rng.integers(0, BLOCKS, (people, 1)) for _ in range(2))
    usual = np.where(kind < 0.45, home[:, None] * BLOCKS + living, work[:, None] * BLOCKS + working)  # type: ignore[assignment]
    traces = np.where(kind < 0.8, usual, other)
    return {"who": who, "origin": origin, "destination": destination}, traces


def run(*, small: bool) -> dict[str, Any]:
    rng = np.random.default_rng()
    people, zones = (400, 6) if small else (6000, 12)
    trips, traces = city(people, zones, rng)
    keys = {"origin": list(range(zones)), "destination": list(range(zones))}
    exact = np.zeros((zones, zones))
    np.add.at(exact, (trips["origin"], trips["destination"]), 1)
    found: dict[str, Any] = {"people": people, "trips": len(trips["who"]), "exact": exact}
    for name, most in (("one trip", 1), ("a person", 10)):
        person = mosha.Person("who", at_most=most)
        data = trips if most > 1 else trips | {"who": list(range(len(trips["who"])))}
        table = mosha.protect(data, unit=person, account=wallet(person, 1))
        answer = table.group_by("origin", "destination", keys=keys).count().release(epsilon=1)
        matrix = np.zeros((zones, zones))
        matrix[list(answer.table["origin"]), list(answer.table["destination"])] = list(answer.table["count"])
        found[f"matrix, {name}"] = matrix
        found[f"hiding {name}: relative error of all cells"] = float(np.abs(matrix - exact).sum() / exact.sum())
    found["unicity"] = [audit.measure_unicity(traces, points=points) for points in range(1, 7)]
    coarse = traces // BLOCKS
    found["unicity coarse"] = [audit.measure_unicity(coarse, points=points) for points in range(1, 7)]
    for points in (1, 2, 4):
        found[f"singled out by {points} points"] = found["unicity"][points - 1]
        found[f"singled out by {points} points, zones"] = found["unicity coarse"][points - 1]
    return found


def draw(found: dict[str, Any], sheet: Sheet) -> None:
    left, middle, right = sheet.axes
    top = found["exact"].max()
    names = (("matrix, a person", ("Trips, epsilon 1 a person", "出行矩阵，每人 ε=1")), ("exact", ("exact", "真实")))
    for axes, (key, words) in zip((left, middle), names, strict=True):
        axes.imshow(np.maximum(found[key], 0) ** 0.5, cmap="magma", vmin=0, vmax=top**0.5)
        axes.grid(visible=False)
        sheet.title(axes, sheet.word(*words), sheet.word("to zone", "到达区"), sheet.word("from zone", "出发区"))
    across = range(1, 7)
    right.plot(across, found["unicity"], "o-", color=sheet.colors[1], label=sheet.word("blocks", "按街区"))
    label = sheet.word("zones of 25 blocks", "按区（25 个街区）")
    right.plot(across, found["unicity coarse"], "o-", color=sheet.look["pale"], label=label)
    right.set_ylim(0, 1.02)
    title, up = sheet.word("Singled out by their trace", "被轨迹单独认出的人"), sheet.word("share", "比例")
    sheet.title(right, title, sheet.word("known points", "已知点数"), up)
    sheet.legend(right, loc="center right", bbox_to_anchor=(1.0, 0.7))


SIZE = {"columns": 3, "size": (9.6, 3.2)}

if __name__ == "__main__":
    show("location", run, draw, **SIZE)
