"""Server and workers are killed at random moments: nothing is unpaid, nothing is paid twice, everything ends."""

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import mosha
from tests.server.processes import ServerProcess, prepare

KILLS = 200  # `python -m benchmarks server:kills` goes on to 500
EACH = 10  # kills of a round: nine of workers, then one of the server
EPSILON = 0.0002
OPTIONS = {"timing": "off", "requests_per_minute": 100_000, "waiting_per_principal": 100_000, "workers": 2}


def kill_at_random(folder: Any, tokens: Any, *, kills: Any, draw: Any) -> Any:
    """Ask, kill workers and the server at random moments, begin again; the requests and their keys."""
    asked = {}
    for number in range(kills // EACH):
        with mosha.Ledger(folder / "privacy.db") as ledger:  # killed steps count as failures, which freeze an account
            for name in ("patients", "visits"):
                ledger.account(name).lift()
        server = ServerProcess(folder, **OPTIONS)
        try:
            for each in range(EACH):
                key = f"round {number} question {each}"
                reply = server.ask(tokens["li"], key, EPSILON)
                assert reply.status_code == 202, reply.text
                asked[key] = reply.json()["id"]
                time.sleep(0.9 * draw.random() ** 3)  # often in the middle of a start, sometimes after an answer
                if each < EACH - 1 and (workers := server.workers()):
                    with suppress(ProcessLookupError):
                        os.kill(draw.choice(workers), signal.SIGKILL)
        finally:
            server.kill()
    return asked


def check_books(folder: Any, tokens: Any, asked: Any) -> list[Any]:
    """After a restart every request has ended; the ledger holds one payment for each that says it was paid."""
    server = ServerProcess(folder, **OPTIONS)
    try:
        ended = {key: server.wait(tokens["li"], request) for key, request in asked.items()}
        for key, request in asked.items():
            assert server.ask(tokens["li"], key, EPSILON).json()["id"] == request
    finally:
        server.kill(signal.SIGTERM)
    with mosha.Ledger(folder / "privacy.db") as ledger:
        assert ledger.verify().ok
        paid = [entry.content()["key"] for entry in ledger.entries() if entry.kind == "pay"]
        account = ledger.account("visits/li")
        assert account.spent <= account.limit
    assert len(set(paid)) == len(paid)
    for found in ended.values():
        assert found["state"] in ("answered", "failed", "refused")
        assert (f"request {found['id']}" in paid) == (found["state"] != "refused"), found["state"]
    return [found["state"] for found in ended.values()]


def test_kills_at_random_moments_lose_no_payment_and_pay_nothing_twice(tmp_path: Path) -> None:
    """Also the peer's fault 7: after a crash nobody is locked out, and the same key finds the same request."""
    tokens = prepare(tmp_path, timing="off")
    asked = kill_at_random(tmp_path, tokens, kills=KILLS, draw=random.Random())
    states = check_books(tmp_path, tokens, asked)
    assert "answered" in states


def test_a_server_that_stops_loses_no_answer_that_waits_for_its_tick(tmp_path: Path) -> None:
    """It waits for the tick; where the machine is too busy for that, the next one asks again for the same payment."""
    from tests.server.house import opened

    with opened(tmp_path, workers=1) as house:
        house.answer("li", key="warm", epsilon=0.01)
        house.time_ends("fixed", 8.0)
        for number in range(20):  # a busy machine may take all its time before the answer is there
            asked = house.ask("li", key=f"stop {number}", epsilon=0.001).json()["id"]
            while not house.call("li", "GET", f"/requests/{asked}").json()["final"]:
                if house.service.slots._measured:
                    break
                time.sleep(0.02)
            if house.service.slots._measured:
                break
    with opened(tmp_path, workers=1) as house:
        found = house.wait("li", asked)
        assert found["state"] == "answered"
        row = house.service.database.row(
            "SELECT attempts, visible - started AS after FROM requests WHERE id = ?", asked
        )
        assert row["attempts"] <= 2
        assert row["after"] == 8_000_000


def test_a_question_that_is_killed_at_its_deadline_is_paid_failed_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is stopped for real (SIGSTOP, so that no deadline inside of it can help)."""
    from tests.server.house import LONG, opened

    with opened(tmp_path, workers=1) as house:
        house.answer("li", key="warm", epsilon=0.01)
        house.time_ends("fixed", 8.0)
        worker = house.service.slots._workers[0]
        send = worker._send

        def stop_when_paid(message: Any) -> None:
            send(message)
            if message.get("op") == "ask":
                key = message["key"]
                payer = house.service.ledger.account("visits/li")
                end = time.monotonic() + 60
                while not payer.holds(key) and time.monotonic() < end:
                    time.sleep(0.001)
                os.kill(worker.pid, signal.SIGSTOP)

        monkeypatch.setattr(worker, "_send", stop_when_paid)
        for number in range(20):
            before = house.service.ledger.account("visits/li").failures
            found = house.answer("li", key=f"stuck {number}", epsilon=0.01)
            if found["state"] == "failed":  # not quicker than the signal, nor too slow to pay on a busy machine
                break
        assert found["state"] == "failed"
        assert found["problem"]["code"] == "server.step_failed"
        worker.wait()
        assert house.service.ledger.account("visits/li").failures == before + 1
        row = house.service.database.row("SELECT visible - started AS after FROM requests WHERE id = ?", found["id"])
        assert row["after"] == 8_000_000
        monkeypatch.undo()
        house.time_ends("off", LONG)
        assert house.answer("li", key="next", epsilon=0.01)["state"] == "answered"
