"""Visitors of a web site by the hour: client addresses are the persons, each hidden as a whole, and a picture.

    python examples/streams_weblog.py [picture.png]

Reads apache_logs.gz from $MOSHA_DATA/streams (Apache-2.0, Elastic examples).
"""

from __future__ import annotations

import gzip
import os
import re
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

import mosha
from mosha import streams

DATA = Path(os.environ.get("MOSHA_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
LINE = re.compile(r"^(\S+) \S+ \S+ \[([^]]+)\]")
VISITS = 4
"""So many hours of one client count; later ones are left out."""


def hourly() -> list[list[str]]:
    """Client addresses of each hour, from the first to the last."""
    with gzip.open(DATA / "streams" / "apache_logs.gz", "rt", encoding="utf-8", errors="replace") as file:
        matches = filter(None, map(LINE.match, file))
        found = [(datetime.strptime(match[2], "%d/%b/%Y:%H:%M:%S %z"), match[1]) for match in matches]
    start = min(when for when, _ in found).replace(minute=0, second=0)
    hours: list[list[str]] = [[] for _ in range((max(w for w, _ in found) - start) // timedelta(hours=1) + 1)]
    for when, client in found:
        hours[(when - start) // timedelta(hours=1)].append(client)
    return hours


def main(picture: str | None = None) -> float:
    hours, unit = hourly(), mosha.Person("client", at_most=VISITS)
    account = mosha.Ledger(f"{tempfile.mkdtemp()}/web.db").account("web", unit=unit, rho=0.5)
    visitors = streams.counter(unit=unit, horizon=len(hours), rho=0.5)
    print(visitors.describe())
    with account.open(visitors) as run:
        published = np.array([run.step({"client": clients}).value for clients in hours])
    truth = np.cumsum([len(set(clients)) for clients in hours])
    error = float(abs(published[-1] - truth[-1]))
    print(f"hourly visitors so far: {published[-1]:.0f} at the end, {truth[-1]} without limits on clients")
    if picture:
        from matplotlib.figure import Figure  # noqa: PLC0415  (a guest)

        axes = (figure := Figure(figsize=(9, 3), layout="constrained")).add_subplot()
        axes.plot(truth, color="#bbbbbb", label="truth, no limit")
        axes.plot(published, color="#31688e", linewidth=0.8, label=f"published, at most {VISITS} hours a client")
        axes.set_title("hourly visitors so far, rho 0.5 for each client as a whole")
        axes.legend()
        figure.savefig(picture, dpi=120)
    return error


if __name__ == "__main__":
    main(*sys.argv[1:2])
