"""Crowds of processes at one book: racing, retrying, killed at random moments.

Run as `python -m tests.ledger.crowd <scene> <where> <number>`; prints what happened as JSON. A process of its own
forks the crowd, so that the imports are paid once and the test process stays single.
"""

import itertools
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import mosha
import mosha.noise.generators.secure_random  # before the crowd is born: its children pay at once
from mosha import errors, events
from tests.ledger.place import PERSON, asking

CROWD = 8
READY = b'["ready"]\n'
DICE = random.SystemRandom()


def fork(work: Any) -> Any:
    """A child that runs `work(say)` and is gone; its words come back through a pipe."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    status = 1
    try:
        os.close(reading)
        work(lambda *words: os.write(writing, (json.dumps(words) + "\n").encode()))
        status = 0
    finally:
        os._exit(status)


def hear(child: Any, reading: Any) -> tuple[Any, ...]:
    """What a child said until it ended, and how it ended."""
    words = b""
    while part := os.read(reading, 65536):
        words += part
    os.close(reading)
    _, status = os.waitpid(child, 0)
    return [json.loads(line) for line in words.splitlines()], status


def gather(work: Any) -> list[Any]:
    """What a crowd says that begins at one word: each child opens its ledger first and then waits for it."""
    waiting, starting = os.pipe()

    def wait() -> None:
        os.close(starting)
        os.read(waiting, 1)

    children = [fork(lambda say: work(say, wait)) for _ in range(CROWD)]
    for _, reading in children:
        os.read(reading, len(READY))
    os.close(starting)
    os.close(waiting)
    heard = [hear(*child) for child in children]
    if any(status for _, status in heard):
        raise SystemExit(f"a child failed: {heard}")
    return [words for words, _ in heard]


def birth(where: Any, number: Any) -> Any:
    """Eight processes begin the same book and open the same account at the same moment."""

    def begin(say: Any, wait: Any) -> None:
        say("ready")
        wait()
        with mosha.Ledger(where, patience=60) as ledger:
            account = ledger.account("visits", unit=PERSON, epsilon=100)
            for _ in range(number):
                account.open(asking(events.Laplace(8))).step(None)

    gather(begin)
    with mosha.Ledger(where) as ledger:
        kinds = [row.kind for row in ledger.entries()]
        found = {"books": kinds.count("ledger"), "accounts": kinds.count("open")}
        return found | {"spent": ledger.account("visits").spent, "problems": ledger.verify().problems}


def race(where: Any, units: Any) -> Any:
    """Eight processes want all they can get of an account that affords `units` releases."""
    with mosha.Ledger(where) as ledger:
        ledger.account("cake", unit=PERSON, epsilon=units / 16)
        for number in range(units):
            ledger.account(f"last {number}", unit=PERSON, epsilon=1)

    def grab(say: Any, wait: Any) -> None:
        with mosha.Ledger(where, patience=60) as ledger:
            cake, won = ledger.account("cake"), 0
            say("ready")
            wait()
            try:
                while True:
                    cake.open(asking(events.Laplace(16))).step(None)
                    won += 1
            except errors.BudgetExceeded:
                say("cake", won)
            for number in range(units):
                try:
                    ledger.account(f"last {number}").open(asking()).step(None)
                except errors.BudgetExceeded:
                    continue
                say(f"last {number}", 1)

    won, winners = {}, 0  # type: ignore[var-annotated]
    for words in gather(grab):
        for name, count in words:
            won[name] = won.get(name, 0) + count
            winners += name == "cake" and count > 0
    with mosha.Ledger(where) as ledger:
        return {
            "won": won,
            "winners": winners,
            "spent": ledger.account("cake").spent,
            "problems": ledger.verify().problems,
        }


def one_key(where: Any, keys: Any) -> Any:
    """Eight processes ask the same questions under the same keys, each with an answer of its own."""
    with mosha.Ledger(where) as ledger:
        ledger.account("visits", unit=PERSON, epsilon=keys + 1)

    def ask(say: Any, wait: Any) -> None:
        with mosha.Ledger(where, patience=60) as ledger:
            account = ledger.account("visits")
            say("ready")
            wait()
            for key in range(keys):
                try:
                    say(key, account.open(asking(answer=os.getpid()), key=str(key)).step(None).value)
                except errors.RunError:  # overtaken, or the second to overtake: no answer leaves
                    say(key, None)

    answers: dict[Any, Any] = {}
    for words in gather(ask):
        for key, answer in words:
            answers.setdefault(key, set()).add(answer)
    with mosha.Ledger(where) as ledger:
        left = {key: len(found - {None}) for key, found in answers.items()}
        return {"left": left, "spent": ledger.account("visits").spent, "problems": ledger.verify().problems}


def asked(where: Any, start: Any) -> Any:
    """A child that asks under key after key from `start` on, until it is killed."""

    def ask(account: Any, key: Any) -> Iterator[tuple[Any, ...]]:
        stream = asking(events.Laplace(4) * 2, horizon=2, answer=DICE.getrandbits(40))
        with account.open(stream, key=f"run {key}") as run:
            yield f"run {key}", run.step(None).value
        single = asking(events.Laplace(4), answer=DICE.getrandbits(40))
        yield str(key), account.open(single, key=str(key)).step(None).value

    def work(say: Any) -> None:
        with mosha.Ledger(where, patience=60) as ledger:
            account = ledger.account("visits/zhang")
            say("ready")
            for key in itertools.count(start):
                try:
                    for words in ask(account, key):
                        say(*words)
                except (errors.RunError, errors.BudgetExceeded):  # no answer leaves
                    continue

    return work


def killed(where: Any, trials: Any) -> Any:
    """Kill -9 at random moments; those who come later ask again under the keys that may have been lost."""
    with mosha.Ledger(where) as ledger:
        ledger.account("visits", unit=PERSON, epsilon=trials / 4)
        ledger.account("visits/zhang", epsilon=trials)
    answers, kills, start = {}, 0, 0  # type: ignore[var-annotated]
    while kills < trials:
        pair = [fork(asked(where, max(0, start - 2))), fork(asked(where, start + 3))]
        for _, reading in pair:
            os.read(reading, len(READY))
        time.sleep(DICE.uniform(0, 0.05))
        for child, _ in pair:
            os.kill(child, signal.SIGKILL)
        for words, status in [hear(*child) for child in pair]:
            kills += status == signal.SIGKILL
            for key, answer in words:
                answers.setdefault(key, set()).add(answer)
                start = max(start, int(key.removeprefix("run ")))
    return {"kills": kills} | audit(where, answers)


def audit(where: Any, answers: Any) -> Any:
    """What the book says about the answers that left."""
    with mosha.Ledger(where) as ledger:
        rows = ledger.entries()
        keys = {row.sequence: row.content()["key"] for row in rows if row.kind == "pay"}
        kept: dict[Any, Any] = {}
        for row in rows:
            if row.kind == "release":
                content = row.content()
                kept.setdefault(keys[content["payment"]], []).append(content["answer"])
        unpaid = [key for key, found in answers.items() if not found <= set(kept.get(key, []))]
        doubled = [key for key, found in answers.items() if len(found) > 1]
        twice = len(keys) - len(set(keys.values()))
        accounts = [ledger.account(name) for name in ("visits", "visits/zhang")]
        within = all(account.rule.admits(account.spent_price, account.way) for account in accounts)
        found = {"left": len(answers), "paid": len(keys), "unpaid": unpaid, "doubled": doubled, "paid twice": twice}
        return found | {"within": within, "problems": ledger.verify().problems}


if __name__ == "__main__":
    scene, where, number = sys.argv[1:]
    print(json.dumps({"birth": birth, "race": race, "one_key": one_key, "killed": killed}[scene](where, int(number))))  # noqa: T201
