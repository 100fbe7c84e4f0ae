"""`mosha ledger note` and `notes`: decisions in the chain, beside the payments."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from mosha.cli.ledger.commands import KeyFile, Place, app, open_ledger
from mosha.cli.terminal import Json, write_json
from mosha.core.errors import InvalidParameter
from mosha.core.language import describe_system_error, say

__all__ = ["note", "notes"]

About = Annotated[str | None, typer.Option(help="The account that the note is about.")]


@app.command()
def note(
    place: Place,
    topic: Annotated[str, typer.Argument(help="Words in lower case: approval, approval/monthly-report.")],
    content: Annotated[str, typer.Argument(help="JSON, or @FILE for a file of JSON; other text is kept as text.")],
    *,
    about: About = None,
    key_file: KeyFile = None,
    as_json: Json = False,
) -> None:
    """Write down a decision in the chain: it costs nothing and moves nothing."""
    with closing(open_ledger(place, key_file=key_file)) as ledger:
        written = ledger.note(topic, _read_content(content), about=about).to_dict()
    if as_json:
        write_json(written)
    else:
        typer.echo(say("cli.noted", entry=written["entry"]))


def _read_content(text: str) -> Any:
    if not text.startswith("@"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    try:
        return json.loads(Path(text[1:]).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidParameter("cli.note_not_readable", path=text[1:], reason=describe_system_error(error)) from None
    except (ValueError, RecursionError):
        raise InvalidParameter("cli.note_no_json", path=text[1:]) from None


@app.command()
def notes(
    place: Place,
    *,
    topic: Annotated[str | None, typer.Option(help="This topic and those under it; all by default.")] = None,
    about: About = None,
    as_json: Json = False,
) -> None:
    """List the notes in the chain, in order."""
    with closing(open_ledger(place)) as ledger:
        found = [each.to_dict() for each in ledger.notes(topic=topic, about=about)]
    if as_json:
        write_json({"notes": found})
        return
    for each in found:
        about_whom = say("cli.note_about", account=each["about"]) if "about" in each else ""
        said = json.dumps(each["content"], ensure_ascii=False, sort_keys=True)
        typer.echo(f"{each['entry']}  {each['at']}  {each['topic']}{about_whom}: {said}")
    if not found:
        typer.echo(say("cli.no_note"))
