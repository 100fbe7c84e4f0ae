"""`mosha ledger grant` and `revoke`: accounts that may be used until a date."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from mosha.cli.ledger.commands import KeyFile, Name, Place, TermOptions, app, open_ledger, show_accounts
from mosha.cli.option_groups import spread_options
from mosha.cli.terminal import Json
from mosha.core.errors import InvalidParameter

__all__ = ["grant", "revoke"]


@app.command()
@spread_options
def grant(
    place: Place,
    account: Annotated[str, typer.Argument(help="The account that the grant is made from.")],
    name: Annotated[str, typer.Argument(help="Who may use it.")],
    *,
    expires: Annotated[str, typer.Option(help="The last day (UTC), or a time with its zone.")],
    purpose: Annotated[str | None, typer.Option(help="What it is for: a sentence that stands in the book.")] = None,
    terms: TermOptions,
    as_json: Json = False,
) -> None:
    """Open an account beneath another one that may be used until a date."""
    with closing(open_ledger(place, policy=terms.policy, key_file=terms.key_file)) as ledger:
        made = ledger.account(account).grant(name, expires=expires, purpose=purpose, **terms.read_limits())
        show_accounts([made], as_json=as_json)


@app.command()
def revoke(
    place: Place,
    name: Name,
    *,
    reason: Annotated[str | None, typer.Option(help="Why: it stands in the book.")] = None,
    key_file: KeyFile = None,
    as_json: Json = False,
) -> None:
    """Close an account beneath another one for good; what it has not spent stays with the one above."""
    with closing(open_ledger(place, key_file=key_file)) as ledger:
        found = ledger.account(name)
        owner = found.parent
        if owner is None:
            raise InvalidParameter("cli.no_owner", account=name)
        owner.revoke(name.rpartition("/")[2], reason=reason)
        show_accounts([found], as_json=as_json)
