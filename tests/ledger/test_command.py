"""`mosha ledger`: what people and programs get from the command line."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha import errors, events
from mosha.accounting.measures import concentrated
from mosha.cli import main
from mosha.ledger.storage.key import make_key_file
from tests.ledger.place import asking

UNIT = ("--unit", "person:patient_id")
LIMIT = ("--epsilon", "3", "--delta", "1e-6")


@pytest.fixture
def book(tmp_path: Path) -> str:
    return str(tmp_path / "privacy.db")


@pytest.fixture
def mosha_ledger(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command and gives its exit code, what it printed, and what it complained of."""

    def run(*arguments: Any) -> tuple[Any, ...]:
        code = main(["ledger", *map(str, arguments)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def visits(book: Any, mosha_ledger: Any) -> Any:
    assert mosha_ledger("open", book, "visits", *UNIT, *LIMIT)[0] == 0
    return book


def spend(book: Any, times: Any = 1) -> Any:
    with mosha.Ledger(book) as ledger:
        for _ in range(times):
            ledger.account("visits").open(asking(events.Gaussian(20), answer=7)).step(None)
        return str(ledger.head)


def test_open_makes_an_account_and_says_so(book: Any, mosha_ledger: Any) -> None:
    code, out, _ = mosha_ledger("open", book, "visits", *UNIT, *LIMIT, "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["account"], found["spent"], found["rule"]) == ("visits", 0.0, "either")
    assert found["promise"] == {
        "guarantee": "Approx",
        "epsilon": pytest.approx(3.0, rel=1e-15),
        "delta": pytest.approx(1e-6, rel=1e-15),
    }
    with mosha.Ledger(book) as ledger:
        assert ledger.account("visits").unit == mosha.Person("patient_id")


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("row", mosha.Row()),
        ("row:3", mosha.Row(at_most=3)),
        ("reading", mosha.Reading()),
        ("edge", mosha.Edge()),
        ("node", mosha.Node()),
        ("example", mosha.Example()),
        ("client", mosha.Client()),
        ("own", mosha.Own()),
        ("person:a:b", mosha.Person("a:b")),
    ],
)
def test_every_unit_has_a_word(book: Any, mosha_ledger: Any, text: str, unit: Any) -> None:
    assert mosha_ledger("open", book, "visits", "--unit", text, "--epsilon", 1)[0] == 0
    with mosha.Ledger(book) as ledger:
        assert ledger.account("visits").unit == unit


@pytest.mark.parametrize("text", ["", "person", "person:", "row:x", "row:0", "edge:1", "planet", "Person:x"])
def test_a_unit_that_is_none_is_refused(book: Any, mosha_ledger: Any, text: str) -> None:
    code, _, err = mosha_ledger("open", book, "visits", "--unit", text, "--epsilon", 1)
    assert code == 1
    assert err.startswith("mosha: InvalidParameter:")


def test_neighbors_may_be_said(book: Any, mosha_ledger: Any) -> None:
    assert mosha_ledger("open", book, "visits", "--unit", "row", "--neighbors", "replace-one", "--rho", 1)[0] == 0
    with mosha.Ledger(book) as ledger:
        assert ledger.account("visits").unit == mosha.Row(neighbors="replace-one")  # type: ignore[arg-type]


def test_children_and_blocks(visits: Any, mosha_ledger: Any) -> None:
    assert mosha_ledger("open", visits, "zhang", "--parent", "visits", "--epsilon", 1, "--delta", 1e-7)[0] == 0
    assert mosha_ledger("open", visits, "2026-11", "--parent", "visits", "--block")[0] == 0
    assert mosha_ledger("open", visits, "x", "--block")[0] == 1
    assert mosha_ledger("open", visits, "days", "--unit", "reading", "--mu", 1, "--disjoint-blocks")[0] == 0
    with mosha.Ledger(visits) as ledger:
        found = {account.name: account.terms for account in ledger.accounts()}
    assert found["visits/2026-11"].block
    assert found["days"].disjoint_blocks


def test_other_terms_are_refused_in_one_line(visits: Any, mosha_ledger: Any) -> None:
    code, out, err = mosha_ledger("open", visits, "visits", *UNIT, "--epsilon", 30)
    assert (code, out) == (1, "")
    assert err.startswith("mosha: AccountMismatch:")
    assert err.count("\n") == 1
    code, out, _ = mosha_ledger("open", visits, "visits", *UNIT, "--epsilon", 30, "--json")
    assert (code, json.loads(out)["error"]) == (1, "AccountMismatch")


def test_show_says_what_is_left(visits: Any, mosha_ledger: Any) -> None:
    spend(visits)
    code, out, _ = mosha_ledger("show", visits)
    assert code == 0
    spent = concentrated.epsilon_from_rho(0.00125, 9e-7)  # all of delta but a tenth: no release so far adds epsilons up
    for part in ("visits", f"epsilon {spent:.4g}", "head 4:"):
        assert part in out
    found = json.loads(mosha_ledger("show", visits, "--json")[1])
    left = concentrated.rho_from_epsilon(3, 9e-7) - 0.00125
    assert concentrated.rho_of_pure(found["accounts"][0]["remaining"]) == pytest.approx(left)
    one = json.loads(mosha_ledger("show", visits, "visits", "--json")[1])
    assert one.pop("today")["epsilon"] <= one["spent_as"]["epsilon"]
    assert one == found["accounts"][0]
    assert "tightest" in mosha_ledger("show", visits, "visits")[1]
    assert mosha_ledger("show", visits, "nobody")[0] == 1


def test_reading_commands_begin_no_book(book: Any, mosha_ledger: Any, tmp_path: Path) -> None:
    for command in (("show",), ("verify",), ("export",), ("statement", "visits")):
        code, _, err = mosha_ledger(command[0], book, *command[1:])
        assert code == 1
        assert "no ledger" in err
    (tmp_path / "empty.db").touch()
    for command in ("show", "verify", "export"):  # type: ignore[assignment]
        assert mosha_ledger(command, tmp_path / "empty.db")[0] == 1
    assert (tmp_path / "empty.db").stat().st_size == 0
    assert [path.name for path in tmp_path.glob("empty*")] == ["empty.db"]
    assert not list(tmp_path.glob("privacy*"))


def test_verify_is_content_with_an_honest_book(visits: Any, mosha_ledger: Any) -> None:
    head = spend(visits)
    code, out, _ = mosha_ledger("verify", visits)
    assert (code, out) == (0, f"The book is intact: 4 rows, head {head}\n")
    assert mosha_ledger("verify", visits, "--head", head, "--json")[0] == 0


def test_verify_ends_with_three_where_something_is_wrong(visits: Any, mosha_ledger: Any, tmp_path: Path) -> None:
    shutil.copy(visits, tmp_path / "old.db")
    head = spend(visits)
    shutil.copy(tmp_path / "old.db", visits)
    code, out, _ = mosha_ledger("verify", visits)  # the witness knows
    assert (code, "older copy" in out) == (3, True)
    (tmp_path / "privacy.db.head").unlink()
    code, out, _ = mosha_ledger("verify", visits)
    assert (code, "no witness" in out) == (0, True)
    code, out, _ = mosha_ledger("verify", visits, "--head", head, "--json")
    assert (code, json.loads(out)["ok"]) == (3, False)
    assert mosha_ledger("verify", visits, "--head", "nonsense")[0] == 1


def test_export_writes_every_row(visits: Any, mosha_ledger: Any, tmp_path: Path) -> None:
    head = spend(visits)
    lines = [json.loads(line) for line in mosha_ledger("export", visits)[1].splitlines()]
    assert [line["kind"] for line in lines] == ["ledger", "open", "pay", "release"]
    assert f"{lines[-1]['sequence']}:{lines[-1]['hash']}" == head
    whole = json.loads(mosha_ledger("export", visits, "--after", 2, "--json")[1])
    assert (whole["head"], whole["entries"]) == (head, lines[2:])
    out = tmp_path / "book.jsonl"
    assert json.loads(mosha_ledger("export", visits, "--out", out, "--json")[1])["entries"] == 4
    assert [json.loads(line) for line in out.read_text().splitlines()] == lines
    assert mosha_ledger("export", visits, "--out", tmp_path / "nowhere" / "x")[0] == 1


def test_statement_speaks_markdown_and_json(visits: Any, mosha_ledger: Any, tmp_path: Path) -> None:
    spend(visits, 3)
    assert mosha_ledger("statement", visits, "visits")[1].startswith("# Privacy statement: visits")
    found = json.loads(mosha_ledger("statement", visits, "visits", "--json")[1])
    assert (sum(line["count"] for line in found["releases"]), found["registry"]["deployment"]["basic"]["name"]) == (
        3,
        "visits",
    )
    out = tmp_path / "statement.json"
    assert mosha_ledger("statement", visits, "visits", "--json", "--out", out)[0] == 0
    assert json.loads(out.read_text()) == found
    assert mosha_ledger("statement", visits, "nobody")[0] == 1


def test_wrong_usage_ends_with_two(mosha_ledger: Any) -> None:
    assert mosha_ledger()[0] == 2
    assert mosha_ledger("open")[0] == 2
    assert mosha_ledger("burn", "privacy.db")[0] == 2
    assert mosha_ledger("verify", "privacy.db", "--colour")[0] == 2


def test_a_refusal_states_asked_spent_and_limit(visits: Any) -> None:
    with mosha.Ledger(visits) as ledger, pytest.raises(errors.BudgetExceeded) as refusal:
        ledger.account("visits").open(asking(events.Gaussian(0.5)))
    told = refusal.value.to_dict()
    assert (told["error"], told["used"], told["limit"]) == ("BudgetExceeded", 0.0, 3.0)
    assert told["asked"] == pytest.approx(concentrated.epsilon_from_rho(2.0, 9e-7))


def test_a_limit_that_can_never_pay_is_refused(book: Any, mosha_ledger: Any) -> None:
    code, _, err = mosha_ledger("open", book, "visits", "--unit", "row", "--epsilon", "1e-300")
    assert (code, "too small" in err) == (1, True)


def test_a_folder_and_an_unknown_url_are_told_as_such(mosha_ledger: Any, tmp_path: Path) -> None:
    assert "is a folder" in mosha_ledger("open", tmp_path, "visits", "--unit", "row", "--epsilon", "1")[2]
    assert "is a folder" in mosha_ledger("show", tmp_path)[2]
    assert "postgresql://" in mosha_ledger("show", "mysql://x")[2]


def test_what_is_left_of_a_spent_limit_is_shown_as_nothing(book: Any, mosha_ledger: Any) -> None:
    mosha_ledger("open", book, "visits", "--unit", "row", "--epsilon", "2")
    with mosha.Ledger(book) as ledger:
        ledger.account("visits").open(asking(events.Pure(2.0), answer=7, unit=mosha.Row())).step(None)
    line = mosha_ledger("show", book)[1].splitlines()[1]
    assert line.split()[-1] == "0"


def test_a_frozen_account_is_shown_and_lifted(book: Any, mosha_ledger: Any) -> None:
    with mosha.Ledger(book) as ledger:
        visits = ledger.account("visits", unit=mosha.Person("patient_id"), epsilon=3)
        for _ in range(3):
            with pytest.raises(errors.StepFailed):
                visits.child("zhang", epsilon=1).open(asking(events.Laplace(99), answer=lambda data: 1 / 0)).step(None)
    assert "visits (frozen)" in mosha_ledger("show", book)[1]
    found = json.loads(mosha_ledger("show", book, "visits/zhang", "--json")[1])
    assert (found["failures"], found["frozen"]) == (3, True)
    assert "An account above it is frozen as well" in mosha_ledger("lift", book, "visits/zhang")[1]
    said = json.loads(mosha_ledger("lift", book, "visits", "--json")[1])
    assert said == {"account": "visits", "lifted": 3, "frozen": False}
    assert mosha_ledger("lift", book, "nobody")[0] == 1


def test_keys_from_the_command_line(
    book: Any, mosha_ledger: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first.key", tmp_path / "second.key"
    names = [json.loads(mosha_ledger("make-key", file, "--json")[1])["key"] for file in (first, second)]
    assert mosha_ledger("open", book, "visits", *UNIT, *LIMIT, "--key-file", first)[0] == 0
    for arguments in (
        ("open", book, "other", *UNIT, *LIMIT),
        ("note", book, "approval", "yes"),
        ("lift", book, "visits"),
    ):
        code, _, complaint = mosha_ledger(*arguments)
        assert (code, "LedgerKeyRefused" in complaint) == (1, True)
    monkeypatch.setenv("MOSHA_LEDGER_KEY_FILE", str(first))
    assert mosha_ledger("note", book, "approval", "yes")[0] == 0
    assert mosha_ledger("grant", book, "visits", "wang", "--epsilon", "1", "--expires", "2999-12-31")[0] == 0
    changed = json.loads(mosha_ledger("rotate-key", book, second, "--json")[1])
    assert [changed["previous"], changed["key"]] == names
    assert mosha_ledger("note", book, "approval", "no")[0] == 1
    assert mosha_ledger("show", book)[0] == 0
    monkeypatch.delenv("MOSHA_LEDGER_KEY_FILE")
    code, out, _ = mosha_ledger("verify", book, "--key-file", first, "--key-file", second)
    assert (code, "not given" in out) == (0, False)
    assert "not given" in mosha_ledger("verify", book)[1]


def test_a_question_is_paid_with_the_key_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text("pid\n" + "\n".join(map(str, range(50))))
    asked = ["query", "visits.csv", "SELECT COUNT(*) FROM data", "--unit", "pid", "--at-most", "1", "--epsilon", "0.1"]
    make_key_file(tmp_path / "ledger.key")
    monkeypatch.setenv("MOSHA_LEDGER_KEY_FILE", str(tmp_path / "ledger.key"))
    assert main(asked) == 0
    monkeypatch.delenv("MOSHA_LEDGER_KEY_FILE")
    assert main(asked) == 1
    assert "LedgerKeyRefused" in capsys.readouterr().err


def test_verification_goes_on_from_a_file(visits: Any, mosha_ledger: Any, tmp_path: Path) -> None:
    spend(visits)
    code, _, complaint = mosha_ledger("verify", visits, "--since", tmp_path / "checkpoint")
    assert (code, "Keep it elsewhere" in complaint) == (1, True)
    (tmp_path / "elsewhere").mkdir()
    file = tmp_path / "elsewhere" / "checkpoint"
    assert "not read again" not in mosha_ledger("verify", visits, "--since", file)[1]
    spend(visits)
    code, out, _ = mosha_ledger("verify", visits, "--since", file)
    assert (code, "not read again" in out) == (0, True)
    kept = file.read_bytes()
    assert mosha_ledger("verify", visits, "--since", file)[0] == 0
    assert file.read_bytes() == kept  # nothing new was written
