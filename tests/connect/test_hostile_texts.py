"""Nothing in a text is ever interpreted: as a constant, key, pattern or column name it reaches the engine unchanged."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from mosha.connect import Aggregation, Rows, Schema, Type, Unbounded, answer, col, lit, private, source, when
from mosha.connect.language.cases import Case
from mosha.core.errors import DataError

HOSTILE = [
    *["${env:HOME}", "${HOME}", "${spark.app.name}", "${system:java.version}", "$1", "$name", "$$", "$$a$$", "${", "}"],
    *["'", "''", "it's", '"', '""', "`", "``", "\\", "\\\\", "a\\", "\\'", "\\' OR 1=1 --", "\\n", "\\u0041", "\\x41"],
    *["\\101", "\\%", "\\_", "E'\\x41'", "U&'\\0041'", "X'41'", "r'a'", "%s", "%(a)s", "%%", "%", "_", "{}", "{0}"],
    *["{{a}}", ":a", "?", "?::int", "a;b", "--", "/* a */", "#", "\n", "\r\n", "\t", "\x01", "\x7f", "\u2028"],
    *["\u202e", "\ufeff", " ", "NULL", "null", "true", "{a,b}", "[1]", '{"a": 1}', "e\u0301", "é", "É", "ß", "İ"],
    *["日本", "😀", "👩\u200d👩", "", "a" * 5000, "&amp;", "<a>", "!", "!!", "!%", "^", "$", ".*", "(?i)a", "\\Q"],
    *["\\E", "[a-z]", "a|b", "(", ")", "+", "~", "\\0"],
]  # fmt: skip
SETTINGS = {
    "as they come": {},
    "raw strings": {"spark.sql.parser.escapedStringLiterals": "true"},
    "not ansi": {"spark.sql.ansi.enabled": "false"},
    "quoted names": {"spark.sql.ansi.doubleQuotedIdentifiers": "true"},
}
LIVES = Schema({"id": Type.INTEGER, "t": Type.TEXT})


@pytest.fixture(scope="module")
def texts(place: Any) -> Any:
    return private(place.load(LIVES, list(enumerate(HOSTILE))))


@pytest.fixture(params=SETTINGS)
def setting(request: pytest.FixtureRequest, place: Any) -> Iterator[None]:
    """What a session of Spark may be told about strings; one round for the others."""
    if place.name != "spark":
        if request.param != "as they come":
            pytest.skip("a setting of Spark")
        yield
        return
    changed = SETTINGS[request.param]
    before = {name: place.session.conf.get(name) for name in changed}
    for name, value in changed.items():
        place.session.conf.set(name, value)
    yield
    for name, value in before.items():
        place.session.conf.set(name, value)


def read_back(relation: Any, expression: Any) -> list[Any]:
    """The value of an expression in each row, in the order of rows."""
    keys = {"id": col("id"), "k": expression}
    found = answer(Aggregation(relation, keys, {"n": Rows()}, bound=Unbounded()))
    return [value for _, value in sorted(zip(*(column.tolist() for column in found.keys), strict=True))]


def first_of(tests: Any) -> Any:
    return Case(tuple((test, lit(k)) for k, test in enumerate(tests)), None)


@pytest.mark.usefixtures("setting")
def test_a_constant_comes_back_as_it_was_written(texts: Any) -> None:
    written = Case(tuple((col("id") == k, lit(text)) for k, text in enumerate(HOSTILE)), None)
    assert read_back(texts, written) == HOSTILE


@pytest.mark.usefixtures("setting")
def test_a_text_equals_itself_and_no_other(texts: Any) -> None:
    assert read_back(texts, first_of([col("t") == text for text in HOSTILE])) == list(range(len(HOSTILE)))
    assert read_back(texts, first_of([col("t").is_in(text, "none") for text in HOSTILE])) == list(range(len(HOSTILE)))


@pytest.mark.usefixtures("setting")
def test_a_pattern_of_plain_characters_matches_them_alone(texts: Any) -> None:
    plain = ["".join("\\" + c if c in "\\%_" else c for c in text)[:900] for text in HOSTILE]
    patterns = [col("t").like(pattern + ("%" if len(pattern) == 900 else "")) for pattern in plain]
    assert read_back(texts, first_of(patterns)) == list(range(len(HOSTILE)))
    pairs = zip(plain, HOSTILE, strict=True)
    ringed = [col("t").concat("|").like(f"%{pattern}%|%") & (col("t") == text) for pattern, text in pairs]
    assert read_back(texts, first_of(ringed)) == list(range(len(HOSTILE)))


@pytest.mark.usefixtures("setting")
@pytest.mark.parametrize("few", [True, False])
def test_a_public_key_finds_its_group_whatever_it_looks_like(texts: Any, few: bool) -> None:
    for start in range(0, len(HOSTILE), 8 if few else len(HOSTILE)):
        listed = HOSTILE[start : start + 8] if few else HOSTILE
        found = answer(Aggregation(texts, {"t": col("t")}, {"n": Rows()}, bound=Unbounded(), only=[*listed, "none"]))
        assert found.keys[0].tolist() == [*listed, "none"]
        assert found["n"].tolist() == [1] * len(listed) + [0]


def test_a_column_is_found_by_its_name_whatever_it_looks_like(place: Any) -> None:
    names = [name for name in HOSTILE if name.strip() and len(name.encode()) < 60]
    folded = {name.lower(): name for name in names}  # DuckDB and Parquet take the case of names for nothing
    names = list(folded.values())
    if place.name == "mariadb":  # which has names of the first 65,536 characters, none of them ending in a blank
        names = [name for name in names if max(name) <= "\uffff" and not name.endswith(" ")]
    schema = Schema({"id": Type.INTEGER, **dict.fromkeys(names, Type.INTEGER)})
    relation = private(place.load(schema, [(1, *range(len(names)))]), person="id")
    everything = sum((col(name) * (k + 1) for k, name in enumerate(names[:8])), lit(0))
    assert read_back(relation, everything) == [sum(k * (k + 1) for k in range(8))]
    for start in range(0, len(names), 12):
        piece = names[start : start + 12]
        keys = {name: col(name) for name in piece}
        question = Aggregation(relation.where(~col(piece[0]).is_null()), keys, {"n": Rows()}, bound=Unbounded())
        assert answer(question).to_dict() == {tuple(range(start, start + len(piece))): (1,)}


def test_the_environment_of_the_driver_cannot_be_read(place: Any, texts: Any) -> None:
    """Spark puts variables in place of ${...} wherever they stand in a statement, in constants too."""
    assert os.environ["HOME"].startswith("/")
    guess = when(lit("${env:HOME}").like("/%"), "found").else_("as written")
    assert set(read_back(texts, guess)) == {"as written"}
    assert read_back(texts, when(col("t") == "${spark.app.name}", 1).else_(0)).count(1) == 1


def test_bytes_that_are_no_utf_8_are_missing_on_spark_and_two_columns_of_one_name_are_refused(
    spark_session: Any,
) -> None:
    """Spark keeps any bytes as a text: different ones came back as the same key, and were counted as none of them."""
    frame = spark_session.sql(
        "SELECT * FROM VALUES (1, CAST(X'ff41' AS STRING)), (2, CAST(X'fe41' AS STRING)), (3, CAST(X'efbfbd41' AS "
        "STRING)), (4, CAST(X'eda080' AS STRING)), (5, CAST(X'f0' AS STRING)), (6, 'ok') AS rows(id, t)"
    )
    for relation in (private(source(frame)), private(source(frame.selectExpr("id", "t COLLATE UNICODE_CI AS t")))):
        question = Aggregation(relation, {"t": col("t")}, {"rows": Rows()}, bound=Unbounded())
        assert sorted(answer(question).rows(), key=str) == [(("ok",), (1,)), (("\ufffdA",), (1,)), ((None,), (4,))]
    with pytest.raises(DataError, match="two columns of this frame are called 'x'"):
        source(spark_session.sql("SELECT 1 AS x, 'a' AS x"))


def test_a_text_and_a_column_of_that_name_are_written_differently() -> None:
    """Counts and sums of equal text share a column of a statement, and one bounds the other."""
    texts = [text for text in HOSTILE if text]
    assert len({repr(part) for text in texts for part in (lit(text), col(text))}) == 2 * len(texts)
    table = source({"t": ["a", "b"], "it's": ["x", None]})
    known = {"column": Rows(col("t").concat(col("it's"))), "text": Rows(col("t").concat("it's"))}
    found = answer(Aggregation(private(table), {}, known, bound=Unbounded()))
    assert [list(map(int, values)) for _, values in found.rows()] == [[1, 2]]
