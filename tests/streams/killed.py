"""A stream in a child that is killed at random moments, again and again, until its horizon is reached."""

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import mosha
from mosha.streams import counter, serve

EVENT = mosha.Reading()


def made(horizon: Any) -> Any:
    return counter(unit=EVENT, horizon=horizon, rho=0.5, mechanism="BLT")


def rows(step: Any) -> Any:
    return [1] * (step * 7 % 13)


def serving(folder: Any, horizon: Any) -> Any:
    book = mosha.Ledger(str(Path(folder) / "book.db"))
    account = book.account("door", unit=EVENT, rho=1.0)
    return serve(account, made(horizon), name="door", state=Path(folder) / "door.state")


def publish(folder: Any, horizon: Any, *, until: Any = None) -> None:
    """What the child does: go on with the stream, and write what it publishes to a file."""
    with serving(folder, horizon) as service, (Path(folder) / "published").open("a") as out:
        if service.last is not None:
            out.write(f"{service.taken} {service.last.value!r}\n")
            out.flush()
        while service.remaining and (until is None or service.taken < until):
            release = service.step(rows(service.taken + 1))
            out.write(f"{release.step} {release.value!r}\n")
            out.flush()


def kill_until_done(folder: Any, *, horizon: Any, kills: Any, longest: Any, finish: bool = True) -> Any:
    """Fork children and kill the first at once, each other after a random time; the last one may finish.

    Gives the number of kills that hit: on a machine on which children are quick, the first does.
    """
    hits = 0
    for number in range(kills):
        child = os.fork()
        if child == 0:
            try:
                publish(folder, horizon)
            finally:
                os._exit(0)
        time.sleep(random.random() * longest if number else 0)
        try:
            os.kill(child, signal.SIGKILL)
        finally:
            _, status = os.waitpid(child, 0)
        hits += os.WIFSIGNALED(status)
    if finish:
        publish(folder, horizon)
    return hits


def published(folder: Any) -> Any:
    """Every value that ever left, by step."""
    found: dict[Any, Any] = {}
    for line in (Path(folder) / "published").read_text().splitlines():
        step, _, value = line.partition(" ")
        found.setdefault(int(step), set()).add(value)
    return found
