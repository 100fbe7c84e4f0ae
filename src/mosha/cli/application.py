"""All commands in one application, and what becomes of their errors: one line, one exit code."""

from __future__ import annotations

import importlib
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Final

import typer

from mosha._version import __version__
from mosha.cli.terminal import Json, write_json
from mosha.cli.translated_help import speak_to_reader
from mosha.core.errors import InvalidParameter, MoshaError
from mosha.core.faults.weakness import WeakPromise
from mosha.core.language import LANGUAGES, current_language, keep_language, say, set_language

__all__ = ["application", "run"]

# Typer carries its own copy of click or uses the installed one; this finds the class in both.
_CommandError: Any = typer.BadParameter.__mro__[2]


# Where each command is: its module under `mosha.cli`, and what it is called there (`app` for a group of commands).
_COMMANDS: Final = {
    "explain": "explain:explain",
    "compose": "compose:compose",
    "plan": "plan:plan",
    "query": "query:query",
    "serve": "serve:serve",
    "start": "schema:start",
    "synth": "synth:synth",
    "version": "application:version",
    "ledger": "ledger.commands:app",
    "graph": "graph:app",
    "learn": "learn:app",
    "audit": "audit:app",
    "local": "local.commands:app",
    "stream": "stream.commands:app",
    "server": "server:app",
    "report": "report:app",
    "schema": "schema:app",
}
_MORE_OF_LEDGER: Final = ("grants", "keys", "notes", "statement")  # each adds its commands to the group


def application(only: str | None = None) -> typer.Typer:
    """The command `mosha` with all its subcommands, or with `only` one of them: others are not even loaded."""
    app = typer.Typer(
        name="mosha",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_mosha)
    for name in [only] if only in _COMMANDS else _COMMANDS:
        module, _, attribute = _COMMANDS[name].partition(":")
        found = getattr(importlib.import_module(f"mosha.cli.{module}"), attribute)
        if attribute == "app":
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
        for more in _MORE_OF_LEDGER if name == "ledger" else ():
            importlib.import_module(f"mosha.cli.ledger.{more}")
    return app


def _find_command(given: Sequence[str]) -> str | None:
    """The command that is called; None where an option comes first.

    >>> _find_command(["--lang", "zh", "query", "visits.csv"]), _find_command(["--lang=zh", "plan"])
    ('query', 'plan')
    """
    rest = given[2 if given[0] == "--lang" else 1 :] if given and given[0].startswith("--lang") else given
    return rest[0] if rest else None


def _print_version(value: bool) -> None:  # noqa: FBT001  (the signature of a callback)
    if value:
        version()
        raise typer.Exit


def _mosha(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    lang: Annotated[
        str | None,
        typer.Option(help="The language of errors and explanations: en or zh; MOSHA_LANG or the locale by default."),
    ] = None,
) -> None:
    """Differential privacy: what a number means, what an answer costs, and a ledger that pays for it."""
    del version  # its callback has printed it
    if lang is not None:
        if lang not in LANGUAGES:
            raise InvalidParameter("core.unknown_option", parameter="--lang", options=list(LANGUAGES))
        set_language(lang)


def version(*, as_json: Json = False) -> None:
    """Print the version of Mosha and of Python."""
    python = ".".join(map(str, sys.version_info[:3]))
    if as_json:
        write_json({"mosha": __version__, "python": python})
    else:
        typer.echo(f"mosha {__version__} (Python {python})")


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command; every error becomes one line (or one JSON object) and an exit code."""
    given = _put_language_first(list(sys.argv[1:] if arguments is None else arguments))
    with keep_language():
        first, named = [*given, "", ""][:2]  # help is shown before options are read
        named = named if first == "--lang" else first.removeprefix("--lang=")
        set_language(named if named in LANGUAGES else _find_locale())
        return _run(given)


def _put_language_first(given: list[str]) -> list[str]:
    """`--lang zh` is an option of `mosha` itself, and may stand anywhere before `--`.

    >>> _put_language_first(["explain", "--epsilon", "1", "--lang", "zh"])
    ['--lang', 'zh', 'explain', '--epsilon', '1']
    """
    end = given.index("--") if "--" in given else len(given)
    for place, text in enumerate(given[:end]):
        if text == "--lang" and place + 1 < end:
            return [text, given[place + 1], *given[:place], *given[place + 2 :]]
        if text.startswith("--lang="):
            return [text, *given[:place], *given[place + 1 :]]
    return given


def _find_locale() -> str:
    """The locale of messages, as POSIX finds it, unless MOSHA_LANG says another one."""
    names = ("MOSHA_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def _run(given: list[str]) -> int:
    as_json = "--json" in given
    try:
        command = typer.main.get_command(application(_find_command(given)))
        with _weak_promises_on_standard_error(), speak_to_reader(command):
            code = command(given, prog_name="mosha", standalone_mode=False)
    except MoshaError as error:
        return _report_error(error.to_dict(), as_json=as_json, code=1)
    except _CommandError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the help has been shown
            return 2
        described = {"error": "WrongUsage", "message": _describe_usage(error)}
        return _report_error(described, as_json=as_json, code=2)
    except (typer.Abort, KeyboardInterrupt):
        return _report_error({"error": "Aborted", "message": say("cli.stopped")}, as_json=as_json, code=1)
    except Exception as error:
        if os.environ.get("MOSHA_TRACEBACK"):
            raise
        sentence = say("cli.unexpected", kind=type(error).__name__)
        return _report_error({"error": "Unexpected", "message": sentence}, as_json=as_json, code=1)
    return code if isinstance(code, int) else 0


@contextmanager
def _weak_promises_on_standard_error() -> Iterator[None]:
    """Print a warning about a weak promise in one line, like an error."""
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *details: Any) -> None:
            if issubclass(category, WeakPromise):
                typer.echo(f"mosha: {say('cli.warning', message=message)}", err=True)
            else:
                shown(message, category, *details)

        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _describe_usage(error: Any) -> str:
    """What is wrong, and the help of the command that was called."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "mosha"
    said = str(error.format_message()).rstrip()
    said = _translate_usage(error, said)
    ended = said if said.endswith((".", "?", "!", "。")) else f"{said}."
    return say("cli.try_help", said=ended, command=f"{path} --help")


def _translate_usage(error: Any, said: str) -> str:
    """The commonest faults of a command line, in the reader's language; others as they are."""
    kind, parameter = type(error).__name__, getattr(error, "param", None)
    named = "" if parameter is None else _name_parameter(parameter)
    if kind == "NoSuchOption":
        return say("cli.no_such_option", option=error.option_name)
    if kind == "MissingParameter" and named:
        return say("cli.missing_parameter", parameter=named) + _add_help(parameter)
    if kind == "BadParameter" and named:
        return say("cli.bad_parameter", parameter=named, problem=_translate_value(error.message))
    if kind == "BadParameter":
        return say("cli.bad_value", problem=error.message)
    if said.startswith("No such command"):
        return say("cli.no_such_command", command=said.split("'")[1] if "'" in said else "") + _list_commands(error)
    return say("cli.missing_command") if said == "Missing command." else said


def _list_commands(error: Any) -> str:
    """What could have been meant, behind a command that is none."""
    group = getattr(getattr(error, "ctx", None), "command", None)
    known = sorted(f"'{name}'" for name, command in getattr(group, "commands", {}).items() if not command.hidden)
    return say("cli.known_commands", commands=say("core.title_join").join(known)) if known else ""


def _add_help(parameter: Any) -> str:
    """What a parameter is for, behind its name."""
    help_text = str(getattr(parameter, "help", None) or "").strip()
    return say("cli.parameter_help", help=help_text) if help_text else ""


def _name_parameter(parameter: Any) -> str:
    """As it is written on the command line (Typer's own hint is called otherwise from version to version)."""
    options = [name for name in parameter.opts if name.startswith("-")]
    return " / ".join(f"'{name}'" for name in options) or f"'{(parameter.metavar or parameter.name).upper()}'"


_VALUES = {
    r"(.+) is not a valid (float|integer|boolean|UUID|float range|integer range)\.?": "cli.value_not_a_number",
    r"Input should be a valid (number|integer|boolean)\b.*": "cli.value_no_number",
    r"(.+) is not one of (.+)\.": "cli.value_not_one_of",
    r"(?:File|Path|Directory) (.+) does not exist\.": "cli.value_no_file",
    r"(?:File|Path) (.+) is a directory\.": "cli.value_a_directory",
}


def _translate_value(message: str) -> str:
    """What is wrong with the value of an option, in the reader's language; a rare fault as it is."""
    for pattern, code in _VALUES.items():
        found = re.fullmatch(pattern, message)
        if found and current_language() != "en":
            return say(code, value=found[1], others=found[found.re.groups])
    return message


def _report_error(described: dict[str, Any], *, as_json: bool, code: int) -> int:
    if as_json:
        write_json(described)
    else:
        sentence = " ".join(str(described["message"]).split())
        typer.echo(f"mosha: {described['error']}: {sentence}", err=True)
    return code
