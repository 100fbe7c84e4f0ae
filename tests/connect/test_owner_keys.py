"""Owners that are looked up, keys that were counted and joins that are made once give the rows of the plain plan."""

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from fuzz.databases import Found, compare
from mosha.connect import Aggregation, Clamped, NormBound, Norms, Persons, Rows, Truncate, answer, col, private, public
from mosha.connect.engines.duckdb import DuckDB
from mosha.connect.engines.local_source import LocalSource
from mosha.connect.kernels import owner_kernels
from mosha.connect.kernels.columns import COUNT
from mosha.connect.kernels.kernel import add_to_cells
from mosha.connect.plan.owner_keys import find_key_join, split_owners
from mosha.connect.plan.person_steps import OwnerJoin, Pick
from mosha.connect.sql.norms import sql_of
from tests.searches import draw_seeds

pytest.importorskip("numba")

FAR = 2**63 - 1


def make_tables(who: Any, *, unique: Any, low: Any = 0, step: Any = 1) -> dict[str, Any]:
    """Orders of people and their lines, with keys that are missing, point nowhere, or are shared."""
    g = random.Random(next(draw_seeds("owners of keys")))
    keys = [low + step * (i if unique else g.randrange(150)) for i in range(200)]
    missing = lambda value: None if g.random() < 0.1 else value
    orders = {
        "id": pa.array([missing(key) for key in keys], pa.int64()),
        "owner": pa.array([missing(who(g.randrange(40))) for _ in keys]),
        "day": [g.randrange(9) for _ in keys],
    }
    rows = range(4000)
    lines = {
        "order_id": pa.array([missing(g.choice([*keys, low + 3, low])) for _ in rows], pa.int64()),
        "flag": [missing(g.choice("ANRX")) for _ in rows],
        "ward": [missing(g.randrange(5)) for _ in rows],
        "x": [missing(g.choice([g.uniform(-9, 60), float("nan"), float("inf")])) for _ in rows],
    }
    return {"orders": pa.table(orders), "line": pa.table(lines)}


def open_lines(tables: Any, engine: Any) -> tuple[Any, ...]:
    """(lines with their owner, orders), the key looked at for repetitions."""
    opened = {name: engine.frame(table) for name, table in tables.items()}
    opened["orders"].learn_unique(["id"])
    orders = private(opened["orders"], person="owner")
    return OwnerJoin(private(opened["line"]), orders, (("order_id", "id"),), "person of line"), orders


def list_questions(lines: Any, orders: Any, engine: Any) -> Iterator[Any]:
    """Every kind of bound, of keys and of steps that rows pass on their way."""
    x, flag, ward = Clamped(col("x"), (0, 50), exponent=4), {"flag": col("flag")}, {"ward": col("ward")}
    wards = public(engine.frame(pa.table({"code": [0, 1, 2], "name": ["u", "v", None]})))
    values = {"rows": Rows(), "sum": x}
    two = NormBound(2, {("rows", "sum"): 5}, 8)
    yield Aggregation(lines, flag, values, bound=two, only=["A", "N", "R"])
    yield Aggregation(lines, flag, values, bound=two, only=["A", None])
    yield Aggregation(lines, flag, values, bound=two)
    yield Aggregation(lines, ward, values, bound=two, only=[4, 0, 7])
    yield Aggregation(lines, {**flag, **ward}, values, bound=two, only=[("A", 1), ("N", None), ("Z", 0)])
    yield Aggregation(lines, {}, {"rows": Rows(), "known": Rows(col("x")), "sum": x}, bound=NormBound(
        2, {("rows",): 9, ("known", "sum"): 5}, 3))  # fmt: skip
    yield Aggregation(lines, flag, {"who": Persons()}, bound=NormBound(1, {"who": 2}, 4), only=["A", "N", "R"])
    yield Aggregation(lines, flag, values, bound=NormBound(1, {("rows", "sum"): 7}, 8), only=["A", "N", "R"])
    yield Aggregation(lines, flag, values, bound=Truncate(bytes(16), groups=2, per_group=3), only=["A", "N"])
    yield Norms(lines, flag, value=Rows(), order=2, thresholds=(1, 4, 16), only=["A", "N", "R"])  # type: ignore[arg-type]
    yield Norms(lines, flag, value=Rows(), order=1, thresholds=(1, 4, 16))  # type: ignore[arg-type]
    steps = lines.where(col("ward") > 0).compute(twice=col("x") * 2).join_public(wards, {"ward": "code"})
    picked = Pick(steps, {"f": "flag", "t": "twice", "p": "person of line", "name": "name"})
    yield Aggregation(picked, {"f": col("f")}, {"t": Clamped(col("t"), (0, 9), exponent=2)}, bound=NormBound(
        2, {"t": 30}, 6), only=["A", "N"])  # fmt: skip
    renamed = Pick(orders, {"key": "id", "owner": "owner", "day": "day"})
    for joined in (
        lines.join_person(orders, also={"order_id": "id"}),
        lines.where(col("ward") > 1).join_person(renamed, also={"order_id": "key"}),
        orders.join_person(lines, also={"id": "order_id"}),
        renamed.join_person(lines, also={"key": "order_id"}).where(col("flag") != "X"),
    ):
        yield Aggregation(joined.where(col("day") < 5), flag, values, bound=two, only=["A", "N", "R"])


@pytest.mark.parametrize(
    ("who", "shape"),
    [
        (lambda n: n, {"unique": True}),
        (lambda n: n * 2**50 - 2**55, {"unique": False}),
        (lambda n: f"person {n}", {"unique": True, "low": FAR - 199}),
        (lambda n: f"person {n}", {"unique": False, "low": -FAR}),
        (lambda n: n, {"unique": True, "low": -FAR - 1}),
        (lambda n: n, {"unique": True, "low": -(2**62), "step": 2**55}),
    ],
)
def test_every_plan_gives_the_same_integers(who: Any, shape: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = make_tables(who, **shape)
    plain, compiled = DuckDB(threads=1, compiled_from=None), DuckDB(threads=1, compiled_from=0)
    expected = []
    with monkeypatch.context() as patch:
        patch.setattr(LocalSource, "learn_unique", lambda *_: None)
        expected += [answer(asked).to_dict() for asked in list_questions(*open_lines(tables, plain), plain)]  # type: ignore[call-arg]
    for engine in (plain, compiled):
        found = [answer(asked).to_dict() for asked in list_questions(*open_lines(tables, engine), engine)]  # type: ignore[call-arg]
        assert found == expected


def test_rows_of_a_group_that_is_not_listed_are_in_no_cell() -> None:
    cells = np.zeros((6, 2), np.int64)
    persons, groups = np.array([0, 1, 1, 1, -1], np.int32), np.array([0, -1, 3, 2, 1], np.int32)
    add_to_cells(persons, groups, np.full((5, 1), 7, np.int32), np.array([COUNT, 0]), cells, 3)
    assert cells.tolist() == [[1, 7], [0, 0], [0, 0], [0, 0], [0, 0], [1, 7]]


def test_a_key_that_does_not_repeat_needs_no_groups_and_one_join() -> None:
    engine = DuckDB(threads=1)
    for unique in (True, False):
        lines, orders = open_lines(make_tables(int, unique=unique), engine)
        assert orders.source.has_unique(["id"]) is unique
        joined = lines.join_person(orders, also={"order_id": "id"})
        asked = Aggregation(joined, {}, {"rows": Rows()}, bound=NormBound(2, {"rows": 5}))
        text = sql_of(asked, engine.dialect)
        assert text.count("INNER JOIN") == (1 if unique else 2)
        assert ("MIN(" in text) is not unique
    assert split_owners(asked) is None
    assert find_key_join(joined) is not None
    assert find_key_join(lines.join_person(orders, also={"order_id": "day"})) is None
    assert find_key_join(lines.join_person(orders, also={"order_id": "id"}, how="left")) is None


def test_a_key_of_a_file_that_was_written_since_is_not_believed(tmp_path: Path) -> None:
    place = tmp_path / "shop.duckdb"
    with duckdb.connect(str(place)) as shop:
        shop.execute("CREATE TABLE orders AS SELECT i AS id, i % 3 AS owner FROM range(9) t(i)")
        shop.execute("CREATE VIEW seen AS SELECT * FROM orders")
    engine = DuckDB()
    orders, seen = (engine.database(place, name) for name in ("orders", "seen"))
    for source in (orders, seen):
        source.learn_unique(["id"])
    assert orders.has_unique(["id"])
    assert not orders.has_unique(["owner"])
    assert not seen.has_unique(["id"])  # a view may read what can change
    with place.open("r+b") as file:
        file.seek(0, 2)
        file.write(bytes(4096))
    assert not orders.has_unique(["id"])


def test_a_missing_key_is_nobody_s_also_where_numbers_are_narrow(tmp_path: Path) -> None:
    place = tmp_path / "narrow.duckdb"
    with duckdb.connect(str(place)) as shop:
        shop.execute(
            "CREATE TABLE orders (id INTEGER, owner SMALLINT); INSERT INTO orders VALUES (2147483647, 1), (3, 2)"
        )
        shop.execute("CREATE TABLE line (order_id INTEGER, flag TEXT)")
        shop.execute("INSERT INTO line VALUES (NULL, 'A'), (2147483647, 'A'), (3, NULL), (3, 'Z'), (4, 'A')")
    found = []
    for compiled_from in (None, 0):
        engine = DuckDB(threads=1, compiled_from=compiled_from)
        orders, line = (engine.database(place, name) for name in ("orders", "line"))
        owned = OwnerJoin(private(line), private(orders, person="owner"), (("order_id", "id"),), "person")
        for only in (["A", "N"], ["A", None], None):
            asked = Aggregation(owned, {"flag": col("flag")}, {"n": Rows()}, bound=NormBound(2, {"n": 9}), only=only)
            found.append(answer(asked).to_dict())
    assert found[0] == found[3] == {("A",): (1,), ("N",): (0,)}
    assert found[1] == found[4] == {("A",): (1,), (None,): (1,)}
    assert found[2] == found[5] == {("A",): (1,), (None,): (1,), ("Z",): (1,)}


def test_a_plan_that_believes_in_every_key_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalSource, "has_unique", lambda *_: True)
    with pytest.raises(Found):
        list(map(partial(compare, load=dict), range(1000, 1400)))


def test_a_kernel_that_gives_shared_keys_to_their_first_owner_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def take_first(keys: Any, persons: Any, least: Any, owners: Any) -> None:
        places = (keys - least[0])[::-1]
        free = owners[places] < 0
        owners[places[free]] = (persons - least[1])[::-1][free]

    monkeypatch.setattr(owner_kernels, "list_owners", take_first)
    with pytest.raises(Found):
        list(map(partial(compare, load=dict), range(2010, 2410)))
