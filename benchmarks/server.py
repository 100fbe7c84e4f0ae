"""The server: CPU until it is ready, CPU of a preview and of an ask, growth with the number of requests, kills.

Ratios are bar / ours where the bar is a number of CPU seconds, so that 1 is the bar. `python -m benchmarks
server:kills` kills server and workers at random moments, as often as MOSHA_KILLS says (500), and takes long.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks._rows import Row

SQL = "SELECT ward, AVG(days) AS days FROM visits GROUP BY ward"
BODY = {"dataset": "visits", "sql": SQL, "price": {"epsilon": 0.001}, "rows": 1000}
OPTIONS = {"previews_per_minute": 1_000_000, "requests_per_minute": 1_000_000, "waiting_per_principal": 1_000_000}


def ready():
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


def _service(folder):
    from mosha.server.demo import make_demo
    from mosha.server.service import Service
    from mosha.server.settings import read_settings

    service = Service(read_settings(folder, environment={}, demo=True, timing="off", **OPTIONS))
    return service, make_demo(service)


def _cpu(work, repeats):
    work(-1)
    begun = time.process_time()
    for number in range(repeats):
        work(number)
    return (time.process_time() - begun) / repeats


def preview_and_ask():
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


def growth():
    """CPU of reading one's requests and of a preview, with 100 and with 100,000 requests of others in the store."""
    from mosha.server.api.operation import Call, perform
    from mosha.server.api.table import BY_NAME
    from mosha.server.people.credentials import find_by_secret
    from mosha.server.work.queue import claim

    with tempfile.TemporaryDirectory() as folder:
        service, tokens = _service(Path(folder))
        li = find_by_secret(service.database, tokens["li"], "token")
        asked = {name: value for name, value in BODY.items() if name != "rows"}
        perform(BY_NAME["ask"], Call(service, li, body=asked, key="one"))
        row = service.database.row("SELECT * FROM requests")
        names = list(row)
        times = []
        for size in (100, 100_000):
            with service.database.transaction() as transaction:
                have = transaction.row("SELECT COUNT(*) AS n FROM requests")["n"]
                insert = f"INSERT INTO requests ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
                for number in range(have, size):
                    other = row | {"id": f"r-{number}", "principal": f"p-{number % 1000}", "state": "withdrawn"}
                    transaction.run(insert, *(other[name] for name in names))
            listed = _cpu(lambda _: perform(BY_NAME["listRequests"], Call(service, li)), 20)
            look = _cpu(lambda _: perform(BY_NAME["preview"], Call(service, li, body=BODY)), 20)
            times.append((listed, look, _cpu(lambda _: claim(service.database, "i", most_running=0), 20)))
        service.close()
    (few_list, few_look, few_claim), (many_list, many_look, many_claim) = times
    return [
        Row("list, 100 / 100,000 requests", "flat", few_list / many_list, 0.5, f"{many_list * 1e3:.2f} ms"),
        Row("claim, 100 / 100,000 requests", "flat", few_claim / many_claim, 0.5, f"{many_claim * 1e3:.2f} ms"),
        Row("preview, 100 / 100,000 requests", "flat", few_look / many_look, 0.5, f"{many_look * 1e3:.2f} ms"),
    ]


def kills():
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
