"""A made-up hospital: visits that look like real ones and belong to nobody.

Run it to get a CSV file: python examples/hospital.py visits.csv
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

WARDS = ("cardiology", "geriatrics", "maternity", "oncology", "paediatrics", "surgery")
_TYPICAL_DAYS = {"cardiology": 5, "geriatrics": 12, "maternity": 3, "oncology": 8, "paediatrics": 2, "surgery": 4}
_DAILY_COST = {
    "cardiology": 900,
    "geriatrics": 450,
    "maternity": 600,
    "oncology": 1200,
    "paediatrics": 500,
    "surgery": 1100,
}


def visits(patients: int = 8_000) -> dict[str, NDArray[np.generic]]:
    """Columns patient_id, age, ward, days and cost; a third of the patients come more than once."""
    rng = np.random.default_rng(2026)  # the sample is public, so that everybody sees the same one
    age = np.clip(
        np.concatenate([rng.normal(68, 15, patients * 3 // 5), rng.uniform(0, 60, patients - patients * 3 // 5)]),
        0,
        104,
    )
    times = np.minimum(rng.geometric(0.67, patients), 9)
    patient = rng.permutation(np.repeat(np.arange(patients), times))
    ages = np.floor(age[patient]).astype(np.int64)
    ward = np.array([rng.choice(WARDS, p=_shares(int(years))) for years in ages])
    typical = np.array([_TYPICAL_DAYS[name] for name in ward])
    days = np.maximum(1, np.round(rng.lognormal(np.log(typical), 0.6))).astype(np.int64)
    daily = np.array([_DAILY_COST[name] for name in ward])
    cost = np.round(days * daily * rng.lognormal(0, 0.25, len(days)), 2)
    return {"patient_id": patient + 100_000, "age": ages, "ward": ward, "days": days, "cost": cost}


def _shares(age: int) -> list[float]:
    """How likely each ward is at an age, in the order of WARDS."""
    if age < 16:
        return [0.02, 0.0, 0.0, 0.03, 0.80, 0.15]
    if age < 45:
        return [0.06, 0.0, 0.40, 0.09, 0.0, 0.45]
    if age < 75:
        return [0.34, 0.03, 0.0, 0.25, 0.0, 0.38]
    return [0.30, 0.36, 0.0, 0.12, 0.0, 0.22]


def write(path: Path) -> None:
    """The visits as a CSV file."""
    columns = visits()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "visits.csv"))
