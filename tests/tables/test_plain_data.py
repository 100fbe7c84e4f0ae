"""A question is data: it survives JSON with its meaning and its price, and hostile JSON is refused by a typed error."""

import copy
import json
import math
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

import mosha
from fuzz import _random_plans as plans
from mosha.connect.language.expression import Operator
from mosha.connect.language.plain_data import DEEPEST, read_expression, write_expression
from mosha.core.budget import Budget
from mosha.core.fingerprint import describe
from mosha.core.question import Question as AnyQuestion
from mosha.errors import InvalidParameter, MoshaError, Unbounded
from mosha.tables import (
    Question,
    count,
    distinct,
    interval,
    intervals,
    mean,
    median,
    persons,
    protect,
    public_table,
    quantile,
    standard_deviation,
    variance,
)
from mosha.tables import sum as total
from mosha.tables.aggregates import distinct_sum
from tests.searches import draw_seeds

col, lit, when = mosha.col, mosha.tables.lit, mosha.tables.when
UNIT = mosha.Person("who", at_most=3)
NOON = datetime.fromisoformat("2024-05-01T12:00")


def visits(**options: Any) -> Any:
    rows = {"who": [1, 2], "ward": ["a", "b"], "days": [1.0, 2.0], "code": [1, 2]}
    rows |= {
        "at": [NOON] * 2,
        "on": [date(2024, 5, 1)] * 2,
        "moment": [NOON.replace(tzinfo=UTC)] * 2,
        "new": [True] * 2,
    }
    return protect(pa.table(rows), unit=options.pop("unit", UNIT), **options)


def tables() -> dict[str, Any]:
    stays = protect(pa.table({"who": [1], "ward": ["a"], "cost": [3.5]}), unit=UNIT)
    codes = public_table(pa.table({"code": [1], "label": ["x"]}))
    return {"visits": visits(), "stays": stays, "codes": codes}


def same(first: Any, second: Any, budget: Any) -> None:
    assert first.fingerprint == second.fingerprint
    assert first.measurement(budget).event == second.measurement(budget).event
    given = {"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho}
    assert first.explain(statements=True, **given) == second.explain(statements=True, **given)
    assert (first.title, first.unit, first.account) == (second.title, second.unit, second.account)


def through_json(question: Any, known: Any, *, named: bool = True) -> Any:
    text = json.dumps(question.to_dict(tables=known if named else None), allow_nan=False, sort_keys=True)
    return Question.from_dict(known, json.loads(text))


NUMBER: dict[str, Any] = {"between": (0, 30)}
ASKED = {
    "count": lambda t: t.count(),
    "count of a column": lambda t: t.count("days"),
    "count of an expression": lambda t: t.count(col("days") > 1),
    "count of a text": lambda t: t.count(lit("who")),
    "persons": lambda t: t.persons(),
    "distinct": lambda t: t.distinct("ward"),
    "distinct sum": lambda t: t.aggregate(d=distinct_sum("days", between=(0, 30))),
    "distinct of an expression": lambda t: t.distinct(col("ward").upper()),
    "sum": lambda t: t.sum("days", between=(0, 30)),
    "sum of an expression": lambda t: t.sum(col("days") * 2 + 1, between=(-0.1, 1 / 3)),
    "sum of a column as expression": lambda t: t.sum(col("days"), between=(0, 30)),
    "sum of a constant": lambda t: t.sum(2, between=(0, 30)),
    "bought range": lambda t: t.mean("days", between="automatic"),
    "variance": lambda t: t.variance("days", between=(0, 30)),
    "deviation": lambda t: t.standard_deviation(-col("days"), between=(-30, 0)),
    "covariance": lambda t: t.covariance(["days", col("code") + 1], between=[(0, 30), (0, 9)]),
    "correlation": lambda t: t.correlation(["days", "code"], between=[(0, 30), (0, 9)]),
    "median": lambda t: t.median("days", between=(0, 30)),
    "quantiles": lambda t: t.quantiles("days", [0.25, 1 / 3, 0.999], between=(0, 30), bars="values"),
    "extremes": lambda t: t.aggregate(
        low=mosha.tables.minimum("days", **NUMBER), high=mosha.tables.maximum("days", **NUMBER)
    ),
    "many at once": lambda t: t.aggregate(
        n=count(),
        p=persons(),
        m=mean("days", **NUMBER),
        d=distinct("ward"),
        q=quantile("days", 0.9, **NUMBER),
        s=standard_deviation("days", **NUMBER),
    ),
    "weights": lambda t: t.aggregate(n=count(), d=distinct("ward"), m=median("days", **NUMBER)).weigh(n=3, d=0.1),
    "names of arguments": lambda t: t.aggregate(
        self=count(), keys=total("days", **NUMBER), columns=variance("days", **NUMBER)
    ),
    "groups": lambda t: t.group_by("ward", keys=["a", None, "\u00e9\u78e8"]).count(),
    "two groups": lambda t: t.group_by("ward", "code", keys={"ward": ["a", "b"], "code": [1, None]}).mean(
        "days", **NUMBER
    ),
    "tuples": lambda t: t.group_by("ward", "new", keys=[("a", True), ("b", False)]).count(),
    "computed groups": lambda t: t.group_by(year=col("at").year(), keys=[2023, 2024]).count(),
    "renamed group": lambda t: t.group_by(keys=["a"], station=col("ward")).count(),
    "groups of reals": lambda t: t.group_by("days", keys=[1, 2.5, None]).count(),
    "groups of dates": lambda t: t.group_by("on", keys=[date(2024, 5, 1)]).count(),
    "groups of clocks": lambda t: t.group_by("at", keys=[NOON]).count(),
    "groups of moments": lambda t: t.group_by(
        "moment", keys=[datetime(2024, 5, 1, 14, tzinfo=timezone(timedelta(hours=2)))]
    ).count(),
    "bins": lambda t: t.group_by(bin=col("days").bin(7, 1), keys=[1, 8]).count(),
    "intervals": lambda t: t.group_by(age=interval("days", [0, 18, 65]), keys=intervals([0, 18, 65])).count(),
    "histogram": lambda t: t.histogram({"days": [0, 18, 65.5], "code": [0, 1, 2]}),
    "private keys": lambda t: t.group_by("ward").count(),
    "two private keys": lambda t: t.group_by("ward", year=col("at").year()).sum("days", **NUMBER),
    "top": lambda t: t.top("ward", k=2, candidates=["a", "b", "c"]),
    "top from data": lambda t: t.top("ward", k=2),
    "where": lambda t: t.where((col("days") > 3) & ~col("ward").is_null() | (col("at") < NOON)).count(),
    "many conditions": lambda t: t.where(
        col("code").is_in(1, 2)
        & (col("on") == date(2024, 5, 1))
        & col("new")
        & (col("moment") > NOON.replace(tzinfo=UTC))
        & (col("ward") != "%_\\")
    ).count(),
    "compute": lambda t: t.compute(double=col("days") * 2, more=col("double") + 1).sum("more", between=(0, 99)),
    "odd names": lambda t: t.compute_column("self", col("days")).compute(keys=col("days")).sum("self", **NUMBER),
    "case": lambda t: t.compute(
        age=when(col("days") < 18, "minor").when(col("days") < 65, "adult").else_("old")
    ).distinct("age"),
    "options": lambda t: t.compute(
        a=col("ward").substring(1, 3).ilike("a%"),
        b=col("days").round(2),
        c=col("at").truncate("month"),
        d=col("days").cast("integer"),
        e=col("days").clamp(0, 5),
    ).distinct("e"),
    "null": lambda t: t.compute(n=mosha.connect.language.expression.null("text")).count("n"),
}
BUDGETS = [Budget(epsilon=1.0, delta=1e-6), Budget(rho=0.5, delta=1e-6)]


@pytest.mark.parametrize("kind", ASKED)
def test_a_question_survives_json_with_its_fingerprint_price_and_plan(kind: Any) -> None:
    table = visits()
    question = ASKED[kind](table)
    again = Question.from_dict(table, json.loads(json.dumps(question.to_dict(), allow_nan=False, sort_keys=True)))
    for budget in BUDGETS:
        same(question, again, budget)
    assert again.to_dict() == question.to_dict()


JOINED = {
    "public": lambda t: t["visits"].join_public(t["codes"], on="code", at_most=2, how="left").distinct("label"),
    "public under another name": lambda t: (
        t["visits"].join_public(t["codes"].where(col("label") == "x"), on={"code": "code"}).count()
    ),
    "persons": lambda t: t["visits"].join(t["stays"], also={"ward": "ward"}, how="left").sum("cost", between=(0, 9)),
    "persons with steps": lambda t: (
        t["visits"]
        .where(col("new"))
        .join(t["stays"].compute(twice=col("cost") * 2), also={"ward": "ward"})
        .where(col("twice") > 1)
        .group_by("ward", keys=["a"])
        .count()
    ),
}


@pytest.mark.parametrize("kind", JOINED)
@pytest.mark.parametrize("named", [True, False], ids=["named", "numbered"])
def test_joins_survive_json(kind: Any, named: bool) -> None:
    known = tables()
    question = JOINED[kind](known)
    if not named:
        other = known["codes"] if "public" in kind else known["stays"]
        known = {"table": known["visits"], "table_2": other}
    same(question, through_json(question, known, named=named), BUDGETS[0])


def test_a_table_with_steps_of_its_own_is_one_table_and_its_steps_stay_with_its_owner() -> None:
    narrowed = visits().where(col("days") < 10)
    question = narrowed.count()
    data = question.to_dict(tables={"short": narrowed})
    assert data["table"] == "short"
    assert data["steps"] == []
    same(question, Question.from_dict({"short": narrowed}, data), BUDGETS[0])


def test_declared_ranges_and_keys_may_be_left_out() -> None:
    table = visits(schema={"columns": {"days": {"between": [0, 30]}, "ward": {"keys": ["a", "b"]}}})
    data = {
        "question": "tables",
        "version": 1,
        "table": "table",
        "group_by": ["ward"],
        "aggregates": [{"name": "mean", "kind": "mean", "column": "days"}],
    }
    same(Question.from_dict(table, data), table.group_by("ward").mean("days"), BUDGETS[0])
    open_keys = Question.from_dict(table, data | {"keys": "from_data"})
    assert open_keys.private_keys
    with pytest.raises(Unbounded):
        Question.from_dict(visits(), data | {"keys": "from_data"})


def random_question(seed: Any) -> tuple[Any, ...]:
    rows, more = plans.neighbors(random.Random(seed), mosha.Row())[0]
    unit = random.Random(seed).choice(plans.UNITS)
    known = {
        name: protect(plans.arrow(c, r), unit=unit)
        for name, c, r in (("rows", plans.COLUMNS, rows), ("beside", plans.BESIDE, more))
    }
    known["public"] = public_table(plans.arrow(plans.PUBLIC, plans.PUBLIC_ROWS))  # type: ignore[assignment]
    beside = known["beside"] if isinstance(unit, mosha.Person) else None
    return plans.Planner(seed).question(known["rows"], beside, known["public"]), known


def test_random_questions_survive_json() -> None:
    left = 150
    for seed in draw_seeds("questions that survive JSON"):
        try:
            question, known = random_question(seed)
        except MoshaError:
            continue  # a question that is refused
        left -= 1
        again = through_json(question, known)
        assert again.fingerprint == question.fingerprint, seed
        assert describe(again.relation) == describe(question.relation), seed
        if not left:
            return


SQL = [
    "SELECT ward, COUNT(*) AS n, AVG(CLAMP(days, 0, 30)) AS m FROM visits WHERE ward IN ('a', 'b') GROUP BY ward",
    (
        "SELECT COUNT(DISTINCT who) AS p, MEDIAN(CLAMP(days, 0, 30)) AS q, "
        "CORR(CLAMP(days, 0, 30), CLAMP(code, 0, 9)) AS r FROM visits"
    ),
    (
        "SELECT SUM(CLAMP(cost, 0, 9)) FILTER (WHERE new) AS s FROM visits "
        "JOIN stays USING (who, ward) WHERE days > 1 AND NOT new"
    ),
]


@pytest.mark.parametrize("text", SQL)
def test_what_sql_asks_survives_json(text: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    known, asked = tables(), []
    made = Question.explain
    monkeypatch.setattr(Question, "explain", lambda self, **budget: asked.append(self) or made(self, **budget))
    mosha.sql.explain(text, epsilon=1, delta=1e-6, tables=known)
    monkeypatch.undo()
    assert asked
    for question in asked:
        same(question, through_json(question, known), BUDGETS[0])


def test_an_answer_is_data_too() -> None:
    account = mosha.Ledger.memory().account("a", unit=mosha.Person("who"), epsilon=100)
    table = visits(account=account)
    answer = table.group_by("on", keys=[date(2024, 5, 1)]).mean("days", between=(0, 30)).release(epsilon=1)
    data = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    assert data["columns"] == {"on": ["2024-05-01"], "mean": answer.table["mean"]}
    assert data["errors"]["mean"] == answer.error(0.95)["mean"]
    assert data["receipt"]["cost"] == answer.receipt.cost
    assert isinstance(table.count(), AnyQuestion)


GOOD = {
    "question": "tables",
    "version": 1,
    "table": "visits",
    "steps": [
        {"where": {"operator": ">", "of": [{"column": "days"}, 3]}},
        {
            "compute": "c",
            "as": {
                "case": [[{"column": "new"}, {"operator": "round", "of": [{"column": "days"}], "options": [1]}]],
                "else": 1,
            },
        },
        {"join_public": {"table": "codes", "steps": []}, "on": [["code", "code"]], "at_most": 2, "how": "left"},
        {
            "join": {"table": "stays", "steps": [{"where": {"operator": "in", "of": [{"column": "cost"}, 3.5]}}]},
            "also": [["ward", "ward"]],
        },
        {"where": {"operator": "<", "of": [{"column": "on"}, {"date": "2024-01-01"}]}},
    ],
    "group_by": ["ward", {"name": "y", "of": {"operator": "year", "of": [{"column": "at"}]}}],
    "keys": [["a", 2024], ["b", None]],
    "aggregates": [
        {"name": "n", "kind": "count"},
        {"name": "m", "kind": "mean", "column": "days", "between": [0, 30]},
        {
            "name": "q",
            "kind": "quantile",
            "column": {"column": "days"},
            "at": 0.5,
            "between": "automatic",
            "bars": "values",
        },
        {"name": "r", "kind": "covariance", "columns": ["days", "code"], "between": [[0, 30], [0, 9]]},
    ],
    "weights": {"n": 2.0},
}


def deep(levels: Any) -> Any:
    found = {"column": "new"}
    for _ in range(levels):
        found = {"operator": "not", "of": [found]}  # type: ignore[dict-item]
    return found


POISON = [
    None,
    math.nan,
    math.inf,
    -math.inf,
    10**400,
    -(2**63) - 1,
    1e308,
    -1,
    0,
    True,
    "",
    "x" * 100_000,
    "\x00",
    "\ud800",
    [],
    {},
    [[]],
    {"column": "nobody"},
    {"operator": "drop"},
    {1: 2},
    {"where": 1},
    object(),
    b"x",
    "'; DROP TABLE visits; --",
    {"operator": "substring", "of": ["a"]},
    {"operator": "round", "of": [1], "options": []},
    {"null": "void"},
    {"operator": "grid", "of": [1], "options": [math.nan, 1, 1]},
    {"date": "yesterday"},
    {"instant": "2024-01-01"},
    {"timestamp": "2024-01-01T00:00:00+00:00"},
    {"value": {}},
    {"case": []},
    {"case": [[1]]},
    {"operator": "cast", "of": [1], "options": ["object"]},
    {"operator": "in", "of": [1, {"column": "days"}]},
    {"operator": "like", "of": ["a"], "options": ["%\\"]},
    {"operator": "bin", "of": [1, 0, 0]},
]


def places(data: Any, at: Any = ()) -> Iterator[Any]:
    """Every place in nested data."""
    yield at
    for name in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield from places(data[name], (*at, name))


def put(data: Any, at: Any, value: Any) -> Any:
    if not at:
        return value
    changed = copy.deepcopy(data)
    inner = changed
    for name in at[:-1]:
        inner = inner[name]
    inner[at[-1]] = value
    return changed


def test_the_example_is_a_question() -> None:
    known = tables()
    question = Question.from_dict(known, GOOD)
    same(question, through_json(question, known), BUDGETS[0])


def read(known: Any, data: Any) -> bool:
    """Whether it was read; only typed errors pass."""
    try:
        Question.from_dict(known, data).explain(epsilon=1, delta=1e-6)
    except MoshaError as refused:
        problem = refused
    else:
        return True
    assert len(str(problem)) < 2_000
    json.dumps(problem.to_dict())
    return False


def test_whatever_stands_in_a_place_is_read_or_refused_by_a_typed_error() -> None:
    known = tables()
    pairs = [(at, poison) for at in places(GOOD) for poison in POISON]
    found = [read(known, put(GOOD, at, poison)) for at, poison in random.sample(pairs, 900)]
    assert found.count(False) > 20 * found.count(True) > 0


def test_a_field_that_nobody_reads_is_refused_in_every_object() -> None:
    known = tables()
    for at in places(GOOD):
        inner = GOOD
        for name in at:
            inner = inner[name]  # type: ignore[assignment]
        if isinstance(inner, dict):
            with pytest.raises(MoshaError):
                Question.from_dict(known, put(GOOD, (*at, "unit"), "Row"))


@pytest.mark.parametrize("levels", [DEEPEST + 1, 5_000, 100_000])
def test_data_that_are_nested_too_deeply_are_refused(levels: Any) -> None:
    with pytest.raises(InvalidParameter) as problem:
        Question.from_dict(tables(), put(GOOD, ("steps", 0, "where"), deep(levels)))
    assert problem.value.code == "connect.data_too_deep"


def test_joins_that_are_nested_too_deeply_are_refused() -> None:
    inner = {"table": "stays"}
    for _ in range(5_000):
        inner = {"table": "stays", "steps": [{"join": inner}]}  # type: ignore[dict-item]
    with pytest.raises(MoshaError):
        Question.from_dict(tables(), GOOD | inner)


def test_data_with_too_many_parts_are_refused() -> None:
    many = {"operator": "in", "of": [{"column": "code"}, *range(60_000)]}
    with pytest.raises(InvalidParameter) as problem:
        Question.from_dict(tables(), GOOD | {"steps": [{"where": many}] * 6})
    assert problem.value.code == "connect.data_too_large"


def test_a_question_cannot_choose_its_unit_its_account_or_a_table_it_was_not_given() -> None:
    data = visits().count().to_dict()
    for field in ("unit", "account", "declared", "relation"):
        with pytest.raises(InvalidParameter) as problem:
            Question.from_dict(visits(), data | {field: "x"})
        assert problem.value.code == "connect.data_field_unknown"
    with pytest.raises(InvalidParameter) as problem:
        Question.from_dict(visits(), data | {"table": "/etc/passwd"})
    assert problem.value.code == "tables.data_no_table"


def test_the_largest_groups_are_found_by_a_plain_count_and_nothing_else() -> None:
    data = visits().group_by("ward", keys=["a", "b"]).mean("days", between=(0, 30)).to_dict()
    with pytest.raises(InvalidParameter) as problem:
        Question.from_dict(visits(), data | {"top": 1})
    assert problem.value.code == "tables.top_counts"


def test_every_operator_has_a_plain_form() -> None:
    for operator in Operator:
        data = {"operator": str(operator), "of": [{"column": "x"}], "options": []}
        try:
            expression = read_expression(data)
        except InvalidParameter:
            continue  # it takes more than one argument, or options
        assert write_expression(expression) == {"operator": str(operator), "of": [{"column": "x"}]}
