"""Two server processes on one PostgreSQL share store, ledger, queue and rates, and nobody overspends in a race."""

import threading

import psycopg

import mosha
from tests.postgres import postgres_server  # noqa: F401  (a fixture)
from tests.server.processes import ServerProcess, prepare


def test_two_processes_race_for_the_last_of_the_budget(postgres_server, tmp_path):  # noqa: F811
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE racing")
    url = postgres_server.url("racing")
    places = {"store": url, "ledger": url, "timing": "off"}
    tokens = prepare(tmp_path / "one", store=url, ledger=url, timing="off")
    servers = [ServerProcess(tmp_path / name, **places, requests_per_minute=1000) for name in ("one", "two")]
    try:
        for server in servers:  # the same people and datasets at both
            assert server.call(tokens["li"], "GET", "/datasets").json()["datasets"][0]["name"] == "visits"
        asked = []

        def ask(server, who, number):
            reply = server.ask(tokens[who], f"{who} {number}", 0.3)
            asked.append((who, reply))

        threads = [
            threading.Thread(target=ask, args=(servers[i % 2], who, i)) for i in range(5) for who in ("li", "zhang")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        states = []
        for who, reply in asked:
            if reply.status_code == 202:
                states.append(servers[0].wait(tokens[who], reply.json()["id"])["state"])
            else:
                assert reply.json()["code"] == "server.not_enough", reply.text
        assert states.count("answered") == 6  # three times 0.3 fit into each grant of 1
        same = [server.ask(tokens["li"], "li 0", 0.3) for server in servers]
        assert same[0].status_code == 202
        assert same[0].json()["id"] == same[1].json()["id"]
    finally:
        for server in servers:
            server.kill()
    with mosha.Ledger(url) as ledger:
        assert ledger.verify().ok
        for name in ("patients", "visits", "visits/li", "visits/zhang"):
            account = ledger.account(name)
            assert account.spent <= account.limit * (1 + 1e-12)
