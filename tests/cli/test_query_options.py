"""Every option of `mosha query` does what its help says: one test for each, in this process."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from mosha.cli import main
from tests.cli.test_documentation import COMMANDS, options

COUNT = "SELECT COUNT(*) AS n FROM visits"
WHO = ("--unit", "patient", "--at-most", "5")


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Asks `mosha query visits.csv ...` in a folder of its own, and gives its JSON."""
    generator = random.Random(3)
    rows = [f"{generator.randrange(300)},{generator.choice('ABC')},{generator.randrange(30)}" for _ in range(1000)]
    (tmp_path / "visits.csv").write_text("\n".join(["patient,ward,days", *rows]))
    monkeypatch.chdir(tmp_path)

    def asked(sql: Any, *arguments: Any, data: str = "visits.csv", code: Any = 0, plain: bool = False) -> Any:
        found = main(["query", data, sql, *arguments, *(() if plain else ("--json",))])
        out, err = capsys.readouterr()
        assert found == code, out + err
        return (out or err) if plain else json.loads(out)

    asked.folder = tmp_path  # type: ignore[attr-defined]
    return asked


def bar(answer: Any, name: str = "n") -> Any:
    return answer["error"][name][0]


def event(answer: Any) -> Any:
    return json.dumps(answer["receipt"]["event"])


def unit(ask: Any) -> None:
    person, row = ask(COUNT, "--unit", "patient", "--at-most", "5", "--epsilon", "1"), None
    assert person["receipt"]["unit"]["column"] == "patient"
    row = ask(COUNT, "--unit", "row", "--epsilon", "1", "--account", "rows")
    assert "column" not in row["receipt"]["unit"]


def at_most(ask: Any) -> None:
    few, many = (ask(COUNT, "--unit", "patient", "--at-most", n, "--epsilon", "1") for n in ("1", "10"))
    assert bar(many) == pytest.approx(10 * bar(few), rel=0.2)


def epsilon(ask: Any) -> None:
    little, much = (ask(COUNT, *WHO, "--epsilon", n) for n in ("0.1", "1"))
    assert (little["receipt"]["cost"], much["receipt"]["cost"]) == (0.1, 1.0)
    assert bar(little) > 5 * bar(much)


def rho(ask: Any) -> None:
    pure = ("--limit-delta", "0", "--account", "pure")
    ask(COUNT, *WHO, "--rho", "0.1", *pure, code=1)  # an account without a delta has no price for it
    for more in ((), ("--delta", "1e-7")):
        asked = (*WHO, "--account", "visits", "--rho", "0.05", *more)  # without a name the only account would pay
        assert "gaussian" in event(ask(COUNT, *asked)).lower()


def delta(ask: Any) -> None:
    grouped = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    assert "--delta" in ask(grouped, *WHO, "--epsilon", "1", code=1)["message"]
    one = ("--unit", "patient", "--at-most", "1", "--epsilon", "2.9")  # a ward of 80 is left out once in e**-60 times
    assert ask(grouped, *one, "--delta", "1e-7")["table"]["ward"] == ["A", "B", "C"]


def within(ask: Any) -> None:
    answer = ask(COUNT, *WHO, "--within", "20")
    assert 15 < bar(answer) <= 20
    assert ask(COUNT, *WHO, "--within", "0", code=1)["error"] == "InvalidParameter"


def confidence(ask: Any) -> None:
    sure, unsure = (ask(COUNT, *WHO, "--epsilon", "1", "--confidence", c) for c in ("0.99", "0.5"))
    assert (sure["confidence"], unsure["confidence"]) == (0.99, 0.5)
    assert bar(sure) > 3 * bar(unsure)


def rows(ask: Any) -> None:
    mean = "SELECT AVG(CLAMP(days, 0, 30)) AS m FROM visits"
    assert "--rows" in ask(mean, *WHO, "--within", "1", code=1)["message"]
    assert bar(ask(mean, *WHO, "--within", "1", "--rows", "1000"), "m") < 2


def bars(ask: Any) -> None:
    median = "SELECT MEDIAN(CLAMP(days, 0, 30)) AS m, MAX(CLAMP(days, 0, 30)) AS x FROM visits"
    free = ask(median, *WHO, "--epsilon", "1.5", "--bars", "rows", plain=True)
    bought = ask(median, *WHO, "--epsilon", "1.5", "--bars", "values", plain=True)
    assert free.count(" rows)") == 2
    assert " rows)" not in bought
    assert "bought their error bars" in bought
    assert "'rows' or in 'values'" in ask(median, *WHO, "--epsilon", "1", "--bars", "inches", code=1)["message"]


def separator(ask: Any) -> None:
    text = (ask.folder / "visits.csv").read_text()
    (ask.folder / "semi.csv").write_text(text.replace(",", ";"))
    answer = ask("SELECT COUNT(ward) AS n FROM semi", *WHO, "--epsilon", "1", "--separator", ";", data="semi.csv")
    assert 800 < answer["table"]["n"][0] < 1200
    ask("SELECT COUNT(ward) AS n FROM semi", *WHO, "--epsilon", "1", data="semi.csv", code=1)


def table(ask: Any) -> None:
    import duckdb

    with duckdb.connect(str(ask.folder / "hospital.duckdb")) as connection:
        connection.execute("CREATE TABLE stays AS SELECT range AS patient FROM range(500)")
    price = ("--unit", "patient", "--at-most", "1", "--epsilon", "1")
    answer = ask("SELECT COUNT(*) AS n FROM stays", *price, "--table", "stays", data="hospital.duckdb")
    assert 450 < answer["table"]["n"][0] < 550
    ask("SELECT COUNT(*) AS n FROM stays", *price, "--table", "nobody", data="hospital.duckdb", code=1)


def schema(ask: Any) -> None:
    (ask.folder / "said.json").write_text(
        json.dumps({"unit": {"person": "patient", "at_most": 5}, "columns": {"days": {"between": [0, 30]}}})
    )
    answer = ask("SELECT AVG(days) AS m FROM visits", "--schema", "said.json", "--epsilon", "1")
    assert answer["receipt"]["unit"]["at_most"] == 5
    assert ask(COUNT, "--schema", "nobody.json", "--epsilon", "1", code=1)["error"] == "InvalidParameter"


def ledger(ask: Any) -> None:
    answer = ask(COUNT, *WHO, "--epsilon", "1", "--ledger", "elsewhere.db")
    assert answer["ledger"] == "elsewhere.db"
    assert (ask.folder / "elsewhere.db").exists()
    assert not (ask.folder / "visits.csv.privacy.db").exists()


def account(ask: Any) -> None:
    first, second = (ask(COUNT, *WHO, "--epsilon", "2", "--account", name) for name in ("a", "b"))
    assert (first["receipt"]["account"], second["receipt"]["account"]) == ("a", "b")
    assert second["receipt"]["remaining"] == pytest.approx(1)
    assert ask(COUNT, *WHO, "--epsilon", "2", "--account", "a", code=1)["error"] == "BudgetExceeded"


def limit_epsilon(ask: Any) -> None:
    assert ask(COUNT, *WHO, "--epsilon", "1", "--limit-epsilon", "7")["receipt"]["limit"] == pytest.approx(7)
    assert ask(COUNT, *WHO, "--epsilon", "1", "--limit-epsilon", "0", code=1)["error"] == "InvalidParameter"


def limit_delta(ask: Any) -> None:
    grouped = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    refused = ask(grouped, *WHO, "--epsilon", "1", "--delta", "1e-7", "--limit-delta", "0", code=1)
    assert refused["error"] in {"BudgetExceeded", "Unpriced"}
    ask(grouped, *WHO, "--epsilon", "1", "--delta", "1e-4", "--limit-delta", "1e-3", "--account", "more")


def deadline(ask: Any) -> None:
    assert ask(COUNT, *WHO, "--epsilon", "1", "--deadline", "60")["receipt"]["cost"] == 1.0
    assert "deadline" in ask(COUNT, *WHO, "--epsilon", "1", "--deadline", "-1", code=1)["message"]


def key(ask: Any) -> None:
    first, again = (ask(COUNT, *WHO, "--epsilon", "2", "--key", "a") for _ in range(2))
    assert first["table"] == again["table"]
    assert "Answered earlier under this key" in " ".join(again["notes"])
    other = ask("SELECT COUNT(ward) AS n FROM visits", *WHO, "--epsilon", "2", "--key", "a", code=1)
    assert "another" in other["message"]


def encoding(ask: Any) -> None:
    (ask.folder / "gbk.csv").write_text("\n".join(["病人,天数", *(f"{who},3" for who in range(200))]), encoding="gbk")
    whose = ("--unit", "病人", "--at-most", "1", "--epsilon", "2")
    answer = ask("SELECT COUNT(*) AS n FROM gbk", *whose, "--encoding", "gbk", data="gbk.csv")
    assert 150 < answer["table"]["n"][0] < 250  # fails once in e**100 times
    assert "encoding" in ask("SELECT COUNT(*) AS n FROM gbk", *whose, data="gbk.csv", code=1)["message"]


def explain(ask: Any) -> None:
    assert "hidden: one person" in ask(COUNT, *WHO, "--epsilon", "1", "--explain", plain=True)
    assert not list(ask.folder.glob("*.privacy.db*"))


def statements(ask: Any) -> None:
    assert "SELECT" in ask(COUNT, *WHO, "--epsilon", "1", "--statements", plain=True)


def json_(ask: Any) -> None:
    answer = ask(COUNT, *WHO, "--epsilon", "1")
    assert set(answer) == {"table", "error", "confidence", "receipt", "notes", "ledger"}


TESTS = {
    f"--{test.__name__.strip('_').replace('_', '-')}": test
    for test in (unit, at_most, epsilon, rho, delta, within, confidence, rows, bars, separator, table, schema, ledger,
                 account, limit_epsilon, limit_delta, key, deadline, encoding, explain, statements, json_)
}  # fmt: skip


@pytest.mark.parametrize("option", TESTS)
def test_an_option_does_what_its_help_says(option: Any, ask: Any) -> None:
    TESTS[option](ask)


def test_every_option_has_a_test() -> None:
    assert sorted(TESTS) == sorted(options(dict(COMMANDS)["mosha query"]))


def test_a_folder_of_parquet_files_is_called_by_its_name(ask: Any) -> None:
    folder = ask.folder / "stays"
    folder.mkdir()
    for part in range(2):
        parquet.write_table(
            pa.table({"patient": list(range(250 * part, 250 * part + 250))}), folder / f"{part}.parquet"
        )
    price = ("--unit", "patient", "--at-most", "1", "--epsilon", "1")
    for data in ("stays", "stays/", "stays/*.parquet"):
        name = "data" if "*" in data else "stays"
        answer = ask(f"SELECT COUNT(*) AS n FROM {name}", *price, "--ledger", "l.db", "--account", "a", data=data)
        assert 450 < answer["table"]["n"][0] < 550
