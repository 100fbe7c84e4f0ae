"""`mosha server`: backup, restore and check of a server's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mosha.cli.terminal import Json, write_json
from mosha.core.language import current_language, say, translate

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Back up, restore and check a server.")
Folder = Annotated[Path, typer.Option(help="The server's folder.")]
Heads = Annotated[list[str] | None, typer.Option(help="A head of the chain that was kept elsewhere; may be repeated.")]
HERE = Path("mosha-server")


def _settings(folder: Path) -> Any:
    from mosha.server.settings import read_settings  # noqa: PLC0415  (an extra)

    return read_settings(folder.absolute())


@app.command("backup")
def backup(
    target: Annotated[Path, typer.Argument(help="A new folder for the copy.")],
    *,
    folder: Folder = HERE,
    as_json: Json = False,
) -> None:
    """Copy store and ledger, and print the head: keep it elsewhere."""
    from mosha.server.upkeep import back_up  # noqa: PLC0415

    done = back_up(_settings(folder), target.absolute())
    write_json(done) if as_json else typer.echo(say("cli.backed_up", target=str(target), head=done["head"]))


@app.command("restore")
def restore(
    source: Annotated[Path, typer.Argument(help="The folder of a backup.")],
    *,
    folder: Folder = HERE,
    head: Heads = None,
    as_json: Json = False,
) -> None:
    """Put a backup back; refused where its ledger is older than a head that is known. Stop the server first."""
    from mosha.server.upkeep import restore as put_back  # noqa: PLC0415

    done = put_back(_settings(folder), source.absolute(), heads=head or ())
    write_json(done) if as_json else typer.echo(say("cli.restored", head=done["head"]))


def _list_problems(problems: list[str]) -> str:
    return "\n".join(translate(problem, current_language()) for problem in problems)


@app.command("check")
def check(*, folder: Folder = HERE, head: Heads = None, as_json: Json = False) -> None:
    """Verify the chain, the heads that are known, and that every answered request was paid for."""
    from mosha.server.upkeep import check_server  # noqa: PLC0415

    found = check_server(_settings(folder), heads=head or ())
    if as_json:
        write_json(found)
    else:
        typer.echo(say("cli.server_well") if found["well"] else _list_problems(found["problems"]))
    if not found["well"]:
        raise typer.Exit(1)
