"""`mosha ledger`: open accounts, read the book, verify it, export it, state what it promises."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from mosha.cli.option_groups import spread_options
from mosha.cli.terminal import Json, console, write_json
from mosha.core.errors import InvalidParameter, LedgerTampered
from mosha.core.guarantee import Guarantee
from mosha.core.language import current_language, describe_system_error, say, translate
from mosha.core.names.deprecation import warn_of_old_name
from mosha.core.options import RuleName
from mosha.core.release import describe_as, write_left
from mosha.core.unit import Client, Edge, Example, Node, Own, Person, Reading, Row, Unit

if TYPE_CHECKING:
    from mosha.ledger import Ledger, LedgerAccount
    from mosha.ledger.terms.wanted import Limits

__all__ = [
    "KeyFile",
    "Name",
    "Out",
    "Place",
    "TermOptions",
    "app",
    "open_ledger",
    "show_accounts",
    "write_text",
]

VERIFICATION_FAILED = 3
_UNITS: dict[str, type[Unit]] = {
    "person": Person,
    "row": Row,
    "reading": Reading,
    "edge": Edge,
    "node": Node,
    "example": Example,
    "client": Client,
    "own": Own,
}
_OLD_UNITS = {"event": "reading", "self": "own"}

app = typer.Typer(help="The book of accounts: who may spend how much privacy, and who has.", no_args_is_help=True)

Place = Annotated[str, typer.Argument(help="The file of the ledger, or the URL of a PostgreSQL database.")]
Name = Annotated[str, typer.Argument(help="The name of the account; 'parent/child' names a child.")]
NeighborsOption = Annotated[str | None, typer.Option("--neighbors", "--neighbours", help="add-remove or replace-one.")]
Epsilon = Annotated[float | None, typer.Option(help="The limit as epsilon (with --delta).")]
Delta = Annotated[float | None, typer.Option(help="The probability that the promise may fail with.")]
Rho = Annotated[float | None, typer.Option(help="The limit in zero-concentrated differential privacy.")]
Mu = Annotated[float | None, typer.Option(help="The limit in Gaussian differential privacy.")]
Rule = Annotated[
    str | None, typer.Option(help="How releases are admitted: either, pure, zero-concentrated, renyi or gaussian.")
]
DeltaForEvents = Annotated[
    float | None, typer.Option(help="How much of delta is kept for events that carry their own (a tenth).")
]
Size = Annotated[int | None, typer.Option(help="How many units there are about, where that is public.")]
PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy", help="Ceilings that accounts obey (mosha-policy.toml): in force from now on in this book."
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file", envvar="MOSHA_LEDGER_KEY_FILE", help="The file (mode 0600) of the key that rows are written with."
    ),
]
Out = Annotated[Path | None, typer.Option("--out", help="Write to this file instead of standard output.")]


@dataclass(kw_only=True)
class TermOptions:
    """The limits of an account that is opened, and how its book is read."""

    epsilon: Epsilon = None
    delta: Delta = None
    rho: Rho = None
    mu: Mu = None
    rule: Rule = None
    delta_for_events: DeltaForEvents = None
    policy: PolicyFile = None
    key_file: KeyFile = None

    def read_limits(self) -> Limits:
        """What accounts, populations and grants take."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": self.rho,
            "mu": self.mu,
            "rule": cast("RuleName | None", self.rule),
            "delta_for_events": self.delta_for_events,
        }


def open_ledger(
    place: str, *, create: bool = False, policy: Path | None = None, key_file: Path | None = None
) -> Ledger:
    from mosha.ledger import Ledger as Book  # noqa: PLC0415  (a command that fails early loads nothing)

    return Book(place, create=create, policy=policy, key=key_file)


def _unit(text: str | None, neighbors: str | None, of: str | None) -> Unit | None:
    """The unit that `person:patient_id`, `row`, `row:3` or `reading` names."""
    if text is None:
        if of is not None:
            raise InvalidParameter("cli.of_without_unit", parameter="--of")
        return None
    kind, _, detail = text.partition(":")
    if kind in _OLD_UNITS:
        warn_of_old_name(f"--unit {kind}", f"--unit {_OLD_UNITS[kind]}")
        kind = _OLD_UNITS[kind]
    if kind not in _UNITS:
        raise InvalidParameter("cli.unknown_unit", parameter="--unit", units=list(_UNITS))
    options: dict[str, Any] = {} if neighbors is None else {"neighbors": neighbors}
    options |= {} if of is None else {"of": of}
    if kind == "person":
        return Person(detail, **options)
    if kind == "row" and detail:
        if not detail.isdecimal():
            raise InvalidParameter("cli.rows_not_a_number", parameter="--unit")
        return Row(at_most=int(detail), **options)
    if detail:
        raise InvalidParameter("cli.unit_takes_nothing", parameter="--unit", kind=kind)
    return _UNITS[kind](**options)


@app.command("open")
@spread_options
def open_account(
    place: Place,
    name: Name,
    *,
    unit: Annotated[
        str | None,
        typer.Option(help="Who is hidden: person:COLUMN, row, row:N, reading, edge, node, example, client, own."),
    ] = None,
    of: Annotated[str | None, typer.Option(help="The population that these units are of: it pays as well.")] = None,
    neighbors: NeighborsOption = None,
    terms: TermOptions,
    size: Size = None,
    parent: Annotated[str | None, typer.Option(help="The account above, which pays for every release too.")] = None,
    block: Annotated[bool, typer.Option("--block", help="A block of the parent's data, under its limits.")] = False,
    disjoint_blocks: Annotated[
        bool | None, typer.Option("--disjoint-blocks", help="Every unit lies in at most one block of this account.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Open an account, or reopen it under the same terms."""
    limits = terms.read_limits()
    limits["disjoint_blocks"], limits["size"] = disjoint_blocks, size
    hidden = _unit(unit, neighbors, of)
    with closing(open_ledger(place, create=True, policy=terms.policy, key_file=terms.key_file)) as ledger:
        if block:
            if parent is None or hidden is not None:
                raise InvalidParameter("cli.block_without_parent", parameter="--block")
            account = ledger.account(parent).block(name, **limits)
        else:
            account = ledger.account(name, unit=hidden, parent=parent, **limits)
        show_accounts([account], as_json=as_json)


@app.command()
@spread_options
def population(
    place: Place,
    name: Annotated[str, typer.Argument(help="The name that units give as their population (--of).")],
    *,
    neighbors: NeighborsOption = None,
    terms: TermOptions,
    size: Size = None,
    as_json: Json = False,
) -> None:
    """Open the account of a population: one cap over all that is ever asked about the same people."""
    from mosha.core.unit import Neighbors  # noqa: PLC0415

    limits = terms.read_limits()
    limits["size"] = size
    if neighbors is not None and neighbors not in {str(each) for each in Neighbors}:
        raise InvalidParameter("core.unknown_option", parameter="--neighbors", options=["add-remove", "replace-one"])
    with closing(open_ledger(place, create=True, policy=terms.policy, key_file=terms.key_file)) as ledger:
        said = None if neighbors is None else Neighbors(neighbors)
        show_accounts([ledger.population(name, neighbors=said, **limits)], as_json=as_json)


@app.command()
def show(
    place: Place,
    name: Annotated[str | None, typer.Argument(help="One account; all of them by default.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Show the accounts: what they promise, what they have spent, what is left."""
    with closing(open_ledger(place)) as ledger:
        if name is None:
            show_accounts(ledger.accounts(), as_json=as_json, head=str(ledger.head))
        else:
            show_accounts([ledger.account(name)], as_json=as_json, today=ledger.reprice(name))


def _describe_account(account: LedgerAccount) -> dict[str, Any]:
    return {
        "account": account.name,
        "unit": account.unit.to_dict(),
        "hidden": account.unit.describe(),
        "promise": account.promise.to_dict(),
        "rule": account.rule.name,
        "measure": account.rule.measure,
        "spent": account.spent,
        "limit": account.limit,
        "remaining": account.remaining,
        "remaining_as": None if account.remaining_as is None else account.remaining_as.to_dict(),
        "more_like_last": account.more_like_last,
        "spent_as": account.spent_as.to_dict(),
        "block": account.terms.block,
        "disjoint_blocks": account.terms.disjoint_blocks,
        "retired": account.retired,
        "population": account.unit.of,
        "size": account.terms.size,
        "expires": None if account.expires is None else account.expires.isoformat(timespec="seconds"),
        "expired": account.expired,
        "purpose": account.purpose,
        "failures": account.failures,
        "frozen": account.frozen,
    }


def _state(row: dict[str, object]) -> str:
    if row["retired"]:
        return say("cli.state_retired")
    if row["frozen"]:
        return say("cli.state_frozen")
    code = "cli.state_ended" if row["expired"] else "cli.state_until"
    return "" if row["expires"] is None else say(code, when=row["expires"])


def show_accounts(
    accounts: list[LedgerAccount], *, as_json: bool, head: str | None = None, today: Guarantee | None = None
) -> None:
    """All accounts with the head of their book, or one account, perhaps with what it costs by today's accounting."""
    described = [_describe_account(account) for account in accounts]
    if as_json:
        one = {} if head is not None else described[0] | ({} if today is None else {"today": today.to_dict()})
        write_json(one or {"head": head, "accounts": described})
        return
    from rich.table import Table  # noqa: PLC0415  (slow to load, and --json needs none of it)

    columns = ("account", "hidden", "promise", "spent", "limit", "left", "more")
    table = Table(*(say(f"cli.column_{column}") for column in columns), box=None, pad_edge=False)
    for account, row in zip(accounts, described, strict=True):
        numbers = (
            f"{row['measure']} {row['spent']:.4g}",
            f"{row['limit']:.4g}",
            write_left(row["remaining"], row["limit"], row["measure"], row["more_like_last"])
            + describe_as(account.remaining_as),
            "" if row["more_like_last"] is None else f"{row['more_like_last']:,}",
        )
        table.add_row(row["account"] + _state(row), row["hidden"], str(account.promise), *numbers)
    screen = console()
    screen.print(table if described else say("cli.no_accounts"))
    if head is not None:
        screen.print(say("cli.head_is", head=head), soft_wrap=True)
    if today is not None:
        screen.print(say("cli.spent_today", spent=str(accounts[0].spent_as), today=str(today)))


@app.command()
def lift(place: Place, name: Name, *, key_file: KeyFile = None, as_json: Json = False) -> None:
    """Let a frozen account answer again, after its owner has read the private log and found no row to blame."""
    with closing(open_ledger(place, key_file=key_file)) as ledger:
        account = ledger.account(name)
        failures = account.lift()
        if as_json:
            write_json({"account": name, "lifted": failures, "frozen": account.frozen})
            return
        code = "cli.lifted_above" if account.frozen else "cli.lifted"
    typer.echo(say(code, account=name, failures=failures))


@app.command()
def verify(
    place: Place,
    *,
    head: Annotated[
        str | None, typer.Option(help="A head that was kept elsewhere: 'sequence:hash', or the hash alone.")
    ] = None,
    key_file: Annotated[
        list[Path] | None,
        typer.Option(
            envvar="MOSHA_LEDGER_KEY_FILE", help="A key that rows were written with; may be given repeatedly."
        ),
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option(help="Read only rows after this checkpoint, and write it anew; kept outside the book."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Read the whole book again: every hash, every sum, every limit, every tag. Exit code 3 if anything is wrong."""
    try:
        with closing(open_ledger(place)) as ledger:
            found = ledger.verify(head=head, keys=key_file or (), since=since, keep=since is not None).to_dict()
    except LedgerTampered as error:  # the book itself refuses to be opened
        found = {"ok": False, "entries": None, "head": None, "problems": [str(error)]}
    if as_json:
        write_json(found)
    else:
        for problem in found["problems"]:
            typer.echo(say("cli.wrong", problem=problem))
        for note in found.get("notes", []):
            typer.echo(translate(note, current_language()))
        well = say("cli.book_well", entries=found["entries"], head=found["head"])
        typer.echo(well if found["ok"] else say("cli.book_not_well"))
    if not found["ok"]:
        raise typer.Exit(VERIFICATION_FAILED)


@app.command()
def export(
    place: Place,
    *,
    after: Annotated[int, typer.Option(help="Only rows after this one.")] = 0,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Write all rows of the book: one JSON object a line, or one document with --json."""
    with closing(open_ledger(place)) as ledger:
        rows = ledger.entries(after)
        head = str(ledger.head) if not rows else str(rows[-1].head)
    described = [
        {"sequence": r.sequence, "at": r.at, "kind": r.kind, "body": r.content(), "hash": r.hash} for r in rows
    ]
    if as_json and out is None:
        write_json({"head": head, "entries": described})
        return
    lines = "".join(json.dumps(row, sort_keys=True) + "\n" for row in described)
    write_text(lines, out)
    if out is not None and as_json:
        write_json({"head": head, "out": str(out), "entries": len(rows)})


def write_text(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidParameter("cli.not_written", path=str(out), reason=describe_system_error(error)) from None
