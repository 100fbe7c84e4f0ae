"""A server with many people: how long asking takes with 20 asking, who waits for whom, memory, statements, clocks.

`python -m benchmarks server_crowd` runs all but the clock, which takes minutes: `server_crowd:clock`, or one rule of
it, such as `server_crowd:clock_fixed`.
Milliseconds are by the clock, with the clients on the same processors: on a busy machine they are upper bounds.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from unittest import mock

import psutil

from benchmarks._rows import Row

PEOPLE = 200
ASKING = 20
EACH = 20
PRICE = 0.00001
RATES = {"requests_per_minute": 10**6, "previews_per_minute": 10**6, "waiting_per_principal": 10**6}


def _make_people(folder: Any) -> Any:
    """The demo and so many analysts with a grant each; their tokens."""
    from mosha.server.catalogue.grants import make_grant
    from mosha.server.demo import make_demo
    from mosha.server.people.credentials import issue
    from mosha.server.people.principals import create_principal
    from mosha.server.service import Service
    from mosha.server.settings import read_settings

    with Service(read_settings(folder, environment={}, demo=True, timing="off")) as service:
        make_demo(service)
        tokens = []
        for number in range(PEOPLE):
            name = f"analyst {number}"
            identity = create_principal(service.database, kind="person", name=name)
            said = {"principal": name, "epsilon": 0.5, "delta": 1e-7, "expires": "2099-01-01"}
            make_grant(service.database, service.ledger, "visits", said, "wang")
            tokens.append(issue(service.database, identity, "token", seconds=86_400).secret)
    return tokens


def _quantile(times: Any, share: Any) -> Any:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def _time_of(work: Any) -> Any:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def crowd() -> list[Any]:
    """200 people look at their page, 20 of them ask once a second; one of them asks ten times as much."""
    from tests.server.processes import ServerProcess

    folder = Path(tempfile.mkdtemp())
    tokens = _make_people(folder)
    server = ServerProcess(folder, timing="off", workers=2, **RATES)
    asking, looking, bare, over = [], [], [], threading.Event()

    def ask(token: Any, number: Any) -> None:
        for turn in range(EACH):
            begun = time.perf_counter()
            server.client.get("/healthz")  # what an exchange takes that does nothing, beside the same neighbors
            middle = time.perf_counter()
            reply = server.ask(token, f"{number} {turn}", PRICE)
            asking.append(time.perf_counter() - middle)
            bare.append(middle - begun)
            assert reply.status_code == 202, reply.text
            time.sleep(max(0.0, 1 - (time.perf_counter() - begun)))

    def look(numbers: Any) -> None:
        while not over.is_set():
            for number in numbers:
                begun = time.perf_counter()
                assert server.call(tokens[number], "GET", "/grants").status_code == 200
                looking.append(time.perf_counter() - begun)
                over.wait(1.0)

    threads = [threading.Thread(target=ask, args=(tokens[n], n)) for n in range(ASKING)]
    others = [threading.Thread(target=look, args=(range(n, PEOPLE, 4),)) for n in range(4)]
    process = psutil.Process(server.process.pid)
    for token in tokens:  # everybody is there
        assert server.call(token, "GET", "/me").status_code == 200
    server.ask(tokens[0], "warm", PRICE)
    alone = _quantile([_time_of(lambda n=n: server.ask(tokens[0], f"alone {n}", PRICE)) for n in range(40)], 0.5)
    load = os.getloadavg()[0]
    for thread in (*threads, *others):
        thread.start()
        time.sleep(1 / ASKING)
    for thread in threads:
        thread.join()
    over.set()
    for thread in others:
        thread.join()
    memory = process.memory_info().rss / 1e6
    server.kill()
    tail = _quantile(asking, 0.95) * 1e3
    over_bare = tail - _quantile(bare, 0.95) * 1e3
    said = (
        f"{over_bare:.0f} ms; in all {tail:.0f} (median {statistics.median(asking) * 1e3:.0f}, alone {alone * 1e3:.0f})"
    )
    said += f", a bare exchange {_quantile(bare, 0.95) * 1e3:.0f}; {load:.1f} other programs ran"
    return [
        Row(
            "asking with 20 asking, p95 over a bare exchange", "the bar of 25 ms", 25 / max(over_bare, 1e-9), 1.0, said
        ),
        Row("memory with 200 people, without workers", "the bar of 120 MB", 120 / memory, 1.0, f"{memory:.0f} MB"),
        Row("looking at a page, p95", "", 1.0, None, f"{_quantile(looking, 0.95) * 1e3:.0f} ms"),
    ]


def queueing() -> list[Any]:
    """The same crowd on processors that nobody else uses: CPU of asking and of looking, measured, then put in a queue.

    The CPU is that of the whole process, client and server, so that it is too much rather than too little. Arrivals are
    at random moments, one thing is done at a time (one interpreter), and workers have a processor of their own.
    """
    from tests.server.house import opened

    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), **RATES) as house:
        house.service.slots.stop()

        def cost_of(work: Any) -> Any:
            begun = time.process_time()
            work()
            return time.process_time() - begun

        for n in range(30):
            house.ask("li", key=f"warm {n}", epsilon=PRICE)
        asks = [cost_of(lambda n=n: house.ask("li", key=f"q {n}", epsilon=PRICE)) for n in range(300)]
        looks = [cost_of(lambda: house.call("li", "GET", "/grants")) for _ in range(100)]
    draw, waits = random.Random(), []
    for _ in range(200):  # as many spells of ten seconds
        arrivals = [(draw.uniform(0, 10), "ask") for _ in range(ASKING * 10)]
        arrivals += [(draw.uniform(0, 10), "look") for _ in range(40)]
        free = 0.0
        for moment, what in sorted(arrivals):
            free = max(free, moment) + draw.choice(asks if what == "ask" else looks)
            if what == "ask":
                waits.append(free - moment)
    tail = _quantile(waits, 0.95) * 1e3
    middle, high = (_quantile(asks, share) * 1e3 for share in (0.5, 0.95))
    said = f"{tail:.1f} ms, computed from {middle:.1f} CPU ms an ask (p95 {high:.1f})"
    return [Row("asking with 20 asking, p95 on free processors", "the bar of 25 ms", 25 / tail, 1.0, said)]


def fairness() -> list[Any]:
    """20 people hand in questions at once, one of them ten times as many: in which order they are begun."""
    from tests.server.house import opened

    with tempfile.TemporaryDirectory() as folder:
        tokens = _make_people(Path(folder))
        with opened(Path(folder), workers=2, **RATES) as house:
            house.tokens |= {str(n): token for n, token in enumerate(tokens)}
            house.service.slots.stop()  # all are in the queue before the first begins
            for turn in range(30):
                for number in range(ASKING):
                    if turn < 3 or number == 0:
                        assert house.ask(str(number), key=f"f {turn}", epsilon=PRICE).status_code == 202
        with opened(Path(folder), workers=2, **RATES) as house:
            find = "SELECT principal, started FROM requests WHERE state = 'done' ORDER BY started"
            while house.service.database.row("SELECT 1 AS more FROM requests WHERE state <> 'done'"):
                time.sleep(0.2)
            order = [row["principal"] for row in house.service.database.rows(find)]
    worst, seen = 0.0, {}  # type: ignore[var-annotated]
    for place, who in enumerate(order, start=1):
        seen[who] = seen.get(who, 0) + 1
        active = min(ASKING, len(order))
        if seen[who] <= 3:
            worst = max(worst, place / (seen[who] * active))
    return [Row("waits longer than one's share, at most", "the bar of 2", 2 / worst, 1.0, f"{worst:.2f} times")]


def statement() -> list[Any]:
    """CPU of the statement of a dataset whose book has 100,000 releases, and payments beside somebody who reads it."""
    import mosha
    from benchmarks._big_book import fill
    from mosha.server.api.operation import Call, perform
    from mosha.server.api.table import BY_NAME
    from mosha.server.asking.questions import load_engines
    from mosha.server.demo import make_demo
    from mosha.server.people.credentials import find_by_secret
    from mosha.server.service import Service
    from mosha.server.settings import read_settings

    with tempfile.TemporaryDirectory() as folder:
        service = Service(read_settings(Path(folder), environment={}, demo=True, timing="off"))
        tokens = make_demo(service)
        load_engines()  # as a server does a second after its start, whether anybody asks or not
        unit = service.ledger.account("visits").unit
        tiny = mosha.mechanisms.laplace(mosha.mechanisms.Count(), unit=unit, epsilon=1e-7)
        data = ([1], [1])
        fill(service.ledger, "visits/li", tiny, 100_000, data)
        sun = find_by_secret(service.database, tokens["sun"], "token")
        account = service.ledger.account("visits/zhang")

        def read(form: Any) -> Any:
            query = {"account": "visits", "format": form}
            return perform(BY_NAME["readStatement"], Call(service, sun, query=query))

        costs = {}
        for form in ("json", "html"):
            begun = time.process_time()
            read(form)
            costs[form] = time.process_time() - begun

        def pay() -> Any:
            begun = time.perf_counter()
            account.open(tiny).step(data)
            return time.perf_counter() - begun

        quiet = [pay() for _ in range(300)]
        over = threading.Event()

        def go_on() -> None:
            while not over.is_set():
                read("html")
                over.wait(0.5)

        reader = threading.Thread(target=go_on)
        reader.start()
        beside = [pay() for _ in range(300)]
        over.set()
        reader.join()
        service.close()
    slow = _quantile(beside, 0.99) / _quantile(quiet, 0.99)
    most = max(costs.values())
    said = ", ".join(f"{form} {cost * 1e3:.0f} ms" for form, cost in costs.items())
    return [
        Row("statement of 100,000 releases, CPU", "the bar of 100 ms", 0.1 / most, 1.0, said),
        Row("payments' p99 while it is read", "the bar of 2 times quiet", 2 / slow, 1.0, f"{slow:.2f} times"),
    ]


def _clock(timing: str, bar: float | None, *, deadline: float, workers: int) -> list[Row]:
    """Neighboring tables (one person more), asked about as often as MOSHA_PAIRS says (1,000), the same rule for both.

    Where she is in the table every tenth question is made to break at once, as it could by a CASE about her alone. The
    attacker sees an end when its moment has come and when it is written down, whichever is later.
    """
    from mosha.server.clock import now
    from mosha.server.work import slots
    from tests.server.clocked import add_dataset, advantage, make_rows, times_of
    from tests.server.house import opened

    run, write = vars(slots.Slots)["_end_of"], vars(slots)["finish"]
    planted: list[str] = []
    late: dict[str, float] = {}

    def fail_about_her(self: Any, worker: Any, row: Any, job: Any, begun: Any) -> Any:
        if row["dataset"] == "with_her" and int(row["id"][-2:], 16) % 10 == 0:
            planted.append(row["id"])
            return ("failed", slots.FAILED)
        return run(self, worker, row, job, begun)

    def write_and_look(database: Any, row: Any, holder: Any, outcome: Any, result: Any, visible: Any) -> Any:
        done = write(database, row, holder, outcome, result, visible)
        late[row["id"]] = max(0, now() - visible) / 1e6
        return done

    many = int(os.environ.get("MOSHA_PAIRS", "1000"))
    options = {"workers": workers, "running_per_principal": 100, **RATES}
    names = ["with_her", "without"]
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), **options) as house:
        add_dataset(house, "with_her", make_rows(5000), timing="off", deadline=30.0)
        add_dataset(house, "without", make_rows(4999), timing="off", deadline=30.0)
        add_dataset(house, "crowd", make_rows(200_000), timing="off", deadline=30.0)
        times_of(house, [*names, "crowd"], many=2 * workers, name="warm")
        if timing == "off":
            seen = times_of(house, ["with_her", "crowd"], many=50, name="many")
            works = advantage(*([time for time, _ in seen[name]] for name in ("with_her", "crowd")))
        change = "UPDATE datasets SET timing = ?, deadline = ? WHERE name <> 'visits'"
        house.service.database.run(change, timing, deadline)
        replaced: Any = {"finish": write_and_look}
        with mock.patch.object(slots.Slots, "_end_of", fail_about_her), mock.patch.multiple(slots, **replaced):
            seen = times_of(house, names, many=many, name=timing, late=late)
    found = advantage(*([time for time, _ in seen[name]] for name in names))
    failed = sum(end == "failed" for name in names for _, end in seen[name])
    tardy = sum(late > 0 for late in late.values()) if timing != "off" else 0
    said = f"{found:+.4f} of {many} pairs; {len(planted)} made to fail, {failed - len(planted)} besides; {tardy} late"
    good = bar is None or found <= bar
    least = None if bar is None else 1.0
    rows = [Row(f"neighbors, {timing}: advantage", f"at most {bar}", float(good), least, said)]
    if timing == "off":
        rows.append(Row("40 times the rows, off: advantage", "the attack works", works, 0.8, f"{works:+.3f}"))
    return rows


def clock_off() -> list[Row]:
    return _clock("off", None, deadline=30.0, workers=8)


def clock_ladder() -> list[Row]:
    return _clock("ladder", 0.02, deadline=30.0, workers=8)


def clock_fixed() -> list[Row]:
    return _clock("fixed", 0.0, deadline=3.0, workers=16)


def clock() -> list[Row]:
    """An attacker with a clock, under each rule; each alone is `clock_off`, `clock_ladder`, `clock_fixed`."""
    return clock_off() + clock_ladder() + clock_fixed()


def main() -> list[Row]:
    return crowd() + queueing() + fairness() + statement()


PIECES = {"crowd": crowd, "queueing": queueing, "fairness": fairness, "statement": statement, "clock": clock}
PIECES |= {"clock_off": clock_off, "clock_ladder": clock_ladder, "clock_fixed": clock_fixed}

if __name__ == "__main__":
    from benchmarks.__main__ import main as run

    sys.exit(run(["server_crowd"]))
