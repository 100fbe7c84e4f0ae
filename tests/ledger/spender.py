"""Processes that spend from one book, each doing what it is told, one word at a time."""

import ctypes
import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

import mosha
from mosha import errors, events
from tests.ledger.place import PERSON, asking

LIMIT = 6  # payments that the account affords
HALF = events.Laplace(2)


def begin(path: Any) -> None:
    """A book with one account that affords LIMIT payments."""
    with mosha.Ledger(path) as ledger:
        ledger.account("visits", unit=PERSON, epsilon=LIMIT / 2)


class Spender:
    """A process with a ledger of its own; `tell` gives it an order and returns its answer."""

    def __init__(self, path: Any = None) -> None:
        ours, theirs = os.pipe(), os.pipe()
        self._process = os.fork()
        if self._process == 0:
            os.close(ours[1])
            os.close(theirs[0])
            _obey(os.fdopen(ours[0]), theirs[1])
        os.close(ours[0])
        os.close(theirs[1])
        self._orders, self._answers = os.fdopen(ours[1], "w"), os.fdopen(theirs[0])
        if path is not None:
            self.opened = self.tell("open", str(path))

    def tell(self, *words: Any) -> Any:
        self._orders.write(json.dumps(words) + "\n")
        self._orders.flush()
        answer = self._answers.readline()
        assert answer, f"the process ended at {words}"
        return json.loads(answer)

    def pay(self, times: Any = LIMIT) -> Any:
        """How many of so many payments went through."""
        paid, self.trouble = self.tell("pay", times)
        return paid

    def end(self) -> None:
        self._orders.close()
        self._answers.read()
        self._answers.close()
        os.waitpid(self._process, 0)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def look(path: Any) -> None:
    """What `mosha ledger show` does, in a process of its own."""
    with Spender(path) as somebody:
        somebody.tell("close")


def _obey(orders: Any, answers: Any) -> None:
    """Work until the orders end; never return."""
    status, spender = 1, _Work()
    try:
        for line in orders:
            order, *words = json.loads(line)
            try:
                answer = getattr(spender, order)(*words)
            except errors.MoshaError as error:
                answer = f"{type(error).__name__}: {error}"
            os.write(answers, (json.dumps(answer) + "\n").encode())
        if hasattr(spender, "ledger"):
            spender.ledger.close()
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)


def _follow(child: Any) -> None:
    os.waitpid(child, 0)
    os._exit(0)


class _Work:
    """The orders that a spender knows."""

    def open(self, path: Any) -> str:
        self.path = path
        self.ledger = mosha.Ledger(path, patience=60)
        self.account = self.ledger.account("visits")
        return "opened"

    def pay(self, times: Any) -> tuple[Any, ...]:
        paid, trouble = 0, ""
        try:
            for _ in range(times):
                self.account.open(asking(HALF)).step(None)
                paid += 1
        except errors.MoshaError as error:
            trouble = f"{type(error).__name__}: {error}"
        return paid, trouble

    def close(self) -> None:
        self.ledger.close()

    def look(self) -> Any:
        return self.account.spent

    def fork(self, leave: Any) -> None:
        """Go on as a child of this process; its parent closes the ledger, exits, or stays as it is."""
        waiting, done = os.pipe()
        if child := os.fork():
            os.close(waiting)
            if leave == "close":
                self.ledger.close()
            elif leave == "exit":
                os._exit(0)
            os.close(done)
            _follow(child)
        os.close(done)
        os.read(waiting, 1)  # until the parent has done so
        os.close(waiting)

    def daemonise(self) -> None:
        """As daemons do: fork, a session of one's own, fork again; both parents are gone."""
        self.fork("exit")
        os.setsid()
        self.fork("exit")

    def fork_inside(self) -> Any:
        """Go on as a child that was born in the middle of a payment."""
        children: list[Any] = []

        def clock() -> int:
            if not children:
                children.append(os.fork())
            return 0

        with mosha.Ledger(self.path, clock=clock) as ledger:
            try:
                ledger.account("visits").open(asking(HALF))
                answer = "paid"
            except errors.MoshaError as error:
                answer = f"{type(error).__name__}: {error}"
        if children[0]:
            _follow(children[0])
        return answer

    def fork_silently(self) -> None:
        """Go on as a child that a library made without a word to Python."""
        if child := ctypes.CDLL(None).fork():
            self.ledger.close()
            _follow(child)

    def hold_raw(self) -> None:
        """A connection of one's own, beside the ledger."""
        self.raw = sqlite3.connect(self.path)
        self.raw.execute("SELECT * FROM entries").fetchall()

    def copy(self, target: Any) -> None:
        """A backup by hand: to close a file drops every lock that the process has on it."""
        Path(target).write_bytes(Path(self.path).read_bytes())

    def pool(self, method: Any) -> Any:
        """Pay in a pool of workers, after the parent has left its ledger."""
        import multiprocessing

        context = multiprocessing.get_context(method)
        with context.Pool(2) as workers:
            work = workers.map_async(pay_in_pool, [self.path] * 2)
            self.ledger.close()
            look(self.path)
            return sum(work.get(300))


def pay_in_pool(path: Any) -> Any:
    with mosha.Ledger(path, patience=60) as ledger:
        work = _Work()
        work.account = ledger.account("visits")
        return work.pay(LIMIT)[0]
