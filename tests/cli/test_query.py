"""`mosha query` as a person and as a program would use it: in a process of its own."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def visits(tmp_path: Path) -> Any:
    generator = random.Random(3)
    rows = [f"{generator.randrange(300)},{generator.choice('ABC')},{generator.randrange(30)}" for _ in range(1000)]
    (tmp_path / "visits.csv").write_text("\n".join(["patient,ward,days", *rows]))
    declared = [
        'unit = {person = "patient", at_most = 5}',
        "[columns]",
        'patient = {type = "integer"}',
        'days = {type = "integer", between = [0, 30]}',
        'ward = {type = "text", keys = ["A", "B"]}',
    ]
    (tmp_path / "visits.toml").write_text("\n".join(declared))
    return tmp_path


def run(folder: Any, *arguments: Any) -> Any:
    return run_command(folder, "query", "visits.csv", *arguments)


def run_command(folder: Any, *arguments: Any) -> Any:
    start = "import sys; from mosha.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_question_is_answered_with_error_bars_and_what_is_left(visits: Any) -> None:
    sql = "SELECT ward, COUNT(*) AS n FROM visits WHERE ward IN ('A', 'B', 'C') GROUP BY ward"
    done = run(visits, sql, "--unit", "patient", "--at-most", "5", "--epsilon", "1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("±") == 4
    assert "2 of 3 epsilon left" in " ".join(done.stdout.split())


def test_a_declaration_says_unit_ranges_and_keys_once_and_json_is_for_programs(visits: Any) -> None:
    sql = "SELECT ward, AVG(days) AS stay FROM visits GROUP BY ward"
    done = run(visits, sql, "--schema", "visits.toml", "--epsilon", "1", "--json")
    answer = json.loads(done.stdout)
    assert answer["table"]["ward"] == ["A", "B"]
    assert len(answer["error"]["stay"]) == 2
    assert answer["receipt"]["cost"] == 1.0


def test_a_declaration_beside_the_data_is_found(visits: Any) -> None:
    (visits / "visits.toml").rename(visits / "visits.schema.toml")
    done = run(visits, "SELECT ward, AVG(days) AS stay FROM visits GROUP BY ward", "--epsilon", "1", "--json")
    assert json.loads(done.stdout)["table"]["ward"] == ["A", "B"]
    refused = run(visits, "SELECT COUNT(*) AS n FROM visits", "--unit", "row", "--epsilon", "1")
    assert "WrongUnit" in refused.stderr


def test_the_budget_outlives_the_process(visits: Any) -> None:
    ask = ("SELECT COUNT(*) AS n FROM visits", "--unit", "patient", "--at-most", "5", "--epsilon", "2")
    assert run(visits, *ask).returncode == 0
    refused = run(visits, *ask)
    assert refused.returncode == 1
    assert "BudgetExceeded" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_a_key_makes_a_retry_free(visits: Any) -> None:
    ask = ("SELECT COUNT(*) AS n FROM visits", "--schema", "visits.toml", "--epsilon", "2", "--key", "a", "--json")
    first, second = (json.loads(run(visits, *ask).stdout) for _ in range(2))
    assert first["table"] == second["table"]


def test_explain_spends_nothing_and_makes_no_ledger(visits: Any) -> None:
    done = run(visits, "SELECT COUNT(*) AS n FROM visits", "--schema", "visits.toml", "--epsilon", "1", "--explain")
    assert "Price: epsilon 1" in done.stdout
    assert not list(visits.glob("*.privacy.db*"))


@pytest.mark.parametrize(
    ("sql", "options", "word"),
    [
        ("SELECT SUM(days) AS s FROM visits", ["--unit", "patient", "--epsilon", "1"], "range"),
        ("SELECT COUNT(*) AS n FROM visits", ["--epsilon", "1"], "--unit"),
        ("SELECT COUNT(*) AS n FROM visits", ["--unit", "nobody", "--epsilon", "1"], "no column"),
        ("SELECT COUNT(*) AS n FROM visits", ["--unit", "patient"], "epsilon"),
        ("SELECT COUNT(*) AS n FROM visits", ["--unit", "patient", "--epsilon", "nan"], "finite"),
        ("SELECT COUNT(*) AS n FROM visits", ["--schema", "nope.toml", "--epsilon", "1"], "declaration"),
    ],
)
def test_wrong_input_is_one_line_and_spends_nothing(visits: Any, sql: str, options: Any, word: str) -> None:
    done = run(visits, sql, *options)
    assert done.returncode == 1
    assert word in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


COUNT, ONE = "SELECT COUNT(*) AS n FROM visits", ("--unit", "patient", "--at-most", "5", "--epsilon", "0.5")


def test_a_limit_that_an_account_was_not_opened_under_is_refused(visits: Any) -> None:
    assert run(visits, COUNT, *ONE, "--limit-epsilon", "2").returncode == 0
    assert run(visits, COUNT, *ONE, "--limit-epsilon", "2").returncode == 0
    for other in (
        ("--limit-epsilon", "200"),
        ("--limit-delta", "0.01"),
        ("--limit-epsilon", "2", "--limit-delta", "0"),
    ):
        refused = run(visits, COUNT, *ONE, *other, "--json")
        assert refused.returncode == 1
        assert json.loads(refused.stdout)["error"] == "AccountMismatch"
    left = json.loads(run(visits, COUNT, *ONE, "--json").stdout)["receipt"]["remaining"]
    assert left == pytest.approx(0.5)


@pytest.mark.parametrize("other", [("--within", "10"), ("--rho", "0.1")])
def test_two_prices_are_wrong_usage(visits: Any, other: Any) -> None:
    done = run(visits, COUNT, *ONE, *other)
    assert done.returncode == 2
    assert "--within" in done.stderr
    assert "mosha query --help" in done.stderr
    assert not list(visits.glob("*.privacy.db*"))


def test_the_error_bar_of_a_quantile_says_that_it_is_in_rows(visits: Any) -> None:
    sql = "SELECT MEDIAN(days) AS middle, MEDIAN(days) * 2 AS twice FROM visits"
    done = run(visits, sql, "--schema", "visits.toml", "--epsilon", "1", "--bars", "rows")
    assert done.returncode == 0, done.stderr
    assert " rows)" in done.stdout
    assert done.stdout.count("± ?") == 1  # rows say nothing about a computed value


def test_no_group_is_told_as_such(visits: Any) -> None:
    (visits / "visits.csv").write_text("patient,ward,days\n1,A,3\n")
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    done = run(visits, sql, "--unit", "patient", "--at-most", "5", "--epsilon", "1", "--delta", "1e-9")
    assert done.returncode == 0, done.stderr
    assert "No group is shown" in done.stdout


@pytest.mark.parametrize(
    ("sql", "option", "sentence"),
    [("SELEC COUNT(*) FROM visits", (), "not a SELECT"), (COUNT, ("--confidence", "95"), "Write 0.95 for 95%")],
)
def test_a_slip_is_told_with_what_to_write(visits: Any, sql: Any, option: Any, sentence: str) -> None:
    done = run(visits, sql, *ONE, *option)
    assert done.returncode == 1
    assert sentence in done.stderr


def test_the_question_may_stand_before_the_data(visits: Any) -> None:
    sql = "SELECT COUNT(*) AS n FROM visits"
    both = [run_command(visits, "query", *given, "--schema", "visits.toml", "--epsilon", "1", "--explain")
            for given in (("visits.csv", sql), (sql, "visits.csv"))]  # fmt: skip
    assert both[0].returncode == 0, both[0].stderr
    assert both[0].stdout == both[1].stdout


def test_numbers_have_the_digits_that_their_bars_support(visits: Any) -> None:
    sql = "SELECT COUNT(*) AS n, AVG(days) AS days FROM visits"
    done = run(visits, sql, "--schema", "visits.toml", "--epsilon", "1")
    count, days = re.findall(r"(\S+) ± (\S+)", done.stdout)[:2]
    assert "." not in "".join(count)
    assert len(days[0].partition(".")[2]) == len(days[1].partition(".")[2])


ABOVE_THE_MEAN = "SELECT COUNT(*) AS n FROM visits WHERE days > (SELECT AVG(days) FROM visits)"


def test_a_number_about_all_people_is_asked_first_and_both_prices_are_shown(visits: Any) -> None:
    (visits / "visits.toml").rename(visits / "visits.schema.toml")
    told = run(visits, ABOVE_THE_MEAN, "--epsilon", "1", "--explain")
    assert told.returncode == 0, told.stderr
    assert "asked first" in told.stdout
    assert told.stdout.count("0.5") >= 2
    assert not (visits / "visits.csv.privacy.db").exists()
    done = run(visits, ABOVE_THE_MEAN, "--epsilon", "1", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert list(answer["table"]) == ["n"]
    assert answer["receipt"]["cost"] == 1.0
    assert "asked first" in answer["notes"][0]
    refused = run(visits, ABOVE_THE_MEAN, "--within", "50")
    assert "several questions" in refused.stderr
    too_much = run(visits, ABOVE_THE_MEAN, "--epsilon", "2.5")
    assert "cannot pay for all" in too_much.stderr
