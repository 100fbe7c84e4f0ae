"""A command or an option that is not documented fails here."""

import re
from typing import Any

import pytest
import typer

from mosha.cli.application import application
from tests.project.pages import ROOT

PAGE = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")


def every_command(command: Any = None, path: Any = ("mosha",)) -> list[Any]:
    """All commands but old names, as (words, command)."""
    command = command or typer.main.get_command(application())
    subcommands = getattr(command, "commands", None)
    if not subcommands:
        return [(" ".join(path), command)]
    return [found for name, sub in subcommands.items() if not sub.hidden for found in every_command(sub, (*path, name))]


COMMANDS = every_command()


def section(words: Any) -> Any:
    match = re.search(rf"^##+ {re.escape(words)}\n(.*?)(?=^##+ |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return match[1] if match else ""


def options(command: Any) -> list[Any]:
    return [
        name for parameter in command.params for name in parameter.opts if name.startswith("--") and name != "--help"
    ]


@pytest.mark.parametrize(("words", "command"), COMMANDS, ids=[words for words, _ in COMMANDS])
def test_every_command_and_option_is_documented(words: Any, command: Any) -> None:
    text = section(words)
    assert text, f"docs/reference/cli.md has no section '## {words}'"
    assert not [option for option in options(command) if f"`{option}" not in text]


@pytest.mark.parametrize(("words", "command"), COMMANDS, ids=[words for words, _ in COMMANDS])
def test_every_documented_option_exists(words: Any, command: Any) -> None:
    documented = re.findall(r"^\| `(--[a-z-]+)", section(words), re.MULTILINE)
    assert set(documented) <= set(options(command))


@pytest.mark.parametrize(("words", "command"), COMMANDS, ids=[words for words, _ in COMMANDS])
def test_every_command_speaks_json_and_has_help(words: Any, command: Any) -> None:
    assert "--json" in options(command)
    assert command.help
    assert all(getattr(parameter, "help", None) for parameter in command.params if parameter.name != "help")


def test_every_documented_command_exists_and_is_documented_once() -> None:
    assert sorted(re.findall(r"^##+ (mosha \S.*)$", PAGE, re.MULTILINE)) == sorted(words for words, _ in COMMANDS)
