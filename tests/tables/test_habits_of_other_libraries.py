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


@pytest.mark.parametrize(
    ("name", "said"),
    [("isin", "did you mean is_in"), ("isna", "did you mean is_null"), ("clip", "did you mean clamp"),
     ("mean", r"table\.mean"), ("std", r"table\.standard_deviation"), ("hours", "did you mean hour"),
     ("alias", r"table\.with_columns")],
)  # fmt: skip
def test_an_expression_answers_unknown_names_too(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        getattr(mosha.col("meddol"), name)
    assert not hasattr(mosha.col("meddol") + 1, "_repr_html_")
    assert repr(copy.deepcopy(mosha.col("meddol") > 3)) == '("meddol" > 3)'


@pytest.mark.parametrize("ask", ["mean", "sum", "median", "variance"])
def test_a_misspelled_column_comes_before_the_range_that_it_lacks(ask: str) -> None:
    with pytest.raises(mosha.errors.DataError, match="did you mean 'meddol'"):
        getattr(TABLE, ask)("medol")
    with pytest.raises(mosha.errors.DataError, match="did you mean 'meddol'"):
        TABLE.where("medol > 3")


def test_keys_of_another_type_name_the_column_and_both_types() -> None:
    for keys in (["1", "2"], [1, "a"], [1.5]):
        with pytest.raises(mosha.errors.DataError, match=r"'who' holds integer values, and the key"):
            TABLE.group_by("who", keys=keys).count()
    with pytest.raises(mosha.errors.DataError, match=r"a comparison with 'who' cannot mix integer and text"):
        TABLE.where(mosha.col("who") == "1")
    mosha.set_language("zh")
    try:
        with pytest.raises(mosha.errors.DataError, match="与 'who' 的比较 不能混用"):
            TABLE.where(mosha.col("who") == "1")
    finally:
        mosha.set_language("en")


def test_two_columns_and_their_ranges_are_said_in_either_way() -> None:
    two = mosha.protect({"a": [1.0, 2.0], "b": [3.0, 4.0]}, unit=mosha.Row())
    named = two.correlation(["a", "b"], between={"a": (0, 5), "b": (0, 9)})
    listed = two.correlation(["a", "b"], between=[(0, 5), (0, 9)])
    assert named.explain(epsilon=1) == listed.explain(epsilon=1)
    assert named.forecast(epsilon=1, rows=50) == listed.forecast(epsilon=1, rows=50)
    with pytest.raises(mosha.errors.InvalidParameter, match=r"between=\[\(0, 30\), \(0, 120\)\]"):
        two.correlation(["a", "b"], between=(0, 5))


def test_nobody_is_told_of_a_limit_on_persons_that_cuts_nothing() -> None:
    account = mosha.Ledger.memory().account("a", unit=mosha.Person("who"), epsilon=10)
    table = mosha.protect(pa.table({"who": [1, 2], "ward": ["x", "y"]}), unit=mosha.Person("who"), account=account)
    for asked in (table.persons(), table.group_by("ward", keys=["x", "y"]).persons()):
        told = " ".join(asked.release(epsilon=1).notes)
        assert "nothing is cut" in told
        assert "Nobody counts" not in told
        assert "nothing is cut" in str(asked.explain(epsilon=1))
    once = mosha.Person("who", groups=1, per_group=1)
    few = mosha.protect(pa.table({"who": [1, 2], "ward": ["x", "y"]}), unit=once, account=account)
    assert "picked at random" in " ".join(few.group_by("ward", keys=["x", "y"]).persons().release(epsilon=1).notes)


def test_a_place_that_is_not_there_is_told_apart_from_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(mosha.errors.DataError, match="there is no file or folder"):
        mosha.protect(tmp_path / "none.csv", unit=mosha.Row())
    with pytest.raises(mosha.errors.DataError, match="has no Parquet file"):
        mosha.protect(tmp_path, unit=mosha.Row())


def test_csv_files_with_other_columns_are_not_read_as_one_table(tmp_path: Path) -> None:
    """The second file was read by the first one's header: another column told whose a row was."""
    (tmp_path / "a.csv").write_text("who,ward\n1,x\n")
    (tmp_path / "b.csv").write_text("ward,who\ny,2\n")
    with pytest.raises(mosha.errors.DataError, match=r"'b\.csv' is another one"):
        mosha.protect(tmp_path / "*.csv", unit=mosha.Person("who"))
    (tmp_path / "b.csv").write_text("who,ward\n2,y\n")
    assert list(mosha.protect(tmp_path / "*.csv", unit=mosha.Person("who")).schema) == ["who", "ward"]
