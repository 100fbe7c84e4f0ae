"""Laws of every command: help, JSON, exit codes, errors in one line."""

import json
import os
import re
import subprocess
import sys
from typing import Any, NoReturn

import pytest

import mosha
from mosha.cli import main


def test_version_is_the_version_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith(f"mosha {mosha.__version__} ")
    assert main(["version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mosha"] == mosha.__version__
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith(f"mosha {mosha.__version__} ")


def test_wrong_usage_names_the_help_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "show"]) == 2
    assert capsys.readouterr().err.endswith(". Try 'mosha ledger show --help'.\n")


@pytest.mark.parametrize("arguments", [["surprise"], ["version", "--surprise"], ["version", "surprise"]])
def test_wrong_usage_is_one_line_and_exit_code_two(arguments: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("mosha: WrongUsage: ")
    assert main([*arguments, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"] == "WrongUsage"


def test_an_unexpected_error_is_one_line_and_its_text_is_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_only: Any = None) -> NoReturn:
        raise RuntimeError("secret")

    monkeypatch.setattr("mosha.cli.application.application", broken)
    assert main(["version"]) == 1
    out, err = capsys.readouterr()
    assert "secret" not in out + err
    assert err.count("\n") == 1
    monkeypatch.setenv("MOSHA_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        main(["version"])


def test_help_loads_no_numerics() -> None:
    script = (
        "import sys; from mosha.cli import main; main(['--help'])\n"
        "assert not {'numpy', 'scipy', 'matplotlib', 'duckdb', 'sqlite3', 'cryptography'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "explain" in done.stdout or "version" in done.stdout


SCRIPT = "import sys; from mosha.cli import main; sys.exit(main())"


def run_mosha(*arguments: Any, **environment: Any) -> Any:
    command = [sys.executable, "-c", SCRIPT, *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_a_terminal_that_knows_letters_alone_is_served() -> None:
    done = run_mosha("explain", "--epsilon", "1", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "***" in done.stdout


def test_no_colour_when_nobody_looks() -> None:
    assert "\x1b" not in run_mosha("explain", "--epsilon", "1").stdout


def test_a_reader_who_leaves_early_is_no_error() -> None:
    command = (
        f"{sys.executable} -c 'import sys; from mosha.cli import main; sys.exit(main())' explain --mu 1 | head -n 1"
    )
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout == "mu 1 (Gaussian)\n"
    assert "Traceback" not in done.stderr


HAN = re.compile("[\u4e00-\u9fff]")


@pytest.mark.parametrize(
    "words",
    [
        ["--lang", "zh", "explain", "--epsilon", "1"],
        ["explain", "--epsilon", "1", "--lang", "zh"],
        ["explain", "--lang=zh", "--rho", "0.1", "--delta", "1e-6"],
        ["plan", "--mechanism", "laplace", "--sensitivity", "1", "--within", "5", "--lang", "zh"],
    ],
)
def test_explain_and_plan_speak_chinese(words: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    spoken = [line for line in capsys.readouterr().out.splitlines() if re.search("[a-z]{4,} [a-z]{4,} [a-z]{3,}", line)]
    assert not [line for line in spoken if not HAN.search(line)]


def test_errors_speak_the_language_of_the_line_or_the_locale_and_it_ends_with_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MOSHA_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    wrong = ["explain", "--epsilon", "-1"]
    assert (main(wrong), bool(HAN.search(capsys.readouterr().err))) == (1, False)
    assert (main([*wrong, "--lang", "zh"]), bool(HAN.search(capsys.readouterr().err))) == (1, True)
    assert (main(wrong), bool(HAN.search(capsys.readouterr().err))) == (1, False)
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert (main(wrong), bool(HAN.search(capsys.readouterr().err))) == (1, True)
    assert (main([*wrong, "--lang", "en"]), bool(HAN.search(capsys.readouterr().err))) == (1, False)
    monkeypatch.setenv("MOSHA_LANG", "en")
    assert (main(wrong), bool(HAN.search(capsys.readouterr().err))) == (1, False)
    assert main([*wrong, "--lang", "fr"]) == 1
