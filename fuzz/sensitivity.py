"""No unit moves what is noised by more than was charged: random questions about neighboring tables, on every engine.

    python -m fuzz.sensitivity --engine duckdb --count 3000

Each comparison (`fuzz._noise_inputs`) runs one release on two neighbors under the same outcomes, with its own code
from the bounds that are bought to the windows of quantiles, and computes the exact loss of every draw. On DuckDB it
does so in three ways (SQL, compiled kernel, Parquet), which must also agree on every integer. A comparison that takes
longer than `--patience` seconds is ended and counted as such, with its seed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Any

import mosha
from fuzz import _noise_inputs as noise_inputs
from fuzz import _random_plans as random_plans
from fuzz._table_places import WAYS, opened
from mosha.core.errors import DataError, MoshaError
from mosha.tables.protecting import protect

COUNTS = {"duckdb": 3000, "postgresql": 1000, "mariadb": 300, "spark": 300}


class Found(Exception):
    """Something is wrong, and the seed shows it."""


def questions(places: Any, way: Any, seed: Any, depth: Any, **settings: Any) -> tuple[Any, ...]:
    """The same random question about two neighboring tables; or a refusal."""
    g = random.Random(seed)
    unit, budget = g.choice(random_plans.UNITS), g.choice(random_plans.BUDGETS)
    joined = isinstance(unit, mosha.Person) and g.random() < 0.4
    found = []
    public = mosha.connect.public(places.load(way, random_plans.PUBLIC, random_plans.PUBLIC_ROWS))
    for rows, more in random_plans.neighbors(g, unit):
        table = protect(places.load(way, random_plans.COLUMNS, rows), unit=unit)
        beside = protect(places.load(way, random_plans.BESIDE, more), unit=unit) if joined else None
        question = random_plans.Planner(seed, depth, **settings).question(table, beside, public)
        found.append(question)
    if found[0].private_keys:
        budget = random_plans.with_delta(budget)
    return found, budget, g.randbytes(32)


def _release(budget: Any, key: Any, told: Any, said: Any, question: Any, listener: Any) -> Any:
    """One release, and what it warned of."""
    told.clear()
    found = noise_inputs.run(question, budget, key, listener)
    said.append([str(warning.message) for warning in told])
    return found


def _ordered(given: Any) -> str:
    """What a sampler was given, as text; groups from data come in no particular order, wherever they stand in it."""
    if isinstance(given, dict):
        return repr(sorted((repr(key), _ordered(value)) for key, value in given.items()))
    return repr([_ordered(each) for each in given]) if isinstance(given, tuple) else repr(given)


def compare(places: Any, seed: Any, depth: Any = 2, **settings: Any) -> Any:
    """The shares that one random pair uses, for each way in which the tables are read; Found where one is above 1."""
    inputs, shares = {}, Counter()  # type: ignore[var-annotated]
    for way in WAYS[places.engine]:
        (first, second), budget, key = questions(places, way, seed, depth, **settings)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            said: list[Any] = []
            make = partial(_release, budget, key, told, said)
            try:
                used, *draws = noise_inputs.compare(first, second, make, seed)
            except noise_inputs.Apart as problem:
                raise Found(f"{way}: {problem}") from None
            except DataError as problem:
                raise Found(f"{way}: a question failed after it was paid for: {problem}") from None
        if said[-1] != said[-2]:
            raise Found(f"{way}: warnings differ: {said[-2]} and {said[-1]}")
        for kind, share in used.items():
            shares[kind] = max(shares[kind], share)
            if share > 1 + noise_inputs.SLACK:
                raise Found(f"{way}: {kind} uses {share:.6f} of what was charged")
        inputs[way] = [[_ordered(draw.given) for draw in part] for part in draws]
    if len(set(map(repr, inputs.values()))) > 1:
        raise Found(f"the ways of {places.engine} disagree about exact numbers")
    return shares


def _work(engine: Any, settings: Any, connection: Any) -> None:
    """Compares the seeds that come through a pipe, until there are no more."""
    os.nice(19)
    warnings.simplefilter("ignore")
    with opened(engine) as places:
        connection.send(("ready", None))
        while (seed := connection.recv()) is not None:
            places.vary(seed)
            try:
                connection.send(("compared", dict(compare(places, seed, **settings))))
            except Found as problem:
                connection.send(("found", str(problem)))
            except MoshaError as refusal:
                connection.send(("refused", str(refusal)))
            except Exception:  # noqa: BLE001  (whatever it is, it was found)
                connection.send(("found", traceback.format_exc()))
            places.forget()


class Worker:
    """A process that compares; ended and made anew where a comparison does not come back."""

    def __init__(self, engine: Any, settings: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(engine, settings, other), daemon=True)
        self.process.start()
        other.close()  # so that a process that cannot begin is heard of
        self.connection.recv()

    def wait(self, patience: Any) -> Any:
        if not self.connection.poll(patience):
            self.end()
            return "stalled", None
        return self.connection.recv()

    def compare(self, seed: Any, patience: Any) -> Any:
        self.connection.send(seed)
        return self.wait(patience)

    def end(self) -> None:
        self.process.kill()
        self.process.join()


def search(engine: Any, seed: Any, count: Any, seconds: Any, *, patience: Any, **settings: Any) -> tuple[Any, ...]:
    """Compare until so many pairs were compared or the time is over; the tally, the worst shares, what was found."""
    tally, worst, found, worker = Counter(), {}, [], Worker(engine, settings)  # type: ignore[var-annotated]
    start = time.monotonic()
    with suppress(KeyboardInterrupt):  # what was compared so far is told all the same
        while tally["compared"] < count and time.monotonic() - start < seconds:
            seed += 1
            said, what = worker.compare(seed, patience)
            tally[said] += 1
            if said == "compared":
                tally["moved"] += any(share > 0 and not kind.startswith("draws") for kind, share in what.items())
                worst |= {kind: share for kind, share in what.items() if share > worst.get(kind, -1.0)}
            elif said != "refused":
                found.append((seed, said, what))
                print(f"{engine} seed {seed}: {said} {what or ''}", flush=True)
            if said == "stalled":
                worker = Worker(engine, settings)
            if seed % 25 == 0:
                print(f"{engine} up to seed {seed}: {dict(tally)}", flush=True)
    worker.end()
    return tally, worst, found


def attempts(*, seconds: Any, count: Any) -> Any:
    """A search of all engines, one after the other; what is found is raised."""
    together = 0
    for engine in COUNTS:
        seed = random.SystemRandom().randrange(2**40)
        tally, _, found = search(engine, seed, count, seconds / len(COUNTS), patience=120.0)
        if any(kind == "found" for _, kind, _ in found):
            raise Found(f"{engine} from seed {seed}: {found}")
        together += tally["compared"]
    return together


def main(arguments: Any) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.sensitivity", description=__doc__)
    parser.add_argument("--engine", choices=[*WAYS], action="append")
    parser.add_argument("--count", type=int, help="pairs to compare on each engine")
    parser.add_argument("--seconds", type=float, default=600.0, help="at most, on each engine")
    parser.add_argument("--seed", type=int, help="the first seed is the one after it; random where it is left out")
    parser.add_argument("--depth", type=int, default=2, help="of expressions")
    parser.add_argument("--small", action="store_true", help="leave out moments of many groups, which take long")
    parser.add_argument("--cases", type=float, default=random_plans.CASES, help="how often: cases that exclude another")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds for one comparison")
    said = parser.parse_args(arguments)
    failed = False
    for engine in said.engine or COUNTS:
        seed = random.SystemRandom().randrange(2**40) if said.seed is None else said.seed
        count = COUNTS.get(engine, 1000) if said.count is None else said.count
        settings = {"depth": said.depth, "large": not said.small, "cases": said.cases}
        tally, worst, found = search(engine, seed, count, said.seconds, patience=said.patience, **settings)
        print(f"{engine} from seed {seed}: {dict(tally)}")
        print("\n".join(f"  {kind}: at most {share:.6f} of what was charged" for kind, share in sorted(worst.items())))
        failed = failed or any(kind == "found" for _, kind, _ in found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
