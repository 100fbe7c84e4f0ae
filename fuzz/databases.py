"""No person moves another one's rows: random databases and neighbours of them, asked along random paths of keys.

    python -m fuzz.databases --engine duckdb --count 3000

Each comparison asks one query of a database and of its neighbour (`paths.md` says which that is), exactly: what each
other person contributes must be equal to the last integer, the removed one must contribute nothing, and the bounded
answers may differ by no more than the limit that is charged. On DuckDB every answer is asked for twice, in SQL and of
the compiled kernels, and both must be equal.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from fuzz._random_databases import World
from mosha.connect.engines.duckdb import DuckDB
from mosha.connect.engines.source import Engine, answer
from mosha.connect.language.expression import col
from mosha.connect.language.value import Rows
from mosha.connect.plan.aggregation import Aggregation
from mosha.connect.plan.bounding import NormBound, Truncate
from mosha.connect.plan.relation import Relation
from mosha.core.errors import MoshaError, Refused
from mosha.sql import statement
from mosha.tables.databases.database import protect_database

Load = Callable[[Mapping[str, pa.Table]], Any]
LIMIT = 3
EVERY = 100  # comparisons after which it says how far it is


class Found(Exception):
    """Something is wrong, and the seed shows it."""


def list_contributions(relation: Relation) -> Counter[tuple[Any, ...]]:
    """What each person brings, row by row: exact, before anything is bounded."""
    assert relation.person is not None
    keys = tuple((f"k{i}", col(name)) for i, name in enumerate([relation.person, *relation.schema]))
    asked = Aggregation(relation, keys, (("n", Rows()),), bound=NormBound(1, {"n": 2**40}))
    return Counter({key: count for key, (count,) in answer(asked).rows()})


def compare(seed: int, load: Load) -> str:
    """One comparison: "compared", or "refused"."""
    world = World(seed)
    text = world.write_query()
    person = world.random.randrange(7)
    databases = [load(world.list_tables(rows)) for rows in (world.rows, world.without(person))]
    engines: Sequence[Engine | None] = _make_engines() if load is dict else [None]
    found = [_list_answers(world, text, person, databases, engine) for engine in engines]
    if any(one != found[0] for one in found):
        raise Found(f"seed {world.seed}: {text} has other answers in kernels than in SQL: {found}")
    return "refused" if found[0] is None else "compared"


@cache
def _make_engines() -> list[DuckDB]:
    """One that answers in SQL alone, one that leaves what it can to the kernels."""
    return [DuckDB(compiled_from=None), DuckDB(compiled_from=0)]


def _list_answers(
    world: World, text: str, person: int, databases: list[Any], engine: Engine | None
) -> list[Any] | None:
    """The bounded answers of both databases, after the comparison; None if the query is refused."""
    schema = world.declare()
    try:
        asked = [
            statement(text, protect_database(place, schema=schema, engine=engine).tables).question
            for place in databases
        ]
    except Refused:
        return None
    before, after = (list_contributions(question.relation) for question in asked)
    others = Counter({key: count for key, count in before.items() if key[0] != person})
    if others != after:
        raise Found(f"seed {world.seed}: {text} tells person {person} from their neighbours: {others} {after}")
    answers = []
    for bound in (NormBound(1, {"n": LIMIT}), NormBound(2, {"n": LIMIT}), Truncate(world.key, rows=LIMIT)):
        tables = []
        for question in asked:
            exact = Aggregation(question.relation, question.keys, (("n", Rows()),), bound=bound)
            tables.append(Counter({row: count for row, (count,) in answer(exact).rows()}))
        moves = [abs(tables[0][row] - tables[1][row]) for row in tables[0] | tables[1]]
        moved = math.hypot(*moves) if isinstance(bound, NormBound) and bound.order == 2 else sum(moves)
        if moved > LIMIT:
            raise Found(f"seed {world.seed}: {text} moves by {moved} with person {person}, and {LIMIT} are charged")
        answers.append(tables)
    return answers


def attempt() -> None:
    """One comparison on DuckDB."""
    compare(random.SystemRandom().getrandbits(48), dict)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.databases", description=__doc__)
    parser.add_argument("--engine", choices=["duckdb", "postgresql", "mariadb", "spark"], default="duckdb")
    parser.add_argument("--count", type=int, default=3000, help="how many comparisons that are not refused")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(arguments)
    from fuzz._database_places import open_place

    first = random.SystemRandom().getrandbits(40) if options.seed is None else options.seed
    outcomes: Counter[str] = Counter()
    with open_place(options.engine) as load:
        while outcomes["compared"] < options.count:
            try:
                outcomes[compare(first + sum(outcomes.values()), load)] += 1
            except MoshaError as problem:
                raise Found(f"seed {first + sum(outcomes.values())}: {problem!r}") from problem
            if sum(outcomes.values()) % EVERY == 0:
                print(f"databases on {options.engine}: {dict(outcomes)} so far", flush=True)
    print(f"databases on {options.engine}: {dict(outcomes)}, nothing found (from seed {first})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
