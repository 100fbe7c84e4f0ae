"""No person moves another one's rows: random databases and neighbors of them, asked along random paths of keys.

    python -m fuzz.databases --engine duckdb --count 3000

Each comparison asks one query of a database and of its neighbor (`paths.md` says which that is), exactly: what each
other person contributes must be equal to the last integer, before and after it is bounded, and the removed one must
contribute nothing; nobody's bounded part is above the limit that is charged, and the answer is the sum of the parts.
Ten comparisons share a query and the tables it reads, with keys apart. On DuckDB every answer is asked for twice, in
SQL and of the compiled kernels, and both must be equal.
"""

from __future__ import annotations

import argparse
import itertools
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
from mosha.connect.language.expression import Expression, col
from mosha.connect.language.value import Rows
from mosha.connect.plan.aggregation import Aggregation
from mosha.connect.plan.bounding import Bound, NormBound, Truncate
from mosha.connect.plan.relation import Relation
from mosha.core.errors import MoshaError, Refused
from mosha.tables.databases.database import protect_database
from mosha.tables.parts.bounds import limits_of
from mosha.tables.question import Question
from mosha.tables.sql.parsing import parse
from mosha.tables.sql.query import read_statement

Row = tuple[Any, ...]
Load = Callable[[Mapping[str, pa.Table]], Any]
EVERY = 10  # queries after which it says how far it is


class Found(Exception):
    """Something is wrong, and the seed shows it."""


def list_contributions(relation: Relation) -> Counter[Row]:
    """What each person brings, row by row: exact, before anything is bounded."""
    assert relation.person is not None
    keys = tuple((f"k{i}", col(name)) for i, name in enumerate([relation.person, *relation.schema]))
    asked = Aggregation(relation, keys, (("n", Rows()),), bound=NormBound(1, {"n": 2**40}))
    return Counter({key: count for key, (count,) in answer(asked).rows()})


def compare(seed: int, load: Load) -> int:
    """Ask one query of a world and of its neighbor: the number of comparisons, or 0 where it is refused."""
    world = World(seed)
    text = world.write_query()
    databases = [load(world.list_tables(rows)) for rows in (world.rows, world.list_rows_left())]
    engines: Sequence[Engine | None] = _make_engines() if load is dict else [None]
    found = [_list_answers(world, text, databases, engine) for engine in engines]
    if any(one != found[0] for one in found):
        raise Found(f"seed {world.seed}: {text} has other answers in kernels than in SQL: {found}")
    return 0 if found[0] is None else len(world.removed)


@cache
def _make_engines() -> list[DuckDB]:
    """One that answers in SQL alone, one that leaves what it can to the kernels."""
    return [DuckDB(compiled_from=None), DuckDB(compiled_from=0)]


def _list_answers(world: World, text: str, databases: list[Any], engine: Engine | None) -> list[Any] | None:
    """The bounded answers of both databases, after the comparison; None if the query is refused."""
    schema = world.declare()
    try:
        asked = []
        for place in databases:
            select, _ = parse(text, results=True)
            tables = protect_database(place, schema=schema, engine=engine).tables
            asked.append(read_statement(select, tables).question)
    except Refused:
        return None
    before, after = (list_contributions(question.relation) for question in asked)
    _check_others(world, text, before, after)
    answers, most = [], _find_limit(asked[0])
    for bound in (NormBound(1, {"n": most}), NormBound(2, {"n": most}), Truncate(world.key, rows=most)):
        whole = [_count_rows(question, question.keys, bound) for question in asked]
        parts = [_count_rows(question, (_name_person(question), *question.keys), bound) for question in asked]
        _check_others(world, text, *parts)
        _check_moves(world, text, whole, parts, bound, most)
        answers.append((whole, parts))
    return answers


def _find_limit(question: Question) -> int:
    """How many rows of one person a count is charged for: what is declared, or one where keys say so."""
    norm = limits_of(question.unit, question.relation, persons=False, groups=None).norm
    assert norm is not None
    return math.ceil(norm)


def _name_person(question: Question) -> tuple[str, Expression]:
    assert question.relation.person is not None
    return "who", col(question.relation.person)


def _count_rows(question: Question, keys: tuple[tuple[str, Expression], ...], bound: Bound) -> Counter[Row]:
    exact = Aggregation(question.relation, keys, (("n", Rows()),), bound=bound)
    return Counter({row: count for row, (count,) in answer(exact).rows()})


def _check_others(world: World, text: str, before: Counter[Row], after: Counter[Row]) -> None:
    """The removed are gone, and nobody else has changed: `before` and `after` count by person first."""
    others = Counter({key: count for key, count in before.items() if key[0] not in world.removed})
    if others != after:
        raise Found(f"seed {world.seed}: {text} tells {world.removed} from their neighbors: {others} {after}")


def _check_moves(
    world: World, text: str, whole: Sequence[Counter[Row]], parts: Sequence[Counter[Row]], bound: Bound, most: int
) -> None:
    """Nobody brings more than is charged, and what is answered is the sum of what each one brings."""
    square = isinstance(bound, NormBound) and bound.order == 2
    for person in {key[0] for key in parts[0]}:
        brought = [count for key, count in parts[0].items() if key[0] == person]
        moved = math.hypot(*brought) if square else sum(map(abs, brought))
        if moved > most:
            raise Found(f"seed {world.seed}: {text} moves by {moved} with person {person}, and {most} are charged")
    if isinstance(bound, Truncate):  # other keys, other draws of the rows that stay: the sum of all moves is bounded
        moves = sum(abs(whole[0][row] - whole[1][row]) for row in whole[0] | whole[1])
        if moves > most * len(world.removed):
            raise Found(f"seed {world.seed}: {text} moves by {moves} with {world.removed}")
        return
    for answered, brought_by in zip(whole, parts, strict=True):
        sums: Counter[Row] = Counter()
        for key, count in brought_by.items():
            sums[key[1:]] += count
        if sums != answered:
            raise Found(f"seed {world.seed}: {text} is answered {answered}, and people bring {sums}")


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
    compared = refused = 0
    with open_place(options.engine) as load:
        for seed in itertools.count(first):
            try:
                found = compare(seed, load)
            except MoshaError as problem:
                raise Found(f"seed {seed}: {problem!r}") from problem
            compared, refused = compared + found, refused + (found == 0)
            if compared >= options.count:
                break
            if (seed - first) % EVERY == EVERY - 1:
                print(f"databases on {options.engine}: {compared} compared, {refused} queries refused", flush=True)
    print(
        f"databases on {options.engine}: {compared} compared with {seed - first + 1 - refused} queries, "
        f"{refused} refused, nothing found (from seed {first})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
