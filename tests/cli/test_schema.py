"""From a file of unknown shape to a declaration, a ledger and a first report; rows are not looked at."""

import io
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

import mosha
from mosha.cli import main
from mosha.tables import Declaration

HEADER = "patient_id,ward,days\n"


def write(folder: Any, rows: str = "p1,A,3\np2,B,40\n") -> str:
    (folder / "visits.csv").write_text(HEADER + rows)
    return str(folder / "visits.csv")


def test_a_draft_holds_the_header_and_nothing_of_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drafts = []
    for place, rows in (("one", "p1,A,3\n"), ("two", "secret,Z,99\nx,y,z\n")):
        (tmp_path / place).mkdir()
        assert main(["schema", "draft", write(tmp_path / place, rows)]) == 0
        drafts.append((tmp_path / place / "visits.schema.yaml").read_text())
    assert drafts[0] == drafts[1]
    assert Declaration.of(tmp_path / "one" / "visits.schema.yaml").unit.column == "patient_id"  # type: ignore[attr-defined]
    assert main(["schema", "draft", str(tmp_path / "one" / "visits.csv")]) == 1
    capsys.readouterr()


def test_whose_a_row_is_is_not_guessed_where_no_name_says_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`idp` of RAND's experiment is a flag of its insurance; it was drafted as the person."""
    data = tmp_path / "randhie.csv"
    data.write_text("plan,idp,zper\n1,0,125024\n")
    assert main(["schema", "draft", str(data)]) == 0
    assert main(["schema", "check", str(data)]) == 1
    assert "whose presence is hidden" in capsys.readouterr().out
    (tmp_path / "randhie.schema.yaml").unlink()
    assert main(["schema", "draft", str(data), "--person", "nobody"]) == 1
    assert main(["schema", "draft", str(data), "--person", "zper"]) == 0
    assert Declaration.of(tmp_path / "randhie.schema.yaml").unit.column == "zper"  # type: ignore[attr-defined]
    capsys.readouterr()
    assert main(["schema", "check", str(data)]) == 0
    assert "plan, idp: no type is said" in capsys.readouterr().out


def test_what_is_drafted_from_a_csv_can_be_asked_for_numbers_at_once(tmp_path: Path) -> None:
    """The draft called every column text, so that the mean of a number was refused until all types were filled in."""
    data = write(tmp_path)
    assert main(["schema", "draft", data]) == 0
    draft = (tmp_path / "visits.schema.yaml").read_text()
    assert "days: {}" in draft
    assert "text}" not in draft
    account = mosha.Ledger.memory().account("visits", unit=mosha.Person("patient_id"), epsilon=2000)
    table = mosha.protect(data, account=account)
    mean = table.mean("days", between=(0, 43)).release(epsilon=1000).value
    assert mean == pytest.approx(21.5, abs=5)  # some twenty scales of the noise
    (tmp_path / "visits.schema.yaml").write_text(draft.replace("days: {}", "days: {type: text}"))
    with pytest.raises(mosha.errors.DataError, match=r"declare it so .*type: real"):
        mosha.protect(data, account=account).mean("days", between=(0, 43))


def test_a_public_sample_may_be_looked_at(tmp_path: Path) -> None:
    (tmp_path / "sample.csv").write_text(HEADER + "s1,A,3\ns2,B,9\n")
    out = tmp_path / "own.yaml"
    assert (
        main(["schema", "draft", write(tmp_path), "--public-sample", str(tmp_path / "sample.csv"), "--out", str(out)])
        == 0
    )
    declared = Declaration.of(out)
    assert declared.ranges == {"days": (3.0, 9.0)}
    assert declared.keys == {"ward": ("A", "B")}


def test_a_check_says_what_is_missing_and_what_choices_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write(tmp_path)
    assert main(["schema", "check", data, "--json"]) == 1
    assert not json.loads(capsys.readouterr().out)["complete"]
    main(["schema", "draft", data])
    capsys.readouterr()
    assert main(["schema", "check", data]) == 0
    said = capsys.readouterr().out
    assert "at most 5 rows" in said
    assert main(["--lang", "zh", "schema", "check", data]) == 0
    assert "同一个人的所有行" in capsys.readouterr().out


def test_a_start_writes_declaration_ledger_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write(tmp_path)
    assert main(["start", data, "--person", "nobody", "--at-most", "3", "--epsilon", "0.5"]) == 1
    assert main(["start", data, "--person", "patient_id", "--at-most", "3", "--epsilon", "0.5"]) == 0
    capsys.readouterr()
    assert {path.name for path in tmp_path.iterdir()} >= {
        "visits.schema.yaml",
        "visits.privacy.db",
        "visits.report.yaml",
    }
    assert main(["report", "forecast", str(tmp_path / "visits.report.yaml")]) == 0
    assert main(["report", "run", str(tmp_path / "visits.report.yaml")]) == 0


def test_every_command_pays_from_the_book_that_was_begun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`mosha query` opened a second book over the same people, beside the one of `mosha start`."""
    data = write(tmp_path)
    assert main(["start", data, "--person", "patient_id", "--at-most", "3", "--epsilon", "0.5"]) == 0
    assert main(["query", data, "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1"]) == 0
    assert [path.name for path in tmp_path.glob("*.db")] == ["visits.privacy.db"]
    with mosha.Ledger(tmp_path / "visits.privacy.db", create=False) as book:
        assert [account.name for account in book.accounts()] == ["Visits"]
        assert book.account("Visits").spent == pytest.approx(0.1)
    assert main(["report", "draft", str(tmp_path / "second.yaml"), "--data", data]) == 0
    assert 'account: "Visits"' in (tmp_path / "second.yaml").read_text()
    capsys.readouterr()


def test_a_start_takes_the_book_that_a_question_began(tmp_path: Path) -> None:
    data = write(tmp_path)
    asked = ["query", data, "SELECT COUNT(*) AS n FROM visits", "--unit", "patient_id", "--at-most", "3"]
    assert main([*asked, "--epsilon", "0.1"]) == 0
    assert main(["start", data, "--person", "patient_id", "--at-most", "3", "--epsilon", "0.5"]) == 0
    assert [path.name for path in tmp_path.glob("*.db")] == ["visits.csv.privacy.db"]
    assert main(["report", "run", str(tmp_path / "visits.report.yaml")]) == 0
    with mosha.Ledger(tmp_path / "visits.csv.privacy.db", create=False) as book:
        assert [account.name for account in book.accounts()] == ["visits"]


def test_a_start_in_another_encoding_drafts_a_report_that_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report that `mosha start` wrote beside a GBK file could not read it."""
    data = tmp_path / "visits.csv"
    data.write_text("患者,科室\np1,内科\np2,外科\n", encoding="gbk")
    told = ["--person", "患者", "--at-most", "3", "--epsilon", "1", "--encoding", "gbk"]
    assert main(["--lang", "zh", "start", str(data), *told]) == 0
    assert "合计的上限" in (tmp_path / "visits.report.yaml").read_text()
    assert main(["report", "forecast", str(tmp_path / "visits.report.yaml")]) == 0
    asked = ["query", str(data), "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1", "--encoding", "gbk"]
    assert main(asked) == 0
    assert main(["report", "draft", str(tmp_path / "b.yaml"), "--data", str(data), "--encoding", "gbk"]) == 0
    assert 'encoding: "gbk"' in (tmp_path / "b.yaml").read_text()
    capsys.readouterr()


def test_a_draft_is_yaml_and_is_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--out x.toml` wrote YAML into a file that nobody could read."""
    assert main(["schema", "draft", write(tmp_path), "--out", str(tmp_path / "visits.schema.toml")]) == 1
    assert ".schema.yaml" in capsys.readouterr().err
    assert not (tmp_path / "visits.schema.toml").exists()


def test_a_whole_database_is_drafted_from_its_catalogue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "shop.duckdb"
    with duckdb.connect(place) as connection:
        connection.execute("CREATE TABLE customer (id BIGINT PRIMARY KEY); CREATE TABLE country (code TEXT)")
        connection.execute("CREATE TABLE orders (customer_id BIGINT REFERENCES customer (id), day DATE)")
    assert main(["schema", "draft", str(place), "--person", "customer.id", "--table", "orders"]) == 1
    assert "leave --table" in capsys.readouterr().err
    assert main(["schema", "draft", str(place), "--person", "customer.id"]) == 0
    assert "question mark" in capsys.readouterr().out
    draft = (tmp_path / "shop.schema.yaml").read_text()
    whole = draft.replace('rows_of: "?"', "public: true")
    (tmp_path / "shop.schema.yaml").write_text(whole.replace('id"}', 'id", at_most: 5}'))
    database = mosha.protect_database(str(place))
    assert sorted(database.tables) == ["country", "customer", "orders"]


def test_a_draft_of_a_server_does_not_repeat_its_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["schema", "draft", "postgresql://a:hush@127.0.0.1:1/shop", "--person", "customer.id"]) != 0
    assert "hush" not in "".join(capsys.readouterr())


def test_a_wrong_answer_to_a_question_of_start_is_asked_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "visits.csv"
    data.write_text("patient_id,ward\n1,a\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("patient\npatient_id\nmany\n3\n-1\n0.5\n"))
    assert main(["start", str(data)]) == 0
    said = capsys.readouterr().out
    assert [said.count(word) for word in ("no such column", "whole number", "number above zero")] == [1, 1, 1]
    assert "at_most: 3" in (tmp_path / "visits.schema.yaml").read_text()


def test_an_explanation_names_the_account_that_would_pay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It said that nobody pays, beside a book whose account pays when the same command runs without --explain."""
    data = write(tmp_path)
    asked = ["query", data, "SELECT COUNT(*) AS n FROM visits", "--unit", "patient_id", "--at-most", "3", "--epsilon"]
    assert main([*asked, "0.1", "--explain"]) == 0
    assert "mosha query opens one" in capsys.readouterr().out
    assert not list(tmp_path.glob("*.db"))
    assert main([*asked, "0.1"]) == 0
    assert main([*asked, "0.1", "--explain"]) == 0
    assert "account 'visits' pays: epsilon 2.9 of 3 left" in capsys.readouterr().out
