"""Whoever comes from another library is told the right verb, and nothing is read or spent."""

import contextlib
import copy
from pathlib import Path

import pyarrow as pa
import pytest

import mosha

TABLE = mosha.protect(pa.table({"who": [1, 2], "meddol": [1.0, 2.0]}), unit=mosha.Person("who", at_most=1))


@pytest.mark.parametrize(
    ("name", "verb"),
    [("avg", "mean"), ("std", "standard_deviation"), ("summary", "describe"), ("nlargest", "top"),
     ("groupby", "group_by"), ("query", "where"), ("columns", "schema"), ("medain", "median")],
)  # fmt: skip
def test_an_unknown_verb_is_answered_with_the_right_one(name: str, verb: str) -> None:
    with pytest.raises(AttributeError, match=f"did you mean {verb}"):
        getattr(TABLE, name)


def test_rows_are_refused_kindly() -> None:
    with pytest.raises(AttributeError, match="nobody sees the rows"):
        TABLE.head(5)


def test_groups_do_not_offer_verbs_that_tables_alone_have() -> None:
    with pytest.raises(AttributeError, match="did you mean mean"):
        TABLE.group_by("meddol").avg  # noqa: B018
    with pytest.raises(AttributeError) as caught:
        TABLE.group_by("meddol").merge  # noqa: B018
    assert "join" not in str(caught.value)


def test_brackets_name_the_verb() -> None:
    with pytest.raises(TypeError, match="mean\\('meddol'"):
        TABLE["meddol"]
    with pytest.raises(TypeError):
        list(TABLE)


def test_private_names_stay_absent_so_that_copies_and_notebooks_work() -> None:
    assert not hasattr(TABLE, "_repr_png_")
    assert not hasattr(TABLE, "__array__")
    assert repr(copy.copy(TABLE)) == repr(TABLE)


def test_the_name_of_an_account_is_no_account() -> None:
    with pytest.raises(mosha.errors.InvalidParameter, match=r"ledger\.account\('report'"):
        mosha.protect(pa.table({"who": [1]}), unit=mosha.Person("who"), account="report")  # type: ignore[call-overload]


def test_a_misspelled_column_is_recognised_first() -> None:
    with pytest.raises(mosha.errors.MoshaError, match="did you mean 'meddol'"):
        TABLE.sum("medol", between=(0, 1))


def test_numbers_as_keys_of_a_column_without_a_type_are_told_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("site,days\n1,3\n")
    table = mosha.protect(tmp_path / "t.csv", unit=mosha.Row())
    with pytest.raises(mosha.errors.InvalidParameter, match="has no declared type"):
        table.group_by("site", keys=[1, 2]).count()
    with pytest.raises(mosha.errors.InvalidParameter, match="WHERE site IN"):
        table.group_by("site").count().forecast(epsilon=1)


def test_plan_and_forecast_are_told_apart_and_on_is_understood() -> None:
    with pytest.raises(mosha.errors.InvalidParameter, match="forecast"):
        TABLE.count().plan(epsilon=1)
    assert list(TABLE.join(TABLE, on="who", suffix="_2").schema) == ["who", "meddol", "meddol_2"]


def test_a_file_in_another_encoding_is_told_the_option(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("病人,科室\n1,内科\n".encode("gbk"))
    with pytest.raises(mosha.errors.MoshaError, match="encoding='gbk'"):
        mosha.protect(tmp_path / "t.csv", unit=mosha.Row())
    assert list(mosha.protect(tmp_path / "t.csv", unit=mosha.Row(), encoding="gbk").schema) == ["病人", "科室"]


@pytest.mark.parametrize("said", [None, "gbk"])
def test_a_file_that_is_not_utf8_is_not_counted_as_nothing_without_a_word(tmp_path: Path, said: str | None) -> None:
    lines = ["id,ward", *(f"{n},内科" for n in range(400))]
    (tmp_path / "t.csv").write_bytes("\n".join(lines).encode("gbk"))
    unit = mosha.Person("id", at_most=1)
    account = mosha.Ledger.memory().account("visits", unit=unit, rho=1e9)
    table = mosha.protect(tmp_path / "t.csv", unit=unit, account=account, encoding=said)
    for question in (table.count(), table.group_by("ward", keys=["内科", "外科"]).aggregate(n=mosha.tables.count())):
        found = question.release(epsilon=100)  # without any noise but once in e**100 times
        told = [note for note in found.notes if "encoding='gbk'" in note]
        assert bool(told) == (said is None), found.notes


def test_a_length_is_refused_with_the_question_to_ask_and_a_table_is_true() -> None:
    with pytest.raises(TypeError, match=r"count\(\)\.release"):
        len(TABLE)
    assert bool(TABLE)
    assert bool(TABLE.group_by("meddol"))


def test_a_file_with_tables_is_told_to_name_one(tmp_path: Path) -> None:
    import sqlite3

    with contextlib.closing(sqlite3.connect(tmp_path / "x.sqlite")) as book, book:
        book.execute("CREATE TABLE visits (p INTEGER)")
    with pytest.raises(mosha.errors.DataError, match="visits") as refused:
        mosha.protect(tmp_path / "x.sqlite", unit=mosha.Person("p", at_most=1))
    assert refused.value.code == "connect.which_table"
    assert "None" not in str(refused.value)


def test_join_of_a_frame_says_how_it_becomes_a_table() -> None:
    """It was said that two protected tables join on the person, though the other one was not protected."""
    with pytest.raises(mosha.errors.InvalidParameter, match="public_table"):
        mosha.protect({"p": [1]}, unit=mosha.Person("p")).join({"p": [1], "x": [2]}, on="p")  # type: ignore[arg-type]


def test_join_takes_a_public_table_too() -> None:
    rooms = mosha.tables.public_table({"meddol": [1.0, 2.0], "floor": [1, 2]})
    by_floor = TABLE.join(rooms, on="meddol").group_by("floor", keys=[1, 2]).count()
    again = TABLE.join_public(rooms, on="meddol").group_by("floor", keys=[1, 2]).count()
    assert by_floor.fingerprint == again.fingerprint
    with pytest.raises(mosha.errors.InvalidParameter, match="on="):
        TABLE.join(rooms)
