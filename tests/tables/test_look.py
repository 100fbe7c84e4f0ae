"""The look before payment: what would fail whatever the rows are, is refused while nothing is spent."""

import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import mosha
from mosha import col, errors
from mosha.connect.engines.duckdb import DuckDB
from mosha.connect.engines.source import Engine
from mosha.connect.language.schema import Type
from mosha.connect.plan.relation import private
from mosha.connect.plan.source import Source
from mosha.tables import Budget
from mosha.tables.parts import sums
from mosha.tables.parts.part import Frame
from mosha.tables.questions import look as looking
from mosha.tables.questions.look import look
from tests.chance import release_too_late

ROWS = {"id": [1, 2, 3, 4] * 5, "days": [1, 2] * 10, "cost": [1.0, 3.0] * 10, "ward": ["A", "B"] * 10}


def account(unit: Any = None) -> Any:
    return mosha.Ledger.memory().account("visits", unit=unit or mosha.Row(), epsilon=9)


@pytest.fixture
def visits() -> Any:
    return mosha.protect(pa.table(ROWS), unit=mosha.Row(), account=account(), engine=DuckDB())


def refused(question: Any, *kinds: Any, **budget: Any) -> Any:
    """What a release says that is refused: unpaid, and no failure."""
    with pytest.raises(kinds or errors.MoshaError) as told:
        question().release(**(budget or {"epsilon": 1}))
    assert "Nothing was spent" in str(told.value)
    return told.value


def nested(levels: Any) -> Any:
    expression = col("cost")
    for _ in range(levels):
        expression = expression * 2 + 1  # type: ignore[assignment]
    return expression


@pytest.mark.parametrize("levels", [8, 9, 10, 11, 12])
def test_expressions_that_are_too_deep_with_what_is_put_around_them_are_refused_unpaid(
    visits: Any, levels: int
) -> None:
    """A range that is bought, a correlation: each adds operators of its own. Either it is answered, or it is free."""
    for question in (
        lambda: visits.mean(nested(levels), between="automatic"),
        lambda: visits.correlation([nested(levels), "days"], between=[(0, 9), (0, 9)]),
    ):
        before = visits.account.spent
        try:
            question().release(epsilon=0.1)
        except errors.MoshaError:
            assert visits.account.spent == before
    assert visits.account.failures == 0


@pytest.mark.parametrize("filters", [100, 128, 160, 1000, 5000])
def test_a_chain_of_many_filters_is_answered_or_refused_unpaid(visits: Any, filters: int) -> None:
    table = visits
    try:
        for place in range(filters):
            table = table.where(col("days") > place - 9000)
        table.count().release(epsilon=1)
    except errors.InvalidParameter as told:
        assert "Nothing was spent" in str(told)  # noqa: PT017
        assert visits.account.spent == 0
    assert visits.account.failures == 0


def test_thousands_of_conditions_in_one_are_refused_unpaid(visits: Any) -> None:
    def ask() -> None:
        many = col("days") > 0
        for place in range(3000):
            many = many & (col("days") > -place)
        visits.where(many).count().release(epsilon=1)

    with pytest.raises(errors.MoshaError):
        ask()
    assert visits.account.spent == visits.account.failures == 0


def test_no_depth_of_calls_lets_a_question_through_the_look_that_fails_once_it_is_paid(visits: Any) -> None:
    """A paid step runs inside of more calls than the look did, and the few between the two were paid for nothing."""
    table = visits
    for place in range(100):
        table = table.where(col("days") > place - 9000)
    question = table.count()

    def is_asked(calls: Any) -> Any:
        if calls:
            return is_asked(calls - 1)
        try:
            return bool(question.release(epsilon=0.001).columns)
        except errors.InvalidParameter:
            return False

    fewest, most = 0, 600
    assert is_asked(fewest)
    while most - fewest > 1:
        middle = (fewest + most) // 2
        fewest, most = (middle, most) if is_asked(middle) else (fewest, middle)
    around = [is_asked(calls) for calls in range(fewest - 20, fewest + 20)]
    assert around == sorted(around, reverse=True)
    assert set(around) == {True, False}
    assert visits.account.failures == 0


def test_a_limit_that_no_sum_can_hold_is_refused_unpaid() -> None:
    unit = mosha.Person("id", at_most=10**16)
    table = mosha.protect(pa.table(ROWS), unit=unit, account=account(unit))
    with pytest.raises(errors.MoshaError):
        table.mean("cost", between=(0, 9)).release(epsilon=1)
    assert table.account.spent == table.account.failures == 0  # type: ignore[attr-defined]


def test_combinations_of_keys_are_counted_before_they_are_made(visits: Any) -> None:
    lists = {name: list(range(120)) for name in ("days", "id", "cost")}
    with pytest.raises(errors.InvalidParameter, match="1728000 groups"):
        visits.group_by("days", "id", "cost", keys=lists)


def test_a_file_that_went_away_is_told_before_payment_and_an_answer_is_found_without_it(tmp_path: Path) -> None:
    place = tmp_path / "visits.parquet"
    pyarrow.parquet.write_table(pa.table(ROWS), place)
    table = mosha.protect(place, unit=mosha.Row(), account=account(), engine=DuckDB())
    first = table.count().release(epsilon=1, key="k")
    place.unlink()
    assert "went away" in str(refused(table.count, errors.DataError))
    assert table.count().release(epsilon=1, key="k").columns == first.columns
    assert (table.account.spent, table.account.failures) == (1.0, 0)  # type: ignore[attr-defined]


def test_a_column_that_changed_its_type_is_told_before_payment(tmp_path: Path) -> None:
    place = tmp_path / "visits.parquet"
    pyarrow.parquet.write_table(pa.table(ROWS), place)
    table = mosha.protect(place, unit=mosha.Row(), account=account(), engine=DuckDB())
    pyarrow.parquet.write_table(pa.table({"other": [1]}), place)
    refused(lambda: table.mean("cost", between=(0, 9)), errors.DataError)
    assert (table.account.spent, table.account.failures) == (0.0, 0)  # type: ignore[attr-defined]


def test_the_look_reads_no_row_and_plans_the_statement_that_is_run(
    visits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = visits.relation.sources[0].engine
    planned, ran = [], []  # type: ignore[var-annotated]
    make, run = engine._plans.make, engine._plans.run
    monkeypatch.setattr(
        engine._plans,
        "make",
        lambda s, **o: (planned.append(s), ran and pytest.fail("late"), make(s, **o)),
    )

    def running(statement: Any) -> Any:
        assert statement in engine._plans._names
        ran.append(statement)
        return run(statement)

    monkeypatch.setattr(engine._plans, "run", running)
    visits.group_by("ward", keys=["A", "B"]).mean("cost", between=(0, 9)).release(epsilon=1)
    assert planned == ran
    assert len(planned) == 1


def test_every_part_of_a_release_is_looked_at(visits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, asked = [], []
    look, answer = Engine.look, DuckDB.answer
    monkeypatch.setattr(Engine, "look", lambda self, q: (looks.append(type(q)), look(self, q))[1])
    monkeypatch.setattr(DuckDB, "answer", lambda self, q: (asked.append(type(q)), answer(self, q))[1])
    unit = mosha.Person("id")
    table = mosha.protect(pa.table(ROWS), unit=unit, account=account(unit), engine=DuckDB())
    table.group_by("ward", keys=["A", "B"]).aggregate(
        rows=mosha.tables.count(),
        mean=mosha.tables.mean("cost", between="automatic"),
        median=mosha.tables.median("cost", between=(0, 9), bars="values"),
        values=mosha.tables.distinct("days"),
    ).release(epsilon=3)
    assert not Counter(asked) - Counter(looks)  # more looks try the ends of bounds and ranges that are to be bought
    assert len(looks) >= 5


def test_a_deadline_in_the_look_is_unpaid_and_one_in_the_answer_counts_and_can_be_retried(
    visits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = visits.relation.sources[0].engine
    slow = "SELECT count(*) AS s0 FROM range(100000000000) a, range(1000000) b"
    run = engine._plans.run
    with monkeypatch.context() as patch:
        patch.setattr(engine._plans, "run", lambda statement: run(slow))
        assert "key='k' asks once more" in str(release_too_late(visits.count(), epsilon=1, key="k"))
    assert (visits.account.spent, visits.account.failures) == (1.0, 1)
    assert visits.count().release(epsilon=1, key="k", deadline=60).columns
    with monkeypatch.context() as patch:
        patch.setattr(engine._plans, "make", lambda statement, keep: run(slow))
        with pytest.raises(errors.DeadlineExceeded, match="Nothing was spent"):
            visits.count().release(epsilon=2, deadline=1.5)  # for another price: the first look is known
    assert (visits.account.spent, visits.account.failures) == (1.0, 1)
    for wrong in (0, -1, "soon", float("nan")):
        with pytest.raises(errors.InvalidParameter):
            visits.count().release(epsilon=1, deadline=wrong)


def test_a_question_that_is_broken_off_lets_others_go_on(visits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = visits.relation.sources[0].engine
    run, told = engine._plans.run, []
    slow = "SELECT count(*) AS s0 FROM range(100000000000) a, range(1000000) b"
    monkeypatch.setattr(engine._plans, "run", lambda s: run(slow if threading.current_thread().name == "slow" else s))

    def ask() -> None:
        try:
            visits.count().release(epsilon=1, deadline=1.0)
        except errors.MoshaError as error:
            told.append(type(error))

    thread = threading.Thread(target=ask, name="slow")
    thread.start()
    assert visits.count().release(epsilon=1).columns
    thread.join()
    assert told == [errors.DeadlineExceeded]


@pytest.mark.parametrize("grouped", [False, True], ids=["all", "groups from the data"])
def test_bounds_and_ranges_that_are_to_be_bought_are_tried_at_both_ends(
    monkeypatch: pytest.MonkeyPatch, grouped: bool
) -> None:
    """A look that knew only its own stand-ins planned another statement than the one that is run."""
    unit = mosha.Person("id")
    table = mosha.protect(pa.table(ROWS), unit=unit)
    tried, ask = [], sums.bound_question  # type: ignore[attr-defined]

    def notice(*arguments: Any, norm: Any, **named: Any) -> Any:
        tried.append((norm, max(value.magnitude for value in arguments[3].values())))
        return ask(*arguments, norm=norm, **named)

    monkeypatch.setattr(sums, "bound_question", notice)
    asked: dict[str, Any] = {"s": mosha.tables.sum("cost", between="automatic"), "n": mosha.tables.count()}
    question = table.group_by("ward").aggregate(**asked) if grouped else table.aggregate(**asked)
    plan = question.plan_release(mosha.tables.Budget(epsilon=1, delta=1e-6))
    look(plan.frame, plan.selection, plan.parts)
    assert min(norm for norm, _ in tried) == 1
    assert max(norm for norm, _ in tried) == 2**20
    assert len({size for _, size in tried}) > 1


AGGREGATES: dict[str, Any] = {
    "rows": {"x": mosha.tables.count()},
    "persons": {"x": mosha.tables.persons()},
    "a sum": {"x": mosha.tables.sum("cost", between=(0, 9))},
    "a sum in a bought range": {"x": mosha.tables.sum("cost", between="automatic")},
    "a mean": {"x": mosha.tables.mean("cost", between=(0, 9))},
    "a deviation": {"x": mosha.tables.standard_deviation("cost", between=(0, 9))},
    "a correlation": {"x": mosha.tables.correlation(["cost", "days"], between=[(0, 9), (0, 9)])},
    "a median": {"x": mosha.tables.median("cost", between=(0, 9))},
    "a quantile in a bought range": {"x": mosha.tables.quantile("cost", 0.9, between="automatic", bars="values")},
    "distinct values": {"x": mosha.tables.distinct("days")},
    "many": {
        "n": mosha.tables.count(),
        "s": mosha.tables.sum("cost", between="automatic"),
        "d": mosha.tables.distinct("days"),
        "q": mosha.tables.median("cost", between=(0, 9)),
    },
}
UNITS = {"people": mosha.Person("id"), "people of some rows in groups": mosha.Person("id", groups=2, per_group=10)}
GROUPS = {
    "all": lambda table: table,
    "found": lambda table: table.group_by("ward"),
    "both": lambda table: table.group_by("days", "ward", keys={"days": [1, 2]}),
}


def form(statement: Any) -> Any:
    """A statement without its constants, how wide its whole numbers are, and how many values a list has."""
    found = re.sub(r"'(?:[^']|'')*'", "#", statement)
    found = re.sub(r"keys_[0-9a-f]+", "keys", found)
    found = re.sub(r"-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b", "#", found).replace("INT128", "BIGINT")
    before = ""
    while before != found:
        before = found
        found = re.sub(r"CAST\(# AS \w+\)|\(#\)|#(?:, #)+", "#", found)
        found = found.replace(" - #", "").replace('# + CASE WHEN "t" > # THEN # ELSE # END', "#")
    return found


@pytest.mark.parametrize(
    ("whose", "asked"),
    [("people", asked) for asked in AGGREGATES]
    + [("people of some rows in groups", asked) for asked in ("rows", "a mean", "distinct values")],
)
def test_no_statement_is_run_whose_form_was_not_looked_at(whose: Any, asked: Any) -> None:
    """Constants may differ (what is bought, picked or found from the data): they were tried at both ends."""
    engine = DuckDB()
    rows = {name: values * 40 for name, values in ROWS.items()} | {"id": [n % 40 for n in range(800)]}  # type: ignore[operator]
    paying = mosha.Ledger.memory().account("visits", unit=UNITS[whose], epsilon=1e4, delta=0.1)
    table = mosha.protect(pa.table(rows), unit=UNITS[whose], account=paying, engine=engine)
    make, run, read, looked, ran = engine._plans.make, engine._plans.run, engine._plans.read_batches, set(), []
    engine._plans.make = lambda statement, **options: (looked.add(form(statement)), make(statement, **options))[1]
    engine._plans.run = lambda statement: (ran.append(form(statement)), run(statement))[1]
    engine._plans.read_batches = lambda statement, rows: (ran.append(form(statement)), read(statement, rows))[1]
    for group in GROUPS.values():
        looked.clear()
        ran.clear()
        group(table).aggregate(**AGGREGATES[asked]).release(epsilon=50, delta=1e-3)
        assert ran
        assert set(ran) <= looked
        forms = set(looked)
        looked.clear()
        ran.clear()
        group(table).aggregate(**AGGREGATES[asked]).release(epsilon=50, delta=1e-3)  # known, and not looked at again
        assert ran
        assert not looked
        assert set(ran) <= forms


def count_looks(table: Any, ask: Any, **budget: Any) -> int:
    """How many statements are analysed for a release."""
    engine, made = table.relation.sources[0].engine, []
    make = engine._plans.make
    engine._plans.make = lambda statement, **options: (made.append(statement), make(statement, **options))[1]
    try:
        ask(table).release(**(budget or {"epsilon": 0.01}))
    finally:
        engine._plans.make = make
    return len(made)


def by_days(table: Any) -> Any:
    return table.group_by("days", keys=[1, 2]).count()


def protect_parquet(place: Any, columns: Any) -> Any:
    pyarrow.parquet.write_table(pa.table(columns), place)
    return mosha.protect(place, unit=mosha.Row(), account=account(), engine=DuckDB())


def test_a_question_that_was_looked_at_is_not_looked_at_again(visits: Any) -> None:
    assert [count_looks(visits, by_days) for _ in range(3)] == [1, 0, 0]


OTHERWISE = {
    "another budget": lambda table: count_looks(table, by_days, epsilon=0.02),
    "another question": lambda table: count_looks(table, lambda t: t.group_by("days", keys=[1, 3]).count()),
    "another table with the same columns": lambda table: count_looks(
        mosha.protect(pa.table(ROWS), unit=mosha.Row(), account=account(), engine=table.relation.sources[0].engine),
        by_days,
    ),
    "fewer calls left": lambda table: call_inside(50, lambda: count_looks(table, by_days)),
}


def call_inside(calls: Any, work: Any) -> Any:
    return call_inside(calls - 1, work) if calls else work()


@pytest.mark.parametrize("what", OTHERWISE)
def test_whatever_a_look_depends_on_has_it_made_again(visits: Any, what: Any) -> None:
    assert count_looks(visits, by_days) == 1
    assert OTHERWISE[what](visits) == 1
    assert count_looks(visits, by_days) == 0


def test_a_file_that_was_written_anew_is_looked_at_again(tmp_path: Path) -> None:
    table = protect_parquet(tmp_path / "visits.parquet", ROWS)
    assert [count_looks(table, by_days) for _ in range(2)] == [1, 0]
    protect_parquet(tmp_path / "visits.parquet", {**ROWS, "more": [0] * 20})
    assert [count_looks(table, by_days) for _ in range(2)] == [1, 0]
    protect_parquet(tmp_path / "visits.parquet", {"other": [1]})
    refused(lambda: by_days(table), errors.DataError)
    assert table.account.failures == 0


def test_a_frame_whose_columns_changed_in_place_is_looked_at_again() -> None:
    frame = pd.DataFrame({"days": [1, 2], "cost": [1.0, 2.0]})
    table = mosha.protect(frame, unit=mosha.Row(), account=account(), engine=DuckDB())
    assert [count_looks(table, by_days) for _ in range(2)] == [1, 0]
    frame["days"] = frame["days"].astype("float64")
    assert count_looks(table, by_days) == 1
    del frame["days"]
    assert count_looks(table, by_days) == 1
    assert table.account.failures == 0  # type: ignore[attr-defined]


class ElsewhereSource(Source):
    """A table on a server."""

    def __init__(self) -> None:
        super().__init__(None, ())

    def table(self, name: Any) -> NoReturn:
        raise NotImplementedError


def test_columns_of_objects_and_servers_are_looked_at_every_time() -> None:
    frame = pd.DataFrame({"days": pd.Series([1, 2], dtype=object)})
    table = mosha.protect(frame, unit=mosha.Row(), account=account(), engine=DuckDB())
    asked: dict[str, Any] = lambda t: t.count()  # type: ignore[assignment]
    assert [count_looks(table, asked) for _ in range(2)] == [1, 1]
    assert looking.describe_look(Frame(private(ElsewhereSource()), mosha.Row()), Budget(epsilon=1), "?") is None


def test_a_look_that_was_refused_is_not_remembered(visits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> NoReturn:
        raise errors.DataError("connect.duckdb_unfit", spent="nothing")

    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "analyze", refuse)
        refused(lambda: by_days(visits), errors.DataError)
    assert count_looks(visits, by_days) == 1


def test_questions_of_a_table_that_is_gone_are_forgotten_and_few_are_kept(visits: Any) -> None:
    for place in range(looking.MOST_KEPT + 9):
        seen = looking.describe_look(by_days(visits).frame, Budget(epsilon=1), str(place))
        looking.remember(seen)
    assert len(looking._known[visits.relation.sources[0]]) == looking.MOST_KEPT


MADE_OF = {
    Type.TEXT: pa.array(["a", "b"] * 500),
    Type.INTEGER: pa.array([1, 2] * 500),
    Type.REAL: pa.array([0.5, 1.5] * 500),
    Type.BOOLEAN: pa.array([True, False] * 500),
    Type.DATE: pa.array([0, 1] * 500, pa.date32()),
    Type.TIMESTAMP: pa.array([0, 86_400] * 500, pa.timestamp("s")),
    Type.INSTANT: pa.array([0, 86_400] * 500, pa.timestamp("s", tz="UTC")),
}


@pytest.mark.parametrize("kind", Type)
@pytest.mark.parametrize("aggregate", ["mean", "median"])
def test_found_groups_of_every_type_are_looked_at_and_answered(kind: Any, aggregate: str) -> None:
    """A stand-in of another type than the key would refuse what can be answered."""
    unit = mosha.Person("who", at_most=1)
    account = mosha.Ledger.memory().account("a", unit=unit, epsilon=100, delta=1e-3)
    rows = pa.table({"who": range(1000), "key": MADE_OF[kind], "value": [5.0] * 1000})
    grouped = mosha.protect(rows, unit=unit, account=account).group_by("key")
    answer = getattr(grouped, aggregate)("value", between=(0, 10)).release(epsilon=20, delta=1e-6)
    assert len(answer.table["key"]) == 2
