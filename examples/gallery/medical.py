"""Survival after a treatment: Kaplan-Meier curves of two groups from noisy counts, with bands.

    python examples/gallery/medical.py [--small] [--pictures FOLDER]

Patients are followed for 24 months; some leave the study early. Each patient adds one row: the month of the last visit,
and whether it was a death.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from canvas import Sheet, show, wallet

import mosha
from mosha.mechanisms import Histogram, laplace
from mosha.tables import find_survival_curve

MONTHS = 24
HAZARDS = {"new": 0.025, "old": 0.05}


def patients(count: int, hazard: float, rng: np.random.Generator) -> np.ndarray:
    """Rows (month, died)."""
    death = rng.geometric(hazard, count)
    leaves = np.minimum(rng.geometric(0.02, count), MONTHS)
    return np.column_stack([np.minimum(death, leaves), death <= leaves])


def true_curve(rows: np.ndarray) -> np.ndarray:
    """Kaplan and Meier's estimate without privacy."""
    months = np.arange(1, MONTHS + 1)
    risk = np.array([(rows[:, 0] >= month).sum() for month in months])
    deaths = np.array([((rows[:, 0] == month) & (rows[:, 1] == 1)).sum() for month in months])
    return np.cumprod(1 - deaths / np.maximum(risk, 1))


def records(rows: np.ndarray) -> list[tuple[int, int]]:
    return [(int(month), int(died)) for month, died in rows]


def run(*, small: bool) -> dict[str, Any]:
    rng = np.random.default_rng()
    count, draws = (800, 3) if small else (4000, 40)
    counts = Histogram(keys=[(month, died) for died in (1, 0) for month in range(1, MONTHS + 1)])
    found: dict[str, Any] = {"patients of each group": count, "curves": {}}
    for name, hazard in HAZARDS.items():
        rows = patients(count, hazard, rng)
        exact = true_curve(rows)
        for epsilon in (0.2, 1.0):
            errors, inside = [], []
            for _ in range(draws):
                question = laplace(counts, unit=mosha.Row(), epsilon=epsilon)
                with wallet(mosha.Row(), epsilon).open(question) as paid:
                    died, left = np.asarray(paid.step(records(rows)).value).reshape(2, MONTHS)
                curve = find_survival_curve(died, left, deviation=2**0.5 / epsilon)
                errors.append(np.abs(curve.values - exact).max())
                truth = (1 - hazard) ** np.arange(1, MONTHS + 1)
                inside.append(np.mean((truth >= curve.low) & (truth <= curve.high)))
            found[f"{name}, epsilon {epsilon:g}: largest error"] = float(np.mean(errors))
            found[f"{name}, epsilon {epsilon:g}: truth within the band of 95%"] = float(np.mean(inside))
            found["curves"][name, epsilon] = (exact, curve)
    few = patients(50, 0.05, rng)
    last = np.argmax(few[:, 0])
    found["in the open, one of 50 patients moves the curve by"] = float(
        np.abs(true_curve(few) - true_curve(np.delete(few, last, axis=0))).max()
    )
    cell = counts.keys.index(records(few)[last])
    seen = laplace(counts, unit=mosha.Row(), epsilon=1.0).map(lambda answer: float(answer[cell]))
    pair = (records(few), records(np.delete(few, last, axis=0)))
    found["attacker proves at least epsilon"] = float(
        mosha.audit.attack(seen, neighbors=pair, runs=500 if small else 5000).lower
    )
    return found


def draw(found: dict[str, Any], sheet: Sheet) -> None:
    groups = {"new": ("new treatment", "新疗法"), "old": ("old treatment", "旧疗法")}
    for axes, epsilon in zip(sheet.axes, (1.0, 0.2), strict=True):
        for color, (name, words) in zip(sheet.colors, groups.items(), strict=False):
            exact, curve = found["curves"][name, epsilon]
            months = np.arange(1, MONTHS + 1)
            axes.fill_between(months, curve.low, curve.high, step="post", color=color, alpha=0.25, lw=0)
            axes.step(months, curve.values, where="post", color=color, label=sheet.word(*words))
            axes.step(months, exact, where="post", color=sheet.look["pale"], lw=0.9, ls="--")
        axes.set_ylim(0, 1.02)
        title = sheet.word(f"Survival, epsilon {epsilon:g}", f"生存曲线，ε={epsilon:g}")
        sheet.title(axes, title, sheet.word("months", "月"), sheet.word("share alive", "存活比例"))
        sheet.legend(axes, loc="lower left")


if __name__ == "__main__":
    show("medical", run, draw)
