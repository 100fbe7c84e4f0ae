"""`mosha ledger make-key` and `rotate-key`: keys that the rows of a book are written with."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from mosha.cli.ledger.commands import KeyFile, Place, app, open_ledger
from mosha.cli.terminal import Json, write_json
from mosha.core.language import say

__all__ = ["make_key", "rotate_key"]


@app.command()
def make_key(
    file: Annotated[Path, typer.Argument(help="The file to write; never one that exists already.")],
    *,
    as_json: Json = False,
) -> None:
    """Draw a new key into a file that its owner alone can read. Keep it apart from the book."""
    from mosha.ledger.storage.key import make_key_file  # noqa: PLC0415  (help needs none of it)

    key = make_key_file(file)
    if as_json:
        write_json({"file": str(file), "key": key.id})
    else:
        typer.echo(say("cli.key_made", file=str(file), key=key.id))


@app.command()
def rotate_key(
    place: Place,
    new: Annotated[Path, typer.Argument(help="The file of the new key (see make-key).")],
    *,
    key_file: KeyFile = None,
    as_json: Json = False,
) -> None:
    """Write all rows from now on with another key; a book without a key gets its first one."""
    with closing(open_ledger(place, key_file=key_file)) as ledger:
        former = ledger.key_id
        key = ledger.rotate_key(new)
        head = str(ledger.head)
    if as_json:
        write_json({"key": key, "previous": former, "head": head})
    else:
        typer.echo(say("cli.key_rotated", key=key))
