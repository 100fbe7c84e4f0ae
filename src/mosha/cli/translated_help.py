"""`--help` in the language of its reader: commands are described in the code, their Chinese stands in `sentences`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mosha.core.language import current_language, templates

__all__ = ["speak_to_reader"]

_PANELS = {
    "ARGUMENTS_PANEL_TITLE": "Arguments",
    "OPTIONS_PANEL_TITLE": "Options",
    "COMMANDS_PANEL_TITLE": "Commands",
    "DEFAULT_STRING": "[default: {}]",
    "REQUIRED_LONG_STRING": "[required]",
    "ENVVAR_STRING": "[env var: {}]",
}


@contextmanager
def speak_to_reader(command: Any) -> Iterator[None]:
    """The help of a command, and of all commands beneath it, in the chosen language, as long as this lasts.

    Args:
        command: as `typer.main.get_command` makes it; it is changed.
    """
    if current_language() == "en":
        yield
        return
    from typer import rich_utils  # noqa: PLC0415  (help alone needs it)

    words = {entry["en"]: entry["zh"] for entry in templates("help").values()}
    _translate(command, words)
    before = {name: getattr(rich_utils, name) for name in _PANELS}
    for name, text in _PANELS.items():
        setattr(rich_utils, name, words[text])
    try:
        yield
    finally:
        for name, text in before.items():
            setattr(rich_utils, name, text)


def _translate(command: Any, words: dict[str, str]) -> None:
    """Replace what is said of a command, its arguments and the commands beneath it; what has no Chinese stays."""
    for part in (command, *command.params):
        text = (getattr(part, "help", None) or "").strip()
        if text in words:
            part.help = words[text]
    command.options_metavar = words["[OPTIONS]"]
    if hasattr(command, "subcommand_metavar"):
        command.subcommand_metavar = words["COMMAND [ARGS]..."]
    usage, help_option = command.get_usage, command.get_help_option

    def get_usage(context: Any) -> str:
        return str(usage(context)).replace("Usage:", words["Usage:"], 1)

    def get_help_option(context: Any) -> Any:
        option = help_option(context)
        if option is not None:
            option.help = words["Show this message and exit."]
        return option

    command.get_usage, command.get_help_option = get_usage, get_help_option
    for inner in getattr(command, "commands", {}).values():
        _translate(inner, words)
