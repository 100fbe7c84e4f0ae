"""`mosha serve`: a server for people who are not trusted with the data."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from mosha.cli.terminal import Json, write_json

__all__ = ["serve"]


def serve(
    *,
    demo: Annotated[bool, typer.Option("--demo", help="Register a made-up hospital with two analysts.")] = False,
    port: Annotated[int | None, typer.Option(help="The port to listen at (8320); 0 picks a free one.")] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Where the server keeps its ledger and its store ('mosha-server').")
    ] = None,
    host: Annotated[str | None, typer.Option(help="The address to listen at (127.0.0.1).")] = None,
    certificate: Annotated[str | None, typer.Option(help="A TLS certificate (PEM).")] = None,
    key: Annotated[str | None, typer.Option(help="The key of the certificate (PEM).")] = None,
    behind_proxy: Annotated[
        str | None, typer.Option(help="The address of a proxy in front, which speaks HTTPS to the world.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="How many questions run at the same time (2).")] = None,
    settings: Annotated[
        Path | None, typer.Option(help="A file of settings; FOLDER/mosha-server.toml by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Serve datasets to people who are not trusted with them: REST, a console, and a ledger that pays."""
    from mosha.server.serving import serve as run  # noqa: PLC0415  (an extra)
    from mosha.server.settings import read_settings  # noqa: PLC0415

    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="mosha-demo-")) if demo else Path("mosha-server")
    found = read_settings(
        folder.absolute(), file=settings, demo=demo or None, port=port, host=host, certificate=certificate, key=key,
        behind_proxy=behind_proxy, workers=workers,
    )  # fmt: skip

    def announce(address: str, lines: list[str]) -> None:
        if as_json:
            write_json({"address": address, "folder": str(found.folder), "messages": lines})
        else:
            typer.echo("\n".join(lines))

    run(found, announce)
