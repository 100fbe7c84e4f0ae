"""A reader of Chinese is spoken to in Chinese: the help of every command, and what commands print."""

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from mosha.cli import main
from mosha.cli.application import application
from mosha.core.language import keep_language, set_language, templates


def walk(command: Any, path: Any = ()) -> Iterator[Any]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from walk(inner, (*path, name))


COMMANDS = dict(walk(typer.main.get_command(application())))


def described(command: Any) -> list[Any]:
    """All that the help of a command says in sentences."""
    parts = [command.help, *(getattr(parameter, "help", None) for parameter in command.params)]
    return [part.strip() for part in parts if part]


@pytest.fixture
def chinese() -> Iterator[None]:
    with keep_language():
        set_language("zh")
        yield


def test_everything_that_help_says_has_its_chinese_and_nothing_else_is_there() -> None:
    known = {entry["en"] for entry in templates("help").values()}
    said = {text for command in COMMANDS.values() for text in described(command)}
    assert said - known == set()
    frame = {"Usage:", "[OPTIONS]", "COMMAND [ARGS]...", "Arguments", "Options", "Commands", "[required]"}
    frame |= {"[default: {}]", "[env var: {}]", "Show this message and exit."}
    assert known - said == frame


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_is_chinese(path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("TERMINAL_WIDTH", "400")
    assert main([*path, "--help", "--lang", "zh"]) == 0
    out = capsys.readouterr().out
    assert "用法" in out
    english = [entry["en"] for entry in templates("help").values() if " " in entry["en"] and "{" not in entry["en"]]
    assert [text for text in english if text in out] == []


def test_help_is_english_again_afterwards(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--lang", "zh", "plan", "--help"]) == 0
    assert main(["plan", "--help"]) == 0
    english = capsys.readouterr().out.split("用法", 1)[1]
    assert "Usage:" in english
    assert "Options" in english
    assert not re.search("[\u4e00-\u9fff]", english.split("Usage:", 1)[1])


WORDS = {
    # names, columns, codes and quantities that no language translates
    "mosha", "epsilon", "delta", "rho", "mu", "odds", "who", "ward", "days", "count", "visits", "csv", "db", "privacy",
    "Person", "column", "at_most", "between", "account", "release", "plan", "explain", "schema", "check", "report",
    "forecast", "yaml", "key", "keys", "zh", "lang", "help", "ada", "approval", "ok", "add", "remove", "either",
    "Pure", "Approx",
    "DiscreteLaplace", "DiscreteGaussian", "Gaussian", "Exponential", "Parallel", "noise_multiplier", "sensitivity",
    "coordinates", "events", "event", "edges", "txt", "frequency", "json", "survey", "gaussian", "sum", "mechanisms",
    "Renyi", "nyi", "SELECT", "COUNT", "AS", "FROM", "epsilons", "laplace", "mechanism", "WrongUsage", "nosuch",
    "InvalidParameter", "draft", "query", "DATA", "tables", "Failure", "probability", "UTC", "learn", "show", "start",
    "SparseVector", "ZeroConcentrated", "alarms", "answer_epsilon", "threshold_epsilon", "values", "orders", "NaN",
    "inf", "math", "floor", "DataError", "ary", "subset", "selection", "made", "verify", "ledger", "Ada", "other",
    "learning", "federated", "torch", "CSV", "Parquet", "DuckDB", "PostgreSQL", "MariaDB", "URL",
}  # fmt: skip


def english_in(text: Any) -> list[Any]:
    """Words of English in a text, but for names and code; rows of dots and hashes are none."""
    text = re.sub(r"[0-9a-f]{12,}|[\u2800-\u28ff]|'[^']*'|--[a-z-]+|\S*/\S*", " ", text)
    return [word for word in re.findall(r"[A-Za-z_]{2,}", text) if word not in WORDS]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "visits.csv").write_text(
        "who,ward,days\n" + "".join(f"{i % 40},w{i % 3},{i % 9}\n" for i in range(120))
    )
    (tmp_path / "declared.yaml").write_text(
        "unit: {person: who, at_most: 3}\ncolumns:\n  who: {type: text}\n  ward: {type: text, keys: [w0, w1]}\n"
        "  days: {type: integer, between: [0, 8]}\n"
    )
    (tmp_path / "wrong.py").write_text("def noisy_count(rows, epsilon):\n    return len(rows)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


LINES = [
    ["explain", "--epsilon", "1"],
    ["explain", "--epsilon", "1", "--delta", "1e-6"],
    ["compose", "--epsilon", "0.1", "--delta", "1e-6"],
    ["plan", "--mechanism", "laplace", "--epsilon", "1"],
    ["query", "visits.csv", "SELECT COUNT(*) AS count FROM visits", "--unit", "who", "--epsilon", "1"],
    ["query", "visits.csv", "SELECT COUNT(*) AS count FROM visits", "--unit", "who", "--epsilon", "1", "--explain"],
    ["ledger", "show", "visits.csv.privacy.db"],
    ["ledger", "show", "visits.csv.privacy.db", "visits"],
    ["ledger", "verify", "visits.csv.privacy.db"],
    ["ledger", "note", "visits.csv.privacy.db", "approval", "ok", "--about", "visits"],
    ["ledger", "notes", "visits.csv.privacy.db"],
    ["ledger", "grant", "visits.csv.privacy.db", "visits", "ada", "--expires", "2030-01-01", "--epsilon", "0.1"],
    ["ledger", "statement", "visits.csv.privacy.db", "visits"],
    ["ledger", "make-key", "key.key"],
    ["schema", "draft", "visits.csv", "--out", "visits.schema.yaml"],
    ["schema", "check", "visits.csv", "--schema", "visits.schema.yaml"],
    ["report", "draft", "report.yaml", "--template", "hospital"],
    ["local", "declare", "a", "b", "--epsilon", "1", "--out", "survey.json"],
    ["audit", "list", "--only", "gaussian: sum"],
    ["audit", "all", "--only", "gaussian: sum", "--runs", "200", "--confidence", "0.999999999"],
    ["audit", "accounting", "--runs", "200", "--confidence", "0.999999999"],
    ["audit", "function", "math:floor", "1.2", "2.7", "--epsilon", "1", "--runs", "400"],
    ["audit", "function", "math:floor", "1.2", "1.2", "--epsilon", "1", "--runs", "400"],
    ["audit", "function", "math:floor", "1.2", "1.7", "--epsilon", "9", "--runs", "100"],
    ["audit", "table", "visits.csv", "--quasi", "ward", "--sensitive", "days", "--k", "2"],
    ["ledger", "verify", "visits.csv.privacy.db", "--head", "7:" + 64 * "0"],
    ["ledger", "open", "other.db", "visits", "--unit", "row", "--epsilon", "1"],
    ["ledger", "rotate-key", "other.db", "key.key"],
    ["ledger", "verify", "other.db"],
    ["local", "compare", "1000", "4", "1"],
    ["local", "collect", "survey.json", "nowhere"],
    ["synth", "visits.csv", "made.csv", "--epsilon", "0.5", "--forecast", "--schema", "declared.yaml"],
    ["synth", "visits.csv", "made.csv", "--epsilon", "0.5", "--unit", "who", "--schema", "declared.yaml"],
    ["learn", "check", "float-laplace", "wrong.py"],
    ["plan", "--mechanism", "gaussian", "--epsilon", "1"],
    ["plan", "--mechanism", "laplace", "--sensitivity", "much"],
    ["nosuch"],
    ["query"],
    ["plan", "--nosuch"],
]  # fmt: skip


def test_what_commands_print_is_chinese(desk: Any, capsys: pytest.CaptureFixture[str]) -> None:
    left = {}
    for line in LINES:
        main([*line, "--lang", "zh"])
        told = capsys.readouterr()
        said = told.out + told.err
        assert said.strip(), line
        if found := english_in(said):
            left[" ".join(line)] = found
    assert left == {}


def test_everything_that_verify_can_find_has_chinese_words() -> None:
    said = {name: entry for name, entry in templates("ledger").items() if name.startswith(("wrong_", "note_"))}
    assert len(said) > 40
    for name, entry in said.items():
        assert re.search("[\u4e00-\u9fff]", entry["zh"]), name
        assert sorted(re.findall(r"{\w+", entry["zh"])) == sorted(re.findall(r"{\w+", entry["en"])), name


def test_a_row_that_was_edited_is_told_in_chinese(desk: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "open", "book.db", "visits", "--unit", "row", "--epsilon", "1"]) == 0
    with contextlib.closing(sqlite3.connect("book.db")) as book, book:
        for (guard,) in book.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            book.execute(f"DROP TRIGGER {guard}")
        book.execute("UPDATE entries SET at = at + 1 WHERE kind = 'open'")
    capsys.readouterr()
    assert main(["ledger", "verify", "book.db", "--lang", "zh"]) == 3
    told = capsys.readouterr().out
    assert "第 2 行" in told
    assert not re.search("row|hash", told)


def test_the_law_of_printed_words_can_fail() -> None:
    assert english_in("The book is well.") == ["The", "book", "is", "well"]
    assert english_in("账本完好。共 4 行") == []


def test_a_missing_parameter_says_what_it_is_for_and_an_unknown_command_which_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["graph", "ask", "edges.txt", "triangles", "--epsilon", "1"]) == 2
    assert "How many vertices there are (public)" in capsys.readouterr().err.replace("\n", " ")
    assert main(["graph", "edges"]) == 2
    assert "There are 'ask', 'synthesize'." in capsys.readouterr().err.replace("\n", " ")
