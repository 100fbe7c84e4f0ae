"""A building with a digital twin: occupancy and temperature behind noise, Kalman's filter, and a controller on it.

    python examples/gallery/building.py [--small] [--pictures FOLDER]

Sixteen rooms of 20 desks; people come and go. The number of people warms the building; a cooler is driven by the
estimate. Noise is added to the sum of all sensors (measurement), or by each sensor on its own (input).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from canvas import Sheet, show, wallet

import mosha
from mosha import streams

DESKS = 320
ROOMS = 16
SYSTEM = streams.LinearSystem(  # people, and degrees away from 21
    A=[[0.95, 0.0], [0.006, 0.9]], B=[[0.0], [-0.5]], C=[[1.0, 0.0]], Q=[[60.0, 0.0], [0.0, 0.01]], R=[[1.0]]
)
MIDDLE = 160.0


def day(steps: int, rng: np.random.Generator) -> np.ndarray:
    """People in the building, every few minutes."""
    people = np.empty(steps)
    level = 0.0
    for t in range(steps):
        level = 0.95 * level + rng.normal(0, 60**0.5)
        people[t] = np.clip(MIDDLE + level, 0, DESKS)
    return np.rint(people)


def publish(people: np.ndarray, epsilon: float) -> tuple[np.ndarray, float]:
    """The count of each step, with noise for one presence; its deviation."""
    count = streams.counter(unit=mosha.Reading(), horizon=len(people), epsilon=epsilon, release="instant")
    with wallet(mosha.Reading(), epsilon).open(count) as run:
        noisy = np.array([run.step([0] * int(n)).value for n in people], np.float64)
    return noisy, float(count.deviation(1))


def control(people: np.ndarray, seen: np.ndarray, deviation: float) -> tuple[np.ndarray, list[streams.Band]]:
    """Degrees away from 21 with a cooler that runs on the estimate; the bands of people and degrees."""
    gain = SYSTEM.find_gain(cost=[[0.0, 0.0], [0.0, 1.0]], effort=[[0.02]])
    warm, belief, push = 0.0, SYSTEM.begin(), np.zeros(1)
    belief = streams.Estimate(np.zeros(2), np.diag([3600.0, 1.0]))
    degrees, means, widths = [], [], []
    for t, measured in enumerate(seen):
        belief = SYSTEM.update(belief, [measured - MIDDLE], deviations=deviation, moved_by=push)
        push = -gain @ belief.mean
        means.append(belief.mean)
        widths.append(belief.deviations)
        degrees.append(warm)
        warm = 0.9 * warm + 0.006 * (people[t] - MIDDLE) - 0.5 * float(push[0])
    bands = [streams.Band(np.array(means)[:, k], np.array(widths)[:, k]) for k in range(2)]
    return np.array(degrees), bands


def run(*, small: bool) -> dict[str, Any]:
    rng = np.random.default_rng()
    steps, epsilon = (60, 0.2) if small else (400, 0.2)
    people = day(steps, rng)
    found: dict[str, Any] = {"steps": steps, "people": people}
    noisy, deviation = publish(people, epsilon)
    split = rng.multinomial(people.astype(int), np.full(ROOMS, 1 / ROOMS))
    rooms = np.sum([publish(split[:, room], epsilon)[0] for room in range(ROOMS)], axis=0)
    for name, seen, width in (("measurement", noisy, deviation), ("input", rooms, deviation * ROOMS**0.5)):
        degrees, bands = control(people, seen, width)
        found[name] = (seen, bands[0])
        low, high = bands[0].interval(1.96)
        found[f"{name}: error as published"] = float(np.sqrt(np.mean((seen - people) ** 2)))
        found[f"{name}: error of the filter"] = float(np.sqrt(np.mean((bands[0].values + MIDDLE - people) ** 2)))
        found[f"{name}: truth within the band of 95%"] = float(
            np.mean((people - MIDDLE >= low) & (people - MIDDLE <= high))
        )
        found[f"{name}: degrees from 21"] = float(np.sqrt(np.mean(degrees**2)))
        found[f"degrees {name}"] = degrees
    found["in the open: degrees from 21"] = float(np.sqrt(np.mean(control(people, people, 0.5)[0] ** 2)))
    push_nothing, warm = [], 0.0
    for n in people:
        push_nothing.append(warm)
        warm = 0.9 * warm + 0.006 * (n - MIDDLE)
    found["no controller: degrees from 21"] = float(np.sqrt(np.mean(np.square(push_nothing))))
    found["degrees free"] = np.array(push_nothing)
    verdict = mosha.audit.attack(
        streams.counter(unit=mosha.Reading(), horizon=1, epsilon=epsilon, release="instant"),
        neighbors=([0] * 10, [0] * 11), runs=500 if small else 5000,
    )  # fmt: skip
    found["attacker proves at least epsilon"] = float(verdict.lower)
    return found


def draw(found: dict[str, Any], sheet: Sheet) -> None:
    left, right = sheet.axes
    shown = slice(0, 120)
    seen, band = found["measurement"]
    low, high = band.interval(1.96)
    across = np.arange(len(seen))[shown]
    left.plot(across, seen[shown], ".", color=sheet.look["pale"], ms=3, label=sheet.word("published", "公布值"))
    left.fill_between(across, low[shown] + MIDDLE, high[shown] + MIDDLE, color=sheet.colors[0], alpha=0.3, lw=0)
    left.plot(across, band.values[shown] + MIDDLE, color=sheet.colors[0], label=sheet.word("filter, 95%", "滤波，95%"))
    left.plot(across, found["people"][shown], color=sheet.colors[1], lw=1, label=sheet.word("truth", "真实"))
    sheet.title(left, sheet.word("People in the building", "楼内人数"), sheet.word("step", "时刻"))
    sheet.legend(left)
    right.plot(
        across, found["degrees free"][shown], color=sheet.look["pale"], label=sheet.word("no controller", "不控制")
    )
    right.plot(
        across, found["degrees measurement"][shown], color=sheet.colors[0],
        label=sheet.word("cooler on the private filter", "按私密滤波控制"),
    )  # fmt: skip
    sheet.title(right, sheet.word("Degrees away from 21", "偏离 21 度的度数"), sheet.word("step", "时刻"))
    sheet.legend(right)


if __name__ == "__main__":
    show("building", run, draw)
