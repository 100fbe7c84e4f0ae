"""Reports: one budget for several questions, one payment, the same answers again, and a price that holds."""

import json
import math
import random
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

import pytest

import mosha
from mosha import errors
from mosha.accounting.measures import pure
from mosha.cli import main
from mosha.connect.engines.duckdb import DuckDB
from mosha.core.errors import InvalidParameter
from mosha.core.event import NOTHING
from mosha.core.events import Laplace
from mosha.core.measurement import Measurement
from mosha.noise import secure
from mosha.reports import TEMPLATES, Report, draft_report, find_period
from mosha.reports.parts import ReadyPart
from mosha.reports.printing import find_engine
from mosha.reports.together import join_parts

WARDS = ["A", "B", "C"]
DECLARED = {
    "unit": {"person": "who", "at_most": 4},
    "columns": {
        "who": {"type": "integer"},
        "ward": {"type": "text", "keys": WARDS},
        "sex": {"type": "text", "keys": ["F", "M"]},
        "days": {"type": "integer", "between": [0, 10]},
    },
}


def make_data(people: int = 600) -> Any:
    draw = random.Random(people)
    rows = [(n % people, draw.choice(WARDS), draw.choice("FM"), draw.randint(0, 9)) for n in range(2 * people)]
    return dict(zip(DECLARED["columns"], map(list, zip(*rows, strict=True)), strict=True))


def make_table(ledger: Any = None, **limit: Any) -> Any:
    unit = mosha.Person("who", at_most=4)
    account = (ledger or mosha.Ledger.memory()).account("r", unit=unit, **(limit or {"epsilon": 10, "delta": 1e-5}))
    return mosha.protect(make_data(), unit=unit, account=account, schema=DECLARED)


def make_report(table: Any, **options: Any) -> Any:
    told: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "period": "year"} | options
    return (
        Report("Wards", **told)
        .add("by_ward", table.group_by("ward").count(), within=40)
        .add_sql("stay", "SELECT ward, AVG(days) AS days FROM visits GROUP BY ward", {"visits": table}, rows=400)
        .add("people", table.persons(), within=20, confidence=0.9)
    )


def test_every_wish_is_met_within_the_budget_and_the_forecast_is_what_is_paid() -> None:
    report = make_report(make_table())
    planned = report.plan(on="2026")
    assert planned.meets_wishes
    assert planned.cost <= 1
    for each in planned.parts:
        assert each.part.wish.within is None or each.width <= each.part.wish.within
    edition = report.run(on="2026")
    assert edition.receipts[0].cost == pytest.approx(planned.cost, rel=1e-3)
    assert max(edition["by_ward"].error(0.95)["count"]) <= 40
    assert edition["people"].error(0.9)["persons"][0] <= 20


def test_a_number_about_all_people_inside_a_query_is_refused_before_anything_is_paid() -> None:
    table = make_table()
    sql = "SELECT COUNT(*) AS n FROM visits WHERE days > (SELECT AVG(days) FROM visits)"
    report = Report("nested", epsilon=1)
    with pytest.raises(mosha.errors.Refused, match="reports and servers do not") as refusal:
        report.add_sql("above", sql, {"visits": table}).run(on="2026")
    assert refusal.value.code == "tables.sql_subquery_of_people"
    assert table.account.spent == 0
    nearest = report.add_sql("all", refusal.value.nearest, {"visits": table}, within=100)
    assert nearest.plan(on="2026").cost <= 1


def test_together_questions_cost_less_than_one_by_one_where_a_delta_allows_it() -> None:
    table = make_table()
    report = Report("many", epsilon=5, delta=1e-6)
    for place in range(12):
        report = report.add(f"q{place}", table.where(mosha.col("days") > place % 9).count(), within=60)
    planned = report.plan()
    alone = sum(
        pure.approx(table.count().measurement_for(epsilon=each.budget.epsilon or 0.2).event)[0]
        for each in planned.parts
    )
    assert planned.cost < alone


def test_wishes_that_are_too_dear_are_told_by_how_much_and_nothing_is_paid() -> None:
    table = make_table()
    report = Report("dear", epsilon=0.01).add("all", table.count(), within=1)
    assert report.plan().widening == pytest.approx(math.log(20) * 4 / 0.01, rel=0.05)
    with pytest.raises(InvalidParameter) as refusal:
        report.run()
    assert refusal.value.code == "reports.wishes_not_met"
    assert table.account.spent == 0
    assert report.run(widen=True)["all"].error()["count"][0] > 100


def test_a_period_is_paid_once_and_found_again_in_another_process(tmp_path: Path) -> None:
    first = make_report(make_table(mosha.Ledger(tmp_path / "book.db")))
    edition = first.run(on="2026-03-05")
    table = make_table(mosha.Ledger(tmp_path / "book.db"))
    again = make_report(table).run(on="2026")
    assert again["by_ward"].table == edition["by_ward"].table
    assert again["stay"].table == edition["stay"].table
    assert table.account.spent == pytest.approx(edition.receipts[0].spent)
    with pytest.raises(InvalidParameter) as refusal:
        make_report(table).show(on="2027")
    assert refusal.value.code == "reports.not_run_yet"
    with pytest.raises(InvalidParameter, match="another measurement"):
        make_report(table).add("more", table.count(), within=100).run(on="2026")


def test_a_report_that_was_cut_off_goes_on_where_it_was_and_pays_nothing_more(tmp_path: Path) -> None:
    report = make_report(make_table(mosha.Ledger(tmp_path / "book.db")))
    ticks = iter([None, KeyboardInterrupt])

    def tick() -> None:
        if next(ticks) is not None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        report.run(on="2026", tick=tick)
    table = make_table(mosha.Ledger(tmp_path / "book.db"))
    spent = table.account.spent
    edition = make_report(table).run(on="2026")
    assert table.account.spent == spent > 0
    assert all(section.answer is not None for section in edition)


def break_statements(
    monkeypatch: pytest.MonkeyPatch, places: Any, allowed: Any = 3, *, kill: bool = False
) -> tuple[Any, ...]:
    """A report of three counts, whose engine fails at the statements of these numbers; and what it has met.

    With `kill`, the process is gone without a word there.
    """
    account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1, failures=allowed)
    engine = DuckDB()
    table = mosha.protect({"x": [1.0, 2.0] * 50}, unit=mosha.Row(), account=account, engine=engine)
    report = mosha.Report("Visits", epsilon=1)
    for place in range(3):
        report = report.add(f"part {place}", table.where(mosha.col("x") > place).count())
    run, met = engine._plans.run, []

    def break_some(statement: Any) -> Any:
        met.append(statement)
        if kill and len(met) in places:
            raise KeyboardInterrupt
        return run("SELECT error('a row')" if len(met) in places else statement)

    monkeypatch.setattr(engine._plans, "run", break_some)
    return report, account, met


def tell_answered(edition: Any) -> list[Any]:
    return [section.answer is not None for section in edition.sections]


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_question_whose_engine_failed_is_asked_once_more_and_no_other_is_lost(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, account, met = break_statements(monkeypatch, {place})
    with pytest.raises(errors.DataError):
        report.run()
    edition = report.run()
    assert tell_answered(edition) == [True, True, True]
    assert (account.spent, account.failures, len(met)) == (pytest.approx(1, rel=0.01), 1, 4)
    assert len(set(met)) == 3, "the statement that failed was run again, and no other one twice"
    assert [report.show()[f"part {n}"].table for n in range(3)] == [edition[f"part {n}"].table for n in range(3)]
    assert len(met) == 4


def test_a_question_that_fails_twice_is_lost_alone_and_nothing_asks_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    report, account, met = break_statements(monkeypatch, {2, 4})
    for found in ([True, False, False], [True, False, True]):
        with pytest.raises(errors.DataError):
            report.run()
        assert tell_answered(report.show()) == found
    assert [tell_answered(report.run()), tell_answered(report.show())] == [[True, False, True]] * 2
    assert (account.failures, len(met)) == (2, 4)


def test_showing_a_report_asks_nothing_and_takes_nothing_away_from_a_run_elsewhere(tmp_path: Path) -> None:
    """`show` started the questions that were paid for and not asked, and so became the holder of a run under way."""
    report = make_report(make_table(mosha.Ledger(tmp_path / "book.db")))
    beside = make_table(mosha.Ledger(tmp_path / "book.db"))
    seen = []
    edition = report.run(on="2026", tick=lambda: seen.append(make_report(beside).show(on="2026")))
    assert [tell_answered(shown) for shown in seen] == [[True, False, False], [True, True, False], [True, True, True]]
    assert all(seen[-1][each.part.name].table == edition[each.part.name].table for each in edition)
    assert "no answer yet" in seen[0].to_markdown("en")
    assert "还没有答案" in seen[0].to_html("zh")
    with pytest.raises(InvalidParameter) as refusal:
        seen[0][edition.sections[-1].part.name]
    assert refusal.value.code == "reports.part_waits"
    kinds = [entry.kind for entry in mosha.Ledger(tmp_path / "book.db").entries()]
    assert "claim" not in kinds


def test_a_report_that_was_killed_twice_in_one_question_goes_on_with_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The third run gives the question up and asks the others; a later one asks it once more, in a step of its own."""
    report, account, met = break_statements(monkeypatch, {2, 3}, kill=True)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            report.run()
    edition = report.run()
    assert tell_answered(edition) == [True, False, True]
    assert (account.spent, account.failures, len(met)) == (pytest.approx(1, rel=0.01), 1, 4)
    assert tell_answered(report.show()) == [True, False, True]
    again = report.run()
    assert tell_answered(again) == [True, True, True]
    assert [again[f"part {n}"].table for n in (0, 2)] == [edition[f"part {n}"].table for n in (0, 2)]
    assert (account.spent, len(met), len(set(met))) == (pytest.approx(1, rel=0.01), 5, 3)


def test_a_question_that_kills_every_process_is_lost_alone_and_is_not_asked_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twice in its own step, and once in the spare one, whose first start was that of the process before."""
    report, account, met = break_statements(monkeypatch, {2, 3, 5, 6, 7, 8, 9}, kill=True)
    for run in range(8):
        if run in (0, 1, 3):
            with pytest.raises(KeyboardInterrupt):
                report.run()
        else:
            assert tell_answered(report.run()) == [True, False, True]
    assert (account.failures, len(met)) == (2, 5)


def test_a_step_that_breaks_leaves_the_others_their_answers(tmp_path: Path) -> None:
    table = make_table(mosha.Ledger(tmp_path / "book.db"))

    def break_down(starts: Any, end: Any) -> NoReturn:
        raise RuntimeError

    report = Report("streams", epsilon=1, period="quarter").add("all", table.count())
    report = report.add_stream("broken", break_down, account=table.account, step="month").add("people", table.persons())
    edition = report.run(on="2026-Q2")
    assert [section.answer is None for section in edition] == [False, True, False]
    with pytest.raises(InvalidParameter) as refusal:
        edition["broken"]
    assert refusal.value.code == "reports.part_broke"
    again = report.show(on="2026-Q2")
    assert again["people"].table == edition["people"].table
    assert "could not be answered" in again.to_markdown("en")


def test_streams_and_graphs_share_the_budget() -> None:
    ledger = mosha.Ledger.memory()
    table = make_table(ledger)
    edge = ledger.account("edges", unit=mosha.Edge(), epsilon=5)
    graph = mosha.graphs.protect([(0, 1), (1, 2)], unit=mosha.Edge(), vertices=10, account=edge)
    months = [{"who": list(range(2000 * n, 2100 * n))} for n in range(12)]
    report = (
        Report("mixed", epsilon=2, delta=1e-6, period="year")
        .add("edges", graph.edges(), within=8)
        .add("degrees", graph.degree_histogram())
        .add_stream("visits", months, account=table.account, step="month", within=60)
    )
    edition = report.run(on="2026")
    assert edition["visits"].table["from"][1] == date(2026, 2, 1)
    page, text = edition.to_html("zh"), edition.to_markdown("zh")
    assert "<th>起始日</th>" in page
    assert "| 起始日 | 行数 |" in text  # a Chinese report said "from" and "rows"
    assert "| from | rows |" in edition.to_markdown("en")
    assert abs(edition["visits"].table["rows"][11] - 1100) < 6 * edition["visits"].error()["rows"][0]
    assert edition["edges"].error(0.95)["edges"][0] <= 8
    assert {receipt.account for receipt in edition.receipts} == {"r", "edges"}
    assert report.plan().cost <= 2


def test_margins_add_up_and_their_totals_have_narrower_bars_than_sums_of_cells() -> None:
    table = make_table()
    edition = Report("margins", epsilon=1, delta=1e-6).add_margins("by", table, ["ward", "sex"]).run()
    found, bars = edition["by"].table, edition["by"].error()["count"]
    cells = dict(zip(zip(found["ward"], found["sex"], strict=True), found["count"], strict=True))
    assert sum(cells[ward, "∑"] for ward in {*found["ward"]} - {"∑"}) == cells["∑", "∑"]
    sexes = {*found["sex"]} - {"∑"}
    assert all(sum(cells[w, s] for s in sexes) == cells[w, "∑"] for w in WARDS)
    assert all(isinstance(count, int) for count in found["count"])
    exact = edition["by"].exact.table["count"]
    assert all(abs(count - all_digits) <= 2 for count, all_digits in zip(found["count"], exact, strict=True))
    assert bars[-1] < 6 * bars[0]
    with pytest.raises(InvalidParameter) as refusal:
        Report("margins", epsilon=1).add_margins("by", table, ["ward", "sex"]).plan()
    assert refusal.value.code == "reports.needs_delta"


def make_ready(event: Any, value: Any) -> Any:
    step = lambda state, data, ask, rng: (value, state)
    return ReadyPart(
        measurement=Measurement(unit=mosha.Row(), event=event, step=step), data=None, look=lambda: None, read=None
    )


def test_no_part_is_answered_twice_whatever_is_asked() -> None:
    joined = join_parts([make_ready(Laplace(2), 1), make_ready(Laplace(4), 2)], name="r", question="q", delta=0)
    answer, state = joined.step(joined.init(), None, 1, secure())
    assert answer == {"part": 1, "value": 2}
    for ask in (1, 2, -1, True, False, None):
        with pytest.raises(InvalidParameter):
            joined.step(state, None, ask, secure())
    answer, state = joined.step(state, None, 0, secure())
    for ask in (0, 1, 2):
        with pytest.raises(InvalidParameter):
            joined.step(state, None, ask, secure())


@pytest.mark.parametrize("counts", [(3, 1), (1, 3), (2, 2), (1, 1, 1), (5, 1), (1, 2, 3), (7, 1, 1, 1)])
def test_nothing_that_was_spent_is_handed_back(counts: Any) -> None:
    """Whatever the steps that were taken, what stays paid covers the parts that they may have answered."""
    events = [Laplace(2) * count for count in counts]
    joined = join_parts([make_ready(event, 0) for event in events], name="r", question="q", delta=0)
    assert joined.event == sum(events, start=NOTHING)
    assert joined.horizon >= 2 * len(counts)
    assert joined.event.per_step(joined.horizon) is None
    account = mosha.Ledger.memory().account("a", unit=mosha.Row(), epsilon=100)
    run = account.open(joined)
    run.step(None, ask=0)
    run.close()
    assert account.spent == pytest.approx(sum(counts) / 2)


def test_a_report_is_written_in_every_form_and_tells_nothing_else(tmp_path: Path) -> None:
    report = make_report(make_table(), lang="en")
    edition = report.run(on="2026")
    for ending in ("html", "md", "csv", "ipynb", "json", "parquet"):
        assert edition.save(tmp_path / f"report.{ending}").stat().st_size > 200
    page = (tmp_path / "report.html").read_text()
    assert "<script" not in page
    assert "data:image/svg+xml" in page
    assert "怎样读带噪声的数字" in edition.to_html("zh")
    notebook = json.loads((tmp_path / "report.ipynb").read_text())
    assert any("image/png" in out["data"] for cell in notebook["cells"] for out in cell.get("outputs", []))
    written = (tmp_path / "report.csv").read_bytes()
    assert written.startswith(b"\xef\xbb\xbfpart,aggregate,group,value,error,error_in")  # Excel reads Chinese by it
    plain = edition.save(tmp_path / "plain.csv", bom=False).read_bytes()
    assert b"\xef\xbb\xbf" + plain == written
    with pytest.raises(InvalidParameter) as refusal:
        edition.save(tmp_path / "report.docx")
    assert refusal.value.code == "reports.unknown_ending"


def test_a_pdf_is_printed_by_a_browser_or_the_error_names_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edition = Report("small", epsilon=1).add("all", make_table().count()).run()
    monkeypatch.setenv("MOSHA_PRINT_ENGINE", "no-such-browser")
    with pytest.raises(InvalidParameter) as refusal:
        edition.save(tmp_path / "report.pdf")
    assert "chromium" in str(refusal.value)
    monkeypatch.delenv("MOSHA_PRINT_ENGINE")
    if find_engine() is not None:
        assert edition.save(tmp_path / "report.pdf").read_bytes()[:5] == b"%PDF-"


def write_hospital(folder: Any) -> None:
    draw = random.Random(3)
    lines = ["patient_id,ward,day,stay,age"]
    lines += [
        f"p{n % 700},{draw.choice(['cardiology', 'surgery'])},2026-{n % 12 + 1:02d}-03,{n % 9},40" for n in range(1500)
    ]
    (folder / "visits.csv").write_text("\n".join(lines))
    (folder / "visits.schema.yaml").write_text(
        "unit: {person: patient_id, at_most: 12}\ncolumns:\n  patient_id: {type: text}\n"
        "  ward: {type: text, keys: [cardiology, surgery, neurology]}\n  day: {type: date}\n"
        "  stay: {type: integer, between: [0, 30]}\n  age: {type: integer, between: [0, 100]}\n"
    )


def test_a_template_is_drafted_forecast_run_and_shown_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_hospital(tmp_path)
    assert main(["report", "draft", "report.yaml", "--template", "hospital"]) == 0
    assert main(["report", "draft", "report.yaml", "--template", "hospital"]) == 1
    capsys.readouterr()
    assert main(["report", "forecast", "report.yaml", "--period", "2026", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cost"] <= 1
    assert main(["report", "show", "report.yaml", "--period", "2026"]) == 1
    assert main(["report", "run", "report.yaml", "--period", "2026", "--json"]) == 0
    capsys.readouterr()
    assert main(["report", "show", "report.yaml", "--period", "2026", "--out", "r.md", "--out", "r.html"]) == 0
    assert "Stays by month" in (tmp_path / "r.md").read_text()
    assert main(["report", "draft", "own.yaml", "--data", "visits.csv"]) == 0
    assert main(["report", "forecast", "own.yaml"]) == 0


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_is_a_report_once_its_data_are_there(template: Any, lang: Any, tmp_path: Path) -> None:
    text = draft_report(template=template, lang=lang)
    assert (("language: zh" in text) and ("一" <= text[2] <= "龥")) == (lang == "zh")
    declared = "\n".join(line[4:] for line in text.splitlines() if line.startswith("#   "))
    import yaml

    said, shape = yaml.safe_load(text), yaml.safe_load(declared)
    (name, about), *_ = said["data"].items()
    (tmp_path / about["path"]).write_text(",".join(shape["columns"]) + "\n")
    (tmp_path / f"{name}.schema.yaml").write_text(declared)
    (tmp_path / "report.yaml").write_text(text)
    found = Report.read(tmp_path / "report.yaml").plan(on="2026-06-01")
    assert found.meets_wishes
    assert found.cost <= said["budget"]["epsilon"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"budgets": 1}, "reports.unknown_field"),
        ({"budget": 3}, "reports.not_names"),
        ({"budget": {"epsilon": 1, "sigma": 2}}, "reports.unknown_field"),
        ({"title": ""}, "reports.no_title"),
        ({"period": "decade"}, "core.unknown_option"),
        ({"data": {"visits": {"table": "x"}}}, "reports.data_without_path"),
        ({"data": {"visits": {"path": "visits.csv", "unit": "nobody"}}}, "reports.unit_shape"),
        ({"questions": {"x": {"sql": "SELECT 1", "graph": "edges"}}}, "reports.one_kind"),
        ({"questions": {"x": {"margins": ["ward"], "data": "other"}}}, "reports.unknown_data"),
        ({"questions": {"x": {"stream": {"time": "day", "step": "hour"}}}}, "core.unknown_option"),
        ({"questions": {"x": {"stream": {"step": "day"}}}}, "reports.stream_time"),
    ],
)
def test_a_file_that_is_wrong_is_told_where(change: Any, code: str, tmp_path: Path) -> None:
    write_hospital(tmp_path)
    said = {
        "title": "T", "period": "year", "budget": {"epsilon": 1}, "ledger": ":memory:",
        "data": {"visits": {"path": "visits.csv"}}, "questions": {"n": {"sql": "SELECT COUNT(*) FROM visits"}},
    } | change  # fmt: skip
    (tmp_path / "r.json").write_text(json.dumps(said))
    with pytest.raises(InvalidParameter) as refusal:
        Report.read(tmp_path / "r.json").plan()
    assert refusal.value.code == code


def test_periods_have_labels_and_ends() -> None:
    assert find_period("week", "2026-W20").start == date(2026, 5, 11)
    assert find_period("quarter", "2026-Q4").end == date(2027, 1, 1)
    with pytest.raises(InvalidParameter):
        find_period("year", "next")
    with pytest.raises(InvalidParameter):
        replace(Report("x", epsilon=1), epsilon=None)


def test_every_ledger_pays_for_its_own_data_whatever_its_accounts_are_called() -> None:
    tables = [make_table(epsilon=limit) for limit in (1, 0.25)]
    assert [table.account.name for table in tables] == ["r", "r"]
    report = Report("Two ledgers", epsilon=0.5)
    for place, table in enumerate(tables):
        report = report.add(f"count_{place}", table.count())
    edition = report.run()
    assert [answer.receipt.account for answer in (edition["count_0"], edition["count_1"])] == ["r", "r"]
    assert all(0.2 < table.account.spent <= 0.25 for table in tables)


def test_two_handles_of_one_account_pay_once_together(tmp_path: Path) -> None:
    with mosha.Ledger(tmp_path / "book.db") as first, mosha.Ledger(tmp_path / "book.db") as second:
        tables = [make_table(ledger, epsilon=1) for ledger in (first, second)]
        assert tables[0].account.is_same(tables[1].account)
        report = Report("One ledger", epsilon=1).add("a", tables[0].count()).add("b", tables[1].persons())
        report.run()
        assert 0.99 < tables[0].account.spent <= 1
        assert len({receipt.entry for receipt in report.run().receipts}) == 1


def test_a_question_whose_bound_is_bought_stands_in_a_report_without_a_bar_ahead() -> None:
    """It was refused: nobody can forecast its bar, and a report asked for one where none was wished."""
    unit = mosha.Person("who")
    account = mosha.Ledger.memory().account("a", unit=unit, epsilon=2)
    table = mosha.protect(
        {"who": [n % 50 for n in range(150)], "x": [float(n % 9) for n in range(150)]}, unit=unit, account=account
    )
    report = mosha.Report("Visits", epsilon=1, period="year").add("rows", table.count())
    report = report.add("mean", table.mean("x", between="automatic"))
    assert str(report.forecast()).count("\N{EN DASH}") == 4  # neither a wish nor a bar for either
    assert report.run(on="2026")["rows"].error(0.95)["count"][0] > 0
    with pytest.raises(mosha.errors.InvalidParameter, match="at_most") as refusal:
        mosha.Report("Visits", epsilon=1, period="year").add("rows", table.count(), within=20).forecast()
    assert refusal.value.code == "reports.wish_of_bought_bound"
