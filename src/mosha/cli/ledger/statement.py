"""`mosha ledger statement`: what was promised and released, for people, programs and registries."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mosha.cli.ledger.commands import Name, Out, Place, app, open_ledger, write_text
from mosha.cli.terminal import Json, write_json
from mosha.core.errors import InvalidParameter
from mosha.core.language import current_language, phrase

if TYPE_CHECKING:
    from mosha.ledger.publishing.statement import Statement

__all__ = ["statement"]


@app.command()
def statement(
    place: Place,
    name: Name,
    *,
    registry: Annotated[
        bool, typer.Option("--registry", help="An entry of the public registry of deployments, in YAML.")
    ] = False,
    html: Annotated[
        bool, typer.Option("--html", help="One page that needs nothing else, to publish or print.")
    ] = False,
    details: Annotated[
        Path | None, typer.Option(help="What no ledger knows, by the registry's names: a TOML, JSON or YAML file.")
    ] = None,
    tier: Annotated[int | None, typer.Option(help="1, 2 or 3; the highest that the details reach by default.")] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """State what was promised and released: Markdown, JSON, a page, or an entry of the registry of deployments."""
    if not registry and (details is not None or tier is not None):
        raise InvalidParameter("cli.details_without_registry", parameter="--registry")
    if html and (registry or as_json):
        raise InvalidParameter("cli.html_stands_alone", parameter="--html")
    with closing(open_ledger(place)) as ledger:
        drawn = ledger.statement(name)
    if html:
        write_text(drawn.to_html(current_language()), out)
    elif registry:
        _write_registry(drawn, details, tier, out, as_json=as_json)
    elif not as_json:
        write_text(drawn.markdown(), out)
    else:
        _write_document(drawn.to_dict(), name, out)


def _write_registry(
    drawn: Statement, details: Path | None, tier: int | None, out: Path | None, *, as_json: bool
) -> None:
    from mosha.ledger.publishing.registry import write_yaml  # noqa: PLC0415
    from mosha.ledger.terms.document import read_document  # noqa: PLC0415  (help needs none of it)

    said = None if details is None else read_document(details, phrase("cli.the_details"))
    entry = drawn.registry(said, tier=tier)
    if as_json:
        _write_document(entry, drawn.account, out)
    else:
        write_text(write_yaml(entry), out)


def _write_document(document: dict[str, object], name: str, out: Path | None) -> None:
    if out is None:
        write_json(document)
        return
    write_text(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n", out)
    write_json({"account": name, "out": str(out)})
