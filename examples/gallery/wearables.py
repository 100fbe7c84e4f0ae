"""Wearables: a number reported for months from the wrist, and alarms when many hearts race.

    python examples/gallery/wearables.py [--small] [--pictures FOLDER]

Each watch turns its resting heart rate into a yes or no once a month and remembers a noisy answer to it: daily reports
cost no more than the month. Separately, a clinic is told when unusually many watches report a fast pulse.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from canvas import Sheet, show, wallet

import mosha
from mosha import local, streams

LOW, HIGH = 40.0, 120.0
PERMANENT, EPSILON = 2.0, 1.0


def round_to_end(value: float, rng: np.random.Generator) -> str:
    """A number as one of two ends, at random so that it is right on average: what a watch reports about."""
    return "high" if rng.random() < (np.clip(value, LOW, HIGH) - LOW) / (HIGH - LOW) else "low"


def ask_watches(truth: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """The mean that the collector finds from one day's reports of all watches, and its error bar."""
    survey = local.Repeated(["low", "high"], permanent=PERMANENT, epsilon=EPSILON)
    found = survey.estimate(survey.simulate([round_to_end(value, rng) for value in truth]))
    share, bar = float(found.raw[1]), float(np.max(found.error(0.95)))
    return LOW + (HIGH - LOW) * share, (HIGH - LOW) * bar


def pay_for_days(days: int) -> tuple[float, float]:
    """What one watch has paid after so many days: with a remembered answer, and with fresh noise."""
    survey = local.Repeated(["low", "high"], permanent=PERMANENT, epsilon=EPSILON)
    watch = wallet(mosha.Own(), 4)
    device = local.Device(account=watch)
    for _ in range(days):
        device.report(survey, "high")
    return float(watch.spent), EPSILON * days


def guess_from_month(days: int, runs: int, rng: np.random.Generator) -> tuple[float, float]:
    """How often the majority of a month's reports tells the watch's answer: remembered, and with fresh noise."""
    keep = float(local.Repeated(["low", "high"], permanent=PERMANENT, epsilon=EPSILON).truth_rate)
    permanent = np.exp(PERMANENT) / (1 + np.exp(PERMANENT))
    drawn = rng.random(runs) < permanent
    remembered = rng.binomial(days, np.where(drawn, keep, 1 - keep)) > days / 2
    fresh = rng.binomial(days, np.exp(EPSILON) / (1 + np.exp(EPSILON)), runs) > days / 2
    return float(remembered.mean()), float(fresh.mean())


def watch_ward(hours: int, watches: int, rng: np.random.Generator) -> tuple[list[int], set[int], np.ndarray]:
    """The hours with an alarm, the hours with a true wave, and how many watches reported a fast pulse."""
    waves = {hours // 3, 2 * hours // 3}
    fast = rng.binomial(watches, 0.05, hours)
    for wave in waves:
        fast[wave] += rng.binomial(watches, 0.15)
    bell = streams.alarm(unit=mosha.Reading(), threshold=int(0.12 * watches), alarms=2, horizon=hours, epsilon=1)
    told: list[Any] = []
    with wallet(mosha.Reading(), 1).open(bell) as run:
        for hour in range(hours):
            if len(told) == 2:
                break
            if run.step([1] * int(fast[hour])).value["alarm"]:
                told.append(hour)
    return told, waves, fast


def run(*, small: bool) -> dict[str, Any]:
    rng = np.random.default_rng()
    watches, days, months = (2000, 10, 3) if small else (50_000, 30, 12)
    found: dict[str, Any] = {"watches": watches}
    rates = [66 + 3 * np.cos(month / 2) for month in range(months)]
    answers = [ask_watches(rng.normal(rate, 9, watches), rng) for rate in rates]
    found["months"] = (np.array(rates), np.array(answers))
    found["error of a month, beats"] = float(
        np.mean([abs(a - rate) for (a, _), rate in zip(answers, rates, strict=True)])
    )
    found["bar of 95%, beats"] = float(answers[0][1])
    found["paid after a month, remembered"], found["paid after a month, fresh noise"] = pay_for_days(days)
    remembered, fresh = guess_from_month(30, 20_000, rng)
    found["answer guessed from 30 days, remembered"], found["answer guessed from 30 days, fresh noise"] = (
        remembered,
        fresh,
    )
    told, waves, found["fast"] = watch_ward(100 if small else 500, 1000, rng)
    found["alarms"] = (told, sorted(waves))
    found["waves that were told"] = len(waves & set(told))
    return found


def draw(found: dict[str, Any], sheet: Sheet) -> None:
    left, right = sheet.axes
    rates, answers = found["months"]
    across = np.arange(1, len(rates) + 1)
    left.plot(across, rates, color=sheet.look["pale"], label=sheet.word("exact", "真实"))
    label = sheet.word("from the wrist", "手表上报")
    left.errorbar(across, answers[:, 0], answers[:, 1], fmt="o", color=sheet.colors[0], label=label)
    title = sheet.word("Mean resting pulse, month by month", "每月平均静息心率")
    sheet.title(left, title, sheet.word("month", "月"), sheet.word("beats a minute", "次/分"))
    sheet.legend(left)
    told, _ = found["alarms"]
    right.plot(found["fast"], color=sheet.look["pale"], lw=0.8)
    right.plot(told, found["fast"][told], "v", color=sheet.colors[1], label=sheet.word("alarm", "报警"))
    sheet.title(right, sheet.word("Watches with a fast pulse", "心率偏快的手表数"), sheet.word("hour", "小时"))
    sheet.legend(right)


if __name__ == "__main__":
    show("wearables", run, draw)
