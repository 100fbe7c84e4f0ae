"""Two server processes on one PostgreSQL share store, ledger, queue and rates, and nobody overspends in a race."""

import json
import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

import mosha
from mosha.server.demo import DECLARATION
from tests.postgres import postgres_server  # noqa: F401  (a fixture)
from tests.server.processes import ServerProcess, prepare

UNTIL = (datetime.now(UTC).date() + timedelta(days=30)).isoformat()
NUMBERS = {"used", "limit", "reached", "account", "lacking", "payers"}


class Pair:
    """Two processes that share everything but their folder."""

    def __init__(self, folder: Any, url: Any) -> None:
        self.url, self.folder = url, folder
        self.tokens = prepare(folder / "one", store=url, ledger=url, timing="off")
        places = {"store": url, "ledger": url, "timing": "off", "requests_per_minute": 1000}
        places["series"] = folder / "series"
        self.servers = [ServerProcess(folder / name, **places) for name in ("one", "two")]

    def call(self, who: Any, method: Any, path: Any, body: Any = None) -> Any:
        reply = self.servers[0].call(self.tokens[who], method, path, body)
        assert reply.status_code < 300, reply.text
        return reply.json()

    def race(self, *, asks: Any, epsilon: Any, name: Any, dataset: str = "visits", **more: Any) -> list[Any]:
        """All ask at once, at both processes; how each ended, by who asked."""
        replies = []

        def ask(server: Any, who: Any, number: Any) -> None:
            body = {"dataset": dataset, "sql": f"SELECT COUNT(*) AS n FROM {dataset}", "price": {"epsilon": epsilon}}
            body |= {part: value[who] for part, value in more.items()}
            key = f"{name} {who} {number}"
            replies.append((who, server.call(self.tokens[who], "POST", "/requests", body, key=key)))

        turns = [(self.servers[n % 2], who, n) for n in range(asks) for who in ("li", "zhang")]
        threads = [threading.Thread(target=ask, args=turn) for turn in turns]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [self.end_of(who, reply) for who, reply in replies]

    def end_of(self, who: Any, reply: Any) -> Any:
        """How a request ended; whoever is refused is told nothing about accounts that are not his."""
        said = reply.json()
        if reply.status_code == 202:
            said = self.servers[0].wait(self.tokens[who], said["id"])
            problem = said.get("problem") or {}
        else:
            problem = said
            assert said["code"] == "server.not_enough", said
        others = {part: problem[part] for part in NUMBERS & set(problem)}
        assert not others or others["account"].startswith(f"visits/{who}"), problem
        other = "zhang" if who == "li" else "li"
        assert f"/{other}" not in json.dumps(problem)
        return said.get("state", "refused")

    def close(self) -> None:
        for server in self.servers:
            server.kill()


@pytest.fixture(scope="module")
def pair(postgres_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:  # noqa: F811
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE racing")
    found = Pair(tmp_path_factory.mktemp("pair"), postgres_server.url("racing"))
    yield found
    found.close()
    with mosha.Ledger(found.url) as ledger:
        assert ledger.verify().ok


def within_limits(pair: Any, *names: Any) -> None:
    with mosha.Ledger(pair.url) as ledger:
        for name in names:
            account = ledger.account(name)
            assert account.spent <= account.limit * (1 + 1e-12), name


def test_two_processes_race_for_the_last_of_each_grant(pair: Any) -> None:
    for server in pair.servers:  # the same people and datasets at both
        assert server.call(pair.tokens["li"], "GET", "/datasets").json()["datasets"][0]["name"] == "visits"
    states = pair.race(asks=5, epsilon=0.3, name="grant")
    assert states.count("answered") == 6  # three times 0.3 fit into each grant of 1
    same = [server.ask(pair.tokens["li"], "grant li 0", 0.3) for server in pair.servers]
    assert same[0].status_code == 202
    assert same[0].json()["id"] == same[1].json()["id"]
    within_limits(pair, "patients", "visits", "visits/li", "visits/zhang")


def test_two_teams_race_for_the_last_of_the_dataset(pair: Any) -> None:
    """Each team may spend all that is left of the dataset: together they get it once."""
    grants = {}
    for person in ("li", "zhang"):
        team = pair.call("ada", "POST", "/principals", {"name": f"team of {person}", "kind": "team"})
        pair.call("ada", "POST", f"/principals/{team['id']}/changes", {"members": [person]})
        said = {"principal": team["id"], "epsilon": 3.0, "delta": 1e-6, "expires": UNTIL}
        grants[person] = pair.call("wang", "POST", "/datasets/visits/grants", said)["id"]
    states = pair.race(asks=5, epsilon=0.3, name="dataset", grant=grants)
    assert states.count("answered") == 4  # 1.8 of 3 were spent: four times 0.3 are left
    within_limits(pair, "patients", "visits")


def test_two_analysts_race_for_the_last_of_the_population(pair: Any) -> None:
    """Another table of the same patients has a budget of its own, and the patients have one for both."""
    shutil.copy(pair.folder / "one" / "data" / "visits.csv", pair.folder / "one" / "data" / "stays.csv")
    population = {"name": "patients", "epsilon": 5.0, "delta": 1e-5, "failures": 10}
    said = {"name": "stays", "source": {"path": "stays.csv"}, "declaration": DECLARATION, "population": population}
    pair.call("wang", "POST", "/datasets", said | {"promise": {"epsilon": 3.0, "delta": 1e-6}})
    pair.call("zhao", "POST", "/datasets/stays/countersign")
    for person in ("li", "zhang"):
        said = {"principal": person, "epsilon": 3.0, "delta": 1e-6, "expires": UNTIL}  # type: ignore[dict-item]
        pair.call("wang", "POST", "/datasets/stays/grants", said)
    states = pair.race(asks=4, epsilon=0.5, name="population", dataset="stays")
    assert states.count("answered") == 4  # 3 of 5 were spent for the first table: four times 0.5 are left
    within_limits(pair, "patients", "visits", "stays")


def test_a_series_is_fed_at_both_processes_and_each_step_is_published_once(pair: Any) -> None:
    """A folder of states that both share: steps go on wherever they come in, and a race for one gives one point."""
    data = pair.folder / "one" / "data"
    shutil.copy(data / "visits.csv", data / "weeks.csv")
    table = {"name": "weeks", "source": {"path": "weeks.csv"}, "declaration": DECLARATION, "promise": {"epsilon": 1.0}}
    pair.call("wang", "POST", "/datasets", table)
    pair.call("zhao", "POST", "/datasets/weeks/countersign")
    said = {"name": "weekly", "dataset": "weeks", "measure": "count", "horizon": 6, "epsilon": 0.2}
    pair.call("wang", "POST", "/series", said)
    body = {"rows": {"patient_id": list(range(50))}}
    for step in (1, 2):
        reply = pair.servers[step % 2].call(pair.tokens["wang"], "POST", "/series/weekly/steps", body | {"step": step})
        assert reply.status_code == 201, reply.text
    found = []

    def feed(server: Any) -> None:
        found.append(server.call(pair.tokens["wang"], "POST", "/series/weekly/steps", body | {"step": 3}))

    threads = [threading.Thread(target=feed, args=(server,)) for server in pair.servers * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {reply.status_code for reply in found} == {201}
    assert len({reply.text for reply in found}) == 1
    with mosha.Ledger(pair.url) as ledger:
        paid = [entry for entry in ledger.entries() if entry.kind == "pay" and "counter" in entry.content()["name"]]
    assert len(paid) == 1
