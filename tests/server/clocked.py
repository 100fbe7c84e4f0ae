"""An attacker with a clock: two datasets, many questions, and a rule that tells them apart by when answers appear."""

import csv
from typing import Any

from mosha.server.catalogue.datasets import countersign, propose_dataset
from mosha.server.catalogue.grants import make_grant
from mosha.server.demo import DECLARATION, TYPES
from tests.server.house import COUNT


def advantage(first: Any, second: Any) -> Any:
    """How much better than chance the best threshold tells two lists of times apart.

    The threshold is chosen on one half of each list and judged on the other, so that chance does not flatter it.
    """
    learn = [(time, 1) for time in first[::2]] + [(time, -1) for time in second[::2]]
    best, threshold, sign, sum_so_far = 0.0, 0.0, 1, 0
    learn.sort()
    for place, (time, side) in enumerate(learn):
        sum_so_far += side
        following = learn[place + 1][0] if place + 1 < len(learn) else time
        if following != time and abs(sum_so_far) > best:
            best, threshold, sign = abs(sum_so_far), (time + following) / 2, 1 if sum_so_far > 0 else -1
    below = [sum(time <= threshold for time in times) / len(times) for times in (first[1::2], second[1::2])]
    return sign * (below[0] - below[1])


def add_dataset(house: Any, name: Any, rows: Any, *, timing: Any, deadline: Any) -> None:
    """A dataset of its own, which li may ask about."""
    service = house.service
    path = service.settings.folder / "data" / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(TYPES)
        writer.writerows(rows)
    said = {"name": name, "declaration": DECLARATION, "promise": {"epsilon": 1000.0, "delta": 1e-6, "failures": 1000}}
    said |= {"timing": timing, "deadline": deadline}
    propose_dataset(service.database, said, {"path": str(path)}, TYPES, "wang")
    countersign(service.database, service.ledger, name, "zhao")
    grant = {"principal": "li", "epsilon": 1000.0, "delta": 1e-6, "expires": "2099-01-01"}
    make_grant(service.database, service.ledger, name, grant, "wang")


def make_rows(patients: Any, stays: Any = 1) -> list[Any]:
    return [
        (patient, "surgery", "2026-01-01", (patient + stay) % 30, patient % 100)
        for patient in range(patients)
        for stay in range(stays)
    ]


def times_of(house: Any, names: Any, *, many: Any, name: Any, late: Any = None) -> Any:
    """Seconds from the start of each question to the moment from which its end can be seen; the datasets take turns.

    `late` are the seconds by which ends were written down after their moment, filled while questions run.
    """
    asked: Any = {dataset: [] for dataset in names}
    for number in range(many):
        for dataset in names:
            sql = COUNT.replace("visits", dataset)
            reply = house.ask("li", sql, key=f"{name} {dataset} {number}", epsilon=0.01, dataset=dataset)
            assert reply.status_code == 202, reply.text
            asked[dataset].append(reply.json()["id"])
    find = "SELECT (visible - started) AS after, outcome FROM requests WHERE id = ?"
    found = {}
    for dataset, requests in asked.items():
        for request in requests:
            house.wait("li", request, seconds=600)
        rows = [house.service.database.row(find, request) for request in requests]
        delays = [0.0 if late is None else late.get(request, 0.0) for request in requests]
        found[dataset] = [(row["after"] / 1e6 + delay, row["outcome"]) for row, delay in zip(rows, delays, strict=True)]
    return found
