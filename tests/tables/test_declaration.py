"""What is publicly known is said once, in a file beside the data or in Python, and every question uses it."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha.errors import DataError, InvalidParameter, MoshaError, Unbounded, WrongUnit
from mosha.tables import Budget, Declaration, mean, protect, read_declaration
from mosha.tables.declaration import beside

YAML = """
unit: {person: patient, at_most: 5}
columns:
  patient: {type: integer}
  days: {type: integer, between: [0, 30]}
  ward: {type: text, keys: [A, B]}
  day: {type: date, keys: [2024-01-01, 2024-01-02]}
"""
TOML = """
[unit]
person = "patient"
at_most = 5
[columns]
patient = {type = "integer"}
days = {type = "integer", between = [0, 30]}
ward = {type = "text", keys = ["A", "B"]}
day = {type = "date", keys = [2024-01-01, 2024-01-02]}
"""
PLAIN = {
    "unit": {"person": "patient", "at_most": 5},
    "columns": {
        "patient": {"type": "integer"},
        "days": {"type": "integer", "between": [0, 30]},
        "ward": {"type": "text", "keys": ["A", "B"]},
        "day": {"type": "date", "keys": ["2024-01-01", "2024-01-02"]},
    },
}
FILES = {"yaml": YAML, "yml": YAML, "toml": TOML, "json": json.dumps(PLAIN)}
DAYS = (date(2024, 1, 1), date(2024, 1, 2))
KNOWN = Declaration(
    mosha.Person("patient", at_most=5),
    {"patient": "integer", "days": "integer", "ward": "text", "day": "date"},
    {"days": (0.0, 30.0)},
    {"ward": ("A", "B"), "day": DAYS},
)


@pytest.fixture
def visits(tmp_path: Path) -> Any:
    rows = [f"{i % 40},{i % 30},{'ABC'[i % 3]},2024-01-0{1 + i % 2},x" for i in range(120)]
    (tmp_path / "visits.csv").write_text("\n".join(["patient,days,ward,day,secret", *rows]))
    return tmp_path / "visits.csv"


@pytest.mark.parametrize("ending", FILES)
def test_the_same_is_read_from_every_kind_of_file(tmp_path: Path, ending: Any) -> None:
    place = tmp_path / f"visits.schema.{ending}"
    place.write_text(FILES[ending])
    assert read_declaration(place) == KNOWN


@pytest.mark.parametrize("ending", FILES)
def test_a_file_beside_the_data_is_found_and_answers_for_unit_types_ranges_and_keys(visits: Any, ending: Any) -> None:
    visits.with_name(f"visits.schema.{ending}").write_text(FILES[ending])
    table = protect(visits)
    assert table.unit == mosha.Person("patient", at_most=5)
    assert dict(table.schema) == KNOWN.types  # and no column that was not declared
    stay = table.group_by("ward").mean("days")
    assert stay.only == (("A",), ("B",))
    assert (
        stay.measurement(Budget(epsilon=1)).event
        == (protect(visits, schema=PLAIN).group_by("ward", keys=["A", "B"]).mean("days", between=(0, 30)))
        .measurement(Budget(epsilon=1))
        .event
    )
    assert len(table.group_by("ward", "day").count().only) == 4
    assert table.group_by("ward", keys="from_data").count().private_keys


@pytest.mark.parametrize("place", ["visits.parquet", "visits/", "visits/*.parquet", "visits/**/*.parquet", "visits"])
def test_files_folders_and_globs_have_a_declaration_of_the_same_name(tmp_path: Path, place: str) -> None:
    (tmp_path / "visits.schema.toml").write_text(TOML)
    assert beside(f"{tmp_path}/{place}") == tmp_path / "visits.schema.toml"


@pytest.mark.parametrize("place", ["postgresql://here/db", "*.csv", "other.csv", 3, None])
def test_elsewhere_nothing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.schema.toml").write_text(TOML)
    assert beside(place) is None


def test_two_declarations_beside_the_data_are_refused(visits: Any) -> None:
    for ending in ("yaml", "toml"):
        visits.with_name(f"visits.schema.{ending}").write_text(FILES[ending])
    with pytest.raises(InvalidParameter, match="both beside"):
        protect(visits)


def test_another_unit_than_the_declared_one_is_refused_and_other_limits_are_not(visits: Any) -> None:
    with pytest.raises(WrongUnit, match="declaration"):
        protect(visits, unit=mosha.Row(), schema=PLAIN)
    assert protect(visits, unit=mosha.Person("patient", at_most=2), schema=PLAIN).unit.at_most == 2  # type: ignore[attr-defined]
    with pytest.raises(InvalidParameter, match="unit"):
        protect(visits, schema={"patient": "integer"})


def test_a_column_that_is_computed_anew_loses_what_was_declared(visits: Any) -> None:
    table = protect(visits, schema=PLAIN)
    assert table.mean("days")
    hours = table.compute(hours=mosha.col("days") * 24)
    with pytest.raises(Unbounded, match="between"):
        hours.mean("hours")
    assert hours.aggregate(stay=mean("days"))
    assert "days" not in table.declared.without(["days"]).ranges


def test_sql_reads_the_declaration(visits: Any) -> None:
    table = protect(visits, schema=PLAIN, unit=mosha.Person("patient", at_most=5))
    statement = mosha.sql.statement("SELECT ward, AVG(days) AS stay FROM visits GROUP BY ward", {"visits": table})
    assert statement.question.only == (("A",), ("B",))
    listed = mosha.sql.statement(
        "SELECT ward, day, COUNT(*) AS n FROM visits WHERE ward = 'C' GROUP BY ward, day", {"visits": table}
    )
    assert listed.question.only == tuple(("C", day) for day in DAYS)
    rare = mosha.sql.statement(
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY 1", {"visits": table}, keys={"ward": "from_data"}
    )
    assert rare.question.private_keys


def test_a_unit_in_one_word_is_one_row_and_columns_may_be_called_so() -> None:
    assert Declaration.of({"unit": "row", "columns": {"days": "integer"}}).unit == mosha.Row()
    assert Declaration.of({"unit": "row"}).unit == mosha.Row()
    named = Declaration.of({"unit": "text", "columns": "integer"})
    assert named.unit is None
    assert named.types == {"unit": "text", "columns": "integer"}
    assert Declaration.of({"unit": "text"}).types == {"unit": "text"}


WRONG = {
    "not data": 3,
    "nothing": {},
    "a part too many": {"unit": {"person": "x"}, "columns": {}, "tables": {}},
    "no such type": {"days": "number"},
    "a word too many": {"days": {"kind": "integer"}},
    "half a range": {"days": {"between": [1]}},
    "a range that falls": {"days": {"between": [3, 1]}},
    "a range without end": {"days": {"between": [0, float("inf")]}},
    "a range of text": {"days": {"between": ["a", "b"]}},
    "keys that are none": {"days": {"keys": "AB"}},
    "no keys": {"days": {"keys": []}},
    "keys of lists": {"days": {"keys": [[1]]}},
    "a key that is no date": {"days": {"type": "date", "keys": ["yesterday"]}},
    "a unit of nobody": {"unit": {"persons": "x"}, "columns": {"days": "integer"}},
    "a unit of text": {"unit": "patient", "columns": {"days": "integer"}},
    "a limit below zero": {"unit": {"person": "x", "at_most": -1}, "columns": {}},
    "a column without a name": {"columns": {3: {"type": "integer"}}},
}


@pytest.mark.parametrize("said", WRONG.values(), ids=WRONG)
def test_what_cannot_be_a_declaration_is_refused(said: Any) -> None:
    with pytest.raises(MoshaError):
        Declaration.of(said)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "unit: [\n"),
        ("a.yaml", "!!python/object/apply:os.system [ls]"),
        ("a.toml", "="),
        ("a.json", "{"),
        ("a.txt", "x"),
        ("a.toml", None),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path: Path, name: str, text: Any) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidParameter, match="declaration"):
        read_declaration(tmp_path / name)


def test_a_declaration_of_columns_that_are_not_there_is_refused_at_once(visits: Any) -> None:
    with pytest.raises(DataError, match="'weight'"):
        protect(visits, unit=mosha.Row(), schema={"weight": "real"})
    with pytest.raises(DataError, match="'weight'"):
        protect(visits, unit=mosha.Row(), schema={"weight": {"between": [0, 1]}})
