"""The look before payment: what would fail whatever the rows are, is refused while nothing is spent."""

import threading

import pyarrow as pa
import pyarrow.parquet
import pytest

import mosha
from mosha import col, errors
from mosha.connect.engines.duckdb import DuckDB
from mosha.connect.engines.source import Engine
from mosha.tables.look import look
from mosha.tables.parts import sums

ROWS = {"id": [1, 2, 3, 4] * 5, "days": [1, 2] * 10, "cost": [1.0, 3.0] * 10, "ward": ["A", "B"] * 10}


def account(unit=None):
    return mosha.Ledger.memory().account("visits", unit=unit or mosha.Row(), epsilon=9)


@pytest.fixture
def visits():
    return mosha.protect(pa.table(ROWS), unit=mosha.Row(), account=account(), engine=DuckDB())


def refused(question, *kinds, **budget):
    """What a release says that is refused: unpaid, and no failure."""
    with pytest.raises(kinds or errors.MoshaError) as told:
        question().release(**(budget or {"epsilon": 1}))
    assert "Nothing was spent" in str(told.value)
    return told.value


def nested(levels):
    expression = col("cost")
    for _ in range(levels):
        expression = expression * 2 + 1
    return expression


@pytest.mark.parametrize("levels", [8, 9, 10, 11, 12])
def test_expressions_that_are_too_deep_with_what_is_put_around_them_are_refused_unpaid(visits, levels):
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
def test_a_chain_of_many_filters_is_answered_or_refused_unpaid(visits, filters):
    table = visits
    try:
        for place in range(filters):
            table = table.where(col("days") > place - 9000)
        table.count().release(epsilon=1)
    except errors.InvalidParameter as told:
        assert "Nothing was spent" in str(told)  # noqa: PT017
        assert visits.account.spent == 0
    assert visits.account.failures == 0


def test_thousands_of_conditions_in_one_are_refused_unpaid(visits):
    def ask():
        many = col("days") > 0
        for place in range(3000):
            many = many & (col("days") > -place)
        visits.where(many).count().release(epsilon=1)

    with pytest.raises(errors.MoshaError):
        ask()
    assert visits.account.spent == visits.account.failures == 0


def test_no_depth_of_calls_lets_a_question_through_the_look_that_fails_once_it_is_paid(visits):
    """A paid step runs inside of more calls than the look did, and the few between the two were paid for nothing."""
    table = visits
    for place in range(100):
        table = table.where(col("days") > place - 9000)
    question = table.count()

    def is_asked(calls):
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


def test_a_limit_that_no_sum_can_hold_is_refused_unpaid():
    unit = mosha.Person("id", at_most=10**16)
    table = mosha.protect(pa.table(ROWS), unit=unit, account=account(unit))
    with pytest.raises(errors.MoshaError):
        table.mean("cost", between=(0, 9)).release(epsilon=1)
    assert table.account.spent == table.account.failures == 0


def test_combinations_of_keys_are_counted_before_they_are_made(visits):
    lists = {name: list(range(120)) for name in ("days", "id", "cost")}
    with pytest.raises(errors.InvalidParameter, match="1728000 groups"):
        visits.group_by("days", "id", "cost", keys=lists)


def test_a_file_that_went_away_is_told_before_payment_and_an_answer_is_found_without_it(tmp_path):
    place = tmp_path / "visits.parquet"
    pyarrow.parquet.write_table(pa.table(ROWS), place)
    table = mosha.protect(place, unit=mosha.Row(), account=account(), engine=DuckDB())
    first = table.count().release(epsilon=1, key="k")
    place.unlink()
    assert "went away" in str(refused(table.count, errors.DataError))
    assert table.count().release(epsilon=1, key="k").columns == first.columns
    assert (table.account.spent, table.account.failures) == (1.0, 0)


def test_a_column_that_changed_its_type_is_told_before_payment(tmp_path):
    place = tmp_path / "visits.parquet"
    pyarrow.parquet.write_table(pa.table(ROWS), place)
    table = mosha.protect(place, unit=mosha.Row(), account=account(), engine=DuckDB())
    pyarrow.parquet.write_table(pa.table({"other": [1]}), place)
    refused(lambda: table.mean("cost", between=(0, 9)), errors.DataError)
    assert (table.account.spent, table.account.failures) == (0.0, 0)


def test_the_look_reads_no_row_and_plans_the_statement_that_is_run(visits, monkeypatch):
    engine = visits.relation.sources[0].engine
    planned, ran = [], []
    make, run = engine._plans.make, engine._plans.run
    monkeypatch.setattr(
        engine._plans, "make", lambda s, **o: (planned.append(s), ran and pytest.fail("late"), make(s, **o))
    )

    def running(statement):
        assert statement in engine._plans._names
        ran.append(statement)
        return run(statement)

    monkeypatch.setattr(engine._plans, "run", running)
    visits.group_by("ward", keys=["A", "B"]).mean("cost", between=(0, 9)).release(epsilon=1)
    assert planned == ran
    assert len(planned) == 1


def test_every_part_of_a_release_is_looked_at(visits, monkeypatch):
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
    assert looks[: len(asked)] == asked  # what follows tries the ends of bounds and ranges that are to be bought
    assert len(looks) >= 5


def test_a_deadline_in_the_look_is_unpaid_and_one_in_the_answer_counts_and_can_be_retried(visits, monkeypatch):
    engine = visits.relation.sources[0].engine
    slow = "SELECT count(*) AS s0 FROM range(100000000000) a, range(1000000) b"
    run = engine._plans.run
    with monkeypatch.context() as patch:
        patch.setattr(engine._plans, "run", lambda statement: run(slow))
        with pytest.raises(errors.DeadlineExceeded, match="same key asks once more"):
            visits.count().release(epsilon=1, key="k", deadline=1.5)
    assert (visits.account.spent, visits.account.failures) == (1.0, 1)
    assert visits.count().release(epsilon=1, key="k", deadline=60).columns
    with monkeypatch.context() as patch:
        patch.setattr(engine._plans, "make", lambda statement, keep: run(slow))
        with pytest.raises(errors.DeadlineExceeded, match="Nothing was spent"):
            visits.count().release(epsilon=1, deadline=1.5)
    assert (visits.account.spent, visits.account.failures) == (1.0, 1)
    for wrong in (0, -1, "soon", float("nan")):
        with pytest.raises(errors.InvalidParameter):
            visits.count().release(epsilon=1, deadline=wrong)


def test_a_question_that_is_broken_off_lets_others_go_on(visits, monkeypatch):
    engine = visits.relation.sources[0].engine
    run, told = engine._plans.run, []
    slow = "SELECT count(*) AS s0 FROM range(100000000000) a, range(1000000) b"
    monkeypatch.setattr(engine._plans, "run", lambda s: run(slow if threading.current_thread().name == "slow" else s))

    def ask():
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
def test_bounds_and_ranges_that_are_to_be_bought_are_tried_at_both_ends(monkeypatch, grouped):
    """A look that knew only its own stand-ins planned another statement than the one that is run."""
    unit = mosha.Person("id")
    table = mosha.protect(pa.table(ROWS), unit=unit)
    tried, ask = [], sums.bound_question

    def notice(*arguments, norm, **named):
        tried.append((norm, max(value.magnitude for value in arguments[3].values())))
        return ask(*arguments, norm=norm, **named)

    monkeypatch.setattr(sums, "bound_question", notice)
    asked = {"s": mosha.tables.sum("cost", between="automatic"), "n": mosha.tables.count()}
    question = table.group_by("ward").aggregate(**asked) if grouped else table.aggregate(**asked)
    plan = question.plan_release(mosha.tables.Budget(epsilon=1, delta=1e-6))
    look(plan.frame, plan.selection, plan.parts)
    assert min(norm for norm, _ in tried) == 1
    assert max(norm for norm, _ in tried) == 2**20
    assert len({size for _, size in tried}) > 1
