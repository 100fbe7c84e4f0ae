"""Bike sharing by the hour: a year of running counts and of daily sums, published with error bars, and a picture.

    python examples/streams_bikes.py [picture.png]

Reads bike_sharing_hour.csv.gz from $MOSHA_DATA/streams (CC BY 4.0, Fanaee-T and Gama 2013).
"""

from __future__ import annotations

import csv
import gzip
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

import mosha
from mosha import streams

DATA = Path(os.environ.get("MOSHA_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def hourly() -> list[int]:
    """Rides in each hour."""
    with gzip.open(DATA / "streams" / "bike_sharing_hour.csv.gz", "rt", encoding="utf-8") as file:
        return [int(float(row["cnt"])) for row in csv.DictReader(file)]


def main(picture: str | None = None, hours: int = 24 * 90) -> float:
    rides = hourly()[:hours]
    event = mosha.Reading()
    account = mosha.Ledger(f"{tempfile.mkdtemp()}/bikes.db").account("bikes", unit=event, rho=0.02)
    daily = streams.counter(unit=event, horizon=len(rides), rho=0.02, release=streams.Sliding(24))
    print(daily.describe())
    with account.open(daily) as run:
        published = np.array([run.step([1] * count).value for count in rides])
    truth = np.convolve(rides, np.ones(24))[: len(rides)]
    error = float(np.sqrt(np.mean((published - truth) ** 2)))
    print(f"rides of the last day: root mean square error {error:.1f}, mean {truth.mean():.0f}")
    if picture:
        from matplotlib.figure import Figure  # noqa: PLC0415  (a guest)

        figure = Figure(figsize=(9, 3), layout="constrained")
        axes = figure.add_subplot()
        axes.plot(truth, color="#bbbbbb", label="truth")
        axes.plot(published, color="#31688e", linewidth=0.8, label="published")
        axes.set_title("rides of the last 24 hours, rho 0.02 for the whole stream")
        axes.legend()
        figure.savefig(picture, dpi=120)
    return error


if __name__ == "__main__":
    main(*sys.argv[1:2])  # type: ignore[arg-type]
