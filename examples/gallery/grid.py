"""A smart grid: the load of many meters, hidden by the reading, by the household's day and by the household.

    python examples/gallery/grid.py [--small] [--pictures FOLDER]

Households have habits; each sends its use every hour. Sums are published as a stream, smoothed, and tomorrow's load is
forecast from what was published alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from canvas import Sheet, show, wallet

import mosha
from mosha import streams

HOURS, MOST = 24, 3.0
RHO = 0.05  # at most epsilon 1.72 at delta 1e-6
UNITS = {
    "reading": ("one reading", "一次读数"),
    "day": ("a household's day", "一户的一天"),
    "household": ("a household, all days", "一户的所有日子"),
}


def meters(homes: int, days: int, rng: np.random.Generator) -> np.ndarray:
    """kW of each household in each hour."""
    hour = np.arange(HOURS)
    shape = 0.3 + 0.5 * np.exp(-((hour - 8) ** 2) / 8) + 0.9 * np.exp(-((hour - 19) ** 2) / 10)
    level = rng.gamma(4, 0.25, (homes, 1, 1))
    weather = 1 + 0.15 * np.sin(np.arange(days) / 3)[None, :, None]
    use = level * weather * shape * rng.gamma(6, 1 / 6, (homes, days, HOURS))
    return np.minimum(use, MOST).reshape(homes, days * HOURS)


def publish(use: np.ndarray, name: str) -> tuple[np.ndarray, float]:
    """The sum of all meters at each hour, and the deviation of its noise."""
    homes, steps = use.shape
    unit = {
        "reading": mosha.Reading(),
        "day": mosha.Window("home", HOURS),
        "household": mosha.Person("home", at_most=steps),
    }[name]
    total = streams.total(unit=unit, horizon=steps, between=(0, MOST), column="kW", rho=RHO, release="instant")
    with wallet(unit, rho=RHO).open(total) as run:
        rows = ({"home": np.arange(homes), "kW": use[:, t]} for t in range(steps))
        noisy = np.array([run.step(row).value for row in rows], np.float64)
    return noisy, float(total.deviation(steps))


def forecast(series: np.ndarray, deviation: float) -> np.ndarray:
    """Tomorrow's load by hour: each hour of the day is a level that wanders, filtered by itself."""
    days = series.reshape(-1, HOURS)
    return np.array([streams.smooth(days[:, hour], max(deviation, 1.0)).values[-1] for hour in range(HOURS)])


def run(*, small: bool) -> dict[str, Any]:
    rng = np.random.default_rng()
    homes, days = (200, 4) if small else (2000, 15)
    use = meters(homes, days, rng)
    known, tomorrow = use[:, :-HOURS], use[:, -HOURS:].sum(axis=0)
    truth = known.sum(axis=0)
    found: dict[str, Any] = {"households": homes, "truth": truth, "tomorrow": tomorrow}
    error = lambda guess: float(np.mean(np.abs(guess - tomorrow)) / np.mean(tomorrow))
    found["forecast in the open, error"] = error(forecast(truth, 1.0))
    for name in UNITS:
        noisy, deviation = publish(known, name)
        guess = forecast(noisy, deviation)
        found[name] = (noisy, guess)
        found[f"hiding {UNITS[name][0]}: deviation of the noise, kW"] = deviation
        found[f"hiding {UNITS[name][0]}: relative error of an hour"] = float(
            np.mean(np.abs(noisy - truth)) / np.mean(truth)
        )
        found[f"hiding {UNITS[name][0]}: error of the forecast"] = error(guess)
    single = use[0, :HOURS]
    noisy, _ = publish(known[:, :HOURS], "day")
    others = known[1:, :HOURS].sum(axis=0)
    found["hiding a day, it is read to within, kW"] = float(np.sqrt(np.mean((noisy - others - single) ** 2)))
    return found


def draw(found: dict[str, Any], sheet: Sheet) -> None:
    left, right = sheet.axes
    shown = slice(-48, None)
    left.plot(found["truth"][shown], color=sheet.look["ink"], lw=1, label=sheet.word("exact", "真实"))
    right.plot(found["tomorrow"], color=sheet.look["ink"], lw=1, label=sheet.word("what came", "实际"))
    for color, (name, words) in zip(sheet.colors, UNITS.items(), strict=False):
        noisy, guess = found[name]
        left.plot(noisy[shown], color=color, lw=1.1, label=sheet.word(*words))
        right.plot(guess, color=color, lw=1.1, label=sheet.word(*words))
    sheet.title(left, sheet.word("Load, by what is hidden", "总负荷，按隐藏对象"), sheet.word("hour", "小时"), "kW")
    sheet.title(right, sheet.word("Forecast of tomorrow", "明日负荷预测"), sheet.word("hour", "小时"), "kW")
    sheet.legend(left, above=True)
    sheet.legend(right, above=True)


if __name__ == "__main__":
    show("grid", run, draw)
