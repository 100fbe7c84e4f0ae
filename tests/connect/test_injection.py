"""Nothing but the compiled plan reaches an engine: names and constants that look like SQL are names and constants."""

from typing import Any

import pytest

from mosha.connect import (
    Aggregation,
    Distinct,
    NormBound,
    Rows,
    Schema,
    Truncate,
    Type,
    Unbounded,
    answer,
    col,
    explain,
    private,
    public,
    when,
)
from mosha.core.errors import DataError, InvalidParameter

NASTY = [
    "x'; DROP TABLE t; --",
    'x"; DROP TABLE t; --',
    "x`; DROP TABLE t; --",
    "/* comment */",
    "-- comment",
    "a\\'b",
    "back\\slash",
    "new\nline",
    "tab\there",
    "%s %(a)s {} $1 :name ?",
    "選択 ' \" ` ;",
    "SELECT",
    "{{jinja}}",
    "\u202eright to left",
    "nul is not here",
]


def test_columns_of_any_name_can_be_asked_for(place: Any) -> None:
    names = NASTY[:10] if place.name == "spark" else NASTY
    schema = Schema({"who": Type.INTEGER, **dict.fromkeys(names, Type.TEXT)})
    rows = [(k, *(f"{name}{k % 2}" for name in names)) for k in range(4)]
    relation = private(place.load(schema, rows), person="who")
    for name in names:
        question = Aggregation(relation, {name: col(name)}, {name: Rows()}, bound=NormBound(2, {name: 1}))
        assert answer(question).to_dict() == {(f"{name}0",): (2,), (f"{name}1",): (2,)}
        if place.name == "spark":
            break


def test_constants_of_any_text_are_constants(place: Any) -> None:
    schema = Schema({"who": Type.TEXT, "t": Type.TEXT})
    rows = [(text, text) for text in NASTY]
    relation = private(place.load(schema, rows), person="who")
    chosen = when(col("t").is_in(*NASTY[:5]), "'; --").when(col("t").like("%\\%s%"), "per cent").else_(col("t"))
    keys = {"c": chosen.concat(" '); DROP TABLE t; --")}
    found = answer(Aggregation(relation, keys, {"n": Rows()}, bound=Truncate(bytes(16), groups=1))).to_dict()
    assert found[("'; -- '); DROP TABLE t; --",)] == (5,)
    assert found[("per cent '); DROP TABLE t; --",)] == (1,)
    assert len(found) == 2 + len(NASTY) - 6
    only = answer(Aggregation(relation, {"t": col("t")}, {"n": Rows()}, bound=Unbounded(), only=[*NASTY, "none"]))
    assert [n for _, (n,) in only.rows()] == [1] * len(NASTY) + [0]
    for text in NASTY:
        kept = relation.where((col("t") == text) & col("t").starts_with(text) & col("t").contains(text))
        if place.name == "duckdb":
            assert answer(Aggregation(kept, {}, {"n": Rows()}, bound=Unbounded())).to_dict() == {(): (1,)}


def test_public_keys_and_joins_of_any_text(place: Any) -> None:
    schema = Schema({"t": Type.TEXT, "n": Type.INTEGER})
    rows = [(text, k) for k, text in enumerate(NASTY)]
    left = private(place.load(schema, rows))
    right = public(place.load(Schema({"t": Type.TEXT, "label; --": Type.TEXT}), [(text, text) for text in NASTY]))
    joined = left.join_public(right, on="t")
    keys = {"a": col("t"), "b": col("label; --")}
    pairs = [(text, text) for text in NASTY] + [("'", '"')]
    found = answer(Aggregation(joined, keys, {"n": Rows()}, bound=Unbounded(), only=pairs))
    assert [n for _, (n,) in found.rows()] == [1] * len(NASTY) + [0]
    distinct = Distinct(joined, {}, of=col("label; --"), at_most=1, key=bytes(16))  # type: ignore[arg-type]
    assert answer(distinct).to_dict() == {(): (len(NASTY),)}


@pytest.mark.parametrize("name", ["none", "who; DROP TABLE t", "*", "who AS x", "k0", "p"])
def test_a_name_that_is_no_column_is_refused_and_never_compiled(place: Any, name: str) -> None:
    relation = private(place.load(Schema({"who": Type.INTEGER}), [(1,)]))
    with pytest.raises(DataError, match="no column") as caught:
        relation.where(col(name) > 0)
    assert "'who'" in str(caught.value)


def test_texts_that_no_engine_can_hold_are_refused() -> None:
    for text in ("a\x00b", "\ud800"):
        with pytest.raises(InvalidParameter):
            col("t") == text  # noqa: B015
    with pytest.raises(InvalidParameter):
        col("")
    with pytest.raises(InvalidParameter):
        col("t").like("open\\")


def test_what_is_explained_is_one_statement_that_only_reads(place: Any) -> None:
    relation = private(place.load(Schema({"who": Type.INTEGER, "x": Type.REAL}), []), person="who")
    question = Aggregation(
        relation.where(col("x") / 2 > 1), {"x": col("x").bin(2)}, {"n": Rows()}, bound=NormBound(1, {"n": 2})
    )
    text = explain(question)
    assert ";" not in text
    assert text.startswith("WITH")
    assert "SELECT" in text
