"""Files that are written anew while their table is open: a statement knows their columns as they were."""

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mosha
from mosha.connect import Aggregation, NormBound, Rows, answer, private, source
from mosha.connect.engines.duckdb import DuckDB
from mosha.connect.engines.source import look_only
from mosha.core.errors import DataError


def test_nobody_exceeds_the_limit_where_a_file_comes_back_with_its_columns_in_another_order(tmp_path: Path) -> None:
    """Of an export whose columns were turned around each row was taken for a person: 100 for a limit of 1."""
    place = tmp_path / "rows.csv"
    place.write_text("who,x\n" + "".join(f"{i},7\n" for i in range(100)))
    table = private(source(place), person="who")
    question = Aggregation(table, {}, {"n": Rows()}, bound=NormBound(1, {"n": 1}, fraction=0))
    assert answer(question).to_dict() == {(): (100,)}
    place.write_text("who,x\n" + "".join(f"{i},7\n" for i in range(50)))
    assert answer(question).to_dict() == {(): (50,)}
    place.write_text("x,who\n" + "".join(f"{i},7\n" for i in range(100)))
    with pytest.raises(DataError, match="could not finish"):
        answer(question)
    with look_only(), pytest.raises(DataError, match="another order"):
        answer(question)
    place.write_text("who,x,more\n1,2,3\n")
    with pytest.raises(DataError):
        answer(question)


@pytest.mark.parametrize("kind", ["folder", "glob of csv"])
def test_a_file_that_joins_others_later_has_their_columns_or_the_question_is_refused_unpaid(
    kind: str, tmp_path: Path
) -> None:
    """The number 1.2 was read as person 1, and a text as a person's number made a paid question fail."""
    unit = mosha.Person("who", at_most=1)
    account = mosha.Ledger.memory().account("a", unit=unit, epsilon=1e6)

    def write(name: str, columns: dict[str, list[object]]) -> None:
        if kind == "folder":
            pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        else:
            rows = zip(*columns.values(), strict=True)
            lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
            (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")

    write("a", {"who": [1, 2, 3], "x": [7, 7, 7]})
    table = mosha.protect(tmp_path if kind == "folder" else tmp_path / "*.csv", unit=unit, account=account)
    count = lambda: round(table.count().release(epsilon=1000).value)
    assert count() == 3
    write("b", {"who": [4], "x": [7]})
    assert count() == 4
    odd: list[dict[str, list[object]]] = [{"x": [1, 2], "who": [7, 7]}, {"x": [1]}]
    odd += [{"who": [1.2, 1.4], "x": [7, 7]}, {"who": ["a"], "x": [7]}] if kind == "folder" else []
    for columns in odd:
        if kind == "folder" and list(columns) == ["x", "who"]:
            continue  # which Parquet finds by their names
        write("b", columns)
        spent = account.spent
        with pytest.raises(DataError, match="other columns"):
            table.count().release(epsilon=1000)
        assert (account.spent, account.failures) == (spent, 0)
    write("b", {"who": [4], "x": [7]})
    assert count() == 4


BEFORE: dict[str, list[object]] = {"who": [1, 2, 3], "x": [7, 8, 9]}
AFTER: dict[str, dict[str, list[object]]] = {
    "fewer rows": {"who": [1, 2], "x": [7, 8]},
    "turned around": {"x": [1, 2, 2, 1], "who": [7, 7, 7, 8]},
    "one more in front": {"more": [1, 2], "who": [7, 7], "x": [1, 1]},
    "one more behind": {"who": [7, 7], "x": [1, 1], "more": [1, 2]},
    "the other one is gone": {"who": [5, 5, 6]},
    "the person is gone": {"x": [5, 5, 6]},
    "numbers": {"who": [1.2, 1.4, 1.4], "x": [1, 2, 3]},
    "texts": {"who": ["a", "b", "a"], "x": [1, 2, 3]},
    "a text among numbers": {"who": ["1", "x", "2"], "x": [1, 2, 3]},
}


def write_file(place: Path, columns: dict[str, list[object]]) -> None:
    if place.suffix == ".parquet":
        pq.write_table(pa.table(columns), place)
        return
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    written = ("\n".join(lines) + "\n").encode()
    place.write_bytes(gzip.compress(written) if place.suffix == ".gz" else written)


@pytest.mark.parametrize("change", AFTER)
@pytest.mark.parametrize("place", ["a.csv", "a.csv.gz", "*.csv", "a.parquet", "*.parquet", "."])
@pytest.mark.parametrize("compiled_from", [1, None])
def test_an_open_table_is_answered_as_one_that_is_opened_anew_or_refused(
    place: str, change: str, compiled_from: int | None, tmp_path: Path
) -> None:
    """Law: whatever a file becomes, no column is read under the name or the type of another."""
    name = place.replace("*", "a") if place != "." else "a.parquet"
    write_file(tmp_path / name, BEFORE)
    engine = DuckDB(threads=1, compiled_from=compiled_from)

    def count(table: Any) -> dict[Any, Any]:
        question = Aggregation(
            private(table, person="who"), {}, {"n": Rows()}, bound=NormBound(1, {"n": 1}, fraction=2)
        )
        return answer(question).to_dict()

    table = engine.file(tmp_path / place)
    assert count(table) == {(): (12,)}
    write_file(tmp_path / name, AFTER[change])
    try:
        found = count(table)
    except DataError:
        return
    assert change not in {"the person is gone", "texts", "a text among numbers"} or name.endswith(("csv", "gz"))
    assert found == count(DuckDB(threads=1, compiled_from=None).file(tmp_path / place))


def test_a_packed_file_that_is_broken_tells_nothing_but_that(tmp_path: Path) -> None:
    """The error of the unpacking library came out as it was, of a file that broke while it was open, too."""
    unit = mosha.Person("who", at_most=1)
    account = mosha.Ledger.memory().account("a", unit=unit, epsilon=1e6)
    place, packed = tmp_path / "rows.csv.gz", gzip.compress(b"who,x\n1,2\n" * 50)
    place.write_bytes(packed)
    table = mosha.protect(place, unit=unit, account=account)
    place.write_bytes(packed[:10] + b"\xff" * 100)
    with pytest.raises(DataError):
        mosha.protect(place, unit=unit)
    with pytest.raises(DataError):
        table.count().release(epsilon=1)
    assert (account.spent, account.failures) == (0, 0)
