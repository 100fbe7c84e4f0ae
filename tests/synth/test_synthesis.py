"""`Table.synthesize`: what leaves, what follows from it, and what is refused."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mosha
from mosha import col
from mosha.core.language import say
from mosha.errors import InvalidParameter, MoshaError
from mosha.noise import SeededRandom
from mosha.synth.modelling.stages import measure_stages
from mosha.tables import Budget
from tests.synth.conftest import make_rows

WORDS: dict[str, Any] = {
    "keys": {"sex": ["F", "M"], "job": [0, 1, 2]},
    "between": {"income": (0, 100)},
    "bins": {"income": 10},
}
BUDGET: dict[str, Any] = {"epsilon": 3, "delta": 1e-9}


@pytest.fixture
def table(rows: Any, account: Any) -> Any:
    return mosha.protect(rows, unit=mosha.Row(), account=account)


@pytest.fixture
def made(table: Any) -> Any:
    return table.synthesize(**WORDS).release(**BUDGET)


def replay(question: Any, seed: Any, source: Any = None, budget: Any = None) -> Any:
    """What leaves the private side, with noise that is made again."""
    return question.measurement_for(**(budget or BUDGET)).step(None, source, None, SeededRandom(seed))[0]


def test_rows_have_the_declared_values(made: Any) -> None:
    sampled = made.sample(500)
    assert set(sampled) == {"sex", "job", "income"}
    assert set(sampled["sex"]) <= {"F", "M", None}
    assert set(sampled["job"]) <= {0, 1, 2, None}
    assert all(x is None or 0 <= x < 100 for x in sampled["income"])


def test_dependence_survives(made: Any, rows: Any) -> None:
    found = made.count(sex="F", job=2)
    truth = sum(s == "F" and j == 2 for s, j in zip(rows["sex"].to_pylist(), rows["job"].to_pylist(), strict=True))
    assert truth == 0
    assert abs(found.value) <= found.error * 4
    modelled = made.model.marginal([0, 1])[0, 2] * made.model.total
    assert modelled < 200  # independence would give more than 300


def test_given_fixes_a_column_and_moves_the_others(made: Any) -> None:
    women = made.given(sex="F").sample(400)
    assert set(women["sex"]) == {"F"}
    assert women["job"].count(2) < 80
    rich = made.given(income=(60, 100)).sample(100)
    assert all(x >= 60 for x in rich["income"])


def test_the_number_of_rows_is_noisy_or_the_callers(table: Any, made: Any) -> None:
    assert made.rows != 0
    assert table.synthesize(**WORDS, rows=77).release(**BUDGET).rows == 77


def test_frames_and_files_are_labelled(made: Any, tmp_path: Path) -> None:
    assert len(made.to_pandas()) == len(made.to_polars()) == made.to_arrow().num_rows == made.rows
    csv = made.save(tmp_path / "made.csv")
    assert csv.read_text().startswith("# synthetic")
    label = json.loads((tmp_path / "made.synthetic.json").read_text())
    assert label["synthetic"] is True
    parquet = made.save(tmp_path / "made2.parquet")
    assert b"mosha.synthetic" in pq.read_schema(parquet).metadata
    with pytest.raises(InvalidParameter):
        made.save(tmp_path / "made.xlsx")


def test_the_same_key_finds_the_same_table(table: Any) -> None:
    question = table.synthesize(**WORDS)
    first, again = (question.release(**BUDGET, key="table") for _ in range(2))
    assert first.table == again.table
    assert first.receipt.spent == again.receipt.spent


def test_the_same_noise_makes_the_same_table(table: Any) -> None:
    question = table.synthesize(**WORDS)
    noises = question.noises(Budget(**BUDGET))
    one, two = (question.read(replay(question, 5), noises) for _ in range(2))
    assert one.table == two.table


def test_a_question_about_the_table_is_answered_by_the_model(table: Any, made: Any) -> None:
    answer = made.answer(table.group_by("sex", keys=["F", "M"]).count())
    assert [row["sex"] for row in answer] == ["F", "M"]
    assert all(row["count"].grade == "modelled" for row in answer)
    assert made.answer({"sex": "F"}).grade == "certified"
    assert made.answer({"sex": "F", "job": 1, "income": (0, 50)}).grade == "modelled"
    assert made.answer(table.marginals(ways=2, **WORDS))["sex", "job"].shape == (3, 4)


def test_reports_come_from_the_second_look(made: Any) -> None:
    report = made.report()
    assert 0 <= report.error <= report.at_most
    assert "95%" in str(report)
    assert report.plot() is not None


def test_the_fit_never_sees_the_second_look(table: Any) -> None:
    question = table.synthesize(**WORDS)
    noises = question.noises(Budget(**BUDGET))
    value = replay(question, 7)
    other = value | {"look": value["look"] + 1000.0}
    one, two = question.read(value, noises), question.read(other, noises)
    assert one.table == two.table
    assert one.report().error != two.report().error


def test_nothing_but_residuals_leaves(table: Any) -> None:
    """Every released array is a residual: along every axis of every term it sums to zero; groups follow from them."""
    question = table.synthesize(**WORDS)
    noises = question.noises(Budget(**BUDGET))
    value = replay(question, 3)
    assert set(value) == {"one-ways", "distances", "pairs", "fine", "look", "method", "designs"}
    made = question.read(value, noises)
    for measured in (made.measured, made.look):
        for term, residual in measured.residuals.items():
            for axis in range(len(term)):
                np.testing.assert_allclose(residual.sum(axis=axis), 0, atol=1e-6)


def test_groups_and_sizes_do_not_follow_the_data_but_for_what_was_released(rows: Any, account: Any) -> None:
    """Neighbors, the noise replayed and the first stage made equal: everything public is equal."""
    table = mosha.protect(rows, unit=mosha.Row(), account=account)
    question = table.synthesize(**WORDS)
    empty = mosha.protect(rows.slice(0, 0), unit=mosha.Row()).synthesize(**WORDS)
    for other in (question, empty):
        assert other.measurement_for(**BUDGET).event == question.measurement_for(**BUDGET).event
        assert [c.labels for c in other.columns] == [c.labels for c in question.columns]
    one, two = replay(question, 11), replay(question, 11)
    assert all(
        (a == b).all()
        for a, b in zip(one["designs"]["pairs"]["groups"], two["designs"]["pairs"]["groups"], strict=True)
    )


def test_derived_columns_are_computed_anew(table: Any) -> None:
    made = table.synthesize(**WORDS, derived={"twice": col("job") * 2}).release(**BUDGET)
    found = made.sample(200)
    assert all(t is None if j is None else t == 2 * j for j, t in zip(found["job"], found["twice"], strict=True))


def test_rows_that_can_never_be_are_not_drawn(table: Any) -> None:
    made = table.synthesize(**WORDS, never=[(col("sex") == "F") & (col("job") == 2)]).release(**BUDGET)
    found = made.sample(2000)
    assert not any(s == "F" and j == 2 for s, j in zip(found["sex"], found["job"], strict=True))


CONTRADICTIONS = {
    "no value is left": [col("sex") == "F", col("sex") != "F", col("sex").is_null()],
    "always true": [col("job") == col("job"), col("job").is_null()],
    "between two columns": [(col("sex") == "F") | (col("job") >= 0), (col("sex") != "F") | col("job").is_null(),
                            col("sex").is_null()],
}  # fmt: skip


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictory_conditions_are_refused_before_anything_is_paid(name: Any, table: Any) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        table.synthesize(**WORDS, never=CONTRADICTIONS[name])
    assert refusal.value.code == "synth.contradictory_conditions"
    assert table.account.spent == 0


@pytest.mark.parametrize("words", [{"never": [col("nobody") > 3]}, {"derived": {"x": col("nobody") + 1}},
                                   {"derived": {"x": col("sex") + 1}}, {"never": [col("job") + 1]}])  # fmt: skip
def test_what_cannot_be_computed_is_refused_before_anything_is_paid(words: Any, table: Any) -> None:
    with pytest.raises(MoshaError):
        table.synthesize(**WORDS, **words)
    assert table.account.spent == 0


def test_persons_share_one_weight(people: Any) -> None:
    table = mosha.protect(make_rows(), unit=mosha.Person("who"), account=people)
    made = table.synthesize(**WORDS).release(**BUDGET)
    total = made.count()
    assert abs(total.value - 1000) <= 4 * total.error
    assert "who" not in made.sample(10)


def make_visits(count: int = 900) -> Any:
    """Persons with one, two or three rows in turn: 300 of each."""
    who = [f"p{i}" for i in range(count) for _ in range(i % 3 + 1)]
    return pa.table({"who": who, "sex": ["F" if int(name[1:]) % 3 else "M" for name in who]})


def test_the_number_of_rows_a_person_is_a_column_of_its_own(people: Any) -> None:
    """Persons are counted, not rows; more rows than the limit are the last cell. False alarms: below 1e-9 (6.2 sd)."""
    table = mosha.protect(make_visits(), unit=mosha.Person("who"), account=people)
    for most, expected in ((3, [300, 300, 300]), (2, [300, 600])):
        question = table.synthesize(keys={"sex": ["F", "M"]}, nulls=[], rows_per_person=most)
        made = question.release(**BUDGET)
        for number, truth in enumerate(expected, 1):
            found = made.count(rows_per_person=number)
            assert found.grade == "certified"
            assert abs(found.value - truth) <= 6.2 / 1.96 * found.error
        sample = made.sample(500)
        assert set(sample["rows_per_person"]) <= set(range(1, most + 1))
        follows = [(s == "M") == (n == 1) for s, n in zip(sample["sex"], sample["rows_per_person"], strict=True)]
        assert sum(follows) > 400


def test_persons_who_are_not_protected_have_no_number_of_rows(table: Any) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        table.synthesize(**WORDS, rows_per_person=3)
    assert refusal.value.code == "synth.rows_per_person_of_rows"
    assert table.account.spent == 0


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "many", 10**9])
def test_a_number_of_rows_that_is_none_is_refused(wrong: Any, people: Any) -> None:
    table = mosha.protect(make_visits(9), unit=mosha.Person("who"), account=people)
    with pytest.raises(MoshaError):
        table.synthesize(keys={"sex": ["F", "M"]}, rows_per_person=wrong)
    assert people.spent == 0


@pytest.mark.parametrize("method", ["independent", "tree", "selected pairs", "all pairs"])
def test_reports_name_every_method_in_both_languages(method: str, table: Any) -> None:
    made = table.synthesize(**WORDS, method=method).release(epsilon=1, delta=1e-9)
    assert method in str(made.report())
    assert say(f"synth.method_{method.replace(' ', '_')}", "zh") != method


def test_dates_are_drawn_within_their_range(account: Any) -> None:
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i % 60) for i in range(600)]
    table = mosha.protect(pa.table({"day": days, "x": [i % 2 for i in range(600)]}), unit=mosha.Row(), account=account)
    span = (dt.date(2024, 1, 1), dt.date(2024, 2, 29))
    made = table.synthesize(between={"day": span}, keys={"x": [0, 1]}).release(**BUDGET)
    assert all(day is None or span[0] <= day <= span[1] for day in made.sample(300)["day"])


@pytest.mark.parametrize("rows", [0, 1])
def test_empty_tables_and_single_rows_are_answered(rows: int, account: Any) -> None:
    table = mosha.protect(make_rows(2000).slice(0, rows), unit=mosha.Row(), account=account)
    made = table.synthesize(**WORDS).release(epsilon=1, delta=1e-9)
    assert len(made.sample(5)["sex"]) == 5
    assert made.report().error >= 0


def test_columns_of_missing_values_alone_are_answered(account: Any) -> None:
    nothing = pa.table({"a": pa.array([None] * 500, pa.string()), "b": pa.array([1] * 500)})
    table = mosha.protect(nothing, unit=mosha.Row(), account=account)
    made = table.synthesize(keys={"a": ["x", "y"], "b": [0, 1]}).release(epsilon=5, delta=1e-9)
    assert made.sample(100)["a"].count(None) > 80


BAD = {
    "no range": ({"columns": ["income"]}, "synth.no_range"),
    "no keys": ({"columns": ["sex"]}, "synth.no_keys"),
    "unknown method": ({**WORDS, "method": "magic"}, "synth.unknown_method"),
    "not a condition": ({**WORDS, "never": ["sex"]}, "synth.not_a_condition"),
    "not an expression": ({**WORDS, "derived": {"x": 3}}, "synth.not_an_expression"),
    "nothing": ({"columns": []}, "synth.no_columns"),
    "a billion keys": ({"keys": {"job": range(10**9)}}, "synth.too_many_cells"),
    "a billion bins": ({"between": {"income": (0, 1)}, "bins": {"income": 10**9}}, "synth.bins_not_counted"),
    "a column that is not there": ({"columns": ["nobody"]}, "connect.no_column"),
    "a range that is no number": ({"between": {"income": (float("nan"), 1)}}, "synth.not_a_range"),
    "a range without end": ({"between": {"income": (0, float("inf"))}}, "synth.not_a_range"),
    "an empty range": ({"between": {"income": (5, 5)}}, "synth.range_reversed"),
    "a range of text": ({"between": {"sex": (0, 1)}}, "synth.range_of_text"),
    "no key": ({"keys": {"sex": []}}, "synth.keys_empty"),
    "keys as one text": ({"keys": {"sex": "FM"}}, "synth.keys_not_listed"),
    "keys that cannot be compared": ({"keys": {"sex": [{"a": 1}]}}, "synth.keys_not_listed"),
    "keys of no column": ({"keys": 5}, "synth.not_by_column"),
    "a hierarchy of nothing": ({**WORDS, "hierarchy": {"job": 5}}, "synth.not_by_column"),
    "never, but what": ({**WORDS, "never": 5}, "synth.not_a_condition"),
    "no rows": ({**WORDS, "rows": 0}, None),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_questions_are_refused_before_anything_is_paid(name: Any, table: Any) -> None:
    words, code = BAD[name]
    with pytest.raises(MoshaError) as refusal:
        table.synthesize(**words).release(**BUDGET)
    assert code is None or refusal.value.code == code
    assert table.account.spent == 0


def test_forecasts_need_no_data_and_no_account(rows: Any) -> None:
    question = mosha.protect(rows, unit=mosha.Row()).synthesize(**WORDS)
    forecast = question.forecast(**BUDGET, rows=2000)
    assert forecast["method"] == "all pairs"
    assert forecast["cell of a column"]["sex"] > 0
    assert question.forecast(epsilon=0.01, delta=1e-9, rows=50)["method"] == "independent"
    with pytest.raises(InvalidParameter, match="account"):
        question.release(**BUDGET)


@pytest.mark.parametrize("method", ["independent", "tree", "selected pairs", "all pairs"])
def test_a_method_that_is_asked_for_is_the_one_that_is_used(method: str, table: Any) -> None:
    made = table.synthesize(**WORDS, method=method).release(**BUDGET)
    assert made.method == method
    assert len(made.sample(20)["sex"]) == 20


@pytest.mark.parametrize("method", ["automatic", "selected pairs", "all pairs"])
def test_pairs_with_a_target_are_measured_more_accurately_at_the_same_price(method: str, table: Any) -> None:
    plain, aimed = (table.synthesize(**WORDS, method=method, target=target) for target in (None, "job"))
    prices = [question.measurement_for(**BUDGET) for question in (plain, aimed)]
    assert prices[0].event == prices[1].event
    assert prices[0].question != prices[1].question
    made = aimed.release(**BUDGET)
    place = len(made.columns) + [column.name for column in made.columns].index("job")
    pairs = [term for term in made.measured.deviations if len(term) == 2 and term[0][0] < 2 * len(made.columns)]
    with_it = [term for term in pairs if place in {term[0][0], term[1][0]}]
    assert len(with_it) == len(made.columns) - 1
    sizes = {term: made.measured.residuals[term].size for term in pairs}
    shares = {term: sizes[term] ** (1 / 3) * made.measured.deviations[term] for term in pairs}
    others = [shares[term] for term in pairs if term not in with_it]
    assert not others or max(shares[term] for term in with_it) < min(others)


def test_an_unknown_target_is_refused(table: Any) -> None:
    with pytest.raises(InvalidParameter) as caught:
        table.synthesize(**WORDS, target="nothing")
    assert caught.value.code == "synth.unknown_column"


def test_all_methods_cost_the_same(table: Any) -> None:
    spent = []
    for method in ("automatic", "independent", "tree", "selected pairs", "all pairs"):
        before = table.account.spent
        table.synthesize(**WORDS, method=method).release(epsilon=1, delta=1e-9)
        spent.append(table.account.spent - before)
    assert max(spent) <= 1 + 1e-9


def test_certified_bars_hold_in_95_of_100_releases(table: Any, rows: Any) -> None:
    """200 releases, one query on one column and one on two: false alarms below 1e-9 (binomial), power by half bars."""
    question = table.synthesize(**WORDS)
    noises = question.noises(Budget(**BUDGET))
    sex, job = rows["sex"].to_pylist(), rows["job"].to_pylist()
    truths = {
        ("sex",): sex.count("F"),
        ("sex", "job"): sum(s == "F" and j == 1 for s, j in zip(sex, job, strict=True)),
    }
    hits, narrow = dict.fromkeys(truths, 0), 0
    counted = question.count(question.relation)
    for _ in range(200):
        released = measure_stages(question.columns, counted, noises.stages, question.method, mosha.noise.secure())
        made = question.read(released, noises)
        for names, truth in truths.items():
            found = made.count(**{name: {"sex": "F", "job": 1}[name] for name in names})
            assert found.grade == "certified"
            hits[names] += abs(found.value - truth) <= found.error
            narrow += abs(found.value - truth) <= found.error / 2
    assert all(count >= 167 for count in hits.values())  # P(Binomial(200, 0.95) < 167) < 1e-9
    assert narrow < 2 * 167
