"""Power of a household by the day: the mean of the last 30 days, each day's reading hidden, and a picture.

    python examples/streams_power.py [picture.png]

Reads household_power_days.csv from $MOSHA_DATA/streams (CC BY 4.0, Hebrail and Berard 2006).
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

import mosha
from mosha import streams

DATA = Path(os.environ.get("MOSHA_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def daily() -> list[float]:
    """Mean active power of each day, in kW: the file has sums over minutes."""
    with (DATA / "streams" / "household_power_days.csv").open(encoding="utf-8") as file:
        return [float(row["Global_active_power"]) / 1440 for row in csv.DictReader(file)]


def main(picture: str | None = None, days: int = 730) -> float:
    power, event = daily()[:days], mosha.Reading()
    account = mosha.Ledger(f"{tempfile.mkdtemp()}/power.db").account("power", unit=event, rho=0.5)
    month = streams.mean(unit=event, horizon=len(power), between=(0, 3), rho=0.5, release=streams.Sliding(30))
    with account.open(month) as run:
        published = np.array([run.step([day]).value for day in power])
    sums = np.convolve(np.clip(power, 0, 3), np.ones(30))[: len(power)]
    truth = sums / np.minimum(np.arange(1, len(power) + 1), 30)
    error = float(np.sqrt(np.mean((published - truth)[30:] ** 2)))
    print(f"mean of the last 30 days: root mean square error {error:.3f} kW, mean {truth.mean():.3f} kW")
    if picture:
        from matplotlib.figure import Figure  # noqa: PLC0415  (a guest)

        axes = (figure := Figure(figsize=(9, 3), layout="constrained")).add_subplot()
        axes.plot(truth, color="#bbbbbb", label="truth")
        axes.plot(published, color="#31688e", linewidth=0.8, label="published")
        axes.set_title("kW, mean of the last 30 days, rho 0.5 for two years")
        axes.legend()
        figure.savefig(picture, dpi=120)
    return error


if __name__ == "__main__":
    main(*sys.argv[1:2])  # type: ignore[arg-type]
