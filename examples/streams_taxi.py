"""Taxi rides in New York by the half hour: alarms at labelled anomalies, paid by the alarm, and a picture.

    python examples/streams_taxi.py [picture.png]

Reads nab_nyc_taxi.csv and nab_combined_windows.json from $MOSHA_DATA/streams (Numenta Anomaly Benchmark, MIT).
"""

from __future__ import annotations

import csv
import json
import os
import sys
import tempfile
from datetime import datetime
from pathlib import Path

import mosha
from mosha import streams

DATA = Path(os.environ.get("MOSHA_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
THRESHOLD = 29_500


def rides(first: str, last: str) -> list[tuple[datetime, int]]:
    """Half hours from `first` to before `last`, and the rides in them."""
    begin, end = datetime.fromisoformat(first), datetime.fromisoformat(last)
    with (DATA / "streams" / "nab_nyc_taxi.csv").open(encoding="utf-8") as file:
        rows = [(datetime.fromisoformat(row["timestamp"]), int(row["value"])) for row in csv.DictReader(file)]
    return [(when, count) for when, count in rows if begin <= when < end]


def labelled(when: datetime) -> bool:
    """Whether a half hour lies in a window that was labelled as anomalous."""
    text = (DATA / "streams" / "nab_combined_windows.json").read_text(encoding="utf-8")
    windows = json.loads(text)["realKnownCause/nyc_taxi.csv"]
    return any(datetime.fromisoformat(first) <= when <= datetime.fromisoformat(last) for first, last in windows)


def main(
    picture: str | None = None, first: str = "2014-10-27", last: str = "2014-11-10"
) -> list[tuple[datetime, bool]]:
    """The alarms that were given, and whether each was labelled: the marathon, when clocks went back."""
    series, event = rides(first, last), mosha.Reading()
    account = mosha.Ledger(f"{tempfile.mkdtemp()}/taxi.db").account("taxi", unit=event, epsilon=0.5)
    bell = streams.alarm(unit=event, threshold=THRESHOLD, alarms=2, horizon=len(series), epsilon=0.5)
    given = []
    with account.open(bell) as run:
        for when, count in series:
            answer = run.step(range(count)).value
            if answer["alarm"]:
                given.append((when, labelled(when)))
                print(f"{when}: about {answer['gap']:.0f} rides above {THRESHOLD}, labelled: {given[-1][1]}")
            if len(given) == 2:
                break
    if picture:
        from matplotlib.figure import Figure  # noqa: PLC0415  (a guest)

        axes = (figure := Figure(figsize=(9, 3), layout="constrained")).add_subplot()
        axes.plot([when for when, _ in series], [count for _, count in series], color="#bbbbbb")  # type: ignore[arg-type]
        for when, _ in given:
            axes.axvline(when, color="#d62728")  # type: ignore[arg-type]
        axes.set_title("taxi rides by the half hour, alarms at epsilon 0.5 for all of them")
        figure.savefig(picture, dpi=120)
    return given


if __name__ == "__main__":
    main(*sys.argv[1:2])
