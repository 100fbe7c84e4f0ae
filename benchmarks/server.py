"""The server: CPU until it is ready, CPU of a preview and of an ask, how both grow with what is there, kills.

Ratios are bar / ours where the bar is a number of CPU seconds, so that 1 is the bar. `python -m benchmarks
server:kills` kills server and workers at random moments, as often as MOSHA_KILLS says (500), and takes long.
"""

from __future__ import annotations

import itertools
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks._rows import Row

SQL = "SELECT ward, AVG(days) AS days FROM visits GROUP BY ward"
BODY = {"dataset": "visits", "sql": SQL, "price": {"epsilon": 0.001}, "rows": 1000}
OPTIONS: dict[str, Any] = {
    "previews_per_minute": 1_000_000,
    "requests_per_minute": 1_000_000,
    "waiting_per_principal": 1_000_000,
}


def ready() -> list[Any]:
    """CPU of `mosha serve` from its start to /readyz, workers left out; and its memory."""
    from tests.server.processes import ServerProcess, prepare

    folder = Path(tempfile.mkdtemp())
    prepare(folder)
    best, memory = float("inf"), 0.0
    for _ in range(3):
        server = ServerProcess(folder)
        process = psutil.Process(server.process.pid)
        used = process.cpu_times()
        best = min(best, used.user + used.system)
        memory = process.memory_info().rss / 1e6
        server.kill()
    return [
        Row("ready, CPU s", "the bar of 1.2", 1.2 / best, 1.0, f"{best:.2f} s"),
        Row("memory when ready, without workers", "the bar of 120 MB", 120 / memory, 1.0, f"{memory:.0f} MB"),
    ]


def _service(folder: Any) -> tuple[Any, ...]:
    from mosha.server.demo import make_demo
    from mosha.server.service import Service
    from mosha.server.settings import read_settings

    service = Service(read_settings(folder, environment={}, demo=True, timing="off", **OPTIONS))
    return service, make_demo(service)


def _cpu(work: Any, repeats: Any) -> Any:
    work(-1)
    begun = time.process_time()
    for number in range(repeats):
        work(number)
    return (time.process_time() - begun) / repeats


def preview_and_ask() -> Any:
    """CPU of the operations in this process, HTTP left out; no worker runs."""
    from mosha.server.api.operation import Call, perform
    from mosha.server.api.table import BY_NAME
    from mosha.server.people.credentials import find_by_secret

    with tempfile.TemporaryDirectory() as folder:
        service, tokens = _service(Path(folder))
        li = find_by_secret(service.database, tokens["li"], "token")
        asked = {name: value for name, value in BODY.items() if name != "rows"}
        look = _cpu(lambda _: perform(BY_NAME["preview"], Call(service, li, body=BODY)), 30)
        ask = _cpu(lambda n: perform(BY_NAME["ask"], Call(service, li, body=asked, key=f"k{n}")), 30)
        rows = [
            Row("preview, CPU ms", "the bar of 15 ms", 0.015 / look, 1.0, f"{look * 1e3:.1f} ms"),
            Row("ask over the library call, CPU ms", "the bar of 10 ms", 0.010 / ask, 1.0, f"{ask * 1e3:.1f} ms"),
        ]
        service.close()
    return rows


SIZES = (100, 1_000, 10_000, 100_000)


def _copy_rows(service: Any, table: Any, size: Any, change: Any) -> None:
    """As many rows of a table as are wanted: copies of its first, each with a few values of its own."""
    with service.database.transaction() as transaction:
        row = transaction.row(f"SELECT * FROM {table}")
        have = transaction.row(f"SELECT COUNT(*) AS n FROM {table}")["n"]
        insert = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
        for number in range(have, size):
            transaction.run(insert, *(row | change(number)).values())


def _grow(service: Any, size: Any) -> None:
    """So many datasets, people, grants with their accounts in the book, and requests of others."""
    from benchmarks._big_book import open_accounts

    def name(number: Any) -> str:
        return f"{number:07d}"

    _copy_rows(service, "datasets", size, lambda n: {"name": f"d{name(n)}", "source_hash": name(n)})
    _copy_rows(service, "declarations", size, lambda n: {"dataset": f"d{name(n)}"})
    _copy_rows(service, "principals", size, lambda n: {"id": f"p-{name(n)}", "name": f"person {n}"})
    _copy_rows(service, "credentials", size, lambda n: {"id": f"c-{name(n)}", "principal": "p-0000099", "hash": ""})
    have = service.database.row("SELECT COUNT(*) AS n FROM grants")["n"]
    open_accounts(service.ledger, "visits", [f"person {n}" for n in range(have, size)], epsilon=0.01)
    grant = lambda n: {"id": f"g-{n}", "principal": f"p-{name(n)}", "account": f"visits/person {n}"}
    _copy_rows(service, "grants", size, grant)
    _copy_rows(
        service,
        "requests",
        size,
        lambda n: (
            dict.fromkeys(("principal", "person"), f"p-{name(n % 1000)}") | {"id": f"r-{n}", "state": "withdrawn"}
        ),
    )


def growth() -> Any:
    """CPU of what people do, as datasets, people, grants and requests of others grow together from 10^2 to 10^5."""
    from mosha.server.api.operation import Call, perform
    from mosha.server.api.table import BY_NAME
    from mosha.server.people.credentials import find_by_secret
    from mosha.server.work.queue import claim

    curves: dict[Any, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        service, tokens = _service(Path(folder))
        li = find_by_secret(service.database, tokens["li"], "token")
        asked, keys = {name: value for name, value in BODY.items() if name != "rows"}, itertools.count()

        def do(operation: Any, **parts: Any) -> Any:
            return perform(BY_NAME[operation], Call(service, li, **parts))

        do("ask", body=asked, key="one")
        for size in SIZES:
            _grow(service, size)
            service.database.run("UPDATE requests SET state = 'withdrawn' WHERE state = 'queued'")
            what = {
                "claim": lambda _: claim(service.database, "i", most_running=0),
                "sign in by token": lambda _: find_by_secret(service.database, tokens["li"], "token"),
                "preview": lambda _: do("preview", body=BODY),
                "ask": lambda _: do("ask", body=asked, key=f"key {next(keys)}"),
                "my requests": lambda _: do("listRequests", query={"limit": 1}),
                "my grants": lambda _: do("listMyGrants"),
                "read a dataset": lambda _: do("readDataset", path={"dataset": "visits"}),
            }
            for name, work in what.items():
                curves.setdefault(name, []).append(min(_cpu(work, 10) for _ in range(3)))
        service.close()
    rows = []
    for name, costs in curves.items():
        said = " / ".join(f"{cost * 1e3:.2f}" for cost in costs) + " ms"
        rows.append(Row(f"{name}, 10^2 to 10^5 of each", "flat", costs[0] / costs[-1], 0.5, said))
    return rows


def kills() -> list[Any]:
    """Server and workers killed at random moments; a question before each kill."""
    from tests.server.processes import prepare
    from tests.server.test_kills import check_books, kill_at_random

    many = int(os.environ.get("MOSHA_KILLS", "500"))
    folder = Path(tempfile.mkdtemp())
    tokens = prepare(folder, timing="off")
    asked = kill_at_random(folder, tokens, kills=many, draw=random.Random())
    states = check_books(folder, tokens, asked)
    said = f"{len(states)} requests: " + ", ".join(f"{states.count(s)} {s}" for s in sorted(set(states)))
    return [Row(f"{many} kills: unpaid, paid twice, lost", "none", 1.0, 1.0, said)]


PIECES = {"ready": ready, "preview": preview_and_ask, "growth": growth, "kills": kills}

if __name__ == "__main__":
    from benchmarks.__main__ import main

    sys.exit(main(["server"]))
