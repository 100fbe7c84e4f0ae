"""A row is counted once by every list, whatever values of the list an engine takes for one another.

Lists come from people: keys of groups, constants of IN, keys of public tables, candidates, categories. An equality that
is coarser where rows are counted than where the list was cleared of repetitions would count one row for several of its
values, or beside several rows of a public table: more than the noise is made for.
"""

import itertools
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import psycopg
import pytest

import mosha
from mosha.connect import Aggregation, Rows, Type, Unbounded, answer, col, private, public, source, when
from mosha.connect.language.exclusive import are_exclusive
from mosha.connect.language.expression import lit
from mosha.connect.plan.person_steps import OwnerJoin, Pick
from mosha.connect.sql.statement import FEW
from mosha.models.bayes import CategoryCounts
from mosha.models.sums.table_sums import table_cells
from mosha.tables.table import Table
from tests.connect.places import name_table

PLAIN = ["A", "a", "a ", " a", "a\t", "ss", "SS", "i", "I", "", " ", "e"]
POINTS = [
    [0xE1], [0x61, 0x301], [0xE9], [0x65, 0x301], [0xFF41], [0xAA], [0xDF], [0x1E9E], [0x3C3], [0x3C2], [0x3A3],
    [0x130], [0x131], [0x69, 0x307], [0x1F600], [0x1F601], [0x212B], [0xC5],
]  # fmt: skip
"""Accents in one and in two code points, wide letters, sharp s, sigmas, dotted letters, pictures beyond 16 bits."""

LISTS = {
    Type.TEXT: [*PLAIN, *("".join(map(chr, points)) for points in POINTS)],
    Type.REAL: [0.0, -0.0, 1.0, 1 + 2.0**-52, 2.0**53, 2.0**53 + 2, 2.0**62, 2.0**62 + 1024, 1e-300, 5e-324, -1e-200],
    Type.INTEGER: [0, 1, -1, 2**53, 2**53 + 1, 2**62, 2**62 + 1, 2**62 + 2, -(2**53) - 1, -(2**53)],
    Type.DATE: [date(1999, 12, 31), date(2000, 1, 1), date(2000, 2, 29)],
    Type.TIMESTAMP: [datetime(2000, 1, 1) + timedelta(microseconds=n) for n in (-1, 0, 1, 999_999)],
    Type.INSTANT: [datetime(2024, 10, 27, 0, n // 2 * 15, 0, n % 2, tzinfo=UTC) for n in range(8)],
    Type.BOOLEAN: [True, False],
}
"""Values that some engine, some collation or some cast takes for one another."""

FILLERS = {
    Type.TEXT: [f"filler {n}" for n in range(FEW)],
    Type.REAL: [1000.5 + n for n in range(FEW)],
    Type.INTEGER: [1000 + 2 * n for n in range(FEW)],
    Type.DATE: [date(2010, 1, 1 + n) for n in range(FEW)],
    Type.TIMESTAMP: [datetime(2010, 1, 1 + n) for n in range(FEW)],
    Type.INSTANT: [datetime(2010, 1, 1 + n, tzinfo=UTC) for n in range(FEW)],
    Type.BOOLEAN: [],
}
"""More values than a statement says one by one."""


def in_coarse_texts(place: Any, values: Any, folder: Any) -> Any:
    """A table whose column of texts has the coarsest equality that its engine knows; one row for each value."""
    name, rows = name_table(), list(enumerate(values))
    if place.name == "duckdb":
        with duckdb.connect(folder / f"{name}.duckdb") as connection:
            connection.execute("CREATE TABLE t (who BIGINT, k VARCHAR COLLATE NOCASE.NOACCENT)")
            connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        return source(folder / f"{name}.duckdb", table="t")
    if place.name == "postgresql":
        with psycopg.connect(place.url, autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_collation WHERE collprovider = 'i'").fetchone():
                pytest.skip("this PostgreSQL was built without ICU: it has no collation that takes A for a")
            coarse = "provider = icu, locale = 'und-u-ks-level1', deterministic = false"
            connection.execute(f"CREATE COLLATION IF NOT EXISTS coarse ({coarse})")
            connection.execute(f"CREATE TABLE {name} (who bigint, k text COLLATE coarse)")
            connection.cursor().executemany(f"INSERT INTO {name} VALUES (%s, %s)", rows)
        return source(place.url, table=name)
    return place.load({"who": Type.INTEGER, "k": Type.TEXT}, rows)


def load_values(place: Any, kind: Any, values: Any, folder: Any) -> Any:
    if kind is Type.TEXT:
        return in_coarse_texts(place, values, folder)
    return place.load({"who": Type.INTEGER, "k": kind}, list(enumerate(values)))


def count(relation: Any, only: Any = None, keys: Any = ("k",)) -> Any:
    keyed = tuple((f"key {place}", col(name)) for place, name in enumerate(keys)) if only is not None else ()
    return answer(Aggregation(relation, keyed, {"n": Rows()}, bound=Unbounded(), only=only)).to_dict()


def find_rows(relation: Any) -> dict[Any, Any]:
    """How many rows each row of the data has become, by its place."""
    found = answer(Aggregation(relation, (("who", col("who")),), {"n": Rows()}, bound=Unbounded()))
    return {who: n for (who,), (n,) in found.to_dict().items()}


def by_row(relation: Any) -> list[Any]:
    return list(find_rows(relation).values())


def count_few(data: Any, kind: Any, values: Any) -> list[Any]:
    parts = [values[start : start + FEW] for start in range(0, len(values), FEW)]
    return [count(private(data), only=part) for part in parts]


def count_many(data: Any, kind: Any, values: Any) -> list[Any]:
    return [count(private(data), only=[*values, *FILLERS[kind]])]  # type: ignore[misc]


def count_with_missing(data: Any, kind: Any, values: Any) -> list[Any]:
    return [count(private(data), only=[*values[: FEW - 1], None]), count(private(data), only=[*values, None])]


def count_pairs(data: Any, kind: Any, values: Any) -> list[Any]:
    pairs = list(itertools.product(values, values))
    found = count(private(data).compute(again=col("k")), only=pairs, keys=("k", "again"))
    assert not any(n for (a, b), (n,) in found.items() if a != b)
    return [{(a,): n for (a, b), n in found.items() if a == b}]


KEYS = {
    "few keys": count_few,
    "many keys": count_many,
    "keys with the missing one": count_with_missing,
    "pairs of keys": count_pairs,
}


@pytest.fixture(scope="module")
def loaded(place: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The tables of all kinds, each loaded once."""
    folder, found = tmp_path_factory.mktemp("lists"), {}

    def load(kind: Any) -> Any:
        if kind not in found:
            found[kind] = load_values(place, kind, LISTS[kind], folder)
        return found[kind]

    return load


@pytest.mark.parametrize("kind", LISTS, ids=str)
@pytest.mark.parametrize("way", KEYS)
def test_listed_groups_hold_every_row_once(loaded: Any, kind: Any, way: Any) -> None:
    values = LISTS[kind]
    for found in KEYS[way](loaded(kind), kind, values):
        listed = {key: n for (key,), (n,) in found.items()}
        assert sum(listed.values()) <= len(values)  # type: ignore[arg-type]
        same = Counter(lit(value).value for value in values)  # type: ignore[attr-defined]  # 0.0 and -0.0 are one
        assert all(n <= same[key] + (key == 0.0) * 3 for key, n in listed.items())  # the least reals are read as zero


MIXED = {
    Type.INTEGER: [0.5, 1.0, 2.0**53, 2.0**53 + 2, 2.0**62, -1.0, 5e-324],
    Type.REAL: [0, 1, -1, 2**53, 2**53 + 1, 2**53 - 1],
    Type.DATE: [datetime(2000, 1, 1), datetime(2000, 1, 1, 0, 0, 0, 1), datetime(1999, 12, 31, 23)],
    Type.TIMESTAMP: [date(2000, 1, 1), date(1999, 12, 31)],
    Type.INSTANT: [
        datetime(2024, 10, 27, 2, minute, fold=fold, tzinfo=ZoneInfo("Europe/Berlin"))
        for minute in (0, 15, 30, 45)
        for fold in (0, 1)  # an hour that Berlin has twice: Python orders its moments by the clock on the wall
    ],
}
"""Constants of another type that columns are compared with."""


def list_conditions(kind: Any) -> list[Any]:
    """All that compares a column with one constant or with another."""
    constants = [*LISTS[kind], *MIXED.get(kind, [])]  # type: ignore[misc]
    compared = [col("k") == value for value in constants]
    if kind is not Type.BOOLEAN:
        compared += [made for value in constants for made in (col("k") < value, col("k") >= value)]
    return [*compared, col("k").is_null(), ~col("k").is_null()]


@pytest.mark.parametrize("kind", LISTS, ids=str)
def test_conditions_that_are_said_to_exclude_one_another_are_never_both_true(loaded: Any, kind: Any) -> None:
    """On the coarsest equality of each engine: such cases share one noise (`joint_noise.md`, "Exclusive channels")."""
    conditions = list_conditions(kind)
    cases = [Rows(when(condition, 1)) for condition in conditions]
    apart = [pair for pair in itertools.combinations(range(len(cases)), 2) if are_exclusive([cases[i] for i in pair])]
    assert len(apart) >= len(LISTS[kind])  # type: ignore[arg-type]
    met: Any = [set() for _ in cases]
    for start in range(0, len(cases), 64):
        some = {f"c{i}": cases[i] for i in range(start, min(start + 64, len(cases)))}
        rows = Aggregation(private(loaded(kind)), (("who", col("who")),), some, bound=Unbounded())
        for (who,), found in answer(rows).to_dict().items():
            for place, number in enumerate(found, start):
                met[place] |= {who} if number else set()
    both = [(conditions[i], conditions[j]) for i, j in apart if met[i] & met[j]]
    assert both == []
    assert any(met)


@pytest.mark.parametrize("kind", LISTS, ids=str)
def test_in_takes_what_the_list_says_and_each_row_once(loaded: Any, kind: Any) -> None:
    """Lists by the binary digits of places: any two values are apart in one of them."""
    values = LISTS[kind]
    for digit in range(len(values).bit_length()):  # type: ignore[arg-type]
        chosen = [value for place, value in enumerate(values) if place >> digit & 1]  # type: ignore[arg-type, var-annotated]
        found = find_rows(private(loaded(kind)).where(col("k").is_in([*chosen, *chosen]))) if chosen else {}
        expected = {place for place, value in enumerate(values) if value in chosen}  # type: ignore[arg-type, var-annotated]
        assert set(found.values()) <= {1}
        if kind is Type.REAL:  # the least reals are read as zero
            expected = {place for place in found if values[place] in chosen or abs(values[place]) < 1e-100}  # type: ignore[index]
        assert set(found) == expected


def list_beside(data: Any) -> Any:
    """The values of a table as a public list."""
    return Pick(public(data), {"v": "who", "other": "k"})


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("kind", LISTS, ids=str)
def test_a_row_meets_as_many_rows_of_a_public_table_as_were_declared(loaded: Any, kind: Any, how: str) -> None:
    data = loaded(kind)
    for at_most in (1, 2):
        joined = private(data).join_public(list_beside(data), {"k": "other"}, at_most=at_most, how=how)  # type: ignore[arg-type]
        assert max(by_row(joined)) <= at_most
    assert max(by_row(private(data).join_public(list_beside(data), {"k": "other"}, how=how))) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(("mine", "theirs"), [(Type.REAL, Type.INTEGER), (Type.INTEGER, Type.REAL)], ids=str)
def test_a_row_meets_one_row_of_a_public_table_whose_keys_are_of_another_kind(
    loaded: Any, mine: Any, theirs: Any
) -> None:
    """Whole numbers from 2**53 on that are one real: the table is cut by what the join compares."""
    data, other = loaded(mine), loaded(theirs)
    assert max(by_row(private(data).join_public(list_beside(other), {"k": "other"}))) == 1
    days, moments = loaded(Type.DATE), loaded(Type.TIMESTAMP)
    for one, two in ((days, moments), (moments, days)):
        assert max(by_row(private(one).join_public(list_beside(two), {"k": "other"}))) == 1


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [*((kind, kind) for kind in LISTS), (Type.REAL, Type.INTEGER), (Type.INTEGER, Type.REAL)],
    ids=str,
)
def test_a_row_meets_as_many_rows_of_a_private_table_as_were_declared(loaded: Any, mine: Any, theirs: Any) -> None:
    other = Pick(private(loaded(theirs)), {"seen": "who", "other": "k"})
    joined = private(loaded(mine)).join_bounded(other, {"k": "other"}, at_most=(1, 1), key=bytes(32))
    assert max(by_row(joined)) == 1
    found = answer(Aggregation(joined, (("seen", col("seen")),), {"n": Rows()}, bound=Unbounded()))
    assert max(n for (n,) in found.to_dict().values()) == 1


@pytest.mark.parametrize("kind", LISTS, ids=str)
def test_a_row_is_in_one_cell_of_a_model(loaded: Any, kind: Any) -> None:
    values = list(dict.fromkeys(LISTS[kind]))  # type: ignore[call-overload]
    table = Table(private(loaded(kind)), mosha.Row(), None)
    counted = table_cells(table, CategoryCounts((tuple(values),), (0, 1)), {"k": values}, None, (0,))
    assert abs(counted.evaluate(None, mosha.Row())).sum() <= len(LISTS[kind])  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [kind for kind in LISTS if kind not in {Type.REAL, Type.BOOLEAN}], ids=str)
def test_a_row_has_one_owner_along_a_key(loaded: Any, kind: Any) -> None:
    """Each row of the second table belongs to the one person whose row has its key."""
    data = loaded(kind)
    owners = Pick(private(data, person="who"), {"person": "who", "other": "k"})
    owned = OwnerJoin(private(data), owners, (("k", "other"),), "owner")
    assert sorted(by_row(owned)) == [1] * len(LISTS[kind])  # type: ignore[arg-type]
    same = answer(Aggregation(owned.where(col("who") == col("owner")), {}, {"n": Rows()}, bound=Unbounded()))
    assert same.to_dict()[()] == (len(LISTS[kind]),)  # type: ignore[arg-type]
